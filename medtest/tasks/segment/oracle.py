"""Oracle of segmentations: overlap scores, missed lesions, false regions.

Scores of a case (``m`` is the predicted mask at the prepared size, ``y`` the expected one, moved with the relation):

- ``dice``, ``iou``: MedTest report, equations 4 and 5; both masks empty: 1, one empty: 0.
- ``missed_lesions``: 8-connected components of ``y`` with less than :data:`HIT_FRACTION` predicted.
- ``false_regions``: 8-connected components of ``m`` of at least :data:`REGION_FRACTION` of the image that share no
  pixel with ``y`` (report 4.3.1: objects mistaken for polyps).
- ``mean_dice_256``, ``mean_iou_256``: mean over the 256 thresholds 0, 1/255, … 1 at the original mask's size, as in the
    evaluator used for the published figures of PraNet and its successors: the probability map is resized to the mask's
    size (bilinear) if necessary, rounded to 8 bits, stretched so that its smallest value becomes 0 and
  its largest 1, and a pixel counts as lesion where the stretched value is at or above the threshold. A constant map is
      not stretched. Threshold 0 always takes the whole image, so a perfect map
  scores slightly below 1.

Without an expected mask only the ``self_`` scores exist, which compare with the answer to the source image.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Effect, Mask, MaskOutput, Output, PreparedSeed, Probability, Reason
from medtest.core.oracles.base import Oracle
from medtest.core.oracles.controls import NOTHING_TO_LOSE
from medtest.core.oracles.moves import moved_mask

HIT_FRACTION = 0.1
"""Smallest predicted fraction of a lesion's pixels for which it counts as found."""

REGION_FRACTION = 0.0005
"""Predicted regions below this fraction of the image (131 pixels at 512 × 512) are specks, not false lesions."""

Bytes: TypeAlias = NDArray[np.uint8]
Box: TypeAlias = tuple[slice, slice]
_MEMO = "medtest.tasks.segment.oracle:"
_BINS = np.arange(256, dtype=np.int64)
_BAND = 128
"""Number of rows counted together; narrower bands follow an outline more closely, but need more calls."""


def overlap(predicted: Mask, expected: Mask) -> tuple[float, float]:
    """Return Dice and IoU of two masks (report, equations 4 and 5).

    Args:
        predicted: bool H×W.
        expected: bool H×W of the same shape.

    Returns:
        Dice and IoU in [0, 1]; 1 and 1 if both are empty, 0 and 0 if one is.
    """
    shared = cv2.countNonZero(cv2.bitwise_and(_bytes(predicted), _bytes(expected)))
    return _from_counts(shared, cv2.countNonZero(_bytes(predicted)), cv2.countNonZero(_bytes(expected)))


def mean_over_thresholds(levels: Bytes, expected: Mask) -> tuple[float, float]:
    """Return Dice and IoU averaged over 256 thresholds, after stretching to the full range.

    Args:
        levels: uint8 H×W, the probability map × 255, rounded.
        expected: bool H×W of the same shape.
    """
    truth = _bytes(expected)
    return _mean_from_histograms(_histogram(levels), _histogram_inside(levels, truth, _box(truth)))


