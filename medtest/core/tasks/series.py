"""Drawing of series: images of any dtype, range and dimension, not resized or otherwise prepared.

Of a volume or film the most informative slice is drawn.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Effect, Image, ImageSpec, PreparedSeed
from medtest.core.tasks.base import Case, FlatView, Panel, Panels, TaskDrawing

_WHITE = 255.0


class SeriesDrawing(TaskDrawing):
    """Pictures of series and of the answers to them.

    Attributes:
        outlines: True if answers are outlined.
    """

    outlines: ClassVar[bool] = False

    def view(self, seed: PreparedSeed, image: Image, region: NDArray[np.bool_] | None = None) -> FlatView:
        """Return an image for display: its range from black to white, one slice of a volume or film."""
        place = _telling_slice(seed)
        return FlatView(
            image=_as_picture(image if place is None else image[place], seed.spec),
            region=None if region is None else (region if place is None else region[place]),
        )

    def expected_region(self, seed: PreparedSeed, effect: Effect) -> NDArray[np.bool_] | None:
        """Return the true region, which no relation moves."""
        return seed.mask

    def panels(self, case: Case) -> Panels:
        """Return source, clean image if it differs, follow-up, and answers as images or outlines."""
        seed = case.seed
        region = self.expected_region(seed, case.effect)
        truth = None if region is None else self.view(seed, seed.image, region).region
        changed = None if case.image is None else self.view(seed, case.image).image
        panels = [Panel(name="source", image=self.view(seed, seed.image).image, truth=truth)]
        if seed.clean is not None and seed.clean is not seed.image:
            panels.append(Panel(name="clean", image=self.view(seed, seed.clean).image))
        panels.append(Panel(name="follow-up", image=changed, words=case.reason))
        for name, image, answer in (
            ("answer to the source", seed.image, case.before),
            ("answer to the follow-up", case.image, case.after),
        ):
            if answer.output is None or image is None:
                panels.append(Panel(name=name, words=answer.reason or "not asked"))
                continue
            flat = self.answer_view(seed, image, answer.output)
            panels.append(Panel(name=name, image=flat.image, truth=truth, answer=flat.region))
        return Panels(panels=panels, outlines=self.outlines, truth=truth is not None)


def _telling_slice(seed: PreparedSeed) -> int | None:
    """Return the index of the slice to show: the one with most of the truth, else the middle; None for flat images."""
    if seed.spec.axes in ("yx", "yxc"):
        return None
    if seed.mask is None or not seed.mask.any():
        return int(seed.image.shape[0] // 2)
    return int(np.argmax(np.count_nonzero(seed.mask, axis=(1, 2))))


def _as_picture(flat: Image, spec: ImageSpec) -> NDArray[np.uint8]:
    """Convert H×W or H×W×3 of any dtype to uint8 H×W×3; values out of range are clipped."""
    levels = (flat.astype(np.float32) - np.float32(spec.low)) * np.float32(_WHITE / spec.span)
    grey = np.clip(np.rint(levels), 0, _WHITE).astype(np.uint8)
    return grey if grey.ndim == 3 else np.repeat(grey[..., None], 3, axis=2)
