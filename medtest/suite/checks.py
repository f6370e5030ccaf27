"""From plain composed data to a checked :class:`~medtest.suite.model.Suite`: every mistake is found before one is told.

Part classes are imported here for their ``Settings``; nothing heavy is, for they load torch and its kin in ``open``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from medtest.cases import ID_PATTERN, SERIES_KINDS, SOURCE, UNCHANGED
from medtest.errors import MedtestError, Mistake, nearest_name
from medtest.plugins import Family, PartInfo, parts
from medtest.suite.composed import with_composed, without
from medtest.suite.exclusion import PLAIN_NAME, BadListError, Exclusion, find_list, read_exclusion
from medtest.suite.library import Origin
from medtest.suite.model import Criterion, Gate, OraclePlan, PartPlan, Prepare, Privacy, Suite
from medtest.suite.safety import Key, dotted, short
from medtest.suite.schema import (
    ExcludeBlock,
    GateBlock,
    Head,
    PrepareBlock,
    PrimaryBlock,
    PrivacyBlock,
    ShownBlock,
    trusted_keys,
    validate,
)

USES: Mapping[str, str] = {"seeds": "source", "relations": "relation", "systems": "use"}
"""The key that names the plug-in when the id differs."""
_SHOWN = ("scores", "thresholds", "against")
_RESERVED = {"relations": (SOURCE, "overall", "overall_cells"), "seeds": ("all", "overall")}


@dataclass(kw_only=True)
class Draft:
    """What is checked, and what was found wrong with it.

    Attributes:
        values: Composed plain data: suite and command line.
        origin: Tells where a key stands.
        from_suite: Whether a key was written by the suite (and not by the command line or ``conf/``).
        on_command_line: Whether the command line set a key.
        systems: Every system that can be named.
        mistakes: Is added to.
        folders: Where suites lie, for files that stand beside them.
    """

    values: Mapping[str, Any]
    origin: Callable[[Key], Origin]
    from_suite: Callable[[Key], bool]
    on_command_line: Callable[[Key], bool]
    systems: Mapping[str, PartInfo]
    mistakes: list[Mistake] = field(default_factory=list)
    folders: Sequence[Path] = ()

    def wrong(self, key: Key, *, found: object, allowed: str, nearest: str | None = None, fix: str = "") -> None:
        """Note a mistake at a key."""
        place = self.origin(key)
        self.mistakes.append(
            Mistake(
                where=place.where,
                line=place.line,
                key=dotted(key),
                found=short(found),
                allowed=allowed,
                nearest=nearest,
                fix=fix,
            )
        )

    def block(self, key: str) -> dict[str, Any]:
        """Return a mapping, or an empty one and a mistake when something else stands there."""
        given = self.values.get(key)
        if given is None:
            return {}
        if not isinstance(given, dict):
            self.wrong((key,), found=given, allowed="keys and values")
            return {}
        return given


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
    kind = _kinds_agree(draft, seeds, relations, systems)
    oracle = _oracle(draft, kind)
    gates = _gates(draft, oracle, [plan.id for plan in relations])
    privacy = _privacy(draft)
    exclude = _exclude(draft)
    prepare = _prepare(draft, kind)
    if draft.mistakes or head is None or oracle is None or prepare is None:
        return None
    suite = Suite(
        name=head.name,
        version=head.version,
        description=head.description.strip(),
        seed=head.seed,
        seeds=tuple(seeds),
        relations=tuple(relations),
        systems=tuple(systems),
        oracle=oracle,
        gates=gates,
        privacy=privacy,
        prepare=Prepare(size=None if prepare.size == "native" else prepare.size),
        max_error_percent=head.max_error_percent,
        exclude=exclude,
        composed={},
    )
    return with_composed(suite)


# --- parts ------------------------------------------------------------------------------------------------------


def _plans(draft: Draft, family: Family, known: Mapping[str, PartInfo]) -> list[PartPlan]:
    given = draft.block(family)
    plans: list[PartPlan] = []
    for name, settings in given.items():
        if settings is False:
            continue
        plan = _plan(draft, family, known, str(name), settings)
        if plan is not None:
            plans.append(plan)
    if not plans and not any(mistake.key.partition(".")[0] == family for mistake in draft.mistakes):
        fix = "choose one with model=NAME" if family == "systems" else f"name at least one under {family}:"
        draft.wrong((family,), found="nothing", allowed=", ".join(known) or "none is installed", fix=fix)
    return plans


def _plan(draft: Draft, family: Family, known: Mapping[str, PartInfo], name: str, settings: Any) -> PartPlan | None:
    key: Key = (family, name)
    if not ID_PATTERN.fullmatch(name) or name in _RESERVED.get(family, ()):
        reserved = ", ".join(_RESERVED.get(family, ()))
        allowed = "small letters, digits, _ and -, 64 at most" + (f"; not {reserved}" if reserved else "")
        draft.wrong(key, found=f"the id {name}", allowed=allowed)
        return None
    if settings is None or settings is True:
        settings = {}
    if not isinstance(settings, dict):
        draft.wrong(key, found=settings, allowed="settings as keys and values, null for defaults, false to take it out")
        return None
    uses = USES[family]
    used = settings.get(uses, name)
    info = known.get(used) if isinstance(used, str) else None
    if info is None:
        place = (*key, uses) if uses in settings else key
        nearest = nearest_name(str(used), known)
        fix = "" if uses in settings or nearest else f"if the id is meant, name the part too: {name}: {{{uses}: …}}"
        draft.wrong(place, found=used, allowed=", ".join(known) or "none is installed", nearest=nearest, fix=fix)
        return None
    validated = _settings(draft, key, info, {k: v for k, v in settings.items() if k != uses})
    return None if validated is None else PartPlan(id=name, info=info, settings=validated)


def _settings(draft: Draft, key: Key, info: PartInfo, given: Mapping[str, Any]) -> Any:
    try:
        model = info.load().Settings
    except MedtestError as error:
        draft.wrong(key, found=info.name, allowed="an installed part that works", fix=str(error))
        return None
    for trusted in trusted_keys(model):
        if _holds(given, trusted) and draft.from_suite((*key, *trusted)):
            draft.wrong(
                (*key, *trusted),
                found="a value in a suite",
                allowed="conf/ and the command line alone",
                fix=f"take it out and type {dotted((*key, *trusted))}=…",
            )
            given = without(given, trusted)
    merged = _deep_merge(info.defaults, given)

    def origin(place: Key) -> Origin:
        inner = place[len(key) :]
        if inner and not _holds(given, inner) and _holds(info.defaults, inner) and info.file is not None:
            return Origin(where=f"{info.file.parent.name}/{info.file.name}")
        return draft.origin(place)

    return validate(model, merged, at=key, origin=origin, mistakes=draft.mistakes, given=given)


def _holds(values: Any, key: Key) -> bool:
    for part in key:
        items = list(enumerate(values)) if isinstance(values, list) else []
        items = list(values.items()) if isinstance(values, Mapping) else items
        inner = [value for name, value in items if str(name) == str(part)]
        if not inner:
            return False
        values = inner[0]
    return True


def _deep_merge(defaults: Mapping[Any, Any], given: Mapping[Any, Any]) -> dict[Any, Any]:
    """Merge mappings, replace anything else; ``levels.3`` of the command line means the level 3 of the defaults."""
    merged = dict(defaults)
    for name, value in given.items():
        if isinstance(name, str) and name.isdecimal() and name not in merged:
            numbers = any(isinstance(k, int) for k in merged)
            name = int(name) if numbers and len(name) < 10 else name  # noqa: PLW2901
        before = merged.get(name)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            merged[name] = _deep_merge(before, value)
        else:
            merged[name] = value
    return merged


def _with_floor(relations: list[PartPlan], draft: Draft) -> list[PartPlan]:
    """Put ``unchanged`` first: it belongs to every suite as the floor."""
    floor = [plan for plan in relations if plan.id == UNCHANGED]
    rest = [plan for plan in relations if plan.id != UNCHANGED]
    if not floor:
        info = parts("relations").get(UNCHANGED)
        if info is None:
            return rest
        settings = _settings(draft, ("relations", UNCHANGED), info, {})
        floor = [] if settings is None else [PartPlan(id=UNCHANGED, info=info, settings=settings)]
    return [*floor, *rest]


def _kinds_agree(draft: Draft, seeds: list[PartPlan], relations: list[PartPlan], systems: list[PartPlan]) -> str | None:
    kinds = {plan.id: plan.info.load().output_kind for plan in seeds}
    if not kinds:
        return None
    kind = next(iter(kinds.values()))
    for name, other in kinds.items():
        if other != kind:
            draft.wrong(("seeds", name), found=f"seeds that expect a {other}", allowed=f"seeds that expect a {kind}")
    for plan in systems:
        system = plan.info.load()
        if kind != system.output_kind and kind not in system.other_kinds:
            found = f"a system that answers a {system.output_kind}"
            draft.wrong(("systems", plan.id), found=found, allowed=f"one that answers a {kind}")
    for plan in relations:
        meant = plan.info.load().output_kinds
        if kind not in meant:
            allowed = f"relations that suit a {kind}"
            draft.wrong(("relations", plan.id), found=f"a relation for {', '.join(sorted(meant))}", allowed=allowed)
    return str(kind)


# --- oracle and gates -------------------------------------------------------------------------------------------


def _oracle(draft: Draft, kind: str | None) -> OraclePlan | None:
    given = draft.block("oracles")
    known = parts("oracles")
    named = given.get("oracle")
    if named is not None and (not isinstance(named, str) or named not in known):
        draft.wrong(
            ("oracles", "oracle"), found=named, allowed=", ".join(known), nearest=nearest_name(str(named), known)
        )
        return None
    info = known[named] if named is not None else _oracle_for(kind, known)
    if info is None:
        if kind is not None:
            draft.wrong(("oracles",), found=f"no oracle for a {kind}", allowed=", ".join(known))
        return None
    if kind is not None and info.load().output_kind != kind:
        draft.wrong(("oracles", "oracle"), found=info.name, allowed=f"an oracle that judges a {kind}")
    defaults = dict(info.defaults)
    own = PartInfo(
        family="oracles",
        name=info.name,
        target=info.target,
        summary=info.summary,
        defaults={k: v for k, v in defaults.items() if k not in ("primary", *_SHOWN)},
        origin=info.origin,
        file=info.file,
    )
    rest = {k: v for k, v in given.items() if k not in ("oracle", "primary", *_SHOWN)}
    settings = _settings(draft, ("oracles",), own, rest)
    primary_given = given.get("primary") or {}
    if not isinstance(primary_given, dict):
        draft.wrong(("oracles", "primary"), found=primary_given, allowed="score, threshold and against")
        primary_given = {}
    primary = validate(
        PrimaryBlock,
        _deep_merge(defaults.get("primary", {}), primary_given),
        at=("oracles", "primary"),
        origin=draft.origin,
        mistakes=draft.mistakes,
    )
    shown = validate(
        ShownBlock,
        {k: given.get(k, defaults.get(k)) for k in _SHOWN if k in given or k in defaults},
        at=("oracles",),
        origin=draft.origin,
        mistakes=draft.mistakes,
    )
    if primary is None or shown is None or settings is None:
        return None
    names = criterion_names(info)
    _check_score(draft, ("oracles", "primary", "score"), primary.score, names)
    references = info.load().references
    stated: list[tuple[Key, str]] = [(("oracles", "primary", "against"), primary.against)]
    stated += [(("oracles", "against", index), name) for index, name in enumerate(shown.against)]
    for key, name in stated:
        if name not in references:
            draft.wrong(key, found=name, allowed=", ".join(references), nearest=nearest_name(name, references))
    for index, score in enumerate(shown.scores):
        _check_score(draft, ("oracles", "scores", index), score, names)
    return OraclePlan(
        part=PartPlan(id=info.name, info=own, settings=settings),
        primary=Criterion(score=primary.score, threshold=primary.threshold, against=primary.against),
        scores=_with_first(shown.scores, primary.score),
        thresholds=tuple(sorted({*shown.thresholds, primary.threshold})),
        against=tuple(dict.fromkeys((*shown.against, primary.against))),
    )


def oracle_of(draft: Draft, suite: Suite) -> OraclePlan | None:
    """Return the oracle that a draft describes for a suite's kind of seeds, or None with its mistakes filled."""
    return _oracle(draft, str(suite.seeds[0].info.load().output_kind))


