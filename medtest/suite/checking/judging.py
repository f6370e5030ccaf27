"""Checks of the judging blocks: the oracle with its criterion and tables, and the gates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from medtest.core.cases import ID_PATTERN
from medtest.core.errors import nearest_name
from medtest.core.oracles import criteria
from medtest.core.oracles.base import Oracle
from medtest.core.plugins import PartInfo, parts
from medtest.core.tasks.base import noun, task_of
from medtest.suite.checking.validation import validate
from medtest.suite.draft import Draft, settings_of
from medtest.suite.model import MOST_SOURCE_FAILED, Criterion, Gate, OraclePlan, PairedGate, PartPlan
from medtest.suite.reading.library import deep_merge
from medtest.suite.reading.safety import Key
from medtest.suite.schema import GateBlock, PairedGateBlock, PrimaryBlock, ShownBlock

_OTHER_SCORE: Mapping[str, tuple[str, str]] = {
    "label": ("a label changed or did not", "score: probability"),
    "answer": ("an answer flipped or did not", "score: jaccard"),
    "clear": ("a frame is clear or is not", "score: clear_share"),
    "exact": ("an answer is the same or is not", "score: jaccard"),
}
"""For rules without a threshold: the reason, and an alternative with one."""
_FAILED_SOURCES = "max_source_failed_percent"
_SHOWN = ("scores", "thresholds", "against")
_BESIDE = ("primary", "reader", *_SHOWN)
"""Keys of an oracle's block and YAML that are not settings of its class."""


def oracle_plan(draft: Draft, kind: str | None) -> OraclePlan | None:
    """Return the oracle of a draft for a kind of seeds (None: unknown yet), or None after adding its mistakes."""
    block = draft.block("oracles")
    infos = parts("oracles")
    oracle_name = block.get("oracle")
    if oracle_name is not None and (not isinstance(oracle_name, str) or oracle_name not in infos):
        draft.wrong(
            ("oracles", "oracle"),
            found=oracle_name,
            allowed=", ".join(infos),
            nearest=nearest_name(str(oracle_name), infos),
        )
        return None
    info = infos[oracle_name] if oracle_name is not None else _oracle_for(kind, infos)
    if info is None:
        if kind is not None:
            draft.wrong(("oracles",), found=f"no oracle for {noun(kind)}", allowed=", ".join(infos))
        return None
    if kind is not None and info.load().task != kind:
        draft.wrong(("oracles", "oracle"), found=info.name, allowed=f"an oracle that judges {noun(kind)}")
    defaults = dict(info.defaults)
    oracle_info = replace(info, defaults={k: v for k, v in defaults.items() if k not in _BESIDE})
    own_settings = _oracle_settings(draft, info)
    settings = settings_of(draft, ("oracles",), oracle_info, own_settings)
    _check_expectations(draft, settings)
    draft.mistakes.extend(info.load().check(settings) if settings is not None else ())
    primary_given = block.get("primary") or {}
    if not isinstance(primary_given, dict):
        draft.wrong(("oracles", "primary"), found=primary_given, allowed="score, threshold and against")
        primary_given = {}
    primary = validate(
        PrimaryBlock,
        deep_merge(defaults.get("primary", {}), primary_given),
        at=("oracles", "primary"),
        origin=draft.origin,
        mistakes=draft.mistakes,
    )
    tables = validate(
        ShownBlock,
        {k: block.get(k, defaults.get(k)) for k in _SHOWN if k in block or k in defaults},
        at=("oracles",),
        origin=draft.origin,
        mistakes=draft.mistakes,
    )
    if primary is None or tables is None or settings is None:
        return None
    names = criterion_names(info)
    _check_score(draft, ("oracles", "primary", "score"), primary.score, names)
    _check_references(draft, info, primary.against, tables.against)
    _check_own_answer(draft, info, primary)
    _check_no_threshold(draft, ("oracles", "primary", "threshold"), primary.score, primary_given)
    limit = criteria.threshold_of(primary.score, primary.threshold)
    shown_limit = () if primary.score in criteria.NO_THRESHOLD else (limit,)
    for index, score in enumerate(tables.scores):
        _check_score(draft, ("oracles", "scores", index), score, names)
    return OraclePlan(
        part=PartPlan(id=info.name, info=oracle_info, settings=settings),
        primary=Criterion(score=primary.score, threshold=limit, against=primary.against),
        scores=_with_first(tables.scores, primary.score),
        thresholds=tuple(sorted({*tables.thresholds, *shown_limit})),
        against=tuple(dict.fromkeys((*tables.against, primary.against))),
        reader=_reader_plan(draft, info),
    )


