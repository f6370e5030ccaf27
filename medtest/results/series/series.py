"""Quality over scales of uncertainty: the curves from which (α,σ) and related measures are computed.

A :class:`Series` is one algorithm's curve, a :class:`SeriesSet` those of several algorithms over one uncertainty, from
any source: the published text format, CSV, or the records of a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Series:
    """One algorithm's quality over scales.

    Attributes:
        name: Name of the algorithm.
        scales: m ascending, distinct scales.
        qualities: Mean quality at each scale.
        labels: Each scale as written in its source; the number itself for a merged scale.
        images: N × m, the quality of each image at each scale; None if only means are known, or if every image has its
            own
            scale (a measured property).
        clusters: Index of each image's cluster (patient, film); intervals resample these.
        seeds: Name of each image, if the records of several systems are compared on the same ones.
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
        """True if there are enough images for an interval."""
        return self.images is not None and self.clusters is not None and np.unique(self.clusters).size > 1


@dataclass(frozen=True, kw_only=True, eq=False)
class SeriesSet:
    """Curves of several algorithms over one uncertainty.

    Attributes:
        title: Title: the file's stem, or suite and relation.
        quality: Name of the quality measure.
        scale: Name of the uncertainty.
        series: One curve for each algorithm, in the source's order.
        lower_is_better: True if a rise is the loss (an error instead of a quality).
        notes: Adjustments made while reading: sorted columns, merged scales.
    """

    title: str
    quality: str
    scale: str
    series: tuple[Series, ...]
    lower_is_better: bool = False
    notes: tuple[str, ...] = field(default=())

    def merged(self, min_step: float) -> SeriesSet:
        """Return the set with neighbouring scales merged if they are closer than ``min_step``."""
        if min_step <= 0:
            return self
        merged = tuple(merged_series(curve, min_step) for curve in self.series)
        pairs = [(original, reduced) for original, reduced in zip(self.series, merged, strict=True)]
        changed = any(original.scales.size != reduced.scales.size for original, reduced in pairs)
        note = (f"scales nearer than {min_step:g} were merged to their mean",) if changed else ()
        return replace(self, series=merged, notes=(*self.notes, *note))


def groups_of(scales: ArrayLike, min_step: float = 0.0) -> list[NDArray[np.int64]]:
    """Return the groups of scales to merge: equal ones, and neighbours closer than ``min_step``.

    The closest two neighbours are merged first, into their weighted mean, until none are closer than ``min_step``.

    Args:
        scales: In any order.
        min_step: 0 merges only equal scales.

    Returns:
        Indices into ``scales`` of each group, groups by ascending mean.
    """
    values = np.asarray(scales, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    groups: list[list[int]] = []
    for place in order:
        if groups and values[groups[-1][0]] == values[place]:
            groups[-1].append(int(place))
        else:
            groups.append([int(place)])
    centres = [float(values[group[0]]) for group in groups]
    masses = [float(len(group)) for group in groups]
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
    seeds: Sequence[str] = (),
    min_step: float = 0.0,
) -> Series:
    """Return a curve with ascending, distinct scales: columns are sorted, equal scales averaged.

    Args:
        name: Name of the algorithm.
        scales: m scales in any order.
        qualities: Quality at each scale.
        labels: Each scale as written.
        images: N × m.
        clusters: Cluster of each image.
        seeds: Name of each image.
        min_step: See :func:`groups_of`.
    """
    sigma, quality = np.asarray(scales, dtype=np.float64), np.asarray(qualities, dtype=np.float64)
    texts = tuple(labels) or tuple(f"{value:.9g}" for value in sigma)
    groups = groups_of(sigma, min_step)
    centres = [sigma[group] for group in groups]
    return Series(
        name=name,
        scales=np.array([float(values[0]) if np.ptp(values) == 0 else float(values.mean()) for values in centres]),
        qualities=np.array([float(quality[group].mean()) for group in groups]),
        labels=tuple(
            texts[group[0]] if np.ptp(values) == 0 else f"{float(values.mean()):.6g}"
            for group, values in zip(groups, centres, strict=True)
        ),
        images=None if images is None else np.stack([images[:, group].mean(1) for group in groups], axis=1),
        clusters=clusters,
        seeds=tuple(seeds),
    )


def merged_series(series: Series, min_step: float) -> Series:
    """Return a curve with neighbouring scales merged if they are closer than ``min_step``."""
    return make_series(
        series.name,
        series.scales,
        series.qualities,
        labels=series.labels,
        images=series.images,
        clusters=series.clusters,
        seeds=series.seeds,
        min_step=min_step,
    )
