"""Segmentation of pictures: a mask of the prepared picture."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Effect, Image, Mask, MaskOutput, Output, PreparedSeed
from medtest.core.files.arrays import packed, unpacked
from medtest.core.tasks.base import AskedSystem, Case, CaseAnswer, Panel, Panels, SystemInput, Task
from medtest.core.tasks.border import CUT, check_mask
from medtest.core.tasks.results import Graded
from medtest.preparation.factors import lesion_factors
from medtest.tasks.segment.kept import mask_arrays, mask_of


class SegmentTask(Task):
    """Systems answer with a map of the picture, see :mod:`medtest.core.tasks.border`."""

    name: ClassVar[str] = "mask"
    output: ClassVar[type[Output]] = MaskOutput
    masks: ClassVar[bool] = True
    oracle: ClassVar[str] = "masks"
    folder: ClassVar[str] = "predictions"

    def factors(self, seed: PreparedSeed) -> dict[str, float | None]:
        """Return size, number and place of lesions, light, visible area."""
        return lesion_factors(seed)

    def check(self, raw: Any, shown: SystemInput, system: AskedSystem) -> MaskOutput:
        """Return the answer as a mask of the prepared picture.

        Raises:
            BadOutput: It is no map.
        """
        return check_mask(raw, shown.image.shape[:2])

    def apart(self, given: Output | NDArray[np.float64], answer: Output) -> NDArray[np.float64]:
        """Return the differences of probabilities, float64 H×W."""
        if not isinstance(answer, MaskOutput) or answer.probability is None:
            raise TypeError(f"an answer of kind {answer.kind} is no probability map")
        probability = given.probability if isinstance(given, MaskOutput) else given
        ours, theirs = np.asarray(probability, np.float64), np.asarray(answer.probability, np.float64)
        own = theirs if answer.native is None else answer.native
        if np.isin(own, (0, 1)).all():
            return np.where((ours > CUT) != answer.mask, np.abs(ours - CUT), 0)
        return np.abs(ours - theirs)

    def keep(self, output: Output, seed: PreparedSeed, *, maps: bool) -> bytes | None:
        """Return the mask, a bit a pixel, and with ``maps`` the probability map at 8 bits."""
        return packed(mask_arrays(output, seed, maps=maps)) if isinstance(output, MaskOutput) else None

    def restore(self, kept: bytes, seed: PreparedSeed, shown: SystemInput) -> MaskOutput:
        """Return the answer that was kept.

        Raises:
            MedtestError: It is none of this task's.
        """
        return mask_of(unpacked(kept)[0])

    def graded(self, records: Any, place: Any) -> Graded | None:
        """Return Dice against the expected mask or, where no mask is known, against the answer to the source."""
        dice, same = records.floats("dice"), records.floats("self_dice")
        before = records.floats("source_dice")
        measure = "Dice"
        if np.isnan(dice).all():
            dice, before, measure = same, np.where(np.isnan(same), np.nan, 1.0), "Dice with the answer to the source"
        if np.isnan(dice).all():
            return None
        known = ~np.isnan(dice) & ~np.isnan(before)
        nothing = np.zeros(len(dice))
        return Graded(
            measure=measure,
            right=np.where(known, dice, 0.0),
            whole=known.astype(np.float64),
            before=np.where(known, before, 0.0),
            changed=np.where(np.isnan(same), 0.0, 1.0 - same),
            compared=(~np.isnan(same)).astype(np.float64),
            unrounded=nothing,
            unrounded_whole=nothing,
        )

    def region(self, output: Output) -> NDArray[np.bool_] | None:
        """Return the mask."""
        return output.mask if isinstance(output, MaskOutput) else None

    def panels(self, case: Case) -> Panels:
        """Return source, follow-up, what is expected, and both answers on what they are answers to."""
        seed, truth = case.seed, self.expected_region(case.seed, Effect())
        there = self.expected_region(seed, case.effect)
        found = [Panel(name="source", image=seed.image), Panel(name="follow-up", image=case.image, words=case.reason)]
        if truth is not None:
            found.append(Panel(name="expected", image=seed.image, truth=truth))
        found.append(self._answered("answer to the source", seed.image, case.before, truth))
        found.append(self._answered("answer to the follow-up", case.image, case.after, there))
        return Panels(panels=found, truth=truth is not None)

    def _answered(self, name: str, image: Image | None, answer: CaseAnswer, truth: Mask | None) -> Panel:
        if answer.output is None:
            words = answer.reason or "not asked"
            return Panel(name=name, image=None if image is None else image // 3, words=words, truth=truth)
        return Panel(name=name, image=image, truth=truth, answer=self.region(answer.output))
