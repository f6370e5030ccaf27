"""Rates corrected for what the reader gets wrong, by its card.

A rate p that a test with sensitivity Se and specificity Sp shows comes from a true rate (p + Sp - 1) / (Se + Sp - 1)
(W. J. Rogan and B. Gladen, American Journal of Epidemiology 107, 1978). Of misses that is exact, class by class: how
often a class is seen among the pictures whose prompt says it, corrected by the class's own card. Of errors a case is
the test. Its false alarms and its hits follow from the card if the reader errs about each class of each picture on its
own: a right pair passes where everything that is compared is read alike, and an error is found as often as one that is
of one thing alone.

Intervals carry both uncertainties: draws of the rate (normal, by the width of its own interval) and of the card's
counts (Beta, with Jeffreys' prior), as G. Rogan and B. Gladen's variance adds them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
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
"""Below this share of informedness (Se + Sp - 1) of a case nothing is corrected."""
_MOST_CASES = 400
"""Cases from which false alarms and hits of a row are averaged, spread evenly over it."""
NOTHING: dict[str, float] = dict.fromkeys(("corrected", "corrected_low", "corrected_high"), math.nan)


@dataclass(frozen=True, eq=False)
class Correction:
    """A reader's card, drawn from.

    Attributes:
        card: The card.
    """

    card: Card

    @cached_property
    def _kinds(self) -> Mapping[str, tuple[dict[str, int], Floats, Floats]]:
        """By kind of a card the place of each name, and sensitivities and specificities, draws × names; first as is."""
        found = {}
        for kind in ("class", "predicate"):
            rows = [row for row in self.card.of_kind(kind) if row.told]
            counts = np.array([row.counts for row in rows], np.float64).reshape(len(rows), 4).T
            present, seen, absent, spurious = counts
            draw = generator("card", self.card.sha256, kind)
            size = (_DRAWS, len(rows))
            sensitive = np.concatenate([[seen / present], draw.beta(seen + 0.5, present - seen + 0.5, size)])
            specific = np.concatenate(
                [[1 - spurious / absent], draw.beta(absent - spurious + 0.5, spurious + 0.5, size)]
            )
            found[kind] = {row.name: place for place, row in enumerate(rows)}, sensitive, specific
        return found

    def of_errors(
        self, cases: DepictedCases, rows: Integers, row: Mapping[str, Any], *, pairs: bool, kind: str
    ) -> dict[str, float]:
        """Return the corrected error rate of some cases with its interval.

        Args:
            cases: The cases of one system.
            rows: Numbers of the judged ones.
            row: Their ``rate`` with ``ci_low`` and ``ci_high``.
            pairs: Whether pairs are judged (under ``strict``), or pictures by their own prompts.
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
            told = _told(said_of(pool), change_of(effect), look, names, classes=kind == ENTITIES)
            if told is None:
                continue
            alarmed, found = logs.of(told, pairs=pairs, others=pairs and kind == ENTITIES)
            alarm, hit, total = alarm + count * alarmed, hit + count * found, total + count
        if not total:
            return dict(NOTHING)
        return _corrected(row, "rate", alarm / total, hit / total)

    def of_misses(self, cases: DepictedCases, rows: Integers, row: Mapping[str, Any], *, kind: str) -> dict[str, float]:
        """Return the corrected miss rate of some cases with its interval: class by class, then together.

        Args:
            cases: The cases of one system.
            rows: Numbers of those that were seen.
            row: Their ``miss`` with ``ci_low`` and ``ci_high``.
            kind: ``entities`` or ``relations``.
        """
        names, sensitive, specific = self._kinds["class" if kind == ENTITIES else "predicate"]
        said: Counter[str] = Counter()
        for pool, count in Counter(cases.pool[at] for at in rows.tolist()).items():
            for name, number in _said_names(said_of(pool), classes=kind == ENTITIES).items():
                said[name] += number * count
        known = {name: number for name, number in said.items() if name in names}
        if not known or sum(known.values()) < 0.5 * sum(said.values()):
            return dict(NOTHING)
        share = np.array(list(known.values()), np.float64) / sum(known.values())
        at = [names[name] for name in known]
        # a thing that is there is missed with 1 - Se, one that is not there with Sp; classes by how often they are said
        return _corrected(row, "miss", (1 - sensitive[:, at]) @ share, specific[:, at] @ share)


