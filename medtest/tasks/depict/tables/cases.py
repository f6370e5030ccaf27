"""Judgements of all records as arrays for the tables; each distinct text is parsed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import SOURCE, UNCHANGED, Verdict
from medtest.core.deferred import pd
from medtest.core.scenes import Tells
from medtest.results.cube.axes import Floats, Integers, Places
from medtest.results.cube.resampling import Resampler
from medtest.results.records.records_io import Records
from medtest.tasks.depict.oracle import ANSWERED, WHOLE, WITHHELD
from medtest.tasks.depict.rules import KINDS, RULES, STRICT, JudgedPair, against_source, against_truth, missed
from medtest.tasks.depict.views import SHAPES, PoolChange, Said, SceneLook, change_of, look_of, said_of

Texts: TypeAlias = NDArray[np.object_]
WEIGHT = "stratum_weight"
"""Column with the weight of a drawn prompt, if prompts were drawn by density."""
MODALITY = "stratum_modality"
"""Column with the kind of picture that an order asks for; other prompts have none."""
ALL_KINDS: tuple[str, ...] = (WHOLE, *KINDS)


@dataclass(frozen=True, kw_only=True, eq=False)
class DepictedCases:
    """Sources and follow-ups of one system, N in all, sources first.

    Attributes:
        relations: Names in order, ``source`` first.
        relation: int64 N; index of the relation.
        seed: int64 N; index of the prompt.
        cluster: int64 N; index of the resampling unit: the prompt, or the unit named in metadata.
        clusters: Number of clusters.
        weight: float64 N; weight of a case, 1 without weights.
        state: State of each call; "" without one.
        error: bool N; True if the system or the relation failed.
        has_scene: bool N; True if a reader has read the picture.
        paired: bool N; True if a reader has read the picture and that of its source.
        detectable: bool N; True if the reader can detect the change (for pairs; True for sources).
        pool: Texts of pools.
        effect: Texts of effects, "" for none.
        shape: int64 N; index of the change's shape in :data:`SHAPES`.
        rewritten: bool N; True if the service says that it drew another prompt.
        source_state: For follow-ups the state of the source.
        pair: For each rule and kind whether the pair is wrong, float64 N: 1, 0 or NaN.
        truth: For each kind whether the picture contradicts its prompt, float64 N: 1, 0 or NaN.
        missing: For each rule int64 N × 6: the result of :func:`medtest.tasks.depict.rules.missed`, and the numbers of
            stated entities and relations that the reader cannot detect.
        scene: Texts of scenes.
        tells: Texts of what readers can detect.
        source_scene: For follow-ups the scene of the source.
        source_tells: For follow-ups what the source's reader can detect.
        orders: bool N; True if the prompt is an order of a medical picture.
    """

    relations: tuple[str, ...]
    relation: Integers
    seed: Integers
    cluster: Integers
    clusters: int
    weight: Floats
    state: Texts
    error: NDArray[np.bool_]
    has_scene: NDArray[np.bool_]
    paired: NDArray[np.bool_]
    detectable: NDArray[np.bool_]
    pool: Texts
    effect: Texts
    shape: Integers
    rewritten: NDArray[np.bool_]
    source_state: Texts
    pair: Mapping[tuple[str, str], Floats]
    truth: Mapping[str, Floats]
    missing: Mapping[str, Integers]
    scene: Texts
    tells: Texts
    source_scene: Texts
    source_tells: Texts
    orders: NDArray[np.bool_]

    @property
    def weighted(self) -> bool:
        """True if cases have different weights."""
        return bool((self.weight != 1).any())

    @property
    def pooled(self) -> NDArray[np.bool_]:
        """Mask of the relations that are operators: neither the source nor a repeat."""
        return np.array([name not in (SOURCE, UNCHANGED) for name in self.relations], dtype=bool)

    @property
    def withheld(self) -> NDArray[np.bool_]:
        """Mask of the cases that the service refused to draw."""
        return np.isin(self.state, WITHHELD)

    def of(self, relation: str) -> NDArray[np.bool_]:
        """Return a mask of the cases of a relation."""
        if relation not in self.relations:
            return np.zeros(len(self.relation), bool)
        return np.asarray(self.relation == self.relations.index(relation), dtype=np.bool_)

    @cached_property
    def resampler(self) -> Resampler:
        """Cluster draws for every interval of the tables."""
        return Resampler(self.clusters, "depictions")

    def place(self, columns: int = 1) -> Places:
        """Return the places of the cases: relations × columns, every case once in each column."""
        cell = self.relation[None] * columns + np.arange(columns)[:, None]
        return Places(
            shape=(len(self.relations), columns),
            dataset=np.zeros(cell.size, np.int64),
            cell=cell.ravel(),
            cluster=np.tile(self.cluster, columns),
            resamplers=(self.resampler,),
        )

    def floors(self, rule: str, shapes: Integers, rows: Integers) -> dict[str, Floats]:
        """Return the judgements of pairs of one prompt under the relations of other changes.

        Args:
            rule: One of the rules.
            shapes: For each row the index of the shape whose relation is applied to the pair.
            rows: Indices of cases that repeated a prompt.

        Returns:
            By kind 1, 0 or NaN for each row.
        """
        if rule == STRICT:  # for an unchanged prompt it requires the same under every operator
            return {kind: self.pair[rule, kind][rows] for kind in ALL_KINDS}
        by_kind = {kind: np.full(len(rows), np.nan) for kind in ALL_KINDS}
        cache: dict[tuple[Any, ...], JudgedPair] = {}
        for place, (row, shape) in enumerate(zip(rows.tolist(), shapes.tolist(), strict=True)):
            if not self.paired[row]:
                continue
            key = (self.source_scene[row], self.scene[row], self.pool[row], self.tells[row], shape)
            judgement = cache.get(key)
            if judgement is None:
                judgement = cache[key] = against_source(
                    rule, *self._looks(row), said_of(self.pool[row]), change_of(""), SHAPES[shape]
                )
            _note(by_kind, place, judgement)
        return by_kind

    def _looks(self, row: int) -> tuple[SceneLook, SceneLook]:
        return look_of(self.source_scene[row], self.source_tells[row]), look_of(self.scene[row], self.tells[row])


def has_depictions(records: Records) -> bool:
    """Return True if these are records of a system that drew pictures."""
    names = ("answer_state", "pool", "picture", "scene")
    frames = (records.followups, records.sources)
    return any(all(name in frame.columns for name in names) and bool(frame[names[0]].notna().any()) for frame in frames)


def cases_of(records: Records) -> DepictedCases:
    """Return the judgements of records.

    Args:
        records: Records of one system.
    """
    frames = [frame for frame in (records.sources, records.followups) if not frame.empty]
    text = {name: np.concatenate([_texts(frame, name) for frame in frames]) for name in _NAMES}
    relation, relations = _numbered(text["relation"], first=SOURCE)
    seed, _ = pd.factorize(text["dataset"] + "\x1f" + text["seed_id"] + "\x1f" + text["item"])
    cluster, clusters = pd.factorize(text["dataset"] + "\x1f" + text["cluster"])
    weight = np.concatenate([_weights(frame) for frame in frames])
    judgements = _judge(
        text, relation == relations.index(SOURCE) if SOURCE in relations else np.zeros(len(relation), bool)
    )
    return DepictedCases(
        relations=relations,
        relation=relation,
        seed=seed.astype(np.int64),
        cluster=cluster.astype(np.int64),
        clusters=len(clusters),
        weight=weight,
        state=text["answer_state"],
        error=np.asarray(text["verdict"] == Verdict.ERROR.value, dtype=np.bool_),
        rewritten=np.asarray((text["revised_prompt"] != "") & (text["revised_prompt"] != text["prompt"]), np.bool_),
        pool=text["pool"],
        effect=text["effect"],
        source_state=text["source_state"],
        scene=text["scene"],
        tells=text["tells"],
        source_scene=text["source_scene"],
        source_tells=text["source_tells"],
        orders=np.asarray(text[MODALITY] != "", dtype=np.bool_),
        **judgements,
    )


_NAMES = (
    *("dataset", "seed_id", "item", "cluster", "relation", "verdict", "prompt", "pool", "effect", "answer_state"),
    *("revised_prompt", "scene", "tells", "source_scene", "source_tells", "source_state", MODALITY),
)


def _texts(frame: pd.DataFrame, name: str) -> Texts:
    if name not in frame.columns:
        return np.full(len(frame), "", dtype=object)
    return frame[name].astype(object).fillna("").to_numpy(dtype=object)


def _weights(frame: pd.DataFrame) -> Floats:
    if WEIGHT not in frame.columns:
        return np.ones(len(frame))
    weights = pd.to_numeric(frame[WEIGHT].astype(object), errors="coerce").fillna(1.0)
    return weights.to_numpy(dtype=np.float64)


def _numbered(values: Texts, *, first: str) -> tuple[Integers, tuple[str, ...]]:
    codes, unique = pd.factorize(values)
    names = [str(value) for value in unique]
    last = [name for name in names if name == UNCHANGED]
    order = [*(n for n in names if n == first), *(n for n in names if n not in (first, UNCHANGED)), *last]
    place = np.array([order.index(name) for name in names], dtype=np.int64)
    return place[codes], tuple(order)


def _judge(text: Mapping[str, Texts], source: NDArray[np.bool_]) -> dict[str, Any]:
    """Return the judgements of every case; cases with equal content are judged once."""
    count = len(source)
    has_scene = np.asarray((text["answer_state"] == ANSWERED) & (text["scene"] != "") & (text["pool"] != ""), np.bool_)
    has_pair = (
        has_scene & ~source & np.asarray((text["source_scene"] != "") & (text["source_state"] == ANSWERED), np.bool_)
    )
    pair = {(rule, kind): np.full(count, np.nan) for rule in RULES for kind in ALL_KINDS}
    truth = {kind: np.full(count, np.nan) for kind in ALL_KINDS}
    missing_counts = {rule: np.zeros((count, 6), np.int64) for rule in RULES}
    shape, detectable = np.zeros(count, np.int64), np.ones(count, bool)
    for row in range(count):
        if not source[row] and text["effect"][row]:
            shape[row] = SHAPES.index(change_of(text["effect"][row]).shape)
    by_rule = {rule: {kind: pair[rule, kind] for kind in ALL_KINDS} for rule in RULES}
    cache: dict[tuple[str, ...], tuple[JudgedPair, dict[str, tuple[int, ...]]]] = {}
    for row in np.flatnonzero(has_scene).tolist():
        look, prompt, change = _parsed(text, row)
        key = (text["scene"][row], text["tells"][row], text["pool"][row], text["effect"][row])
        if key not in cache:
            miss_counts = {rule: _missed(look, prompt, rule) for rule in RULES}
            cache[key] = against_truth(look, prompt, change), miss_counts
        judgement, counts = cache[key]
        _note(truth, row, judgement)
        for rule in RULES:
            missing_counts[rule][row] = counts[rule]
        if has_pair[row]:
            source_look = look_of(text["source_scene"][row], text["source_tells"][row])
            for rule in RULES:
                pair_judgement = against_source(rule, source_look, look, prompt, change)
                _note(by_rule[rule], row, pair_judgement)
                if rule == STRICT:
                    detectable[row] = pair_judgement.detectable
        else:
            detectable[row] = judgement.detectable
    return {
        "has_scene": has_scene,
        "paired": has_pair,
        "detectable": detectable,
        "shape": shape,
        "pair": pair,
        "truth": truth,
        "missing": missing_counts,
    }


def _parsed(text: Mapping[str, Texts], row: int) -> tuple[SceneLook, Said, PoolChange]:
    return (
        look_of(text["scene"][row], text["tells"][row]),
        said_of(text["pool"][row]),
        change_of(text["effect"][row]),
    )


def _missed(look: SceneLook, prompt: Said, rule: str) -> tuple[int, ...]:
    counts = missed(look, prompt, rule)
    if look.tells.classes is None and look.tells.predicates is None:
        return *counts, 0, 0
    total = missed(replace(look, tells=Tells(counts=look.tells.counts)), prompt, rule)
    return *counts, total[1] - counts[1], total[3] - counts[3]


def _note(columns: Mapping[str, Floats], row: int, judgement: JudgedPair) -> None:
    for kind, right in ((WHOLE, judgement.whole), *judgement.right.items()):
        if right is not None:
            columns[kind][row] = 0.0 if right else 1.0
