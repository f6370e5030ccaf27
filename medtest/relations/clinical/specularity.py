"""Specular reflections: those of real wet tissue, and in published mode the report's white ellipses (3.2.4)."""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias, cast

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from medtest.core.cases import FollowUp, Image, Params, PreparedSeed
from medtest.core.errors import NotApplicable
from medtest.core.portable import power
from medtest.core.recent import last_of, per_seed
from medtest.relations.base import PUBLISHED_SEVERITY, Relation
from medtest.relations.clinical.reflections import as_spots, draw_ladder, shine
from medtest.relations.levels import Level, PublishedRanges, RangedSettings, noise_seed, number

EPSILON = 1e-3
"""ε of equation 1 in pixels, which keeps the axes above zero."""
SMALLEST_AXIS = 0.2
"""Lower limit of the longer axis as fraction of the bound; small axes are more frequent."""
SLENDER = (0.35, 0.95)
"""Range of the shorter axis as share of the longer one."""
BRIGHT_PERCENTILE = 99.0
"""Percentile of local whiteness above which pixels of the field count as shiny."""
FAINTEST = 0.25
"""Least whiteness of shiny pixels, as fraction of the strongest one's."""
LARGEST_HIGHLIGHT = 11
"""Side, in coarse pixels, above which a white area is glare and not a reflection."""
COARSE_SIDE = 128
"""Longer side, in pixels, of the coarse image on which clusters are located."""
MOST_CLUSTERS = 8
SPREAD = 0.035
"""Standard deviation of spots around their cluster's centre, beyond its extent, as fraction of the image's height."""
LESION_COVER = 0.3
"""Largest fraction of a lesion's area that spots may cover, so that no lesion disappears."""
LESIONS_WATCHED = 16
SOFTNESS = 0.09
"""Standard deviation of the edges' blur, as fraction of the radius bound; at least 0.8 pixels."""
_SUBPIXEL = 4

Spot: TypeAlias = list[float]
"""[x̄, ȳ, a, b, angle]: centre and semi-axes in pixels, angle in degrees."""


class SpecularityLevel(Level):
    """One severity.

    Attributes:
        spots: Reflections to add; in published mode the ellipses to draw.
        radius: Radius of a disc as large as the median reflection, as fraction of the image's height; in published
            mode the bound λ of an ellipse's semi-axes.
    """

    spots: int = Field(ge=1, le=200)
    radius: float = Field(gt=0.0, le=0.1)

    @property
    def scale(self) -> float:
        """Nominal area of all spots: spots · π · λ²."""
        return self.spots * float(np.pi) * self.radius * self.radius


class SpecularityRange(PublishedRanges):
    """Ranges of spots and λ in published mode.

    Attributes:
        spots_low: Fewest ellipses.
        spots_high: Most ellipses.
        radius_low: Smallest bound of their semi-axes, as fraction of the image's height.
        radius_high: Largest bound of their semi-axes, as fraction of the image's height.
    """

    spots_low: int = Field(ge=1, le=200)
    spots_high: int = Field(ge=1, le=200)
    radius_low: float = Field(gt=0.0, le=0.1)
    radius_high: float = Field(gt=0.0, le=0.1)


class SpecularitySettings(RangedSettings[SpecularityLevel]):
    """Settings of ``specularity``.

    Attributes:
        clusters: Most clusters of ellipses in published mode.
        strength: Opacity of an ellipse in full light in published mode; dark areas reduce it.
        published: Ranges of published mode. The report mentions λ without figures, so these are ours.
    """

    clusters: int = Field(default=3, ge=1, le=MOST_CLUSTERS)
    strength: float = Field(default=0.95, gt=0.0, le=1.0)
    published: SpecularityRange


