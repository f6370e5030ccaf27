"""Whether a defended network still diagnoses: sensitivity, specificity and balanced accuracy, and what they warn of.

A network that answers melanoma to everything withstands every attack. Positive is every class but the first (benign,
normal, no retinopathy), of several labels each one that is true. Balanced accuracy is the mean of the shares of right
answers over the true classes, of several labels the mean of sensitivity and specificity; its interval joins those of
the shares (G. Y. Zou and A. Donner, 2008).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from medtest.results.cube.axes import Places
from medtest.results.cube.intervals import wilson_of_rate
from medtest.results.cube.rates import rates
from medtest.results.cube.resampling import Resampler, group_numbers

if TYPE_CHECKING:
    import pandas as pd

ONE_CLASS = 0.8
"""Share of answers that are one and the same from which a network is warned of."""
_ABOVE_TRUTH = 0.1
"""By how much that share is above the share of images of which the answer is true, at least."""
_CLOSE = 0.1
"""By how much balanced accuracy may be above what guessing has and still count as chance level."""
NOTHING = "no finding"


@dataclass(frozen=True, kw_only=True)
class Share:
    """A share in [0, 1] with the ends of its 95 % interval; NaN where nothing is there."""

    value: float
    low: float
    high: float

    def columns(self, name: str) -> dict[str, float]:
        """Return it as columns of a table."""
        ends = {"": self.value, "_low": self.low, "_high": self.high}
        return {f"{name}{end}": round(value, 6) for end, value in ends.items()}


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """How well some answers tell the classes apart.

    Attributes:
        sensitivity: Share of the positives that are found.
        specificity: Share of the negatives that are cleared.
        balanced: Balanced accuracy.
        chance: What guessing has of it.
    """

    sensitivity: Share
    specificity: Share
    balanced: Share
    chance: float

    @property
    def guessed(self) -> bool:
        """Whether it is at chance level: close to what guessing has, which lies in the interval."""
        near = self.balanced.value <= self.chance + _CLOSE
        return near and self.balanced.low <= self.chance <= self.balanced.high

    def columns(self) -> dict[str, float]:
        """Return it as columns of a table."""
        return {
            **self.sensitivity.columns("sensitivity"),
            **self.specificity.columns("specificity"),
            **self.balanced.columns("balanced_accuracy"),
        }


def diagnosis_of(cases: pd.DataFrame) -> Diagnosis | None:
    """Return how well answers tell classes apart; None without any.

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
    if chance < 0.5:  # several exclusive classes: each has a share of its own
        expected, value = cases["expected"].astype(str).to_numpy(), cases["value"].to_numpy(np.float64)
        groups = [_share(cases, value * (expected == name), expected == name) for name in np.unique(expected)]
    known = [one for one in groups if not np.isnan(one.value)]
    return Diagnosis(sensitivity=sensitivity, specificity=specificity, balanced=_mean(known), chance=chance)


def _mean(shares: Sequence[Share]) -> Share:
    if not shares:
        return Share(value=float("nan"), low=float("nan"), high=float("nan"))
    count, mean = len(shares), float(np.mean([one.value for one in shares]))
    below = np.sqrt(sum((one.value - one.low) ** 2 for one in shares)) / count
    above = np.sqrt(sum((one.high - one.value) ** 2 for one in shares)) / count
    return Share(value=mean, low=max(0.0, mean - float(below)), high=min(1.0, mean + float(above)))


def _share(cases: pd.DataFrame, part: object, whole: object) -> Share:
    """Return a share of sums over cases, with the interval of all rates."""
    parts, wholes = np.asarray(part, np.float64), np.asarray(whole, np.float64)
    if not wholes.any():
        return _mean(())
    own = wholes > 0
    measured = rates(place_of(cases.loc[own]), parts[own], wholes[own], independent=bool((wholes[own] == 1).all()))
    at = (-1, 0, 0)
    low, high = float(measured.low[at]), float(measured.high[at])
    if np.isnan(low):
        low, high = wilson_of_rate(float(measured.rate[at]), float(own.sum()))
    return Share(value=float(measured.rate[at]), low=low, high=high)


def place_of(cases: pd.DataFrame, roles: Sequence[str] = ()) -> Places:
    """Return where cases stand, a cell a role; all in one without roles.

    Args:
        cases: With ``dataset``, ``cluster``, and ``role`` where there are roles.
        roles: The roles, in the order of the cells.
    """
    datasets = list(dict.fromkeys(cases["dataset"]))
    dataset = np.array([datasets.index(name) for name in cases["dataset"]], np.int64)
    cluster = np.zeros(len(cases), np.int64)
    counts: list[int] = []
    for number in range(len(datasets)):
        here = dataset == number
        cluster[here], count = group_numbers(cases["cluster"].to_numpy()[here].astype(str))
        counts.append(count)
    cell = [roles.index(name) for name in cases["role"]] if roles else [0] * len(cases)
    return Places(
        shape=(max(1, len(roles)), 1),
        dataset=dataset,
        cell=np.array(cell, np.int64),
        cluster=cluster,
        resamplers=tuple(Resampler(count, name) for count, name in zip(counts, datasets, strict=True)),
    )


def warnings_of(cases: pd.DataFrame, roles: Mapping[str, str]) -> Iterator[str]:
    """Yield what must be said of a network whose answers hardly depend on the image, or are no better than guessing.

    Args:
        cases: Answered cases, with a column ``role`` and those of :func:`diagnosis_of`.
        roles: The roles that count, with the words that say on which images.
    """
    mostly: dict[str, list[str]] = {}
    guessed: list[str] = []
    for role, where in roles.items():
        own = cases.loc[cases["role"] == role]
        if own["expected"].nunique() < 2:
            continue
        names, counts = np.unique(own["answer"].astype(str).to_numpy(), return_counts=True)
        most = int(counts.argmax())
        share, true = counts[most] / len(own), float((own["expected"].astype(str) == names[most]).mean())
        if share >= ONE_CLASS and share >= true + _ABOVE_TRUTH:
            mostly.setdefault(names[most] or NOTHING, []).append(f"{counts[most]:,} of {len(own):,} {where}")
        diagnosis = diagnosis_of(own)
        if diagnosis is not None and diagnosis.guessed:
            ends = f"{100 * diagnosis.balanced.low:.0f} to {100 * diagnosis.balanced.high:.0f}"
            guessed.append(f"{where} ({100 * diagnosis.balanced.value:.1f} %, {ends})")
    for answer, images in mostly.items():
        yield f"answers {answer} on {', '.join(images)}"
    if guessed:
        yield f"at chance level on {', '.join(guessed)}"
