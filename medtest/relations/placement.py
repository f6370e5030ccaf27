"""Free positions on an image: outside the lesion with a margin, outside the black frame.

Shared by relations that paste or print. Values that depend only on the seed are kept with it;
finding free positions is one pass over an integral image for any object size. A system's prediction is never used, so
follow-ups are the same for all systems.
"""

from __future__ import annotations

from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Json, Mask, PreparedSeed
from medtest.core.errors import NotApplicable
from medtest.core.portable import exp
from medtest.core.recent import per_seed

CENTRAL_FRACTION = 0.6
"""Semi-axes of the ellipse kept free without lesion information, as fraction of the field's half extent."""

LARGEST_IN_FLOAT32 = 640
"""Longest side in pixels whose squared distances, and their rounding, fit float32 exactly."""

FAINTEST = 1e-200
"""Sum of a Gaussian's values below which they are computed relative to the largest one."""

Corner: TypeAlias = tuple[int, int]
Box: TypeAlias = tuple[int, int, int, int]


@per_seed
def field_box(seed: PreparedSeed) -> Box:
    """Return the field of view's bounding box as (top, left, bottom, right), the last two exclusive.

    Raises:
        NotApplicable: The whole image is black frame.
    """
    rows, columns = np.flatnonzero(~seed.frame.all(axis=1)), np.flatnonzero(~seed.frame.all(axis=0))
    if rows.size == 0:
        raise NotApplicable("no field of view: the whole image is black frame")
    return int(rows[0]), int(columns[0]), int(rows[-1]) + 1, int(columns[-1]) + 1


@per_seed
def lesion_distance(seed: PreparedSeed) -> NDArray[np.float32] | None:
    """Return each pixel's distance to the nearest lesion pixel, float32 H×W in pixels.

    None if the seed is unlabelled or its mask is empty.
    """
    return distance_to(seed.mask)


@per_seed
def keep_out(seed: PreparedSeed, *, margin: int) -> Mask:
    """Return the region to keep free for the lesion's sake, without the frame.

    It is the lesion grown by ``margin`` and, if the user gave a rough mask, that mask grown too. Without either it
    is a central ellipse of the field, where endoscopists keep their target. A seed with an empty mask has nothing to
    protect.

    Args:
        seed: The prepared seed.
        margin: Pixels (Euclidean) at the prepared size, ≥ 0.

    Returns:
        bool H×W, read-only, shared by all callers.
    """
    blocked = np.zeros(seed.frame.shape, dtype=np.bool_)
    if seed.mask is None and seed.avoid is None:
        blocked = _central_ellipse(seed)
    else:
        for distance in (lesion_distance(seed), distance_to(seed.avoid)):
            if distance is not None:
                blocked |= distance <= margin
    blocked.flags.writeable = False
    return blocked


@per_seed
def free_places(seed: PreparedSeed, *, margin: int) -> FreePlaces:
    """Return the free positions on the field outside :func:`keep_out`, kept for every margin."""
    return FreePlaces(np.logical_or(keep_out(seed, margin=margin), seed.frame))


class FreePlaces:
    """All positions at which a box, or a coarse shape, covers no blocked pixel.

    Args:
        blocked: bool H×W, True for blocked pixels.

    Example:
        >>> places = FreePlaces(np.eye(4, dtype=bool))
        >>> places.of_box(2, 2).astype(int).tolist()
        [[0, 0, 1], [0, 0, 0], [1, 0, 0]]
    """

    def __init__(self, blocked: Mask) -> None:
        self.height, self.width = int(blocked.shape[0]), int(blocked.shape[1])
        self._integral: NDArray[np.int32] = cv2.integral(blocked.view(np.uint8), sdepth=cv2.CV_32S).astype(
            np.int32, copy=False
        )

    def of_box(self, height: int, width: int, *, step: int = 1) -> Mask:
        """Return the top-left corners at which an upright box is entirely free.

        Args:
            height: Rows of the box, ≥ 1.
            width: Columns of the box, ≥ 1.
            step: Test only every ``step``-th corner along both axes.

        Returns:
            bool, element (i, j) for the corner (i·step, j·step); empty if the box is larger than the image.
        """
        return self._free([(0, 0, height, width)], height, width, step)

    def of_shape(self, shape: Mask, *, step: int = 1, bands: int = 8) -> Mask:
        """Return the top-left corners at which no pixel of a shape covers a blocked one.

        The shape is covered by horizontal bands, each from its leftmost to its rightmost pixel; a returned corner is
        free for every pixel, and few free corners are missed.

        Args:
            shape: bool h×w, the object's pixels within its box, at least one True.
            step: As in :meth:`of_box`.
            bands: Bands that cover the shape.

        Returns:
            As in :meth:`of_box`.
        """
        height, width = int(shape.shape[0]), int(shape.shape[1])
        edges = np.linspace(0, height, min(bands, height) + 1).round().astype(int)
        rectangles: list[Box] = []
        for top, bottom in zip(edges[:-1], edges[1:], strict=True):
            columns = np.flatnonzero(shape[top:bottom].any(axis=0))
            if columns.size:
                rectangles.append((int(top), int(columns[0]), int(bottom), int(columns[-1]) + 1))
        return self._free(rectangles, height, width, step)

    def _free(self, rectangles: list[Box], height: int, width: int, step: int) -> Mask:
        rows = range(0, self.height - height + 1, step)
        columns = range(0, self.width - width + 1, step)
        if len(rows) == 0 or len(columns) == 0:
            return np.zeros((0, 0), dtype=np.bool_)

        def corner(down: int, right: int) -> NDArray[np.int32]:
            last_row, last_column = rows[-1] + down + 1, columns[-1] + right + 1
            view: NDArray[np.int32] = self._integral[down:last_row:step, right:last_column:step]
            return view

        free = np.ones((len(rows), len(columns)), dtype=np.bool_)
        for top, left, bottom, right in rectangles:
            # Integer overflow wraps consistently, so equal sums on both sides mean that the box holds no blocked pixel.
            free &= corner(bottom, right) + corner(top, left) == corner(top, right) + corner(bottom, left)
        return free


