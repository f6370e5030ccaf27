"""Hydra composes, we check: names and overrides in, a :class:`~medtest.suite.model.Suite` and the run's options out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hydra import version as hydra_version
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.utils import setup_globals
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from medtest.cases import ID_PATTERN, UNCHANGED
from medtest.errors import Mistake, UserMistakes, nearest_name
from medtest.suite.checks import USES, Draft, check, oracle_of
from medtest.suite.digest import oracle_digest
from medtest.suite.hydra_source import Places, search_path
from medtest.suite.library import COMMAND_LINE, MAPS, Origin, SuiteTree, load_tree, suite_names
from medtest.suite.model import Selection, Suite
from medtest.suite.overrides import prepare
from medtest.suite.safety import Key, dotted, short
from medtest.suite.schema import SUITE_KEYS, RunBlock, validate
from medtest.suite.systems import system_infos

SYSTEM_KEYS = ("checkpoint", "target", "path", "folder")
"""Options that set a key of the only chosen system."""
_INTERNAL = ("without", "chosen", "suite_privacy")


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """A checked suite and what this call is to do with it.

    Attributes:
        suite: The suite.
        options: Options of the run.
        selection: ``only=``.
        view: "" under the suite's own oracle; the oracle's digest when the command line changed it, whose tables,
            report and MLflow run then lie in ``views/<digest>/``.
    """

    suite: Suite
    options: RunBlock
    selection: Selection
    view: str = ""


def load_suite(
    name: str | Path,
    overrides: Sequence[str] = (),
    *,
    suite_dirs: Sequence[Path | str] = (),
    config_dirs: Sequence[Path | str] = (),
) -> Suite:
    """Compose and check one suite as ``python run.py suite=NAME …`` does, without running it.

    Args:
        name: A suite's name, or the path of its YAML file.
        overrides: What one would type after it: ``["model=pranet", "relations.blur.severities=[1,3]"]``.
        suite_dirs: Further folders of suites.
        config_dirs: Further folders like ``conf/``.

    Returns:
        The checked suite.

    Raises:
        UserMistakes: Everything that is wrong, at once.
    """
    return load(name, overrides, suite_dirs=suite_dirs, config_dirs=config_dirs).suite


def load(
    name: str | Path,
    overrides: Sequence[str] = (),
    *,
    suite_dirs: Sequence[Path | str] = (),
    config_dirs: Sequence[Path | str] = (),
) -> Loaded:
    """As :func:`load_suite`, with the options of the run.

    Raises:
        UserMistakes: Everything that is wrong, at once.
    """
    ready = prepare([f"suite={name}", *overrides])
    if ready.mistakes:
        raise UserMistakes(ready.mistakes)
    places = Places(
        suites=(
            *(Path(d).expanduser().resolve() for d in ready.suite_folders),
            *(Path(d).resolve() for d in suite_dirs),
        ),
        configs=tuple(Path(d).expanduser().resolve() for d in config_dirs),
    )
    cfg = compose(ready.overrides, places)
    return settle(cfg, cfg.hydra, places)


def compose(overrides: Sequence[str], places: Places) -> DictConfig:
    """Let Hydra compose the primary config, the suite, the systems and the overrides.

    Args:
        overrides: Prepared overrides (:func:`medtest.suite.overrides.prepare`).
        places: Where to look.

    Raises:
        UserMistakes: Hydra refuses them; its message is put in our words.
    """
    hydra_version.setbase("1.3")
    setup_globals()
    try:
        loader = ConfigLoaderImpl(config_search_path=search_path(places))
        return loader.load_configuration("config", list(overrides), RunMode.RUN)
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        raise rephrase(error, places) from error


def settle(cfg: DictConfig, hydra: DictConfig, places: Places, *, for_run: bool = False) -> Loaded:
    """Check a composed configuration whole.

    Args:
        cfg: What Hydra composed; its ``hydra`` node is not looked at.
        hydra: That node.
        places: Where suites and systems were looked for.
        for_run: Also check what only a run needs: the user's data, and the files that systems name.

    Raises:
        UserMistakes: Everything that is wrong, at once.
    """
    name = str(hydra.runtime.choices.get("suite"))
    tree = load_tree(name, places.suite_folders())
    if not tree.origins and tree.mistakes:  # nothing could be read of it
        raise UserMistakes(tree.mistakes)
    mistakes = list(tree.mistakes)
    values = _plain(cfg, mistakes)
    if tree.mistakes:  # Hydra got nothing of a suite with mistakes; check what could be read of it all the same
        values = _laid_over(tree, values)
    source = _Sources(tree=tree, typed=[key for key in map(_key_of, task_overrides(hydra)) if key])
    infos = system_infos(places.configs)
    _take_out(values, source, mistakes)
    chosen = _keep_chosen(values, source, mistakes)
    options = _options(values, source, mistakes)
    if options is not None:
        _to_only_system(values, options, chosen, source, mistakes)
    _known_keys(values, source, mistakes)
    selection = _selection(values.get("only"), values, mistakes)
    if isinstance(values.get("version"), (int, float)) and not isinstance(values["version"], bool):
        values["version"] = str(values["version"])  # Hydra's grammar reads version=3 as a number
    draft = Draft(values=values, origin=source.origin, from_suite=source.from_suite, systems=infos, mistakes=mistakes)
    suite = check(draft)
    if options is not None and options.data is not None and not Path(options.data).expanduser().is_dir():
        draft.mistakes.append(
            Mistake(where="command line", key="data", found=short(options.data), allowed="a folder that is there")
        )
    if for_run and suite is not None and options is not None:
        _fit_to_run(suite, options, draft.mistakes)
    if draft.mistakes or suite is None or options is None:
        raise UserMistakes(_in_order(draft.mistakes))
    return Loaded(suite=suite, options=options, selection=selection, view=_view(suite, draft, source))


def task_overrides(hydra: DictConfig) -> list[str]:
    """Return a job's overrides as they stand; ``${…}`` in them is not filled in."""
    given = OmegaConf.to_container(hydra.overrides.task, resolve=False)
    return [str(item) for item in given] if isinstance(given, list) else []


