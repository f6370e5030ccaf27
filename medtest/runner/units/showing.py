"""Thumbnails of a unit's cases, made while it is in progress."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Effect, Image, Output, PreparedSeed
from medtest.runner.records.answers import KeptAnswer
from medtest.runner.records.thumbnails import DRAWN, MARKS, PICTURE, Marks, encode, of_record, outlined, path_of
from medtest.runner.units.made_case import MadeCase
from medtest.runner.units.parts import Parts

Region: TypeAlias = "NDArray[np.bool_] | None"
_KEPT = 32
"""Number of thumbnails that wait for other systems and questions: more than a batch."""


class Thumbnails:
    """Thumbnails of one seed's cases; a picture is drawn once for all systems and questions.

    Args:
        parts: The suite's parts.
        seed: The source case.
    """

    def __init__(self, parts: Parts, seed: PreparedSeed) -> None:
        self._parts, self._seed = parts, seed
        self._pictures: dict[str, KeptAnswer] = {}
        self._expected: tuple[Region, Marks | None] = (None, None)
        self._lock = threading.Lock()

    def of(self, case: MadeCase, output: Output | None, record: Mapping[str, Any]) -> tuple[KeptAnswer, ...]:
        """Return the thumbnails of a case; none if the suite shows no images, or drawing fails.

        Args:
            case: The case.
            output: The system's answer; None if there is none.
            record: ``address``, ``followup_sha256`` and ``answer_sha256`` of its record.
        """
        if self._parts.suite.privacy.images == "none" or case.follow is None:
            return ()
        try:
            return tuple(self._drawn(case, output, record))
        except Exception:  # noqa: BLE001 - a task may come from a plug-in; the report then shows the case without them
            return ()

    def _drawn(self, case: MadeCase, output: Output | None, record: Mapping[str, Any]) -> Iterator[KeptAnswer]:
        if case.follow is None:
            return
        seed, drawing = self._seed, case.task.drawing
        if case.follow.prompt is None:
            yield self._picture(case, case.follow.image)
        answer = None if output is None else drawing.answer_picture(seed, output, self._parts.pixels)
        if answer is not None:
            yield KeptAnswer(of_record(DRAWN, record), DRAWN, encode(answer))
        answered = None if output is None else drawing.region(output)
        expected = drawing.expected_region(seed, Effect() if case.address.is_source else case.follow.effect)
        marks = self._marks(case, expected, answered)
        if marks is not None:
            yield KeptAnswer(of_record(MARKS, record), MARKS, marks.as_bytes())

    def _marks(self, case: MadeCase, expected: Region, answered: Region) -> Marks | None:
        """Return the outlines; the expected one is traced once for all cases in which nothing moves."""
        view, seed = case.task.drawing.view, self._seed
        flat = [None if region is None else view(seed, seed.image, region).region for region in (expected, answered)]
        traced, marks = self._expected
        if expected is None or expected is not traced or marks is None:
            marks = outlined(*flat)
            self._expected = (expected, marks)
            return marks
        return marks._replace(answered="" if flat[1] is None else path_of(flat[1]))

    def _picture(self, case: MadeCase, image: Image) -> KeptAnswer:
        with self._lock:
            thumbnail = self._pictures.get(case.sha256)
        if thumbnail is None:
            thumbnail = KeptAnswer(case.sha256, PICTURE, encode(case.task.drawing.view(self._seed, image).image))
            with self._lock:
                self._pictures[case.sha256] = thumbnail
                while len(self._pictures) > _KEPT:
                    del self._pictures[next(iter(self._pictures))]
        return thumbnail