def draw_place(
    free: Mask,
    rng: np.random.Generator,
    *,
    label: str,
    step: int = 1,
    near: tuple[float, float] | None = None,
    spread: float = 0.0,
) -> Corner:
    """Draw one free corner, uniformly or near a preferred one.

    Args:
        free: Result of :meth:`FreePlaces.of_box` or :meth:`FreePlaces.of_shape`.
        rng: The case's generator; one number is drawn.
        label: Name of the object in the reason ("an instrument of this size").
        step: The step used for ``free``.
        near: Preferred corner (row, column), which need not be free; None for a uniform draw.
        spread: Standard deviation in pixels around ``near``; beyond a few of them the nearest free corner wins.

    Returns:
        (row, column) of the box's top-left pixel.

    Raises:
        NotApplicable: No corner is free.
    """
    rows, columns = np.nonzero(free)
    if rows.size == 0:
        raise NotApplicable(f"no room for {label}")
    if near is None:
        index = int(rng.integers(rows.size))
    else:
        weights = np.cumsum(_nearness(free.shape, step, near, spread)[rows, columns])
        if weights[-1] < FAINTEST:
            squared = (rows * float(step) - near[0]) ** 2 + (columns * float(step) - near[1]) ** 2
            # Relative to the nearest corner, so that the weights never all vanish.
            weights = np.cumsum(exp((squared.min() - squared) / (2.0 * max(spread, 1e-6) ** 2)))
        index = min(int(np.searchsorted(weights, rng.random() * weights[-1], side="right")), rows.size - 1)
    return int(rows[index]) * step, int(columns[index]) * step


def _nearness(shape: tuple[int, ...], step: int, near: tuple[float, float], spread: float) -> NDArray[np.float64]:
    """Return a Gaussian around a corner: its rows times its columns, which needs few exponentials."""
    axes = []
    for length, middle in zip(shape, near, strict=True):
        away = np.arange(length) * float(step) - middle
        axes.append(exp(-(away * away) / (2.0 * max(spread, 1e-6) ** 2)))
    return np.asarray(axes[0][:, None] * axes[1])


def distance_to(mask: Mask | None) -> NDArray[np.float32] | None:
    """Return each pixel's distance in pixels to the nearest True one, float32 H×W read-only; None without any."""
    if mask is None or not mask.any():
        return None
    distances = cv2.distanceTransform(np.logical_not(mask).view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
    # OpenCV's square root varies in its last bit with memory alignment; squares are whole numbers.
    exact = np.float32 if max(mask.shape) <= LARGEST_IN_FLOAT32 else np.float64
    squares = np.square(distances, dtype=exact)
    np.sqrt(np.rint(squares, out=squares), out=squares)
    distance = squares.astype(np.float32, copy=False)
    distance.flags.writeable = False
    return distance


def _central_ellipse(seed: PreparedSeed) -> Mask:
    top, left, bottom, right = field_box(seed)
    rows = (np.arange(seed.height) + 0.5 - (top + bottom) / 2) / (CENTRAL_FRACTION * (bottom - top) / 2)
    columns = (np.arange(seed.width) + 0.5 - (left + right) / 2) / (CENTRAL_FRACTION * (right - left) / 2)
    inside: Mask = rows[:, None] ** 2 + columns[None, :] ** 2 <= 1.0
    return inside


def grid_shares(touched: NDArray[np.uint8]) -> list[Json]:
    """Return the spread of inserted pixels over the image: nine shares of a 3 × 3 grid, row by row.

    Args:
        touched: uint8 H×W, non-zero for inserted pixels.

    Returns:
        Shares that sum to 1, rounded to four decimals; zeros if nothing was inserted.
    """
    height, width = touched.shape
    rows = [-(-k * height // 3) for k in range(4)]
    columns = [-(-k * width // 3) for k in range(4)]
    counts = [
        int(np.count_nonzero(touched[rows[i] : rows[i + 1], columns[j] : columns[j + 1]]))
        for i in range(3)
        for j in range(3)
    ]
    total = max(1, sum(counts))
    return [round(count / total, 4) for count in counts]
