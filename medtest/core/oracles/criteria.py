"""Violation criteria: equation 6 of the MedTest report, as pure functions of score columns.

A case violates its relation when ``(original - artefact) / original > t``, strictly (MedTest report, section 4.3,
equation 6). Against ``truth`` both scores compare with the expected answer; against ``source`` the artefact score
compares with the system's own answer to the source image (moved as expected) and the original score is 1. Against
``input`` the original score is that of the image given to the system (``input_<score>``): with t = 0 an answer violates
when it is worse than the input.

The rules ``both`` (the report's prose: "both Dice and IoU") and ``either`` combine Dice and IoU. The rule ``label``
applies to classifiers: the label changed (against ``source``), or is wrong although it was right on the source image
(against ``truth``); it has no threshold. The rule ``answer`` is the same for text answers. The scores of :data:`ALONE`
apply to cases with their own expected answer, whether or not the source was right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medtest.core.cases import Reason, ReasonCode, Verdict

Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Against: TypeAlias = Literal["truth", "source", "input"]

RULES: dict[str, tuple[str, ...]] = {
    "both": ("dice", "iou"),
    "either": ("dice", "iou"),
    "label": ("agreement",),
    "answer": ("agreement",),
}
"""Rules over scores, with the scores they use."""

_CONTENT = frozenset({"whole", "entities", "relations", "attributes", "counts", "clear"})
ALONE: frozenset[str] = _CONTENT | {"soft", "vqascore"}
"""Scores that are judged whatever the source's: the content of a picture, and ``clear``, as 0 or 1; and probabilities
of its content, which violate a threshold t below 1 - t.
"""

NO_THRESHOLD: frozenset[str] = frozenset({"label", "answer", "exact"}) | _CONTENT
"""Rules over scores that are 0 or 1, which any loss violates; tables leave their threshold empty."""

ORIGINALS: dict[str, str] = {"probability": "source_confidence"}
"""Original score of ``self_<score>`` if it is not 1: the source answer's confidence in its own label."""

TIE_BREAKERS: dict[str, str] = {"label": "probability", "answer": "jaccard"}
"""Scores that rank cases of equal loss if a rule's own score is 0 or 1 and most cases tie."""

TIE = 2e-15
"""Slack of the comparison, relative to the original score.

Dice and IoU are fractions of pixel counts: two different relative losses on images up to 2000 × 2000 differ by more
than 8e-15, and double rounding adds less than 1e-15, so with this slack ``>`` is exactly the strict comparison of the
fractions (0.8 → 0.6 is a loss of 0.25, not above it).
"""

_KNOWN = np.ones(1)
REASONS: dict[ReasonCode, str] = {
    ReasonCode.NO_SOURCE_SCORE: "the answer to the source image has no score",
    ReasonCode.NO_TRUTH: "there is no expected answer to compare with",
    ReasonCode.SOURCE_SCORE_ZERO: "the source score is zero",
    ReasonCode.INPUT_SCORE_ZERO: "the score of the input is zero or less",
    ReasonCode.SOURCE_WRONG: "the answer to the source image is already wrong",
}
"""Texts of the reasons for a SKIP."""


@dataclass(frozen=True, kw_only=True)
class CriterionResult:
    """Result of a criterion for many cases.

    Attributes:
        applies: bool N; the case can be judged (both scores exist and the original is above zero).
        violated: bool N; it applies and the loss is above the threshold.
        source_failed: bool N; not judged because the original score is zero or missing although the follow-up was
            answered.
    """

    applies: Bools
    violated: Bools
    source_failed: Bools


def components(score: str) -> tuple[str, ...]:
    """Return the score columns used by a score or a rule."""
    return RULES.get(score, (score,))


def threshold_of(score: str, threshold: float) -> float:
    """Return the effective threshold: 0 for a rule without one."""
    return 0.0 if score in NO_THRESHOLD else threshold


def criterion_name(score: str, threshold: float) -> str:
    """Format score and threshold for display: ``dice t=0.25``, ``label``."""
    return score if score in NO_THRESHOLD else f"{score} t={threshold:g}"