def _view(suite: Suite, draft: Draft, source: _Sources) -> str:
    if not any(key[:1] == ("oracles",) for key in source.typed):
        return ""
    alone = replace(draft, values={**draft.values, "oracles": source.tree.values.get("oracles")}, mistakes=[])
    own = oracle_of(alone, suite)
    digest = oracle_digest(suite).value
    return "" if own is not None and oracle_digest(replace(suite, oracle=own)).value == digest else digest


def needs_data(suite: Suite) -> bool:
    """Whether a suite reads the user's folder (``data=PATH``)."""
    return any(plan.info.load().needs_root for plan in suite.seeds)


def _fit_to_run(suite: Suite, options: RunBlock, mistakes: list[Mistake]) -> None:
    if options.data is None and needs_data(suite):
        mistakes.append(
            Mistake(
                where="command line",
                key="data",
                found="nothing",
                allowed="the folder of your images",
                fix=f"type data=PATH; suites/{suite.name}.yaml says what it holds",
            )
        )
    for system in suite.build_systems().values():
        mistakes.extend(system.check())


def _in_order(mistakes: Iterable[Mistake]) -> list[Mistake]:
    return sorted(dict.fromkeys(mistakes), key=lambda m: (m.where, m.line or 0))


# --- where keys come from ---------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class _Sources:
    """Tells the suite's keys from those of the command line."""

    tree: SuiteTree
    typed: list[Key]

    def on_command_line(self, key: Key) -> bool:
        plain = tuple(str(part) for part in key)
        return any(plain[: len(t)] == t for t in (tuple(str(p) for p in given) for given in self.typed))

    def origin(self, key: Key) -> Origin:
        if self.on_command_line(key) or (key not in self.tree.origins and self._inside_typed(key)):
            return COMMAND_LINE
        if any(key[:end] in self.tree.origins for end in range(1, len(key) + 1)):
            return self.tree.origin(key)
        return Origin(where=self.tree.where)

    def _inside_typed(self, key: Key) -> bool:
        plain = tuple(str(part) for part in key)
        return any(tuple(str(part) for part in given[: len(key)]) == plain for given in self.typed)

    def from_suite(self, key: Key) -> bool:
        if key[:1] == ("privacy",) and key[-1] == "typed":
            return not self.on_command_line(key[:-1])
        if self.on_command_line(key):
            return False
        value: Any = self.tree.values
        for part in key:
            if not isinstance(value, dict) or part not in value:
                return False
            value = value[part]
        return True


