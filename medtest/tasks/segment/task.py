"""Task of segmentation: a mask of the prepared picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Effect, FollowUp, Image, Mask, MaskOutput, Output, PreparedSeed
from medtest.core.files.arrays import packed, unpacked
from medtest.core.tasks.base import (
    AskedSystem,
    Border,
    Case,
    CaseAnswer,
    Panel,
    Panels,
    Scoring,
    Storage,
    SystemInput,
    Task,
    TaskDrawing,
    TaskReport,
    TaskTables,
)
from medtest.core.tasks.border import CUT, check_mask
from medtest.core.tasks.results import Graded
from medtest.preparation.factors import lesion_factors
from medtest.preparation.visibility import source_visibility, visibility
from medtest.tasks.segment.kept import mask_arrays, mask_of
from medtest.tasks.segment.tables import MaskReport, MaskTables


class MaskBorder(Border):
    """Checks of maps, see :mod:`medtest.core.tasks.border`."""

    def factors(self, seed: PreparedSeed) -> dict[str, float | None]:
        """Return size, number and position of lesions, light, visible area."""
        return lesion_factors(seed)

    def facts(self, seed: PreparedSeed, follow: FollowUp) -> Mapping[str, float]:
        """Return the visibility of the lesions in the follow-up and in the source, if a mask is expected."""
        values = {
            "visibility": visibility(seed, follow.image, follow.effect),
            "source_visibility": source_visibility(seed),
        }
        return {name: value for name, value in values.items() if value is not None}

    def check(self, raw: Any, shown: SystemInput, system: AskedSystem) -> MaskOutput:
        """Return the answer as a mask of the prepared picture.

        Raises:
            BadOutput: It is not a map.
        """
        return check_mask(raw, shown.image.shape[:2])


class MaskStorage(Storage):
    """Stored masks."""

    def keep(self, output: Output, seed: PreparedSeed, *, maps: bool) -> bytes | None:
        """Return the mask, one bit per pixel, and with ``maps`` the probability map at 8 bits."""
        return packed(mask_arrays(output, seed, maps=maps)) if isinstance(output, MaskOutput) else None

    def restore(self, stored: bytes, seed: PreparedSeed, shown: SystemInput) -> MaskOutput:
        """Return the stored answer.

        Raises:
            MedtestError: It is not an answer of this task.
        """
        return mask_of(unpacked(stored)[0])


class MaskScoring(Scoring):
    """Differences of probability maps, and Dice as correctness."""

    def probability_gaps(self, probabilities: Output | NDArray[np.float64], answer: Output) -> NDArray[np.float64]:
        """Return the differences of probabilities, float64 H×W."""
        if not isinstance(answer, MaskOutput) or answer.probability is None:
            raise TypeError(f"an answer of kind {answer.kind} is not a probability map")
        values = probabilities.probability if isinstance(probabilities, MaskOutput) else probabilities
        own, reference = np.asarray(values, np.float64), np.asarray(answer.probability, np.float64)
        native = reference if answer.native is None else answer.native
        if np.isin(native, (0, 1)).all():
            return np.where((own > CUT) != answer.mask, np.abs(own - CUT), 0)
        return np.abs(own - reference)

    def graded(self, records: Any, place: Any) -> Graded | None:
        """Return Dice against the expected mask or, without one, against the answer to the source."""
        dice, self_dice = records.floats("dice"), records.floats("self_dice")
        source_dice = records.floats("source_dice")
        measure = "Dice"
        if np.isnan(dice).all():
            dice, source_dice, measure = (
                self_dice,
                np.where(np.isnan(self_dice), np.nan, 1.0),
                "Dice with the answer to the source",
            )
        if np.isnan(dice).all():
            return None
        scored = ~np.isnan(dice) & ~np.isnan(source_dice)
        zeros = np.zeros(len(dice))
        return Graded(
            measure=measure,
            right=np.where(scored, dice, 0.0),
            whole=scored.astype(np.float64),
            before=np.where(scored, source_dice, 0.0),
            changed=np.where(np.isnan(self_dice), 0.0, 1.0 - self_dice),
            compared=(~np.isnan(self_dice)).astype(np.float64),
            unrounded=zeros,
            unrounded_whole=zeros,
        )


class MaskDrawing(TaskDrawing):
    """Pictures with outlined masks."""

    def region(self, output: Output) -> NDArray[np.bool_] | None:
        """Return the mask."""
        return output.mask if isinstance(output, MaskOutput) else None

    def expected_words(self, seed: PreparedSeed) -> str:
        """Return the caption for the expected mask."""
        return "expected mask"

    def panels(self, case: Case) -> Panels:
        """Return source, follow-up, the expected mask, and both answers on their images."""
        seed, truth = case.seed, self.expected_region(case.seed, Effect())
        moved_truth = self.expected_region(seed, case.effect)
        panels = [Panel(name="source", image=seed.image), Panel(name="follow-up", image=case.image, words=case.reason)]
        if truth is not None:
            panels.append(Panel(name="expected", image=seed.image, truth=truth))
        panels.append(self._answered("answer to the source", seed.image, case.before, truth))
        panels.append(self._answered("answer to the follow-up", case.image, case.after, moved_truth))
        return Panels(panels=panels, truth=truth is not None)

    def _answered(self, name: str, image: Image | None, answer: CaseAnswer, truth: Mask | None) -> Panel:
        if answer.output is None:
            words = answer.reason or "not asked"
            return Panel(name=name, image=None if image is None else image // 3, words=words, truth=truth)
        return Panel(name=name, image=image, truth=truth, answer=self.region(answer.output))


class SegmentTask(Task):
    """Systems answer with a map of the picture."""

    name: ClassVar[str] = "mask"
    output: ClassVar[type[Output]] = MaskOutput
    oracle: ClassVar[str] = "masks"
    folder: ClassVar[str] = "predictions"
    border: ClassVar[Border] = MaskBorder()
    storage: ClassVar[Storage] = MaskStorage()
    scoring: ClassVar[Scoring] = MaskScoring()
    drawing: ClassVar[TaskDrawing] = MaskDrawing()
    tables: ClassVar[TaskTables] = MaskTables()
    report: ClassVar[TaskReport] = MaskReport()
