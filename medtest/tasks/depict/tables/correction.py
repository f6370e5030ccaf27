"""Correction of rates for the reader's errors, by its card.

A rate p measured by a test with sensitivity Se and specificity Sp corresponds to a true rate (p + Sp - 1) / (Se + Sp -
1) (W. J. Rogan and B. Gladen, American Journal of Epidemiology 107, 1978). For misses this is exact by class: the
detection rate of a class among the pictures whose prompt states it, corrected by the class's own card. For errors, each
case is the test. Its false alarms and hits follow from the card if the reader's errors on the classes of each picture
are independent: a right pair passes if everything compared is read alike, and an error is detected as often as an error
in a single object.

Intervals include both uncertainties: draws of the rate (normal, with the width of its own interval) and of the card's
counts (Beta, with Jeffreys' prior), as Rogan and Gladen's variance adds them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from medtest.readers.pictures.card import Card
from medtest.results.cube.axes import Floats, Integers
from medtest.results.cube.intervals import Z95, percentile_ends
from medtest.results.cube.resampling import generator
from medtest.tasks.depict.rules import ENTITIES
from medtest.tasks.depict.tables.cases import DepictedCases
from medtest.tasks.depict.views import PoolChange, Said, SceneLook, change_of, look_of, said_of

_DRAWS = 1000
_LEAST = 0.05
"""Smallest informedness (Se + Sp - 1) of a case for which rates are corrected."""
_MOST_CASES = 400
"""Number of cases over which false alarms and hits of a row are averaged, spread evenly over it."""
NOTHING: dict[str, float] = dict.fromkeys(("corrected", "corrected_low", "corrected_high"), math.nan)


@dataclass(frozen=True, eq=False)
class Correction:
    """Correction by a reader's card, with draws of its rates.

    Attributes:
        card: The card.
    """

    card: Card

    @cached_property
    def _kinds(self) -> Mapping[str, tuple[dict[str, int], Floats, Floats]]:
        """By kind of a card the index of each name, sensitivities and specificities.

        Rates are draws × names; the first draw is the estimate.
        """
        rates_by_kind = {}
        for kind in ("class", "predicate"):
            rows = [row for row in self.card.of_kind(kind) if row.reliable]
            counts = np.array([row.counts for row in rows], np.float64).reshape(len(rows), 4).T
            present, detected, absent, spurious = counts
            draw = generator("card", self.card.sha256, kind)
            size = (_DRAWS, len(rows))
            sensitive = np.concatenate(
                [[detected / present], draw.beta(detected + 0.5, present - detected + 0.5, size)]
            )
            specific = np.concatenate(
                [[1 - spurious / absent], draw.beta(absent - spurious + 0.5, spurious + 0.5, size)]
            )
            rates_by_kind[kind] = {row.name: place for place, row in enumerate(rows)}, sensitive, specific
        return rates_by_kind

    def of_errors(
        self, cases: DepictedCases, rows: Integers, row: Mapping[str, Any], *, pairs: bool, kind: str
    ) -> dict[str, float]:
        """Return the corrected error rate of cases with its interval.

        Args:
            cases: Cases of one system.
            rows: Indices of the judged cases.
            row: Their ``rate`` with ``ci_low`` and ``ci_high``.
            pairs: True if pairs are judged (under ``strict``), False for pictures against their own prompts.
            kind: ``entities`` or ``relations``.
        """
        names, sensitive, specific = self._kinds["class" if kind == ENTITIES else "predicate"]
        if not names:
            return dict(NOTHING)
        logs = _Logs(sensitive, specific, pairs=pairs)
        step = max(1, -(-len(rows) // _MOST_CASES))
        alarm, hit, total = np.zeros(len(sensitive)), np.zeros(len(sensitive)), 0.0
        contents = Counter((cases.pool[at], cases.effect[at], cases.tells[at]) for at in rows[::step].tolist())
        for (pool, effect, tells), count in contents.items():
            look = look_of(_NOTHING_SEEN, tells)
            placed = _told(said_of(pool), change_of(effect), look, names, classes=kind == ENTITIES)
            if not any(placed):
                continue
            alarmed, hits = logs.of(placed, others=pairs and kind == ENTITIES)
            alarm, hit, total = alarm + count * alarmed, hit + count * hits, total + count
        if not total:
            return dict(NOTHING)
        return _corrected(row, "rate", alarm / total, hit / total)

    def of_misses(self, cases: DepictedCases, rows: Integers, row: Mapping[str, Any], *, kind: str) -> dict[str, float]:
        """Return the corrected miss rate of cases with its interval: by class, then together.

        Args:
            cases: Cases of one system.
            rows: Indices of the cases with a scene.
            row: Their ``miss`` with ``ci_low`` and ``ci_high``.
            kind: ``entities`` or ``relations``.
        """
        names, sensitive, specific = self._kinds["class" if kind == ENTITIES else "predicate"]
        stated: Counter[str] = Counter()
        for pool, count in Counter(cases.pool[at] for at in rows.tolist()).items():
            for name, number in _said_names(said_of(pool), classes=kind == ENTITIES).items():
                stated[name] += number * count
        on_card = {name: number for name, number in stated.items() if name in names}
        if not on_card or sum(on_card.values()) < 0.5 * sum(stated.values()):
            return dict(NOTHING)
        share = np.array(list(on_card.values()), np.float64) / sum(on_card.values())
        at = [names[name] for name in on_card]
        # A present object is missed with probability 1 - Se, an absent one with Sp; classes are weighted by frequency.
        return _corrected(row, "miss", (1 - sensitive[:, at]) @ share, specific[:, at] @ share)


_NOTHING_SEEN = '{"entities":[],"triples":[]}'


class _Logs:
    """Logarithms of the probabilities that an object is read as the rule requires, draws × names.

    Args:
        sensitive: Sensitivities.
        specific: Specificities.
        pairs: True if pairs are judged.
    """

    def __init__(self, sensitive: Floats, specific: Floats, *, pairs: bool) -> None:
        se, sp = np.clip(sensitive, 1e-6, 1 - 1e-9), np.clip(specific, 1e-6, 1 - 1e-9)
        self.alike = np.log(se**2 + (1 - se) ** 2 if pairs else se)
        self.unlike = np.log(se * (1 - sp) + (1 - se) * sp if pairs else 1 - sp)
        self.gone = np.log(se * sp if pairs else sp)
        self.stayed = np.log(se * (1 - se) if pairs else 1 - se)
        self.come, self.lacking = np.log(se), np.log(1 - sp)
        self.empty = np.log(sp**2 + (1 - sp) ** 2)
        self._all_empty = self.empty.sum(1)

    def of(self, placed: Sequence[list[int]], *, others: bool) -> tuple[Floats, Floats]:
        """Return the probabilities of an alarm for a right case, and for one with one error, draws each.

        Args:
            placed: Card indices of the case's names: kept, removed, added.
            others: True if nothing else may be seen.
        """
        kept, removed, added = placed
        right = [self.alike[:, kept], self.gone[:, removed], self.come[:, added]]
        wrong = [self.unlike[:, kept], self.stayed[:, removed], self.lacking[:, added]]
        passing, failing = np.concatenate(right, axis=1), np.concatenate(wrong, axis=1)
        passed = passing.sum(1)
        if others:
            inside = [*kept, *removed, *added]
            passed = passed + self._all_empty - self.empty[:, inside].sum(1)
        detected = 1 - np.exp(passed[:, None] - passing + failing).mean(1)
        return 1 - np.exp(passed), detected


def _told(
    stated: Said, change: PoolChange, look: SceneLook, names: Mapping[str, int], *, classes: bool
) -> list[list[int]]:
    """Return the card indices of a case's names: kept, removed, added."""
    tells = look.tells
    if classes:
        on_card = {name for name in (*stated.names, *change.removed) if name in names and tells.names(name)}
        removed = {name for name in on_card if name in change.removed and not stated.names[name]}
        added = {name for name in on_card if name in change.added and stated.names[name] == change.added[name]}
        groups = [on_card - removed - added, removed, added]
        return [[names[name] for name in sorted(group)] for group in groups]
    pairs, gone, new = change.pairs
    kept = ({triple for _, triple in pairs} | set(stated.triples)) - set(new)
    triples = (sorted(kept), [triple for triple in sorted(gone) if triple not in stated.triples], sorted(new))
    return [[names[t[1]] for t in group if tells.relates(t) and t[1] in names] for group in triples]


def _said_names(view: Said, *, classes: bool) -> Counter[str]:
    if classes:
        return view.names
    return Counter(predicate for _, predicate, _ in view.triples)


def _corrected(row: Mapping[str, Any], name: str, alarm: Floats, hit: Floats) -> dict[str, float]:
    """Return the corrected rate and its interval; the first of ``alarm`` and ``hit`` is the card's estimate."""
    rate, low, high = (float(row[column]) for column in (name, "ci_low", "ci_high"))
    if math.isnan(rate) or hit[0] - alarm[0] < _LEAST:
        return dict(NOTHING)
    spread = (high - low) / (2 * Z95)
    drawn = generator("correction", name, rate, len(hit)).normal(rate, spread, len(hit) - 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        values = (drawn - alarm[1:]) / np.where(hit[1:] - alarm[1:] >= _LEAST, hit[1:] - alarm[1:], np.nan)
    ends = percentile_ends(values)
    corrected = (rate - alarm[0]) / (hit[0] - alarm[0])
    return {
        name: round(min(max(float(value), 0.0), 1.0), 6)
        for name, value in zip(NOTHING, (corrected, *ends), strict=True)
    }