class Specularity(Relation):
    """Mirror-like reflections near shiny tissue (report 3.2.4, MR1-4, equation 1).

    Levels draw ragged spots of the sizes, colour and profile of real ones along folds that face the lamp
    (:mod:`medtest.relations.clinical.reflections`); a level contains the spots of the level below. Published mode draws
    ellipses (x − x̄)²/(a + ε)² + (y − ȳ)²/(b + ε)² ≤ 1 near some of the seed's bright clusters, with blurred edges and
    opacity scaled by the grey mask. The frame never changes. Spots may fall on the lesion, as real reflections do, but
    cover at most 30 % of it.
    """

    Settings = SpecularitySettings
    group: ClassVar[str] = "lighting"
    effects: ClassVar[frozenset[str]] = frozenset()
    scale_unit: ClassVar[str] = "spots · π · λ² (fraction of a square of the image's height)"
    published_status: ClassVar[str] = "assumed"
    nested: ClassVar[bool] = True
    revision: ClassVar[int] = 3

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Draw the spots.

        Raises:
            NotApplicable: The spots have no room in the field.
        """
        settings: SpecularitySettings = self.settings
        level = settings.level(severity, rng)
        bound = level.radius * seed.height
        if severity != PUBLISHED_SEVERITY:
            most = max(each.spots for each in settings.levels.values())
            spots = _ladder(seed, noise_seed(rng), bound, most)[: level.spots]
            if len(spots) < level.spots:
                raise NotApplicable(f"no room for {level.spots} reflections where the field faces the lamp")
            return {"spots": as_spots(spots), "scale": level.scale}
        groups = _draw_spots(seed, rng, spots=level.spots, bound=bound, most=settings.clusters)
        return {
            "clusters": groups,
            "softness": max(0.8, SOFTNESS * level.radius * seed.height),
            "strength": settings.strength,
            "scale": level.scale,
        }

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        """Draw the stored spots."""
        if "spots" in params:
            image = shine(seed, cast("list[Spot]", params["spots"]))
            return FollowUp(image=image, params=params, scale=number(params, "scale"))
        image = seed.image.copy()
        softness, strength = number(params, "softness"), number(params, "strength")
        for group in cast("list[list[Spot]]", params["clusters"]):
            _shine(image, seed, group, softness=softness, strength=strength)
        return FollowUp(image=image, params=params, scale=number(params, "scale"))


def _ladder(seed: PreparedSeed, number: int, bound: float, most: int) -> NDArray[np.float64]:
    """Return the spots of all severities, the first first; the last ladder is kept with the seed.

    Raises:
        NotApplicable: The field faces the lamp nowhere.
    """

    def make() -> NDArray[np.float64]:
        spots = draw_ladder(seed, np.random.Generator(np.random.PCG64(number)), bound)
        return spots[_accept(seed, spots[:, :2], spots[:, 2:4], most)]

    return last_of(seed, "specularity.ladder", (number, bound, most), make)


@per_seed
def bright_clusters(seed: PreparedSeed) -> NDArray[np.float64]:
    """Find the shiny places of the field, strongest first, at most eight.

    Float64 N×4: column and row of a centre, and root mean square distance of its pixels from there, all in pixels, and
    its share of the image's bright pixels.

    Whiteness is the smallest of a pixel's three channels, so reddish light does not count. It is measured on the
    residue of a morphological opening, so that a wide over-exposed area, on which a spot would be invisible, does not
    count either; without any small highlight the whitest places are taken.

    Raises:
        NotApplicable: The image has no field of view.
    """
    step = max(1.0, max(seed.height, seed.width) / COARSE_SIDE)
    size = (max(1, round(seed.width / step)), max(1, round(seed.height / step)))
    white = cv2.resize(seed.image, size, interpolation=cv2.INTER_AREA).min(axis=2)
    field = cv2.resize(seed.frame.view(np.uint8), size, interpolation=cv2.INTER_NEAREST) == 0
    if not field.any():
        raise NotApplicable("no field of view: the whole image is black frame")
    wide = cv2.morphologyEx(white, cv2.MORPH_OPEN, np.ones((LARGEST_HIGHLIGHT, LARGEST_HIGHLIGHT), np.uint8))
    local = np.where(field, cv2.subtract(white, wide), 0)
    strongest = int(local.max())
    if strongest > 0:
        bright = local >= max(float(np.percentile(local[field], BRIGHT_PERCENTILE)), FAINTEST * strongest)
    else:
        bright = np.logical_and(field, white >= np.percentile(white[field], BRIGHT_PERCENTILE))
    # Reflections form loose groups: pixels within a few coarse pixels of each other belong to one cluster.
    grown = cv2.dilate(bright.view(np.uint8), np.ones((5, 5), np.uint8))
    count, labels = cv2.connectedComponents(grown)
    sums = np.bincount(labels[bright], minlength=count)
    order = [int(label) for label in np.argsort(-sums, kind="stable") if label and sums[label]][:MOST_CLUSTERS]
    scale_x, scale_y = seed.width / size[0], seed.height / size[1]
    clusters = []
    for label in order:
        rows, columns = np.nonzero(np.logical_and(labels == label, bright))
        x, y = (columns + 0.5) * scale_x - 0.5, (rows + 0.5) * scale_y - 0.5
        clusters.append((x.mean(), y.mean(), np.sqrt(x.var() + y.var()), sums[label] / sums[1:].sum()))
    return np.array(clusters)


@per_seed
def _lesions(seed: PreparedSeed) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return bounding boxes (left, top, right, bottom) and pixel counts of the lesions, largest first."""
    mask = seed.mask
    if mask is None or not mask.any():
        return np.zeros((0, 4)), np.zeros(0)
    left, top, width, height = cv2.boundingRect(mask.view(np.uint8))
    part = np.ascontiguousarray(mask[top : top + height, left : left + width]).view(np.uint8)
    _, _, stats, _ = cv2.connectedComponentsWithStats(part)
    components = stats[1:].astype(np.float64) + (left, top, 0.0, 0.0, 0.0)
    components = components[np.argsort(-components[:, cv2.CC_STAT_AREA], kind="stable")][:LESIONS_WATCHED]
    boxes = np.concatenate([components[:, :2], components[:, :2] + components[:, 2:4]], axis=1)
    return boxes, components[:, cv2.CC_STAT_AREA]