def _key_of(override: str) -> Key:
    match = re.match(r"(?:\+\+|\+|~)?([^=@]+)=", override)
    if match is None:
        return ()
    parts = tuple(part for part in re.split(r"[.\[\]]", match[1]) if part)
    return parts[1:] if parts[:1] == ("chosen",) else parts


def _plain(cfg: DictConfig, mistakes: list[Mistake]) -> dict[str, Any]:
    content = OmegaConf.masked_copy(cfg, [key for key in cfg if key != "hydra"])  # type: ignore[misc]
    try:
        values = OmegaConf.to_container(content, resolve=True, throw_on_missing=False)
    except (OmegaConfBaseException, ValueError) as error:
        key = str(getattr(error, "full_key", "") or "")
        found = str(error).splitlines()[0]
        mistakes.append(
            Mistake(where="command line", key=key, found=short(found), allowed="values that can be filled in")
        )
        values = OmegaConf.to_container(content, resolve=False)
    if not isinstance(values, dict):
        return {}
    for key in MAPS:
        block = values.get(key)
        if isinstance(block, dict):
            values[key] = {str(name): {} if item is None or item is True else item for name, item in block.items()}
    return {str(key): value for key, value in values.items()}


def _laid_over(tree: SuiteTree, values: Mapping[str, Any]) -> dict[str, Any]:
    content = {key: value for key, value in tree.values.items() if key != "privacy"}
    if isinstance(tree.values.get("privacy"), dict):
        content["suite_privacy"] = tree.values["privacy"]

    def over(below: Any, above: Any) -> Any:
        if isinstance(below, dict) and isinstance(above, dict):
            return {**below, **{k: over(below.get(k), v) for k, v in above.items()}}
        return above

    return {**content, **{key: over(content.get(key), value) for key, value in values.items()}}


# --- what the command line takes out, chooses and sets ----------------------------------------------------------


def _take_out(values: dict[str, Any], source: _Sources, mistakes: list[Mistake]) -> None:
    for text in values.pop("without", None) or []:
        parts = [part for part in re.split(r"[.\[\]]", str(text)) if part]
        block: Any = values
        for part in parts[:-1]:
            block = block.get(part) if isinstance(block, dict) else None
        if parts and isinstance(block, dict) and parts[-1] in block:
            if parts[0] not in ("seed", "name"):
                del block[parts[-1]]
            continue
        names = [str(name) for name in block] if isinstance(block, dict) else []
        mistakes.append(
            Mistake(
                where="command line",
                key=str(text),
                found=f"~{text}",
                allowed=", ".join(names) or "a key that the suite has",
                nearest=nearest_name(parts[-1], names) if parts else None,
            )
        )


