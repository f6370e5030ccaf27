"""Views of series for strips: pictures of any range, and the most informative slice of volumes and films."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image, ImageSpec, PreparedSeed
from medtest.core.tasks.panels import FlatView

_WHITE = 255.0


def view(seed: PreparedSeed, image: Image, region: NDArray[np.bool_] | None = None) -> FlatView:
    """Return an image of a seed for display: its range mapped to 0 to 255, one slice of a volume or film.

    Args:
        seed: Seed that defines range, axes and truth.
        image: The source, a follow-up, or an answer, of the seed's shape.
        region: A region of its spatial shape.
    """
    place = telling_slice(seed)
    return FlatView(
        image=as_picture(image if place is None else image[place], seed.spec),
        region=None if region is None else (region if place is None else region[place]),
    )


def telling_slice(seed: PreparedSeed) -> int | None:
    """Return the index of the slice to show: the one with most of the truth, else the middle; None for flat images."""
    if seed.spec.axes in ("yx", "yxc"):
        return None
    if seed.mask is None or not seed.mask.any():
        return int(seed.image.shape[0] // 2)
    return int(np.argmax(np.count_nonzero(seed.mask, axis=(1, 2))))


def as_picture(flat: Image, spec: ImageSpec) -> NDArray[np.uint8]:
    """Convert H×W or H×W×3 of any dtype to uint8 H×W×3; values out of range are clipped."""
    levels = (flat.astype(np.float32) - np.float32(spec.low)) * np.float32(_WHITE / spec.span)
    grey = np.clip(np.rint(levels), 0, _WHITE).astype(np.uint8)
    return grey if grey.ndim == 3 else np.repeat(grey[..., None], 3, axis=2)