def _draw_spots(
    seed: PreparedSeed, rng: np.random.Generator, *, spots: int, bound: float, most: int
) -> list[list[Spot]]:
    clusters = bright_clusters(seed)
    weights = clusters[:, 3]
    chosen = rng.choice(len(clusters), size=min(most, len(clusters)), replace=False, p=weights / weights.sum())
    tries = 4 * spots
    which = rng.integers(chosen.size, size=tries)
    spread = (SPREAD * seed.height + 0.5 * clusters[chosen, 2])[which]
    centres = clusters[chosen, :2][which] + rng.standard_normal((tries, 2)) * spread[:, None]
    longer = bound * (SMALLEST_AXIS + (1.0 - SMALLEST_AXIS) * power(rng.random(tries), 1.5))
    axes = np.stack([longer, longer * rng.uniform(*SLENDER, size=tries)], axis=1)
    upright = rng.random(tries) < 0.5
    axes[upright] = axes[upright, ::-1]
    accepted = _accept(seed, centres, axes, spots)
    groups: list[list[Spot]] = [[] for _ in chosen]
    for i in accepted:
        values = (*centres[i], *axes[i], 0.0)
        groups[int(which[i])].append([round(float(value), 2) for value in values])
    non_empty = [group for group in groups if group]
    if not non_empty:
        raise NotApplicable("no room for reflections near the bright places of the field")
    return non_empty


def _accept(seed: PreparedSeed, centres: NDArray[Any], axes: NDArray[Any], count: int) -> list[int]:
    """Return the first candidates with a centre in the field that leave enough of every lesion uncovered."""
    columns, rows = np.rint(centres).astype(int).T
    inside = (columns >= 0) & (columns < seed.width) & (rows >= 0) & (rows < seed.height)
    inside[inside] = ~seed.frame[rows[inside], columns[inside]]
    lesions, areas = _lesions(seed)
    reach = axes.max(axis=1, keepdims=True)
    boxes = np.concatenate([centres - reach, centres + reach], axis=1)
    # The overlap of the boxes is an upper bound of the covered lesion area.
    low = np.maximum(boxes[:, None, :2], lesions[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], lesions[None, :, 2:])
    shared = np.prod(np.maximum(high - low, 0.0), axis=2)
    budget = LESION_COVER * areas
    accepted: list[int] = []
    for i in np.flatnonzero(inside):
        if np.any(shared[i] > budget):
            continue
        budget = budget - shared[i]
        accepted.append(int(i))
        if len(accepted) == count:
            break
    return accepted


def _shine(image: Image, seed: PreparedSeed, spots: list[Spot], *, softness: float, strength: float) -> None:
    """Draw one cluster's ellipses into ``image``, processing only the box around them."""
    pad = 3.0 * softness + 2.0
    values = np.array(spots)
    centres, reach = values[:, :2], values[:, 2:4].max(axis=1, keepdims=True)
    left, top = (max(0, int(low)) for low in (centres - reach).min(axis=0) - pad)
    right, bottom = (int(high) + 1 for high in (centres + reach).max(axis=0) + pad)
    right, bottom = min(seed.width, right), min(seed.height, bottom)
    layer = np.zeros((bottom - top, right - left), np.uint8)
    subpixel = 1 << _SUBPIXEL
    for x, y, a, b, angle in spots:
        centre = (round((x - left) * subpixel), round((y - top) * subpixel))
        # OpenCV fills every pixel that the outline touches, half a pixel more than equation 1 on each side.
        axes = (round(max(a + EPSILON - 0.5, 0.0) * subpixel), round(max(b + EPSILON - 0.5, 0.0) * subpixel))
        cv2.ellipse(layer, centre, axes, angle, 0.0, 360.0, 255, cv2.FILLED, cv2.LINE_8, _SUBPIXEL)
    blurred = cv2.GaussianBlur(layer, (0, 0), softness)
    place = (slice(top, bottom), slice(left, right))
    # The grey mask is 0 on the frame, but the frame is also masked explicitly because it must not change.
    opacity = blurred * (seed.grey[place] * np.float32(strength / 255.0))
    opacity[seed.frame[place]] = 0.0
    part = image[place]
    part += np.rint((255 - part) * opacity[:, :, None]).astype(np.uint8)
