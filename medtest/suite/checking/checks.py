"""From composed plain data to a checked :class:`~medtest.suite.model.Suite`, collecting all mistakes before reporting.

Part classes are imported here for their ``Settings``; heavy libraries such as torch are not, because parts load them in
``open``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from medtest.core.cases import CONTROLS, ID_PATTERN, SOURCE, UNCHANGED
from medtest.core.errors import MedtestError, Mistake, nearest_name
from medtest.core.plugins import Family, PartInfo, parts
from medtest.core.tasks.base import noun, task_of
from medtest.relations.base import Relation
from medtest.suite.checking.exclusion import PLAIN_NAME, BadListError, Exclusion, find_list, read_exclusion
from medtest.suite.checking.judging import gates_of, oracle_plan
from medtest.suite.checking.misfits.altering import altering
from medtest.suite.checking.misfits.calibrating import check_calibrations
from medtest.suite.checking.misfits.crafting import crafters_of
from medtest.suite.checking.misfits.searching import check_searches
from medtest.suite.checking.validation import validate
from medtest.suite.composed import with_composed
from medtest.suite.draft import Draft, settings_of
from medtest.suite.model import TRACE, PartPlan, Prepare, Privacy, Suite, Trace
from medtest.suite.reading.safety import Key, short
from medtest.suite.schema import ExcludeBlock, Head, PrepareBlock, PrivacyBlock, UseBlock

USES: Mapping[str, str] = {"seeds": "source", "relations": "relation", "systems": "use"}
"""The key that names the plug-in if the id differs."""
_BESIDE = tuple(UseBlock.model_fields)
"""Keys of a relation beside the settings of its part."""
NOTHING = "nothing"
"""Placeholder for a missing part name in messages."""
RESERVED: Mapping[str, tuple[str, ...]] = {
    "relations": (SOURCE, "overall", "overall_cells"),
    "seeds": ("all", "overall"),
}
"""Ids that have another meaning in tables."""


def check(draft: Draft) -> Suite | None:
    """Return the suite, or None with ``draft.mistakes`` filled."""
    head = validate(
        Head,
        {key: draft.values[key] for key in Head.model_fields if draft.values.get(key) is not None},
        at=(),
        origin=draft.origin,
        mistakes=draft.mistakes,
    )
    seeds = _plans(draft, "seeds", parts("seeds"))
    relations = _with_floor(_plans(draft, "relations", parts("relations")), draft)
    systems = _plans(draft, "systems", draft.systems)
    if draft.objects:  # a callable without a target takes their place
        systems = [*(plan for plan in systems if getattr(plan.settings, "target", None) != ""), *draft.objects]
    kind = _kinds_agree(draft, seeds, relations, systems)
    crafters = crafters_of(draft, relations, systems, kind)
    refused = check_calibrations(draft, relations, kind)
    check_searches(draft, [plan for plan in relations if plan.id not in refused], systems)
    oracle = oracle_plan(draft, kind or _named_kind(draft))
    gates = gates_of(draft, oracle, [plan.id for plan in relations if plan.info.load().group != CONTROLS])
    privacy = _privacy(draft)
    exclude = _exclude(draft)
    prepare = _prepare(draft, kind)
    _check_altering(draft, seeds, relations, () if head is None else tuple(head.may_alter))
    if draft.mistakes or head is None or oracle is None or prepare is None:
        return None
    suite = Suite(
        name=head.name,
        version=head.version,
        description=head.description.strip(),
        intended_use=head.intended_use.strip(),
        seed=head.seed,
        seeds=tuple(seeds),
        relations=tuple(relations),
        systems=tuple(systems),
        oracle=oracle,
        gates=gates,
        privacy=privacy,
        prepare=Prepare(size=None if prepare.size == "native" else prepare.size, resize=prepare.resize),
        max_error_percent=head.max_error_percent,
        exclude=exclude,
        answers=head.answers,
        may_alter=tuple(head.may_alter),
        composed={},
        crafters=crafters,
    )
    return with_composed(suite)


# --- parts ------------------------------------------------------------------------------------------------------


def _plans(draft: Draft, family: Family, infos: Mapping[str, PartInfo]) -> list[PartPlan]:
    block = draft.block(family)
    plans: list[PartPlan] = []
    for name, settings in block.items():
        if settings is False:
            continue
        plan = _plan(draft, family, infos, str(name), settings)
        if plan is not None:
            plans.append(plan)
    families = {family, "model"} if family == "systems" else {family}
    if not plans and not any(mistake.key.partition(".")[0] in families for mistake in draft.mistakes):
        names, fix = list(infos), f"name at least one under {family}:"
        if family == "systems":
            kind = _named_kind(draft)
            names, fix = _answering_systems(infos, kind), "choose one with model=NAME"
            if kind is not None and task_of(kind).stream:
                fix += ": a preset, or any server with an OpenAI-compatible API, with base_url=URL model_name=NAME"
        allowed = ", ".join(names) or "none is installed"
        draft.wrong((family,), found=NOTHING, allowed=allowed, fix=fix, misfit=family == "systems")
    return plans


def _answering_systems(infos: Mapping[str, PartInfo], kind: str | None) -> list[str]:
    """Return the names of systems that answer what the seeds expect; all if the kind is unknown."""
    names = []
    for name, info in infos.items():
        try:
            system = info.load()
        except MedtestError:
            continue  # a part of another package that fails to load; naming it reports the reason
        if kind is None or kind in system.tasks:
            names.append(name)
    return names


def _plan(draft: Draft, family: Family, infos: Mapping[str, PartInfo], name: str, settings: Any) -> PartPlan | None:
    key: Key = (family, name)
    if not ID_PATTERN.fullmatch(name) or name in RESERVED.get(family, ()):
        reserved = ", ".join(RESERVED.get(family, ()))
        allowed = "at most 64 lower-case letters, digits, _ and -" + (f"; not {reserved}" if reserved else "")
        draft.wrong(key, found=f"the id {name}", allowed=allowed)
        return None
    if settings is None or settings is True:
        settings = {}
    if not isinstance(settings, dict):
        draft.wrong(key, found=settings, allowed="keys and values, null for defaults, or false to remove it")
        return None
    uses = USES[family]
    used = settings.get(uses, name)
    info = infos.get(used) if isinstance(used, str) else None
    if info is None:
        place = (*key, uses) if uses in settings else key
        nearest = nearest_name(str(used), infos)
        fix = "" if uses in settings or nearest else f"if this is an id, also name its part: {name}: {{{uses}: …}}"
        if "use" in settings and uses not in settings:
            fix = f"write {uses}: {short(settings['use'])} in place of use: {short(settings['use'])}"
        draft.wrong(place, found=used, allowed=", ".join(infos) or "none is installed", nearest=nearest, fix=fix)
        return None
    beside = {k: v for k, v in settings.items() if k in _BESIDE and family == "relations"}
    earlier = len(draft.mistakes)
    validated = settings_of(draft, key, info, {k: v for k, v in settings.items() if k != uses and k not in beside})
    if family == "relations":
        draft.mistakes[earlier:] = [_proposing_beside(mistake) for mistake in draft.mistakes[earlier:]]
    use = validate(UseBlock, beside, at=key, origin=draft.origin, mistakes=draft.mistakes)
    if validated is None or use is None:
        return None
    trace = Trace(**use.model_dump(include=set(TRACE)))
    return PartPlan(id=name, info=info, settings=validated, trace=trace, search=use.search or "")


def _proposing_beside(mistake: Mistake) -> Mistake:
    """Add the keys beside a relation's settings to what a mistake allows in place of an unknown key."""
    name = mistake.key.rpartition(".")[2]
    if mistake.found != f"the key {name}":
        return mistake
    nearest = nearest_name(name, _BESIDE) or mistake.nearest
    return replace(mistake, allowed=f"{mistake.allowed}, {', '.join(_BESIDE)}", nearest=nearest)


