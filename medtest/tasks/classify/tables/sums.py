"""Counts over a classifier's cases, and the measures derived from them.

Accuracy, Cohen's κ and weighted F1 all follow from three counts for each class (right, expected, answered) and a few
for each case, so that a resample of clusters is a sum of rows.

- accuracy: share of cases whose label, or whole set of labels, is as expected.
- κ = (p_o - p_e) / (1 - p_e) with p_e = Σ expected_k answered_k / n² (J. Cohen, 1960). Exclusive classes only.
- F1: mean of the classes' 2 TP / (expected + answered), weighted by the number of expected cases.
- label share: share of the decisions that are as expected. Several labels only.
- fall: accuracy on the source images minus that on the follow-ups, over pairs with both answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.tasks.classify.tables.decisions import Decisions, Floats

Integers: TypeAlias = NDArray[np.int64]

_PLAIN = ("cases", "right", "share", "pairs", "source_right", "became_wrong", "became_right", "compared", "changed")


@dataclass(frozen=True, kw_only=True)
class SumColumns:
    """Layout of counts in a row.

    Attributes:
        classes: Number of classes.
        multi: True if several may be true at once.
    """

    classes: int
    multi: bool

    @property
    def width(self) -> int:
        """Length of a row."""
        return len(_PLAIN) + 3 * self.classes

    def get(self, sums: Floats, name: str) -> Floats:
        """Return one count of … × width sums."""
        count: Floats = sums[..., _PLAIN.index(name)]
        return count

    def per_class(self, sums: Floats) -> tuple[Floats, Floats, Floats]:
        """Return right, expected and answered counts of each class, … × classes each."""
        start = len(_PLAIN)
        parts = [sums[..., start + n * self.classes : start + (n + 1) * self.classes] for n in range(3)]
        return parts[0], parts[1], parts[2]


def rows_of(decided: Decisions, chosen: Integers, *, paired: bool = True) -> Floats:
    """Return the counts of cases, one row each, in the order of :class:`SumColumns`.

    Args:
        decided: Decisions of all cases.
        chosen: Indices of the cases.
        paired: True if they are follow-ups, which are compared with their sources.
    """
    answered, labelled = decided.answered[chosen], decided.labelled[chosen]
    graded = answered & labelled
    right, source_right = decided.right[chosen], decided.source_right[chosen]
    pairs = graded & decided.source_answered[chosen] & paired
    comparable = answered & decided.source_answered[chosen] & paired
    answer, source, expected = decided.answer[chosen], decided.source[chosen], decided.expected[chosen]
    plain = [
        graded,
        right,
        np.where(graded, decided.right_share[chosen], 0.0),
        pairs,
        pairs & source_right,
        pairs & source_right & ~right,
        pairs & ~source_right & right,
        comparable,
        comparable & (answer != source).any(1),
    ]
    graded_column = graded[:, None]
    per_class = [answer & expected & graded_column, expected & graded_column, answer & graded_column]
    return np.concatenate([np.stack(plain, axis=1).astype(np.float64), *per_class], axis=1, dtype=np.float64)


def measures(sums: Floats, layout: SumColumns) -> dict[str, Floats]:
    """Return accuracy, κ, F1, label share and fall of … × width sums, NaN if not meaningful."""
    cases = layout.get(sums, "cases")
    hit, expected, answered = layout.per_class(sums)
    undefined = np.full(cases.shape, np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        accuracy = layout.get(sums, "right") / cases
        chance = (expected * answered).sum(-1) / cases**2
        kappa = np.where(np.isclose(chance, 1.0, atol=1e-12), np.nan, (accuracy - chance) / (1.0 - chance))
        either = expected + answered
        f1 = (expected * np.where(either > 0, 2 * hit / either, 0.0)).sum(-1) / expected.sum(-1)
        worse, better = layout.get(sums, "became_wrong"), layout.get(sums, "became_right")
        fall = (worse - better) / layout.get(sums, "pairs")
        share = layout.get(sums, "share") / cases
    return {
        "accuracy": accuracy,
        "kappa": undefined if layout.multi else kappa,
        "f1": f1,
        "label_share": share if layout.multi else undefined,
        "fall": fall,
    }
