"""From names and overrides, composed by Hydra, to a checked :class:`~medtest.suite.model.Suite` and run options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from medtest.core.errors import Mistake, UserMistakes, typed_error, typed_mistake
from medtest.core.files.paths import TYPED_STORE
from medtest.suite.checking.checks import check
from medtest.suite.checking.judging import gates_of, oracle_plan
from medtest.suite.checking.misfits.searching import budget_mistakes
from medtest.suite.checking.systems import system_infos
from medtest.suite.checking.validation import validate
from medtest.suite.commandline.keys import Sources, check_keys, keep_chosen, key_of, take_out, to_only_system
from medtest.suite.commandline.overrides import as_typed, folders, prepare
from medtest.suite.commandline.selection import selection_of
from medtest.suite.commandline.source import ConfigFolders, open_hydra
from medtest.suite.commandline.words import rephrase
from medtest.suite.composed import with_composed
from medtest.suite.digest import oracle_digest
from medtest.suite.draft import Draft
from medtest.suite.model import PartPlan, Selection, Suite
from medtest.suite.naming import named
from medtest.suite.reading.library import COMMAND_LINE, MAPS, Origin, SuiteTree, deep_merge, load_tree, suite_names
from medtest.suite.reading.safety import Key, short
from medtest.suite.run_options import option_mistakes
from medtest.suite.schema import JudgeBlock, RunBlock

if TYPE_CHECKING:
    from medtest.readers.base import Reader
    from medtest.readers.judge import Judge


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """Checked suite with the settings of a call.

    Attributes:
        suite: The suite, judged as requested by the command line.
        own: The suite under its own oracle, used for the verdicts, samples and ``suite.yaml`` in a run's folder;
            ``suite`` itself unless there is a view.
        options: Options of the run.
        selection: ``only=``.
        view: "" under the suite's own oracle; a digest if the command line changed it or has answers read by a judge:
            the tables, report and MLflow run of the view are in ``views/<digest>/``.
        reader: Reads the records again for a view: a judge, or another reader than the suite's own; None for none.
        needed: Requirements of a run that a plan does not have (a key's variable, ``send_images=true``), by part.
    """

    suite: Suite
    own: Suite
    options: RunBlock
    selection: Selection
    view: str = ""
    reader: Reader[Any, Any] | None = None
    needed: tuple[tuple[str, str], ...] = ()


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
        overrides: Further arguments: ``["model=pranet", "relations.blur.severities=[1,3]"]``.
        suite_dirs: Further folders of suites.
        config_dirs: Further folders like ``conf/``.

    Returns:
        The checked suite.

    Raises:
        UserMistakes: All mistakes at once.
    """
    return load(name, overrides, suite_dirs=suite_dirs, config_dirs=config_dirs).suite


def load(
    name: str | Path,
    overrides: Sequence[str] = (),
    *,
    suite_dirs: Sequence[Path | str] = (),
    config_dirs: Sequence[Path | str] = (),
    objects: Sequence[PartPlan] = (),
    for_run: bool = False,
) -> Loaded:
    """Compose and check a suite like :func:`load_suite`, including the options of the run.

    Args:
        name: As in :func:`load_suite`.
        overrides: As in :func:`load_suite`.
        suite_dirs: As in :func:`load_suite`.
        config_dirs: As in :func:`load_suite`.
        objects: In-memory systems of the calling program, in addition to the named ones.
        for_run: Also check requirements of a run.

    Raises:
        UserMistakes: All mistakes at once.
    """
    configs = tuple(Path(d).expanduser().resolve() for d in config_dirs)
    ready = prepare([f"suite={name}", *overrides], configs=configs)
    suites = folders("suite_dir", [*ready.suite_folders, *suite_dirs], ready.mistakes)
    if ready.mistakes:
        raise UserMistakes(ready.mistakes)
    places = ConfigFolders(suites=suites, configs=configs)
    cfg = compose(ready.overrides, places)
    return settle(cfg, cfg.hydra, places, objects=objects, for_run=for_run)


def compose(overrides: Sequence[str], places: ConfigFolders) -> DictConfig:
    """Let Hydra compose the primary config, the suite, the systems and the overrides.

    Args:
        overrides: Prepared overrides (:func:`medtest.suite.commandline.overrides.prepare`).
        places: Folders to search.

    Raises:
        UserMistakes: Hydra refuses them; its message is converted.
    """
    try:
        loader = open_hydra(places).config_loader
        composed: DictConfig = loader.load_configuration("config", list(overrides), RunMode.RUN)
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        raise rephrase(error, places) from error
    return composed


def settle(
    cfg: DictConfig,
    hydra: DictConfig,
    places: ConfigFolders,
    *,
    objects: Sequence[PartPlan] = (),
    for_run: bool = False,
) -> Loaded:
    """Check a composed configuration completely.

    Args:
        cfg: The composed configuration; its ``hydra`` node is ignored.
        hydra: That node.
        places: Folders searched for suites and systems.
        objects: In-memory systems of the calling program.
        for_run: Also check requirements of a run: the user's data, and the files named by systems.

    Raises:
        UserMistakes: All mistakes at once.
    """
    name = str(hydra.runtime.choices.get("suite"))
    tree = load_tree(name, places.suite_folders())
    mistakes = list(tree.mistakes)
    values = _plain(cfg, mistakes)
    source = Sources(tree=tree, typed=[key for key in map(key_of, task_overrides(hydra)) if key])
    infos = system_infos(places.configs)
    if not tree.origins and tree.mistakes:  # the suite is unreadable, so only the command line remains to be checked
        chosen = keep_chosen(values, source, mistakes, infos)
        to_only_system(values, chosen, source, [], infos)
        _options(values, source, mistakes)
        check_keys(values, chosen, source, mistakes, infos)
        raise UserMistakes(_in_order(mistakes))
    if tree.mistakes:  # Hydra gets nothing from a suite with mistakes; check its readable part anyway
        values = deep_merge({key: value for key, value in tree.values.items() if key != "privacy"}, values)
    take_out(values, source, mistakes)
    chosen = keep_chosen(values, source, mistakes, infos)
    options = _options(values, source, mistakes)
    TYPED_STORE.set(None if options is None else options.tracking.uri)
    to_only_system(values, chosen, source, mistakes, infos)
    check_keys(values, chosen, source, mistakes, infos)
    selection = selection_of(values.get("only"), values, mistakes)
    if isinstance(values.get("version"), (int, float)) and not isinstance(values["version"], bool):
        values["version"] = str(values["version"])  # Hydra's grammar reads version=3 as a number
    draft = Draft(
        values=values,
        origin=_origin(source, objects),
        from_suite=source.from_suite,
        on_command_line=source.on_command_line,
        systems=infos,
        mistakes=mistakes,
        folders=places.suite_folders(),
        own=tree.values,
        objects=objects,
    )
    suite = check(draft)
    draft.mistakes[:] = _without_echoes(draft.mistakes, tree)
    draft.mistakes.extend(option_mistakes(options) if options is not None else ())
    judge: Judge | None = None
    if options is not None and options.judge != JudgeBlock():
        from medtest.suite.checking.judge import judge_of, judge_view

        judge = judge_of(options.judge, suite, draft)
    if for_run and suite is not None and options is not None:
        _check_for_run(suite, options, judge, draft.folders, draft.mistakes)
    requirements = _remove_run_requirements(draft.mistakes) if options is not None and options.plan else ()
    if draft.mistakes or suite is None or options is None:
        raise UserMistakes(_in_order(draft.mistakes))
    suite = named(suite, options.system_name)
    own, view = _view(suite, draft, source)
    reader: Reader[Any, Any] | None = suite.build_reader()
    if reader is None or suite.judging().get("reader") == own.judging().get("reader"):
        reader = None  # the suite's own reader, whose facts are in the records
    if judge is not None:
        if reader is not None:
            actual, fix = f"{judge.name} beside {reader.name}", "name one of judge.use and oracles.reader"
            raise typed_error("judge.use", actual, "one", fix)
        view, reader = judge_view(suite, judge), judge
    return Loaded(
        suite=suite, own=own, options=options, selection=selection, view=view, reader=reader, needed=requirements
    )


def _origin(source: Sources, objects: Sequence[PartPlan]) -> Callable[[Key], Origin]:
    """Return a function from keys to origins; in-memory systems come from arguments of the program."""
    own = {("systems", plan.id) for plan in objects}
    return lambda key: Origin(where="medtest.run") if key[:2] in own else source.origin(key)


def task_overrides(hydra: DictConfig) -> list[str]:
    """Return a job's overrides without resolving ``${…}``."""
    overrides = OmegaConf.to_container(hydra.overrides.task, resolve=False)
    return [str(item) for item in overrides] if isinstance(overrides, list) else []


def _view(suite: Suite, draft: Draft, source: Sources) -> tuple[Suite, str]:
    """Return the suite under its own oracle, and the digest of the typed one if it judges otherwise, else ""."""
    if not any(key[:1] == ("oracles",) for key in source.typed):
        return suite, ""
    own_draft = replace(draft, values={**draft.values, "oracles": source.tree.values.get("oracles")}, mistakes=[])
    oracle = oracle_plan(own_draft, suite.kind)
    digest = oracle_digest(suite).value
    if oracle is None:  # the suite's own oracle has mistakes that the command line corrects
        return suite, digest
    gates = gates_of(own_draft, oracle, [plan.id for plan in suite.relations])
    own = with_composed(replace(suite, oracle=oracle, gates=gates))
    if oracle_digest(own).value == digest:
        return suite, ""
    return replace(own, held=suite.named_scores), digest


def needs_data(suite: Suite) -> bool:
    """Return True if a suite reads the user's folder (``data=PATH``)."""
    return any(plan.info.load().needs_root for plan in suite.seeds)


def _check_for_run(
    suite: Suite, options: RunBlock, judge: Judge | None, folders: Sequence[Path], mistakes: list[Mistake]
) -> None:
    if options.data is None and needs_data(suite):
        mistakes.append(
            typed_mistake(
                "data",
                "nothing",
                "the folder of your images",
                f"type data=PATH; suites/{suite.name}.yaml describes the folder",
            )
        )
    elif options.data is not None and not any(
        source.needs_root or source.takes_root for source in (plan.info.load() for plan in suite.seeds)
    ):
        mistakes.append(_unread_data(suite, options.data, suite_names(folders)))
    for system in suite.build_systems().values():
        mistakes.extend(system.check())
    mistakes.extend(budget_mistakes(suite, options.budget))
    if judge is not None:
        mistakes.extend(judge.check())


def _unread_data(suite: Suite, data: str, names: Sequence[str]) -> Mistake:
    """Return the mistake of a folder that the suite would ignore, naming the suite that reads one if it ships."""
    reads_folder = f"{suite.name}_folder"
    fix = f"type suite={reads_folder}" if reads_folder in names else "medtest list suites shows which read data=PATH"
    return typed_mistake("data", short(data), f"no folder: suite={suite.name} makes its own source cases", fix)


def _remove_run_requirements(mistakes: list[Mistake]) -> tuple[tuple[str, str], ...]:
    """Remove requirements of a run from the mistakes of a plan, which sends nothing, and return them."""
    requirements = tuple((mistake.where, mistake.needed) for mistake in mistakes if mistake.needed)
    mistakes[:] = [mistake for mistake in mistakes if not mistake.needed]
    return tuple(dict.fromkeys(requirements))


def _without_echoes(mistakes: Iterable[Mistake], tree: SuiteTree) -> list[Mistake]:
    """Omit "missing" if the value was refused, or if its file was not read completely."""
    refused = {mistake.key for mistake in tree.mistakes}
    return [
        mistake
        for mistake in mistakes
        if mistake in tree.mistakes or mistake.found != "nothing" or not (tree.incomplete or mistake.key in refused)
    ]


def _in_order(mistakes: Iterable[Mistake]) -> list[Mistake]:
    return sorted(dict.fromkeys(mistakes), key=lambda m: (m.where, m.line or 0))


def _plain(cfg: DictConfig, mistakes: list[Mistake]) -> dict[str, Any]:
    content = OmegaConf.masked_copy(cfg, [key for key in cfg if key != "hydra"])  # type: ignore[misc]
    try:
        values = OmegaConf.to_container(content, resolve=True, throw_on_missing=False)
    except (OmegaConfBaseException, ValueError) as error:
        key = str(getattr(error, "full_key", "") or "")
        problem = str(error).splitlines()[0]
        mistakes.append(typed_mistake(key, short(problem), "values that can be resolved"))
        values = OmegaConf.to_container(content, resolve=False)
    if not isinstance(values, dict):
        return {}
    values = as_typed({str(key): value for key, value in values.items()})
    for key in MAPS:
        block = values.get(key)
        if isinstance(block, dict):
            values[key] = {str(name): {} if item is None or item is True else item for name, item in block.items()}
    return values


def _options(values: Mapping[str, Any], source: Sources, mistakes: list[Mistake]) -> RunBlock | None:
    options = {key: values[key] for key in RunBlock.model_fields if key in values}
    return validate(RunBlock, options, at=(), origin=lambda key: COMMAND_LINE, mistakes=mistakes)