def _with_floor(relations: list[PartPlan], draft: Draft) -> list[PartPlan]:
    """Put ``unchanged`` first: it belongs to every suite as the floor."""
    floor = [plan for plan in relations if plan.id == UNCHANGED]
    others = [plan for plan in relations if plan.id != UNCHANGED]
    if not floor:
        info = parts("relations").get(UNCHANGED)
        if info is None:
            return others
        settings = settings_of(draft, ("relations", UNCHANGED), info, {})
        floor = [] if settings is None else [PartPlan(id=UNCHANGED, info=info, settings=settings)]
    return [*floor, *others]


def _named_kind(draft: Draft) -> str | None:
    """Return the kind of the first named source, even with wrong settings: an oracle's keys depend on it."""
    sources = draft.values.get("seeds")
    for part_id, settings in sources.items() if isinstance(sources, dict) else ():
        if settings is False:
            continue
        name = settings.get("source", part_id) if isinstance(settings, dict) else part_id
        info = parts("seeds").get(str(name))
        if info is not None:
            kind = str(info.load().task)
            return kind if kind in parts("tasks") else None
    return None


def _kinds_agree(draft: Draft, seeds: list[PartPlan], relations: list[PartPlan], systems: list[PartPlan]) -> str | None:
    kinds = {plan.id: str(plan.info.load().task) for plan in seeds}
    if not kinds:
        return None
    kind, infos = next(iter(kinds.values())), parts("tasks")
    if kind not in infos:
        fix = f"install the package that provides the task {kind}"
        allowed, nearest = f"seeds for {', '.join(infos)}", nearest_name(kind, infos)
        draft.wrong(
            ("seeds", next(iter(kinds))), found=f"seeds for the task {kind}", allowed=allowed, nearest=nearest, fix=fix
        )
        return None
    for name, kind_of_source in kinds.items():
        if kind_of_source != kind:
            mixed = kind_of_source in infos and task_of(kind_of_source).prompts != task_of(kind).prompts
            draft.wrong(
                ("seeds", name),
                found=f"seeds that {_describe_seeds(kind_of_source) if mixed else f'expect {noun(kind_of_source)}'}",
                allowed=f"seeds that {_describe_seeds(kind) if mixed else f'expect {noun(kind)}'}",
                fix="test prompts and images in separate suites" if mixed else "",
            )
            if mixed:
                return None
    for plan in systems:
        tasks = plan.info.load().tasks_of(plan.settings)
        if kind not in tasks:
            actual = f"a system that gives {' or '.join(map(noun, tasks))}"
            draft.wrong(("systems", plan.id), found=actual, allowed=f"one that gives {noun(kind)}", misfit=True)
    for plan in relations:
        relation = plan.info.load()
        taken_inputs = relation.takes
        if not task_of(kind).fits(taken_inputs):
            inputs = {"picture": "images", "prompt": "prompts"}
            allowed = "relations of prompts" if task_of(kind).prompts else f"relations that suit {noun(kind)}"
            actual = f"a relation of {' or '.join(inputs.get(name, noun(name)) for name in sorted(taken_inputs))}"
            draft.wrong(("relations", plan.id), found=actual, allowed=allowed)
            continue
        # Only a relation that may refuse a task is created, because creating some reads files.
        refuses = relation.unfit_for is not Relation.unfit_for
        unfit = relation(plan.settings).unfit_for(kind) if refuses else None
        if unfit is not None:
            setting, allowed = unfit
            draft.wrong(("relations", plan.id, setting), found=getattr(plan.settings, setting), allowed=allowed)
    return kind