def _reader_plan(draft: Draft, oracle: PartInfo) -> PartPlan | None:
    """Return the reader required by an oracle: from ``oracles.reader``, else the oracle's default."""
    judge = oracle.load()
    block, at = draft.block("oracles").get("reader"), ("oracles", "reader")
    if block is None and not judge.reads:
        return None
    if block is not None and (not isinstance(block, dict) or not judge.reads):
        allowed = (
            "keys and values, for example {use: NAME}"
            if judge.reads
            else f"no reader with {oracle.name}, which needs none"
        )
        draft.wrong(at, found=block, allowed=allowed)
        return None
    reader_settings = {key: value for key, value in (block or {}).items() if key != "use"}
    name = (block or {}).get("use", judge.reads)
    info = parts("readers").get(str(name))
    if info is None or not can_read(info, judge):
        fitting = [reader.name for reader in parts("readers").values() if can_read(reader, judge)]
        allowed = ", ".join(fitting) or f"a reader of {noun(judge.task)} whose columns are texts of {oracle.name}"
        draft.wrong((*at, "use"), found=name, allowed=allowed, nearest=nearest_name(str(name), fitting))
        return None
    settings = settings_of(draft, at, info, reader_settings)
    if settings is None:
        return None
    draft.mistakes.extend(info.load()(info.name, settings).check())
    return PartPlan(id=info.name, info=info, settings=settings)


def can_read(info: PartInfo, oracle: type[Oracle]) -> bool:
    """Return True if an oracle can use a reader."""
    reader = info.load()
    return reader.task == oracle.task and not reader.second and set(reader.columns) <= set(oracle.texts)


def criterion_names(info: PartInfo) -> tuple[str, ...]:
    """Return the names allowed in an oracle's criteria: its score columns and the rules over them."""
    oracle = info.load()
    stated = getattr(oracle, "criteria", None)
    if isinstance(stated, tuple):
        return stated
    scores = tuple(str(score) for score in oracle.scores)
    return (*scores, "both", "either") if {"dice", "iou"} <= set(scores) else scores


def _oracle_for(kind: str | None, infos: Mapping[str, PartInfo]) -> PartInfo | None:
    """Return the oracle of a task: its default, else the first that judges it."""
    default = None if kind is None else infos.get(task_of(kind).oracle)
    return default or next((info for info in infos.values() if kind is None or info.load().task == kind), None)


def _oracle_settings(draft: Draft, info: PartInfo) -> dict[str, Any]:
    """Return the settings of the oracle itself in a draft's ``oracles``; unknown keys become mistakes."""
    setting_names = list(info.load().Settings.model_fields)
    settings: dict[str, Any] = {}
    for key, value in draft.block("oracles").items():
        if key in setting_names:
            settings[key] = value
        elif key not in ("oracle", *_BESIDE):
            names = ["oracle", *_BESIDE, *setting_names]
            draft.wrong(
                ("oracles", key), found=f"the key {key}", allowed=", ".join(names), nearest=nearest_name(key, names)
            )
    return settings


def _check_expectations(draft: Draft, settings: Any) -> None:
    """Report expectations of relations that neither the suite nor medtest has, because they would be ignored."""
    stated = getattr(settings, "expectations", None) or {}
    relation_ids = [str(name) for name in draft.block("relations")]
    existing = [*relation_ids, *parts("relations")]
    for name in stated:
        if name not in existing:
            draft.wrong(
                ("oracles", "expectations", name),
                found=name,
                allowed=", ".join(relation_ids) + ", or the name of a relation's part",
                nearest=nearest_name(name, existing),
            )


def _check_references(draft: Draft, info: PartInfo, primary: str, shown: Iterable[str]) -> None:
    references = info.load().references
    stated: list[tuple[Key, str]] = [(("oracles", "primary", "against"), primary)]
    stated += [(("oracles", "against", index), name) for index, name in enumerate(shown)]
    for key, name in stated:
        if name not in references:
            draft.wrong(key, found=name, allowed=", ".join(references), nearest=nearest_name(name, references))


def _check_own_answer(draft: Draft, info: PartInfo, primary: PrimaryBlock) -> None:
    """Check that a score against the source exists: for other scores no case would be judged."""
    self_scores = info.load().self_scores
    lacking = [name for name in criteria.components(primary.score) if name not in self_scores]
    if primary.against == "source" and lacking and primary.score in criterion_names(info):
        fitting = [n for n in criterion_names(info) if all(part in self_scores for part in criteria.components(n))]
        draft.wrong(
            ("oracles", "primary", "score"),
            found=f"{primary.score} against the source",
            allowed=f"{', '.join(fitting)}; against truth also {primary.score}",
        )