_NOTHING_SEEN = '{"entities":[],"triples":[]}'


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """Places of names in a card: of things said before and after, removed, added."""

    kept: list[int]
    removed: list[int]
    added: list[int]


class _Logs:
    """Logarithms of the chances that one thing is read as the rule wants it, draws × names.

    Args:
        sensitive: Sensitivities.
        specific: Specificities.
        pairs: Whether pairs are judged.
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

    def of(self, told: _Told, *, pairs: bool, others: bool) -> tuple[Floats, Floats]:
        """Return chances of an alarm about a right case, and about one with one error, draws each."""
        right = [self.alike[:, told.kept], self.gone[:, told.removed], self.come[:, told.added]]
        wrong = [self.unlike[:, told.kept], self.stayed[:, told.removed], self.lacking[:, told.added]]
        each, other = np.concatenate(right, axis=1), np.concatenate(wrong, axis=1)
        passed = each.sum(1)
        if others:
            inside = [*told.kept, *told.removed, *told.added]
            passed = passed + self._all_empty - self.empty[:, inside].sum(1)
        found = 1 - np.exp(passed[:, None] - each + other).mean(1)
        return 1 - np.exp(passed), found


def _told(said: Said, change: PoolChange, look: SceneLook, names: Mapping[str, int], *, classes: bool) -> _Told | None:
    """Return places of what a case says; None where it says nothing that the card knows."""
    tells = look.tells
    if classes:
        known = {name for name in (*said.names, *change.removed) if name in names and tells.names(name)}
        removed = {name for name in known if name in change.removed and not said.names[name]}
        added = {name for name in known if name in change.added and said.names[name] == change.added[name]}
        groups = [known - removed - added, removed, added]
        places = [[names[name] for name in sorted(group)] for group in groups]
    else:
        pairs, gone, new = change.pairs
        after = {triple for _, triple in pairs} | set(said.triples)
        named = (
            [triple for triple in sorted(after - set(new)) if tells.relates(triple)],
            [triple for triple in sorted(gone) if tells.relates(triple) and triple not in said.triples],
            [triple for triple in sorted(new) if tells.relates(triple)],
        )
        places = [[names[one[1]] for one in group if one[1] in names] for group in named]
    kept, lost, come = places
    return _Told(kept=kept, removed=lost, added=come) if kept or lost or come else None


def _said_names(said: Said, *, classes: bool) -> Counter[str]:
    if classes:
        return said.names
    return Counter(predicate for _, predicate, _ in said.triples)


def _corrected(row: Mapping[str, Any], name: str, alarm: Floats, hit: Floats) -> dict[str, float]:
    """Return the corrected rate and its interval; of ``alarm`` and ``hit`` the first is the card as it is."""
    rate, low, high = (float(row[one]) for one in (name, "ci_low", "ci_high"))
    if math.isnan(rate) or hit[0] - alarm[0] < _LEAST:
        return dict(NOTHING)
    spread = (high - low) / (2 * Z95)
    drawn = generator("correction", name, rate, len(hit)).normal(rate, spread, len(hit) - 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        values = (drawn - alarm[1:]) / np.where(hit[1:] - alarm[1:] >= _LEAST, hit[1:] - alarm[1:], np.nan)
    ends = percentile_ends(values)
    found = (rate - alarm[0]) / (hit[0] - alarm[0])
    return {
        name: round(min(max(float(value), 0.0), 1.0), 6) for name, value in zip(NOTHING, (found, *ends), strict=True)
    }
