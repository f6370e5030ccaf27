"""Drawing of series: images of any dtype, range and dimension, not resized or otherwise prepared."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Effect, Image, PreparedSeed
from medtest.core.tasks.base import Case, FlatView, Panel, Panels, TaskDrawing
from medtest.core.tasks.views import view


class SeriesDrawing(TaskDrawing):
    """Pictures of series and of the answers to them.

    Attributes:
        outlines: True if answers are outlined.
    """

    outlines: ClassVar[bool] = False

    def view(self, seed: PreparedSeed, image: Image, region: NDArray[np.bool_] | None = None) -> FlatView:
        """Return an image for display: its range from black to white, one slice of a volume or film."""
        return view(seed, image, region)

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