def _keep_chosen(values: dict[str, Any], source: _Sources, mistakes: list[Mistake]) -> list[str]:
    """``model=`` and ``relations=[…]`` take exactly these; what the suite says of them stays.

    What the command line itself adds with a key of its own (``+systems.v2={use: ssformer, …}``) stays beside them.
    Returns the systems that were chosen, none when the suite's own are run.
    """
    chosen = values.pop("chosen", None) or {}
    systems: list[str] = []
    for family, given in chosen.items():
        names = list(given) if isinstance(given, (dict, list)) else [given]
        if not names or not all(isinstance(name, str) for name in names):
            mistakes.append(
                Mistake(where="command line", key=str(family), found=short(given), allowed="names, as [blur,text]")
            )
            continue
        block = values.get(family)
        block = block if isinstance(block, dict) else {}
        kept = {name: block.get(name) or {} for name in names}
        systems = list(kept) if family == "systems" else systems
        for key in source.typed:
            if key[:1] != (family,) or len(key) < 2 or key[1] in kept:
                continue
            name = str(key[1])
            if len(key) == 2 or _names_part(block.get(name), family):
                kept[name] = block.get(name, {})
            else:
                mistakes.append(
                    Mistake(
                        where="command line",
                        key=dotted(key),
                        found=f"{name}, which is not chosen",
                        allowed=", ".join(kept),
                        nearest=nearest_name(name, kept),
                    )
                )
        values[family] = kept
    return systems


def _names_part(settings: Any, family: str) -> bool:
    return isinstance(settings, dict) and USES.get(family, "") in settings


def _options(values: Mapping[str, Any], source: _Sources, mistakes: list[Mistake]) -> RunBlock | None:
    given = {key: values[key] for key in RunBlock.model_fields if key in values}
    return validate(RunBlock, given, at=(), origin=lambda key: COMMAND_LINE, mistakes=mistakes)


def _to_only_system(
    values: dict[str, Any], options: RunBlock, chosen: list[str], source: _Sources, mistakes: list[Mistake]
) -> None:
    """Give ``checkpoint=`` and its like to the system that ``model=`` chose, or to the suite's only one."""
    given = {key: getattr(options, key) for key in SYSTEM_KEYS if getattr(options, key) is not None}
    if not given:
        return
    block = values.get("systems")
    block = block if isinstance(block, dict) else {}
    systems = chosen or [name for name, item in block.items() if item is not False]
    if len(systems) == 1:
        name = systems[0]
        settings = block.get(name)
        values["systems"] = {**block, name: {**(settings if isinstance(settings, dict) else {}), **given}}
        source.typed += [("systems", name, key) for key in given]
        return
    for key in given:
        names = ", ".join(systems) or "none"
        mistakes.append(
            Mistake(
                where="command line",
                key=key,
                found=f"{len(systems)} systems ({names})",
                allowed="one system",
                fix=f"choose one with model=NAME, or type systems.{next(iter(systems), 'NAME')}.{key}=…",
            )
        )


def _known_keys(values: dict[str, Any], source: _Sources, mistakes: list[Mistake]) -> None:
    options = list(RunBlock.model_fields)
    known = {*SUITE_KEYS, *options, *_INTERNAL}
    for key in [key for key in values if key not in known]:
        from_suite = not source.on_command_line((key,))
        names = list(SUITE_KEYS) if from_suite else sorted({*SUITE_KEYS, *options, "suite", "model", "suite_dir"})
        place = source.origin((key,))
        mistakes.append(
            Mistake(
                where=place.where,
                line=place.line,
                key=key,
                found=f"the key {key}",
                allowed=", ".join(names),
                nearest=nearest_name(key, names),
            )
        )
    for key in [key for key in (*options, *_INTERNAL) if key in source.tree.values and key not in SUITE_KEYS]:
        place = source.tree.origin((key,))
        mistakes.append(
            Mistake(
                where=place.where,
                line=place.line,
                key=key,
                found=f"the key {key}",
                allowed=", ".join(SUITE_KEYS),
                fix=f"an option of a run is typed and not written in a suite: {key}=…" if key in options else "",
            )
        )


# --- only= ------------------------------------------------------------------------------------------------------

_ONLY: Mapping[str, str] = {
    "relation": "relations",
    "severity": "severities",
    "dataset": "datasets",
    "seed": "seeds",
}


