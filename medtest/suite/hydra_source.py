"""Three config sources that let Hydra compose from our folders, whatever the working directory.

- ``medtest-suites``: the group ``suite`` lies in a folder called ``suites``; what Hydra gets of a suite is plain data
  that :mod:`medtest.suite.safety` has let through, with ``extends`` already worked out. A suite with mistakes gives
  nothing; the job reports them, so that one bad file does not keep the others of a sweep from running.
- ``medtest-systems``: the group ``model``; ``model=ssformer`` becomes ``systems: {ssformer: {use: ssformer}}``, so
  that ``model=[pranet,ssformer]`` merges into two systems instead of one mixture. Names that no system has are let
  through and reported by the job, as with suites.
- ``medtest-conf``: ``conf/`` without the folders that hold the parts' defaults, which are no choices of Hydra's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra._internal.config_search_path_impl import ConfigSearchPathImpl
from hydra._internal.core_plugins.file_config_source import FileConfigSource
from hydra.core.object_type import ObjectType
from hydra.core.plugins import Plugins
from hydra.plugins.config_source import ConfigLoadError, ConfigResult, ConfigSource
from omegaconf import OmegaConf

from medtest.paths import conf_folder
from medtest.suite.library import load_tree, suite_folders, suite_names
from medtest.suite.systems import system_infos

_SEPARATOR = "\0"
"""Joins folders in a source's path: the one sign that no folder's name can hold."""
_NAME = re.compile(r"[A-Za-z0-9_][\w-]{0,99}(?:\.yaml)?")
"""What may be the name of a suite or system, or a misspelling of one; nothing that leads out of a folder."""
_PARTS = ("relations", "seeds", "oracles", "model")


@dataclass(frozen=True, kw_only=True)
class ConfigFolders:
    """Folders that a call adds to our own.

    Attributes:
        suites: Folders of suites (``suite_dir=``).
        configs: Folders like ``conf/`` (``--config-dir``): a team's own ``model/``, ``tracking/``, launchers.
    """

    suites: tuple[Path, ...] = ()
    configs: tuple[Path, ...] = ()

    def suite_folders(self) -> tuple[Path, ...]:
        """Return every folder of suites, the team's first."""
        return suite_folders(self.suites)


class _GroupSource(ConfigSource):
    """A source of one group, whose options are made and not read as they stand."""

    group = ""

    def names(self) -> Sequence[str]:
        """Return the group's options."""
        raise NotImplementedError

    def make(self, name: str) -> dict[str, Any]:
        """Return what choosing an option adds to the configuration's root."""
        raise NotImplementedError

    def available(self) -> bool:
        """Folders that are missing simply give no names."""
        return True

    def is_group(self, config_path: str) -> bool:
        """Tell whether a path is the root or the group."""
        return config_path.strip("/") in ("", self.group)

    def is_config(self, config_path: str) -> bool:
        """Tell whether a path is an option of the group."""
        group, _, name = config_path.strip("/").partition("/")
        return group == self.group and name.removesuffix(".yaml") in self.names()

    def list(self, config_path: str, results_filter: ObjectType | None) -> list[str]:
        """Return what lies under a path: the group, or its options."""
        if config_path.strip("/") == self.group:
            return [] if results_filter == ObjectType.GROUP else list(self.names())
        return [] if results_filter == ObjectType.CONFIG else [self.group]

    def load_config(self, config_path: str) -> ConfigResult:
        """Return what an option adds to the root."""
        if not self.is_config(config_path):
            raise ConfigLoadError(f"Config not found : {config_path}")
        name = config_path.strip("/").partition("/")[2].removesuffix(".yaml")
        return ConfigResult(
            config=OmegaConf.create(self.make(name)),
            path=self.full_path(),
            provider=self.provider,
            header={"package": "_global_"},
        )


def _is_name_in(group: str, config_path: str) -> bool:
    found, _, name = config_path.strip("/").partition("/")
    return found == group and _NAME.fullmatch(name) is not None


class SuiteSource(_GroupSource):
    """``suite=NAME``; the path is the team's folders, joined; ours are always added."""

    group = "suite"

    @staticmethod
    def scheme() -> str:
        """Return the scheme of its paths."""
        return "medtest-suites"

    def _folders(self) -> tuple[Path, ...]:
        return suite_folders(Path(folder) for folder in self.path.split(_SEPARATOR) if folder)

    def names(self) -> Sequence[str]:
        """Return the suites that can be named."""
        return suite_names(self._folders())

    def is_config(self, config_path: str) -> bool:
        """Tell whether the path is a name at all: one that no folder has is a mistake that the job reports."""
        return _is_name_in(self.group, config_path)

    def make(self, name: str) -> dict[str, Any]:
        """Return a suite's content, or nothing when it has mistakes."""
        tree = load_tree(name, self._folders())
        if tree.mistakes:
            return {}
        content = dict(tree.values)
        if "privacy" in content:  # kept apart from what conf/ says, which a suite cannot loosen
            content["suite_privacy"] = content.pop("privacy")
        return content


class SystemSource(_GroupSource):
    """``model=NAME``; the path is the ``--config-dir`` folders, joined."""

    group = "model"

    @staticmethod
    def scheme() -> str:
        """Return the scheme of its paths."""
        return "medtest-systems"

    def names(self) -> Sequence[str]:
        """Return the systems that can be named."""
        return sorted(system_infos(tuple(Path(folder) for folder in self.path.split(_SEPARATOR) if folder)))

    def is_config(self, config_path: str) -> bool:
        """Tell whether the path is a name at all: one that no system has is a mistake that the job reports."""
        return _is_name_in(self.group, config_path)

    def make(self, name: str) -> dict[str, Any]:
        """Return the system's entry, and that it was chosen."""
        return {"systems": {name: {"use": name}}, "chosen": {"systems": {name: True}}}


class ConfSource(FileConfigSource):
    """``conf/`` without the parts' folders."""

    @staticmethod
    def scheme() -> str:
        """Return the scheme of its paths."""
        return "medtest-conf"

    @staticmethod
    def _hidden(config_path: str) -> bool:
        return config_path.strip("/").partition("/")[0] in _PARTS

    def is_group(self, config_path: str) -> bool:
        """As the file source, but for the parts' folders."""
        return not self._hidden(config_path) and bool(super().is_group(config_path))

    def is_config(self, config_path: str) -> bool:
        """As the file source, but for the parts' folders."""
        return not self._hidden(config_path) and bool(super().is_config(config_path))


def search_path(places: ConfigFolders) -> ConfigSearchPathImpl:
    """Return where Hydra looks, in order: our primary config, systems, suites, the team's folders, Hydra's own."""
    for source in (SuiteSource, SystemSource, ConfSource):
        Plugins.instance().register(source)
    path = ConfigSearchPathImpl()
    path.append("hydra", "pkg://hydra.conf")
    path.append("main", f"{ConfSource.scheme()}://{conf_folder()}")
    path.append("medtest", f"{SystemSource.scheme()}://{_SEPARATOR.join(str(f) for f in places.configs)}")
    path.append("medtest", f"{SuiteSource.scheme()}://{_SEPARATOR.join(str(f) for f in places.suites)}")
    for folder in places.configs:
        path.append("command-line", f"file://{folder}")
    path.append("schema", "structured://")
    return path