def _mean_from_histograms(total_counts: NDArray[np.int64], inside: NDArray[np.int64]) -> tuple[float, float]:
    present = np.flatnonzero(total_counts)
    low, high = (int(present[0]), int(present[-1])) if present.size else (0, 0)
    if high > low:
        # level q counts at threshold k/255 if (q - low) / (high - low) >= k / 255; computed in integers
        first = low - (-_BINS * (high - low) // 255)
    else:
        first = _BINS
    at_or_above = np.append(np.cumsum(total_counts[::-1])[::-1], 0)
    hits_at_or_above = np.append(np.cumsum(inside[::-1])[::-1], 0)
    predicted = at_or_above[first].astype(np.float64)
    shared = hits_at_or_above[first].astype(np.float64)
    total = predicted + float(inside.sum())
    union = total - shared
    with np.errstate(invalid="ignore", divide="ignore"):
        dice = np.where(total > 0, 2 * shared / total, 1.0)
        iou = np.where(union > 0, shared / union, 1.0)
    return float(dice.mean()), float(iou.mean())


def _histogram(levels: Bytes) -> NDArray[np.int64]:
    """Return the number of pixels at each level.

    Most of a map is 0 and counting is slow, so bands of rows are counted only where they are not 0.
    """
    counts = np.zeros(256, dtype=np.int64)
    for top in range(0, levels.shape[0], _BAND):
        band = levels[top : top + _BAND]
        box = _box(band)
        if box is not None:
            counts += _counted(band[box], None)
    counts[0] += levels.size - int(counts.sum())
    return counts


def _histogram_inside(levels: Bytes, where: Bytes, box: Box | None) -> NDArray[np.int64]:
    """Return the number of pixels inside ``where`` at each level; ``box`` is its bounding box."""
    if box is None:
        return np.zeros(256, dtype=np.int64)
    return _counted(levels[box], where[box])


def _counted(levels: Bytes, where: Bytes | None) -> NDArray[np.int64]:
    counts = cv2.calcHist([levels], [0], where, [256], [0, 256])
    return np.rint(counts.ravel()).astype(np.int64)


def _box(mask: Bytes) -> Box | None:
    """Return the bounding box of all values above 0, None if there are none."""
    left, top, width, height = cv2.boundingRect(mask)
    return (slice(top, top + height), slice(left, left + width)) if width else None


def _from_counts(shared: int, predicted: int, expected: int) -> tuple[float, float]:
    total = predicted + expected
    if total == 0:
        return 1.0, 1.0
    return 2.0 * shared / total, shared / (total - shared)


def _bytes(mask: Mask) -> Bytes:
    """View a bool mask as bytes without copying it."""
    return np.ascontiguousarray(mask).view(np.uint8)


class Masks(Oracle):
    """Oracle of segmentations, without settings; the module's docstring defines the scores."""

    task: ClassVar[str] = "mask"
    scores: ClassVar[tuple[str, ...]] = (
        "dice",
        "iou",
        "missed_lesions",
        "false_regions",
        "mean_dice_256",
        "mean_iou_256",
    )
    self_scores: ClassVar[tuple[str, ...]] = ("dice", "iou")
    needs: ClassVar[Mapping[str, str]] = {"mean_dice_256": "maps", "mean_iou_256": "maps"}
    revision: ClassVar[int] = 1

    def score(
        self, *, answer: Output, source: Output | None, seed: PreparedSeed, effect: Effect
    ) -> dict[str, float | None]:
        """Return the score columns of one case; None without truth or source answer."""
        if not isinstance(answer, MaskOutput) or not isinstance(source, MaskOutput | None):
            raise TypeError(f"masks judges masks, not an answer of kind {answer.kind}")
        columns: dict[str, float | None] = dict.fromkeys(self.scores)
        columns |= dict.fromkeys((f"self_{name}" for name in self.self_scores), None)
        if source is answer:
            columns["self_dice"] = columns["self_iou"] = 1.0
        elif source is not None:
            columns["self_dice"], columns["self_iou"] = overlap(answer.mask, moved_mask(source.mask, effect))
        if seed.mask is not None:
            columns |= self._against_truth(answer, seed, effect)
        return columns

    def kept(self, *, answer: Output, source: Output, seed: PreparedSeed, effect: Effect) -> float | Reason:
        """Return the share of the pixels marked before that are still marked.

        If only the lesion was touched (``effect.data["within"]``), only its pixels count.
        """
        if not isinstance(answer, MaskOutput) or not isinstance(source, MaskOutput):
            raise TypeError(f"masks judges masks, not an answer of kind {answer.kind}")
        before = source.mask
        if effect.data.get("within") and seed.mask is not None:
            before = before & seed.mask
        return still_marked(before, answer.mask)

    def kept_by_chance(self, *, item: str, seed: PreparedSeed, effect: Effect) -> float | None:
        """Return the share of the expected mask that the other case's expected mask covers."""
        other = effect.other
        if other is None or seed.mask is None or other.mask is None or other.mask.shape != seed.mask.shape:
            return None
        share = still_marked(seed.mask, other.mask)
        return None if isinstance(share, Reason) else share

    def _against_truth(self, answer: MaskOutput, seed: PreparedSeed, effect: Effect) -> dict[str, float | None]:
        truth = _truth(seed, effect)
        shared_map = np.asarray(cv2.bitwise_and(_bytes(answer.mask), truth.mask), dtype=np.uint8)
        shared = cv2.countNonZero(shared_map)
        predicted = cv2.countNonZero(_bytes(answer.mask))
        dice, iou = _from_counts(shared, predicted, truth.area)
        return {
            "dice": dice,
            "iou": iou,
            "missed_lesions": float(truth.missed(shared_map, shared)),
            "false_regions": float(_false_regions(_bytes(answer.mask), shared_map, predicted, shared)),
            **(_over_thresholds(answer, truth) if self.needs.keys() & set(self.recorded) else {}),
        }


def still_marked(before: Mask, after: Mask) -> float | Reason:
    """Return the share of the pixels of one mask that another one marks, or the reason if it marks none.

    Args:
        before: bool H×W.
        after: bool H×W of the same shape.
    """
    marked = cv2.countNonZero(_bytes(before))
    return cv2.countNonZero(_bytes(before & after)) / marked if marked else NOTHING_TO_LOSE


def _over_thresholds(answer: MaskOutput, truth: _Truth) -> dict[str, float | None]:
    """Return the means over 256 thresholds, which need the answer's probability map."""
    map_levels = levels(answer, truth.original.shape)
    inside = _histogram_inside(map_levels, truth.original, truth.original_box)
    mean_dice, mean_iou = _mean_from_histograms(_histogram(map_levels), inside)
    return {"mean_dice_256": mean_dice, "mean_iou_256": mean_iou}


class _Truth:
    """The expected mask in the forms needed for scoring, computed once per seed unless it moves."""

    def __init__(self, mask: Mask, original: Mask) -> None:
        self.mask = _bytes(mask)
        self.original = _bytes(original)
        self.original_box = _box(self.original)
        self.area = cv2.countNonZero(self.mask)
        count, self._labels = _components(self.mask)
        self.lesions = count - 1
        self._sizes = _sizes(self._labels, count, None)[1:]

    def missed(self, shared_map: Bytes, shared: int) -> int:
        """Return the number of missed lesions; ``shared_map`` marks the true positive pixels."""
        if self.lesions == 0:
            return 0
        if self.lesions == 1:
            return int(shared < HIT_FRACTION * self.area)
        hits = _sizes(self._labels, self.lesions + 1, shared_map)[1:]
        return int(np.count_nonzero(hits < HIT_FRACTION * self._sizes))


def _truth(seed: PreparedSeed, effect: Effect) -> _Truth:
    mask = seed.mask
    if mask is None:
        raise ValueError("an unlabelled seed has no truth")
    original = mask if seed.original_mask is None else seed.original_mask
    if not effect.moves:
        return seed.memo(f"{_MEMO}truth", lambda: _Truth(mask, original))
    return _Truth(moved_mask(mask, effect), moved_mask(original, effect, prepared=(seed.height, seed.width)))


def _false_regions(predicted: Bytes, shared_map: Bytes, area: int, shared: int) -> int:
    least = max(1.0, REGION_FRACTION * predicted.size)
    if area - shared < least:
        return 0
    box = _box(predicted)
    if box is None:
        return 0
    count, labels = _components(np.ascontiguousarray(predicted[box]))
    if count == 2:  # a single region, large enough: no counting needed
        return int(not shared)
    large = _sizes(labels, count, None) >= least
    large[0] = False
    if shared:
        large &= _sizes(labels, count, np.ascontiguousarray(shared_map[box])) == 0
    return int(np.count_nonzero(large))


def count_false_regions(predicted: Mask, expected: Mask) -> int:
    """Return the number of regions of at least :data:`REGION_FRACTION` of the image that share no pixel with the truth.

    Args:
        predicted: bool H×W.
        expected: bool H×W of the same shape.
    """
    shared_map = np.asarray(cv2.bitwise_and(_bytes(predicted), _bytes(expected)), dtype=np.uint8)
    area, shared = cv2.countNonZero(_bytes(predicted)), cv2.countNonZero(shared_map)
    return _false_regions(_bytes(predicted), shared_map, area, shared)


def _components(mask: Bytes) -> tuple[int, NDArray[Any]]:
    """Return the number of 8-connected components, including the background, and their labels."""
    # 16-bit labels are four times faster to count; images of this size cannot have more components
    kind = cv2.CV_16U if mask.size < 4 * (2**16 - 1) else cv2.CV_32S
    count, labels = cv2.connectedComponents(mask, connectivity=8, ltype=kind)
    return int(count), np.asarray(labels)


def _sizes(labels: NDArray[Any], count: int, where: Bytes | None) -> NDArray[np.int64]:
    """Return the number of pixels of each label, restricted to ``where`` if given."""
    if labels.dtype == np.uint16:
        return np.rint(cv2.calcHist([labels], [0], where, [count], [0, count]).ravel()).astype(np.int64)
    selected = labels.ravel() if where is None else labels[where.view(np.bool_)]
    return np.bincount(selected, minlength=count).astype(np.int64)


def levels(answer: MaskOutput, shape: tuple[int, ...]) -> Bytes:
    """Return the probability map as 8-bit levels at the original mask's size; without a map, the mask."""
    values: Probability | None = answer.native if answer.native is not None else answer.probability
    if values is None:
        values = answer.mask.astype(np.float32)
    if values.shape != shape:
        values = np.asarray(cv2.resize(values, (shape[1], shape[0]), interpolation=cv2.INTER_LINEAR), dtype=np.float32)
    return np.asarray(cv2.convertScaleAbs(values, alpha=255.0), dtype=np.uint8)
