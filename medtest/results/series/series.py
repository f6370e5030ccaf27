"""Quality over scales of uncertainty: the curves that (α,σ) and its companions are taken from.

A :class:`Series` is one algorithm's curve, a :class:`SeriesSet` those of several algorithms over one uncertainty, from
whatever source: the published text format, CSV, or the records of a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Series:
    """One algorithm's quality over scales.

    Attributes:
        name: The algorithm.
        scales: m ascending, distinct scales.
        qualities: Mean quality at each.
        labels: Each scale as its source wrote it; a merged scale's own number.
        images: N × m, the quality of each image at each scale; None where only means are known, or where every image
            stands at a scale of its own (a measured property).
        clusters: Number of each image's cluster (patient, film); intervals resample these.
        seeds: Name of each image, where the records of several systems are compared on the same ones.
    """

    name: str
    scales: Floats
    qualities: Floats
    labels: tuple[str, ...]
    images: Floats | None = None
    clusters: NDArray[np.int64] | None = None
    seeds: tuple[str, ...] = ()

    @property
    def clustered(self) -> bool:
        """Whether there are enough images for an interval."""
        return self.images is not None and self.clusters is not None and np.unique(self.clusters).size > 1


@dataclass(frozen=True, kw_only=True, eq=False)
class SeriesSet:
    """Curves of several algorithms over one uncertainty.

    Attributes:
        title: What it is called: the file's stem, or suite and relation.
        quality: Name of the quality measure.
        scale: Name of the uncertainty.
        series: One an algorithm, in the source's order.
        lower_is_better: Whether a rise is the loss (an error in place of a quality).
        notes: What was read with a grain of salt: sorted columns, merged scales.
    """

    title: str
    quality: str
    scale: str
    series: tuple[Series, ...]
    lower_is_better: bool = False
    notes: tuple[str, ...] = field(default=())

    def merged(self, min_step: float) -> SeriesSet:
        """Return the set with neighbouring scales merged that are nearer than ``min_step``."""
        if min_step <= 0:
            return self
        kept = tuple(merged_series(one, min_step) for one in self.series)
        fewer = [(before, after) for before, after in zip(self.series, kept, strict=True)]
        changed = any(before.scales.size != after.scales.size for before, after in fewer)
        note = (f"scales nearer than {min_step:g} were merged to their mean",) if changed else ()
        return replace(self, series=kept, notes=(*self.notes, *note))


def groups_of(scales: ArrayLike, min_step: float = 0.0, weights: ArrayLike | None = None) -> list[NDArray[np.int64]]:
    """Return which scales become one: equal ones, and neighbours nearer than ``min_step``.

    The nearest two neighbours are merged first, into their weighted mean, until no two stand nearer than ``min_step``.

    Args:
        scales: In any order.
        min_step: 0 merges equal scales only.
        weights: How many cases each stands for; 1 each by default.

    Returns:
        Positions in ``scales`` of each group, groups by ascending mean.
    """
    values = np.asarray(scales, dtype=np.float64)
    counts = np.ones_like(values) if weights is None else np.asarray(weights, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    groups: list[list[int]] = []
    for place in order:
        if groups and values[groups[-1][0]] == values[place]:
            groups[-1].append(int(place))
        else:
            groups.append([int(place)])
    centres = [float(values[group[0]]) for group in groups]
    masses = [float(counts[group].sum()) for group in groups]
    while len(groups) > 1:
        steps = np.diff(centres)
        nearest = int(np.argmin(steps))
        if not steps[nearest] < min_step:
            break
        mass = masses[nearest] + masses[nearest + 1]
        centres[nearest] += (centres[nearest + 1] - centres[nearest]) * masses[nearest + 1] / mass
        masses[nearest] = mass
        groups[nearest] += groups[nearest + 1]
        del centres[nearest + 1], masses[nearest + 1], groups[nearest + 1]
    return [np.array(group, dtype=np.int64) for group in groups]


def make_series(
    name: str,
    scales: ArrayLike,
    qualities: ArrayLike,
    *,
    labels: Sequence[str] = (),
    images: Floats | None = None,
    clusters: NDArray[np.int64] | None = None,
    min_step: float = 0.0,
) -> Series:
    """Return a curve with ascending, distinct scales: columns are sorted, equal scales become their mean.

    Args:
        name: The algorithm.
        scales: m scales in any order.
        qualities: The quality at each.
        labels: Each scale as written.
        images: N × m.
        clusters: Cluster of each image.
        min_step: See :func:`groups_of`.
    """
    sigma, quality = np.asarray(scales, dtype=np.float64), np.asarray(qualities, dtype=np.float64)
    written = tuple(labels) or tuple(f"{value:.9g}" for value in sigma)
    groups = groups_of(sigma, min_step)
    centres = [sigma[group] for group in groups]
    return Series(
        name=name,
        scales=np.array([float(values[0]) if np.ptp(values) == 0 else float(values.mean()) for values in centres]),
        qualities=np.array([float(quality[group].mean()) for group in groups]),
        labels=tuple(
            written[group[0]] if np.ptp(values) == 0 else f"{float(values.mean()):.6g}"
            for group, values in zip(groups, centres, strict=True)
        ),
        images=None if images is None else np.stack([images[:, group].mean(1) for group in groups], axis=1),
        clusters=clusters,
    )


def merged_series(one: Series, min_step: float) -> Series:
    """Return a curve with neighbouring scales merged that are nearer than ``min_step``."""
    made = make_series(
        one.name,
        one.scales,
        one.qualities,
        labels=one.labels,
        images=one.images,
        clusters=one.clusters,
        min_step=min_step,
    )
    return replace(made, seeds=one.seeds)


def names_of(series: Iterable[Series]) -> tuple[str, ...]:
    """Return the algorithms' names in order."""
    return tuple(one.name for one in series)