def _selection(only: Any, values: Mapping[str, Any], mistakes: list[Mistake]) -> Selection:
    if not isinstance(only, (str, list)):
        return Selection()
    given = [str(item) for item in only] if isinstance(only, list) else only.split(",")
    found: dict[str, set[Any]] = {name: set() for name in _ONLY.values()}
    for item in given:
        kind, colon, value = item.strip().partition(":")
        kind, value = kind.strip(), value.strip()
        if kind not in _ONLY or not colon or not value:
            mistakes.append(
                Mistake(
                    where="command line",
                    key="only",
                    found=short(item),
                    allowed="relation:ID, severity:N, dataset:ID, seed:ID, several joined by commas",
                    nearest=nearest_name(kind, _ONLY),
                )
            )
        elif kind == "severity":
            if value.isdecimal() and int(value) <= 5:
                found["severities"].add(int(value))
            else:
                mistakes.append(
                    Mistake(where="command line", key="only", found=short(item), allowed="severity:0 to severity:5")
                )
        else:
            found[_ONLY[kind]].add(value)
    block = values.get("relations")
    ids = [UNCHANGED, *(name for name, item in block.items() if item is not False)] if isinstance(block, dict) else []
    for name in sorted(found["relations"] - set(ids)):
        mistakes.append(
            Mistake(
                where="command line",
                key="only",
                found=f"relation:{name}",
                allowed=", ".join(ids),
                nearest=nearest_name(name, ids),
            )
        )
    return Selection(**{name: frozenset(chosen) for name, chosen in found.items()})


# --- Hydra's words in ours --------------------------------------------------------------------------------------


def rephrase(error: Exception, places: Places) -> UserMistakes:
    """Put an error of Hydra or OmegaConf in our words."""
    text = _whole_message(error)
    return UserMistakes([_rephrased(text, places)])


def _whole_message(error: BaseException) -> str:
    messages: list[str] = []
    current: BaseException | None = error
    while current is not None:
        if str(current):
            messages.append(str(current))
        current = current.__cause__
    return "\n".join(messages)


def _rephrased(text: str, places: Places) -> Mistake:
    names = suite_names(places.suite_folders())
    if re.search(r"You must specify 'suite'", text):
        return Mistake(
            where="command line", key="suite", found="nothing", allowed=", ".join(names), fix="type suite=NAME"
        )
    option = re.search(r"Could not find '(suite|model|tracking)/([^']*)'", text)
    if option:
        allowed = _group_names(option[1], places, text)
        name = option[2]
        fix = ""
        if option[1] == "suite" and not ID_PATTERN.fullmatch(name):
            fix = "names of suites are small letters, digits, _ and -"
        return Mistake(
            where="command line",
            key=option[1],
            found=name or "nothing",
            allowed=", ".join(allowed),
            nearest=nearest_name(name, allowed),
            fix=fix,
        )
    ambiguous = re.search(r"Ambiguous value for argument '([^'=]*)=(.*?)'\n", text, re.DOTALL)
    sweep = ambiguous or re.search(r"Sweep parameters '([^'=]*)=(.*?)' requires --multirun", text, re.DOTALL)
    if sweep:
        key = sweep[1].lstrip("+").removeprefix("chosen.")
        return Mistake(
            where="command line",
            key=key,
            found=short(sweep[2]),
            allowed="one value, or a list in brackets",
            fix=f"type {key}=[{sweep[2]}] for all in one run, or add -m to run one after the other",
        )
    lines = [line.strip() for line in text.splitlines() if line.strip() and "hydra.cc" not in line]
    group = re.search(r"[Cc]ould not override '([^']*)'", text)
    return Mistake(
        where="command line",
        key=group[1] if group else "",
        found=short(lines[0] if lines else "something that Hydra cannot compose", 200),
        allowed="what python run.py --help lists",
    )


def _group_names(group: str, places: Places, text: str) -> list[str]:
    if group == "suite":
        return suite_names(places.suite_folders())
    if group == "model":
        return sorted(system_infos(places.configs))
    return re.findall(r"^\t(\S+)$", text, re.MULTILINE)