def criterion_names(info: PartInfo) -> tuple[str, ...]:
    """Return what an oracle's criteria may name: its score columns and the rules over them."""
    oracle = info.load()
    named = getattr(oracle, "criteria", None)
    if isinstance(named, tuple):
        return named
    scores = tuple(str(score) for score in oracle.scores)
    return (*scores, "both", "either") if {"dice", "iou"} <= set(scores) else scores


def _oracle_for(kind: str | None, known: Mapping[str, PartInfo]) -> PartInfo | None:
    return next((info for info in known.values() if kind is None or info.load().output_kind == kind), None)


def _check_score(draft: Draft, key: Key, score: str, names: tuple[str, ...]) -> None:
    if score not in names:
        draft.wrong(key, found=score, allowed=", ".join(names), nearest=nearest_name(score, names))


def _with_first(scores: Iterable[str], primary: str) -> tuple[str, ...]:
    given = tuple(dict.fromkeys(scores))
    return given if primary in given else (primary, *given)


def _gates(draft: Draft, oracle: OraclePlan | None, relations: list[str]) -> tuple[Gate, ...]:
    given = draft.values.get("gates")
    if given is None:
        return ()
    if not isinstance(given, list):
        draft.wrong(("gates",), found=given, allowed="a list, one item for each bound")
        return ()
    primary = Criterion() if oracle is None else oracle.primary
    gates: list[Gate] = []
    for index, item in enumerate(given):
        at: Key = ("gates", index)
        if not isinstance(item, dict):
            draft.wrong(at, found=item, allowed="keys and values, as {relation: overall, max_percent: 10}")
            continue
        filled = {"score": primary.score, "threshold": primary.threshold, "against": primary.against, **item}
        block = validate(GateBlock, filled, at=at, origin=draft.origin, mistakes=draft.mistakes)
        _check_gate_names(draft, at, filled, oracle, relations)
        if block is not None:
            gates.append(Gate(**{**block.model_dump(), "severity": str(block.severity)}))
    return tuple(gates)


