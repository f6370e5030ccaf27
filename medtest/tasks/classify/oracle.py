"""Oracle of classifications: label changes, correctness and confidence.

Scores of a case (``p`` are the probabilities of the answer, ``e`` the expected labels):

- ``agreement``: 1 if the answered label (with several labels, the whole set) is the expected one, else 0.
- ``label_share``: with several labels, share of the classes' yes-or-no decisions that are as expected; for exclusive
  classes the agreement.
- ``probability``: probability of the expected label; with several labels the mean over classes of the probability of
  the class's true state (``p`` if it is true, 1 - ``p`` if not).
- ``confidence``: the same for the system's own answer: probability of its own label, or of its own decisions.
- ``dice``, ``iou``: scores of the lesion's mask, if the system gives one and the seed has one (see
  :mod:`medtest.tasks.segment.oracle`).
- ``self_agreement``, ``self_label_share``, ``self_probability``: the first three with the answer to the source image as
  the expected one. A decrease of ``self_probability`` is measured from the ``confidence`` of that answer.

The criterion ``label`` is a loss of agreement: against ``source`` the label changed (metamorphic), against ``truth`` it
is wrong although it was right on the source image.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from medtest.core.cases import Classes, Effect, LabelOutput, Output, PreparedSeed, Probability, Reason, ReasonCode
from medtest.core.oracles.base import Oracle
from medtest.core.oracles.controls import NOTHING_TO_LOSE
from medtest.core.oracles.moves import moved_mask
from medtest.core.plugins import PartSettings
from medtest.core.records import LABEL_FACTORS
from medtest.tasks.segment.oracle import overlap

JOINT = "|"
"""Separator of labels in the text columns."""


class LabelsSettings(PartSettings):
    """Settings of ``labels``; none of them affects a score.

    Attributes:
        label_thresholds: Probability thresholds for multi-label answers in tables on attacks. Decisions in records use
            0.5.
    """

    label_thresholds: list[Annotated[float, Field(gt=0.0, lt=1.0)]] = Field(default=[0.5, 0.7], min_length=1)


class Labels(Oracle):
    """Oracle of classifications; the module's docstring defines the scores."""

    Settings: ClassVar[type[PartSettings]] = LabelsSettings
    task: ClassVar[str] = "label"
    scores: ClassVar[tuple[str, ...]] = ("agreement", "label_share", "probability", "confidence", "dice", "iou")
    self_scores: ClassVar[tuple[str, ...]] = ("agreement", "label_share", "probability")
    criteria: ClassVar[tuple[str, ...]] = ("label", "label_share", "probability", "dice", "iou")
    texts: ClassVar[tuple[str, ...]] = ("label", "source_label", "expected", "probabilities")
    seed_factors: ClassVar[tuple[str, ...]] = LABEL_FACTORS
    revision: ClassVar[int] = 1

    def score(
        self, *, answer: Output, source: Output | None, seed: PreparedSeed, effect: Effect
    ) -> dict[str, float | None]:
        """Return the score columns of one case; None without truth, source answer or probabilities."""
        if not isinstance(answer, LabelOutput) or not isinstance(source, LabelOutput | None):
            raise TypeError(f"labels judges labels, not an answer of kind {answer.kind}")
        columns: dict[str, float | None] = dict.fromkeys(self.scores)
        columns["confidence"] = given_to(answer.probabilities, answer.classes, answer.labels)
        columns |= {f"self_{name}": value for name, value in zip(self.self_scores, (None,) * 3, strict=True)}
        if source is not None:
            columns |= {f"self_{name}": value for name, value in _against(answer, source.labels).items()}
        if seed.labels is not None:
            columns |= _against(answer, seed.labels)
        if answer.mask is not None and seed.mask is not None:
            columns["dice"], columns["iou"] = overlap(answer.mask.mask, moved_mask(seed.mask, effect))
        return columns

    def kept(self, *, answer: Output, source: Output, seed: PreparedSeed, effect: Effect) -> float | Reason:
        """Return the share of the labels given before that are still given."""
        if not isinstance(answer, LabelOutput) or not isinstance(source, LabelOutput):
            raise TypeError(f"labels judges labels, not an answer of kind {answer.kind}")
        if set(source.labels) & set(_names(effect, "becomes")) and not answer.classes.multi:
            return Reason(ReasonCode.SOURCE_WRONG, "the answer to the source is what it should become")
        before = [name for name in source.labels if name not in _names(effect, "becomes")]
        return still_given(before, answer.labels, nothing=_names(effect, "no_finding"))

    def kept_by_chance(self, *, item: str, seed: PreparedSeed, effect: Effect) -> float | None:
        """Return the share of the expected labels that the other case has as well."""
        other = effect.other
        if other is None or seed.labels is None or other.labels is None:
            return None
        share = still_given(seed.labels, other.labels, nothing=_names(effect, "no_finding"))
        return None if isinstance(share, Reason) else share

    def describe(
        self, *, answer: Output | None, source: Output | None, seed: PreparedSeed, effect: Effect
    ) -> dict[str, str | None]:
        """Return the labels as text, and the probabilities as JSON."""
        return {
            "label": _text(answer.labels if isinstance(answer, LabelOutput) else None),
            "source_label": _text(source.labels if isinstance(source, LabelOutput) else None),
            "expected": _text(seed.labels),
            "probabilities": _probabilities(answer) if isinstance(answer, LabelOutput) else None,
        }


def still_given(before: Sequence[str], after: Sequence[str], *, nothing: Sequence[str] = ()) -> float | Reason:
    """Return the share of labels that are still given, or the reason if there were none.

    Args:
        before: Labels before.
        after: Labels after.
        nothing: Names of classes that mean "no finding".
    """
    findings = [name for name in before if name not in nothing]
    return sum(name in after for name in findings) / len(findings) if findings else NOTHING_TO_LOSE


def _names(effect: Effect, key: str) -> tuple[str, ...]:
    names = effect.data.get(key)
    return tuple(str(name) for name in names) if isinstance(names, list) else ()


def given_to(probabilities: Probability | None, classes: Classes, labels: Sequence[str]) -> float | None:
    """Return the probability of labels.

    Args:
        probabilities: float32 C in [0, 1], or None.
        classes: The C classes.
        labels: True labels; exactly one unless the classes allow several.

    Returns:
        The label's probability; with several labels the mean over classes of the probability of each class's state.
    """
    if probabilities is None:
        return None
    true = np.array([name in labels for name in classes.names], dtype=np.bool_)
    values = probabilities.astype(np.float64)
    if classes.multi:
        return float(np.where(true, values, 1.0 - values).mean())
    return float(values[true].sum())


def _against(answer: LabelOutput, expected: Sequence[str]) -> dict[str, float | None]:
    decisions = [(name in answer.labels) == (name in expected) for name in answer.classes.names]
    agreement = float(all(decisions))
    return {
        "agreement": agreement,
        "label_share": sum(decisions) / len(decisions) if answer.classes.multi else agreement,
        "probability": given_to(answer.probabilities, answer.classes, expected),
    }


def _text(labels: Sequence[str] | None) -> str | None:
    return None if labels is None else JOINT.join(labels)


def _probabilities(answer: LabelOutput) -> str:
    if answer.probabilities is None:
        return ""
    pairs = zip(answer.classes.names, answer.probabilities.tolist(), strict=True)
    return json.dumps({name: float(f"{value:.7g}") for name, value in pairs}, ensure_ascii=False)