def _describe_seeds(kind: str) -> str:
    return f"are {'prompts' if task_of(kind).prompts else 'images'}"


def _check_altering(draft: Draft, seeds: list[PartPlan], relations: list[PartPlan], allowed: tuple[str, ...]) -> None:
    """Refuse relations that alter a diagnosis, if the classes are known without the user's data."""
    names = [plan.id for plan in relations]
    for name in allowed:
        if name not in names:
            draft.wrong(("may_alter",), found=name, allowed=", ".join(names), nearest=nearest_name(name, names))
    reported: set[str] = set()
    for plan in seeds:
        source = plan.info.load()
        if source.needs_root or source.task not in parts("tasks") or not task_of(source.task).labels:
            continue
        classes = source(dataset=plan.id, settings=plan.settings, root=None, suite_seed=0).classes()
        if classes is None:
            continue
        for name, (actual, alternative, fix) in altering(relations, allowed, classes):
            if name not in reported:
                reported.add(name)
                draft.wrong(("relations", name), found=actual, allowed=alternative, fix=fix)


# --- exclusion by a study ---------------------------------------------------------------------------------------


def _exclude(draft: Draft) -> Exclusion | None:
    """Return the follow-ups flagged by a study: a file beside the suites, or any file from the command line."""
    block_values = draft.block("exclude")
    if not block_values:
        return None
    block = validate(ExcludeBlock, block_values, at=("exclude",), origin=draft.origin, mistakes=draft.mistakes)
    if block is None:
        return None
    key: Key = ("exclude", "study")
    if draft.on_command_line(key):
        path: Path | None = Path(block.study).expanduser()
    elif not PLAIN_NAME.fullmatch(block.study):
        draft.wrong(key, found=block.study, allowed="the name of a CSV file beside the suite, without a folder")
        return None
    else:
        path = find_list(block.study, draft.folders)
    if path is None or not path.is_file():
        fix = "medtest study report writes it as flagged.csv; put it beside the suite, or type exclude.study=PATH"
        draft.wrong(key, found=f"{short(block.study)}, which does not exist", allowed="an existing file", fix=fix)
        return None
    try:
        return read_exclusion(path)
    except BadListError as error:
        draft.wrong(key, found=f"{path.name}, which {error}", allowed="flagged.csv of a study's report")
        return None


