"""Sensitivity, specificity and balanced accuracy of defended networks, with warnings.

A network that answers melanoma to every image withstands every attack. Every class but the first is positive (the first
is benign, normal or no retinopathy); with several labels, each true label is. Balanced accuracy is the mean over the
true classes of the share of right answers; with several labels it is the mean of sensitivity and specificity. Its
interval combines those of the shares (G. Y. Zou and A. Donner, 2008).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from medtest.core.deferred import pd
from medtest.results.cube.axes import Places
from medtest.results.cube.intervals import wilson_of_rate, with_ends
from medtest.results.cube.rates import rates
from medtest.results.cube.resampling import clusters_within

ONE_CLASS = 0.8
"""Share of identical answers from which a warning is given."""
_ABOVE_TRUTH = 0.1
"""Smallest excess of that share over the share of images for which the answer is true."""
_CLOSE = 0.1
"""Excess of balanced accuracy over guessing that still counts as chance level."""
NOTHING = "no finding"


DiagnosticShare: TypeAlias = tuple[float, float, float]
"""Share in [0, 1], and the ends of its 95 % interval; NaN without cases."""


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """Sensitivity, specificity and balanced accuracy of a set of answers.

    Attributes:
        sensitivity: Share of positives that are detected.
        specificity: Share of negatives that are cleared.
        balanced: Balanced accuracy.
        chance: Balanced accuracy of guessing.
    """

    sensitivity: DiagnosticShare
    specificity: DiagnosticShare
    balanced: DiagnosticShare
    chance: float

    @property
    def guessed(self) -> bool:
        """True if balanced accuracy is at chance level: close to guessing, with guessing inside its interval."""
        value, low, high = self.balanced
        return value <= self.chance + _CLOSE and low <= self.chance <= high

    def columns(self) -> dict[str, float | None]:
        """Return the diagnosis as columns of a table."""
        return {
            **with_ends("sensitivity", self.sensitivity),
            **with_ends("specificity", self.specificity),
            **with_ends("balanced_accuracy", self.balanced),
        }


def diagnosis_of(cases: pd.DataFrame) -> Diagnosis | None:
    """Return sensitivity, specificity and balanced accuracy; None without cases.

    Args:
        cases: Answered cases, with ``dataset``, ``cluster``, ``value``, ``expected``, ``chance`` and the counts
            ``positives``, ``found``, ``negatives``, ``cleared``.
    """
    if cases.empty:
        return None
    numbers = {name: cases[name].to_numpy(np.float64) for name in ("positives", "found", "negatives", "cleared")}
    sensitivity = _share(cases, numbers["found"], numbers["positives"])
    specificity = _share(cases, numbers["cleared"], numbers["negatives"])
    chance = float(cases["chance"].iloc[0])
    groups = [sensitivity, specificity]
    if chance < 0.5:  # exclusive classes: one share for each class
        expected, value = cases["expected"].astype(str).to_numpy(), cases["value"].to_numpy(np.float64)
        groups = [_share(cases, value * (expected == name), expected == name) for name in np.unique(expected)]
    shares = [share for share in groups if not np.isnan(share[0])]
    return Diagnosis(sensitivity=sensitivity, specificity=specificity, balanced=_mean(shares), chance=chance)


def _mean(shares: Sequence[DiagnosticShare]) -> DiagnosticShare:
    if not shares:
        return (float("nan"), float("nan"), float("nan"))
    count, mean = len(shares), float(np.mean([value for value, _, _ in shares]))
    below = np.sqrt(sum((value - low) ** 2 for value, low, _ in shares)) / count
    above = np.sqrt(sum((high - value) ** 2 for value, _, high in shares)) / count
    return mean, max(0.0, mean - float(below)), min(1.0, mean + float(above))


def _share(cases: pd.DataFrame, part: object, whole: object) -> DiagnosticShare:
    """Return a ratio of sums over cases, with its interval."""
    parts, wholes = np.asarray(part, np.float64), np.asarray(whole, np.float64)
    if not wholes.any():
        return _mean(())
    counted = wholes > 0
    measured = rates(
        place_of(cases.loc[counted]), parts[counted], wholes[counted], independent=bool((wholes[counted] == 1).all())
    )
    at = (-1, 0, 0)
    low, high = float(measured.low[at]), float(measured.high[at])
    if np.isnan(low):
        low, high = wilson_of_rate(float(measured.rate[at]), float(counted.sum()))
    return float(measured.rate[at]), low, high


def place_of(cases: pd.DataFrame, roles: Sequence[str] = ()) -> Places:
    """Return the axes of cases, with one cell for each role; a single cell without roles.

    Args:
        cases: Cases with ``dataset``, ``cluster``, and ``role`` if there are roles.
        roles: Roles in the order of the cells.
    """
    datasets = list(dict.fromkeys(cases["dataset"]))
    dataset = np.array([datasets.index(name) for name in cases["dataset"]], np.int64)
    cluster, resamplers = clusters_within(dataset, datasets, cases["cluster"].to_numpy().astype(str))
    cell = [roles.index(name) for name in cases["role"]] if roles else [0] * len(cases)
    return Places(
        shape=(max(1, len(roles)), 1),
        dataset=dataset,
        cell=np.array(cell, np.int64),
        cluster=cluster,
        resamplers=resamplers,
    )


def warnings_of(cases: pd.DataFrame, roles: Mapping[str, str]) -> Iterator[str]:
    """Yield warnings for answers that barely depend on the image or are no better than guessing.

    Args:
        cases: Answered cases, with a column ``role`` and those of :func:`diagnosis_of`.
        roles: Roles to check, each with the name of its images.
    """
    mostly: dict[str, list[str]] = {}
    guessed: list[str] = []
    for role, where in roles.items():
        inside = cases.loc[cases["role"] == role]
        if inside["expected"].nunique() < 2:
            continue
        names, counts = np.unique(inside["answer"].astype(str).to_numpy(), return_counts=True)
        top = int(counts.argmax())
        share, true = counts[top] / len(inside), float((inside["expected"].astype(str) == names[top]).mean())
        if share >= ONE_CLASS and share >= true + _ABOVE_TRUTH:
            mostly.setdefault(names[top] or NOTHING, []).append(f"{counts[top]:,} of {len(inside):,} {where}")
        diagnosis = diagnosis_of(inside)
        if diagnosis is not None and diagnosis.guessed:
            value, low, high = (100 * figure for figure in diagnosis.balanced)
            guessed.append(f"{where} ({value:.1f} %, {low:.0f} to {high:.0f})")
    for answer, images in mostly.items():
        yield f"answers {answer} on {', '.join(images)}"
    if guessed:
        yield f"at chance level on {', '.join(guessed)}"