def _check_gate_names(
    draft: Draft, at: Key, gate: Mapping[str, Any], oracle: OraclePlan | None, relations: list[str]
) -> None:
    """Check what a gate names, where it is text at all; wrong types are noted already."""
    relation, score, dataset = gate.get("relation"), gate.get("score"), gate.get("dataset")
    names = [*relations, "overall", "overall_cells"]
    if isinstance(relation, str) and relation not in names:
        nearest = nearest_name(relation, names)
        draft.wrong((*at, "relation"), found=relation, allowed=", ".join(names), nearest=nearest)
    if isinstance(score, str) and oracle is not None:
        _check_score(draft, (*at, "score"), score, criterion_names(oracle.part.info))
    if isinstance(dataset, str) and not ID_PATTERN.fullmatch(dataset):
        draft.wrong((*at, "dataset"), found=dataset, allowed="all, or the id of a data set")


# --- what people judged unfit -----------------------------------------------------------------------------------


def _exclude(draft: Draft) -> Exclusion | None:
    """Return the follow-ups that a study flagged: a file beside the suites, or any file from the command line."""
    given = draft.block("exclude")
    if not given:
        return None
    block = validate(ExcludeBlock, given, at=("exclude",), origin=draft.origin, mistakes=draft.mistakes)
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
        draft.wrong(key, found=f"{short(block.study)}, which is not there", allowed="a file that is there", fix=fix)
        return None
    try:
        return read_exclusion(path)
    except BadListError as error:
        draft.wrong(key, found=f"{path.name}, which {error}", allowed="flagged.csv of a study's report")
        return None