# --- preparation ------------------------------------------------------------------------------------------------


def _prepare(draft: Draft, kind: str | None) -> PrepareBlock | None:
    """Return the preparation of images; series are not prepared, and accept no other size."""
    stated = draft.block("prepare")
    series = kind is not None and task_of(kind).series
    filled = {"size": "native", **stated} if series else stated
    block = validate(PrepareBlock, filled, at=("prepare",), origin=draft.origin, mistakes=draft.mistakes)
    if block is not None and kind is not None and series and block.size != "native":
        draft.wrong(
            ("prepare", "size"), found=block.size, allowed=f"native (seeds that expect {noun(kind)} keep their size)"
        )
    if block is not None and block.resize is not None:
        _check_resize(draft, block, kind)
    return block


def _check_resize(draft: Draft, block: PrepareBlock, kind: str | None) -> None:
    """Check that a crop is smaller than the resized image, and that cropping does not change the seeds' answers."""
    key: Key = ("prepare", "resize")
    if kind is not None and not task_of(kind).labels:
        allowed = "suites of labels only (a crop would cut off parts of masks)"
        draft.wrong(key, found=f"resize for seeds that expect {noun(kind)}", allowed=allowed)
    elif block.size == "native" or (block.resize is not None and block.resize < block.size):
        fix = "prepare.size is the side of the central crop"
        draft.wrong(key, found=f"{block.resize} with size {block.size}", allowed="at least prepare.size", fix=fix)


# --- privacy ------------------------------------------------------------------------------


def _privacy(draft: Draft) -> Privacy:
    """Return the strictest of conf/ and the suite; explicit command-line values take precedence."""
    defaults = validate(
        PrivacyBlock, draft.block("privacy"), at=("privacy",), origin=draft.origin, mistakes=draft.mistakes
    )
    stated = draft.block("privacy", draft.own)
    own = validate(PrivacyBlock, stated, at=("privacy",), origin=draft.origin, mistakes=draft.mistakes)
    if defaults is None or own is None:
        return Privacy()
    strict: dict[str, Any] = {}
    for name, value in (("seed_ids", "hashed"), ("images", "none"), ("prompts", "none")):
        blocks = (defaults,) if draft.on_command_line(("privacy", name)) else (defaults, own)
        if any(getattr(block, name) == value for block in blocks):
            strict[name] = value
    return Privacy(**strict)