def _check_no_threshold(draft: Draft, key: Key, score: str, block: Mapping[str, Any]) -> None:
    """Report a non-zero threshold of a rule without one."""
    threshold = block.get("threshold")
    if score in criteria.NO_THRESHOLD and threshold:
        explanation, alternative = _OTHER_SCORE.get(score, ("it is true or false", ""))
        allowed = f"no threshold with {score} ({explanation})"
        draft.wrong(
            key,
            found=threshold,
            allowed=allowed,
            fix="remove it" + (f", or choose {alternative}" if alternative else ""),
        )


def _check_score(draft: Draft, key: Key, score: str, names: tuple[str, ...]) -> None:
    if score not in names:
        draft.wrong(key, found=score, allowed=", ".join(names), nearest=nearest_name(score, names))


def _with_first(scores: Iterable[str], primary: str) -> tuple[str, ...]:
    distinct = tuple(dict.fromkeys(scores))
    return distinct if primary in distinct else (primary, *distinct)


def gates_of(draft: Draft, oracle: OraclePlan | None, relations: list[str]) -> tuple[Gate, ...]:
    """Return the gates of a draft; missing criterion keys default to the primary criterion."""
    items = draft.values.get("gates")
    if items is None:
        return ()
    if not isinstance(items, list):
        draft.wrong(("gates",), found=items, allowed="a list with one item per gate")
        return ()
    primary = Criterion() if oracle is None else oracle.primary
    gates: list[Gate] = []
    for index, item in enumerate(items):
        at: Key = ("gates", index)
        if not isinstance(item, dict):
            draft.wrong(at, found=item, allowed="keys and values, for example {relation: overall, max_percent: 10}")
            continue
        filled = {"score": primary.score, "threshold": _gate_limit(oracle, primary), "against": primary.against, **item}
        paired = "no_worse_than" in item
        if paired and not draft.on_command_line(at):
            fix = "remove it from the suite and type gates=[{no_worse_than: SUITE/SYSTEM}]"
            draft.wrong((*at, "no_worse_than"), found=item["no_worse_than"], allowed="the command line", fix=fix)
            continue
        model: type[GateBlock | PairedGateBlock] = PairedGateBlock if paired else GateBlock
        block = validate(model, filled, at=at, origin=draft.origin, mistakes=draft.mistakes)
        if paired and item.get("relation") == "overall_cells":
            draft.wrong((*at, "relation"), found="overall_cells", allowed=f"overall, {', '.join(relations)}")
        _check_gate_names(draft, at, filled, oracle, relations)
        if block is not None:
            _check_no_threshold(draft, (*at, "threshold"), block.score, item)
            limit = criteria.threshold_of(block.score, block.threshold)
            settings = {**block.model_dump(), "threshold": limit, "severity": str(block.severity)}
            if isinstance(block, GateBlock):
                settings[_FAILED_SOURCES] = _source_bound(draft, (*at, _FAILED_SOURCES), block, item)
            gates.append(PairedGate(**settings) if paired else Gate(**settings))
    return tuple(gates)


def _source_bound(draft: Draft, at: Key, block: GateBlock, item: Mapping[str, Any]) -> float | None:
    """Return the bound of a gate on cases without a source; None against the source's own answer.

    An explicit bound together with ``against: source`` is a mistake; if the primary criterion is against the source, as
    one typed for a view, a suite's bound is ignored.
    """
    stated = block.max_source_failed_percent
    if block.against != "source":
        return MOST_SOURCE_FAILED if stated is None else stated
    if stated is not None and item.get("against") == "source":
        allowed = "a gate against truth or input: the source's own answer is never right or wrong"
        draft.wrong(at, found=stated, allowed=allowed, fix=f"omit {_FAILED_SOURCES}")
    return None


def _gate_limit(oracle: OraclePlan | None, primary: Criterion) -> float:
    """Return the threshold of a gate without one: the primary one if it has one, else the first in the tables."""
    if oracle is None or primary.score not in criteria.NO_THRESHOLD:
        return primary.threshold
    return oracle.thresholds[0]


def _check_gate_names(
    draft: Draft, at: Key, gate: Mapping[str, Any], oracle: OraclePlan | None, relations: list[str]
) -> None:
    """Check the names in a gate that are text; wrong types are already reported."""
    relation, score, dataset = gate.get("relation"), gate.get("score"), gate.get("dataset")
    names = [*relations, "overall", "overall_cells"]
    if isinstance(relation, str) and relation not in names:
        nearest = nearest_name(relation, names)
        draft.wrong((*at, "relation"), found=relation, allowed=", ".join(names), nearest=nearest)
    if isinstance(score, str) and oracle is not None:
        _check_score(draft, (*at, "score"), score, criterion_names(oracle.part.info))
    if isinstance(dataset, str) and not ID_PATTERN.fullmatch(dataset):
        draft.wrong((*at, "dataset"), found=dataset, allowed="all, or the id of a data set")