def compared_columns(score: str, against: str) -> tuple[str, str | None]:
    """Return the columns of the follow-up's score and of its reference (None if that is 1)."""
    if against == "source":
        return f"self_{score}", ORIGINALS.get(score)
    if score in ALONE:
        return score, None
    return score, f"{'input' if against == 'input' else 'source'}_{score}"


def columns_needed(score: str, against: str) -> tuple[str, ...]:
    """Return the record columns that a criterion reads."""
    pairs = [compared_columns(name, against) for name in components(score)]
    return tuple(column for pair in pairs for column in pair if column is not None)


def loss_exceeds(original: ArrayLike, artefact: ArrayLike, threshold: float) -> Bools:
    """Return True where the relative loss is above ``threshold`` (equation 6, strict).

    Args:
        original: Scores on the source images, above zero.
        artefact: Scores on the follow-ups, same shape.
        threshold: t in [0, 1).
    """
    before = np.asarray(original, dtype=np.float64)
    after = np.asarray(artefact, dtype=np.float64)
    exceeded: Bools = (before - after) > (threshold + TIE) * before
    return exceeded


def _pair(columns: Mapping[str, ArrayLike], name: str, against: str) -> tuple[Floats, Floats]:
    after, before = compared_columns(name, against)
    artefact = np.asarray(columns[after], dtype=np.float64)
    return np.ones_like(artefact) if before is None else np.asarray(columns[before], dtype=np.float64), artefact


def judge(columns: Mapping[str, ArrayLike], *, score: str, threshold: float, against: str) -> CriterionResult:
    """Judge many cases under one criterion.

    Args:
        columns: The score columns of :func:`columns_needed`, NaN where undefined, all of one length.
        score: A score column, or a rule of :data:`RULES`.
        threshold: t of equation 6; ignored by the rules of :data:`NO_THRESHOLD`.
        against: ``truth``, ``source`` or ``input``.
    """
    limit = threshold_of(score, threshold)
    applies: Bools | None = None
    violated: Bools | None = None
    failed: Bools | None = None
    for name in components(score):
        original, artefact = _pair(columns, name, against)
        answered = ~np.isnan(artefact)
        with np.errstate(invalid="ignore"):
            usable = answered & (original > 0)
            is_worse = usable & loss_exceeds(original, artefact, limit)
        zero = answered & ~usable
        if applies is None or violated is None or failed is None:
            applies, violated, failed = usable, is_worse, zero
        else:
            applies = applies & usable
            violated = (violated | is_worse) if score == "either" else (violated & is_worse)
            failed = failed | zero
    if applies is None or violated is None or failed is None:
        raise ValueError(f"the rule {score!r} uses no score")
    return CriterionResult(applies=applies, violated=violated & applies, source_failed=failed)


def verdict(row: Mapping[str, Any], *, score: str, threshold: float, against: str) -> tuple[Verdict, Reason]:
    """Return the verdict from one record's score columns, and the reason if it is SKIP.

    Args:
        row: Score columns by name; None or NaN where undefined.
        score: A score column, or a rule.
        threshold: t of equation 6.
        against: ``truth``, ``source`` or ``input``.
    """
    needed = columns_needed(score, against)
    columns = {name: np.array([row.get(name)], dtype=np.float64) for name in needed}
    result = judge(columns, score=score, threshold=threshold, against=against)
    if result.applies[0]:
        return (Verdict.FAIL if result.violated[0] else Verdict.PASS), Reason()
    names = components(score)
    if against == "source":
        code = ReasonCode.NO_SOURCE_SCORE
    elif any(np.isnan(columns[name][0]) for name in names):
        code = ReasonCode.NO_TRUTH
    elif against == "input":
        code = ReasonCode.INPUT_SCORE_ZERO
    elif any(np.isnan(columns.get(f"source_{name}", _KNOWN)[0]) for name in names):
        code = ReasonCode.NO_SOURCE_SCORE
    else:
        code = ReasonCode.SOURCE_WRONG if score in NO_THRESHOLD else ReasonCode.SOURCE_SCORE_ZERO
    return Verdict.SKIP, Reason(code, REASONS[code])
