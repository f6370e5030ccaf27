"""Hydra config source that replaces ``conf/``, independent of the working directory.

It is Hydra's file source over ``conf/`` without the folders of the parts' defaults, which are not choices of Hydra's,
and with two generated groups:

- ``suite``: plain data accepted by :mod:`medtest.suite.reading.safety`, with ``extends`` resolved. A suite with
  mistakes is empty; the job reports them, so that one bad file does not keep the other jobs of a sweep from running.
  Its privacy block is left out, so that it cannot loosen ``conf/``.
- ``model``: ``model=ssformer`` becomes ``systems: {ssformer: {use: ssformer}}``, so that ``model=[pranet,ssformer]``
  merges into two systems instead of one mixture.

Unknown names of suites and systems are accepted and reported by the job.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra import initialize_config_dir
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.global_hydra import GlobalHydra
from hydra.core.object_type import ObjectType
from hydra.core.plugins import Plugins
from hydra.plugins.config_source import ConfigLoadError, ConfigResult, ConfigSource
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import OmegaConf

from medtest.core.files.paths import conf_folder
from medtest.suite.checking.systems import system_infos
from medtest.suite.reading.library import load_tree, suite_folders, suite_names

_NAME = re.compile(r"[A-Za-z0-9_][\w-]{0,99}(?:\.yaml)?")
"""Pattern of a suite's or system's name, or a misspelling of one; no path out of a folder."""
_MADE = ("suite", "model")
_PARSED: dict[tuple[str, str, str, int, int], ConfigResult] = {}
"""Files below ``conf/`` by their source, path, time and size."""
_HIDDEN = ("relations", "seeds", "oracles", "readers", "tasks")


@dataclass(frozen=True, kw_only=True)
class ConfigFolders:
    """Additional folders of a call.

    Attributes:
        suites: Folders of suites (``suite_dir=``).
        configs: Folders like ``conf/`` (``--config-dir``): a team's own ``model/``, ``tracking/``, launchers.
    """

    suites: tuple[Path, ...] = ()
    configs: tuple[Path, ...] = ()

    def suite_folders(self) -> tuple[Path, ...]:
        """Return every folder of suites, the team's first."""
        return suite_folders(self.suites)


class MedtestSource(ConfigSource):
    """``conf/`` with suites and systems; the path encodes the folders of :class:`ConfigFolders` as JSON."""

    def __init__(self, provider: str, path: str) -> None:
        super().__init__(provider, path)
        suites, configs = json.loads(self.path)
        self.places = ConfigFolders(suites=tuple(map(Path, suites)), configs=tuple(map(Path, configs)))
        self.files = _file_source()(provider, f"file://{conf_folder()}")

    @staticmethod
    def scheme() -> str:
        """Return the scheme of its paths."""
        return "medtest"

    def available(self) -> bool:
        """Always True: missing folders simply provide no names."""
        return True

    def is_group(self, config_path: str) -> bool:
        """Return True if a path is a folder of options."""
        group, _, name = config_path.strip("/").partition("/")
        if group in _MADE:
            return not name
        return group not in _HIDDEN and self.files.is_group(config_path)

    def is_config(self, config_path: str) -> bool:
        """Return True if a path is an option; a suite or system need not exist if its name is valid."""
        group, _, name = config_path.strip("/").partition("/")
        if group in _MADE:
            return _NAME.fullmatch(name) is not None
        return group not in _HIDDEN and self.files.is_config(config_path)

    def list(self, config_path: str, results_filter: ObjectType | None) -> list[str]:
        """Return the entries of a path."""
        group = config_path.strip("/")
        if group in _MADE:
            return [] if results_filter == ObjectType.GROUP else list(self._names(group))
        generated = _MADE if not group and results_filter != ObjectType.CONFIG else ()
        return sorted({*generated, *self.files.list(config_path, results_filter)} - set(() if group else _HIDDEN))

    def load_config(self, config_path: str) -> ConfigResult:
        """Return an option; for a suite or a system, its addition to the configuration's root."""
        if not self.is_config(config_path):
            raise ConfigLoadError(f"Config not found : {config_path}")
        group, _, name = config_path.strip("/").partition("/")
        if group not in _MADE:
            return self._file(config_path)
        name = name.removesuffix(".yaml")
        chosen = {"systems": {name: {"use": name}}, "chosen": {"systems": {name: True}}}
        content = self._suite(name) if group == "suite" else chosen
        return ConfigResult(
            config=OmegaConf.create(content),
            path=self.full_path(),
            provider=self.provider,
            header={"package": "_global_"},
        )

    def _file(self, config_path: str) -> ConfigResult:
        """Return a file below ``conf/``, which is parsed again only if it changed: every composition asks for it."""
        status = (conf_folder() / f"{config_path.strip('/').removesuffix('.yaml')}.yaml").stat()
        key = (self.provider, self.files.path, config_path, status.st_mtime_ns, status.st_size)
        if key not in _PARSED:
            _PARSED[key] = self.files.load_config(config_path)
        return deepcopy(_PARSED[key])  # Hydra changes it

    def _names(self, group: str) -> Sequence[str]:
        if group == "suite":
            return suite_names(self.places.suite_folders())
        return sorted(system_infos(self.places.configs))

    def _suite(self, name: str) -> dict[str, Any]:
        tree = load_tree(name, self.places.suite_folders())
        return {} if tree.mistakes else {key: value for key, value in tree.values.items() if key != "privacy"}


def _file_source() -> type[ConfigSource]:
    """Return Hydra's own source of files."""
    sources = (plugin for plugin in Plugins.instance().discover(ConfigSource) if issubclass(plugin, ConfigSource))
    return next(source for source in sources if source.scheme() == "file")


class _SearchPath(SearchPathPlugin):
    """Search path plug-in that replaces ``conf/`` and appends a team's folders; other programs' paths are unchanged."""

    places = ConfigFolders()

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        for element in search_path.get_path():
            if element.path == str(conf_folder()):
                folders = [[str(folder) for folder in group] for group in (self.places.suites, self.places.configs)]
                element.path = f"{MedtestSource.scheme()}://{json.dumps(folders)}"
                for folder in self.places.configs:
                    search_path.append("command-line", f"file://{folder}")
                return


_OPENING = threading.Lock()


def open_hydra(places: ConfigFolders) -> Any:
    """Return a Hydra instance over medtest's folders and those of a call; the global instance is unchanged."""
    for plugin in (MedtestSource, _SearchPath):
        Plugins.instance().register(plugin)
    with _OPENING:
        before = GlobalHydra.instance().hydra
        GlobalHydra.instance().clear()
        _SearchPath.places = places
        try:
            initialize_config_dir(str(conf_folder()), job_name="medtest", version_base="1.3")
            return GlobalHydra.instance().hydra
        finally:
            GlobalHydra.instance().hydra = before
