"""Controls that erase a lesion, exchange it, or as a sham erase as much healthy tissue."""

from __future__ import annotations

from typing import Any, ClassVar

import cv2
import numpy as np

from medtest.core.cases import Effect, FollowUp, Image, Mask, Params, PreparedSeed
from medtest.core.errors import NotApplicable
from medtest.core.oracles.controls import SHAM
from medtest.relations.base import RelationSettings
from medtest.relations.controls.base import (
    ControlRelation,
    ControlSettings,
    lesion_of,
    other_case,
    removal,
    strangers,
    turn,
)
from medtest.relations.controls.erasing import WIDENED, erase, moved_region, paste, too_large, widened
from medtest.relations.levels import number

LESION, TISSUE, SWAPPED = "lesion", "healthy tissue", "lesion swapped"
_TRIES = 400
_DONORS = 8
_MOST_PIECES = 8


class LesionErasedSettings(ControlSettings):
    """Settings of ``lesion_erased`` and its sham.

    Attributes:
        no_finding: Labels that say "no finding": keeping them without the lesion is right, and is not judged.
    """

    no_finding: list[str] = []


class LesionErased(ControlRelation):
    """Lesion replaced by tissue of the same image: no finding is left where it was."""

    Settings: ClassVar[type[RelationSettings]] = LesionErasedSettings
    takes: ClassVar[frozenset[str]] = frozenset({"mask", "label", "answer"})
    effects: ClassVar[frozenset[str]] = frozenset({"remove_lesion"})
    sham: ClassVar[str] = "tissue_erased"

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Draw the direction in which tissue is looked for first.

        Raises:
            NotApplicable: There is no lesion, or it covers more than a fifth of the field.
        """
        lesion_of(seed)
        return {"turn": turn(rng)}

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        """Erase the lesion."""
        image = _erased(seed, params, lesion_of(seed))
        return FollowUp(image=image, params=dict(params), scale=1.0, effect=self._effect(LESION))

    def _effect(self, what: str, **data: Any) -> Effect:
        return removal(what, within=True, no_finding=list(self.settings.no_finding), **data)


class TissueErased(LesionErased):
    """Sham of ``lesion_erased``: healthy tissue of the lesion's shape and area is erased in the same way."""

    control: ClassVar[str] = SHAM

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Draw a place for each piece of the lesion.

        Raises:
            NotApplicable: There is no lesion, it is too large, or the field has no room beside it.
        """
        lesion = lesion_of(seed)
        margin = max(3, round(WIDENED * seed.height))
        free = ~seed.frame & ~widened(lesion, 2 * margin)
        if seed.avoid is not None:
            free &= ~seed.avoid
        shifts: list[list[int]] = []
        for piece in _pieces(lesion):
            shift = _place(piece, free, rng)
            if shift is None:
                raise NotApplicable("there is no room for an equal area of healthy tissue beside the lesion")
            shifts.append(list(shift))
            free &= ~widened(moved_region(piece, shift, free.shape), 2 * margin)
        return {"turn": turn(rng), "shifts": shifts}

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        """Erase the tissue."""
        lesion = lesion_of(seed)
        shifts: Any = params["shifts"]
        region = np.zeros_like(lesion)
        for piece, (down, right) in zip(_pieces(lesion), shifts, strict=True):
            region |= moved_region(piece, (int(down), int(right)), lesion.shape)
        image = _erased(seed, params, region, never=lesion)
        effect = self._effect(TISSUE, evidence=False)
        return FollowUp(image=image, params=dict(params), scale=1.0, effect=effect)


class LesionSwapped(ControlRelation):
    """Lesion replaced by another patient's.

    For labels, one of another class lies in its place, and the answer must be another. For masks, the lesion is erased
    and the other one lies elsewhere, so that nothing must be marked where it was.
    """

    takes: ClassVar[frozenset[str]] = frozenset({"mask", "label"})
    effects: ClassVar[frozenset[str]] = frozenset()
    sham: ClassVar[str] = "tissue_erased"

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Draw the other case and the place of its lesion.

        Raises:
            NotApplicable: There is no lesion, it is too large, or no other lesion fits.
        """
        lesion = lesion_of(seed)
        margin = max(3, round(WIDENED * seed.height))
        inside = ~widened(seed.frame, margin)
        beside = inside & ~widened(lesion, 2 * margin)
        in_place = seed.classes is not None
        for case in strangers(seed, rng)[:_DONORS].tolist():
            other = other_case(seed, {"case": case})
            if not _is_donor(seed, other):
                continue
            region = _with_margin(other)
            shift = _onto(region, lesion, inside) if in_place else _place(region, beside, rng)
            if shift is not None:
                return {"turn": turn(rng), "case": case, "shift": list(shift)}
        raise NotApplicable("no other patient's lesion that must change the answer fits into the field")

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        """Erase the lesion and paste the other one."""
        other = other_case(seed, params)
        erased = _erased(seed, params, lesion_of(seed))
        down, right = (int(value) for value in params["shift"])  # type: ignore[union-attr, arg-type]
        image = paste(erased, other.image, _with_margin(other), (down, right), seed.frame)
        becomes = list(other.labels or ())
        effect = removal(SWAPPED, within=True, becomes=becomes)
        return FollowUp(image=image, params=dict(params), scale=1.0, effect=effect)