# --- preparation ------------------------------------------------------------------------------------------------


def _prepare(draft: Draft, kind: str | None) -> PrepareBlock | None:
    """Return how images are prepared; series are taken as they are, and no other size goes with them."""
    given = draft.block("prepare")
    series = kind in SERIES_KINDS
    filled = {"size": "native", **given} if series else given
    block = validate(PrepareBlock, filled, at=("prepare",), origin=draft.origin, mistakes=draft.mistakes)
    if block is not None and series and block.size != "native":
        draft.wrong(
            ("prepare", "size"), found=block.size, allowed=f"native (seeds that expect a {kind} keep their size)"
        )
    return block


# --- privacy ------------------------------------------------------------------------------


def _privacy(draft: Draft) -> Privacy:
    """Return the strictest of conf/ and the suite; what the command line says outright wins."""
    ours = validate(PrivacyBlock, draft.block("privacy"), at=("privacy",), origin=draft.origin, mistakes=draft.mistakes)
    theirs = draft.block("suite_privacy")
    asked = validate(PrivacyBlock, theirs, at=("privacy",), origin=draft.origin, mistakes=draft.mistakes)
    if ours is None or asked is None:
        return Privacy()
    typed = {name for name in ("seed_ids", "images") if draft.on_command_line(("privacy", name))}
    hashed = "hashed" in ((ours.seed_ids,) if "seed_ids" in typed else (ours.seed_ids, asked.seed_ids))
    none = "none" in ((ours.images,) if "images" in typed else (ours.images, asked.images))
    return Privacy(seed_ids="hashed" if hashed else "plain", images="none" if none else "samples")