def _erased(seed: PreparedSeed, params: Params, region: Mask, *, never: Mask | None = None) -> Image:
    """Return the image without a region.

    Raises:
        NotApplicable: There is too little tissue to replace it.
    """
    image = erase(seed.image, region, seed.frame, number(params, "turn"), never=never)
    if image is None:
        raise NotApplicable("there is too little tissue around the lesion to replace it")
    return image


def _pieces(lesion: Mask) -> list[Mask]:
    """Return the connected pieces of a lesion, the largest first; all as one if there are many."""
    count, numbers, sizes, _ = cv2.connectedComponentsWithStats(lesion.astype(np.uint8), connectivity=8)
    order = sorted(range(1, count), key=lambda number: -int(sizes[number, cv2.CC_STAT_AREA]))
    return [numbers == number for number in order] if count - 1 <= _MOST_PIECES else [lesion]


def _place(piece: Mask, free: Mask, rng: np.random.Generator) -> tuple[int, int] | None:
    """Draw a shift of a piece to where all its pixels are free; None if there seems to be none.

    Args:
        piece: bool H'×W'.
        free: bool H×W.
        rng: The case's random generator.
    """
    left, top, width, height = cv2.boundingRect(piece.astype(np.uint8))
    shape = piece[top : top + height, left : left + width]
    room = free.shape[0] - height, free.shape[1] - width
    if min(room) < 0:
        return None
    for _ in range(_TRIES):
        row, column = int(rng.integers(room[0] + 1)), int(rng.integers(room[1] + 1))
        if free[row : row + height, column : column + width][shape].all():
            return row - top, column - left
    return None


def _onto(region: Mask, lesion: Mask, inside: Mask) -> tuple[int, int] | None:
    """Return the shift of a region to the middle of a lesion; None if it does not lie inside the field."""
    middles = []
    for mask in (lesion, region):
        left, top, width, height = cv2.boundingRect(mask.astype(np.uint8))
        middles.append((top + height // 2, left + width // 2))
    shift = middles[0][0] - middles[1][0], middles[0][1] - middles[1][1]
    moved = moved_region(region, shift, lesion.shape)
    whole = np.count_nonzero(moved) == np.count_nonzero(region)
    return shift if whole and inside[moved].all() else None


def _with_margin(other: PreparedSeed) -> Mask:
    """Return the region of another case that is copied: its lesion with a margin, without the black frame."""
    if other.mask is None:
        raise NotApplicable("the other case has no mask")
    return widened(other.mask, max(3, round(WIDENED * other.height))) & ~other.frame


def _is_donor(seed: PreparedSeed, other: PreparedSeed) -> bool:
    """Return True if another case's lesion is known, not too large, and of another class if there are classes."""
    if other.mask is None or not other.mask.any() or too_large(other.mask, other.frame):
        return False
    return seed.classes is None or (None not in (seed.labels, other.labels) and seed.labels != other.labels)
