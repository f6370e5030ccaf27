"""A segmentation system as a reader: whether and where a picture shows what the system marks.

A network that segments polyps well if there are some may still mark polyps in pictures without any; its card shows this
(``medtest readers card reader=segments questions=60``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import cv2
import numpy as np
from pydantic import Field

from medtest.core.cases import Address, Image, Json
from medtest.core.errors import BadOutput, MedtestError, Mistake, UserMistakes
from medtest.core.plugins import TRUSTED
from medtest.core.scenes import Box, Scene, SeenEntity, Tells
from medtest.core.tasks.border import check_mask
from medtest.readers.pictures.base import PictureContent, PictureReader, PictureSettings
from medtest.readers.pictures.named_system import named_system, print_of
from medtest.readers.pictures.spatial import PREDICATES, triples_of
from medtest.systems.base import Missing, System

_MOST_PLACES: Final = 100
_ADDRESS: Final = Address(dataset="pictures", seed_id="picture")


class SegmentsSettings(PictureSettings):
    """Settings of :class:`Segments`.

    Attributes:
        system: Name of the system (``medtest list systems``).
        settings: Its settings, such as ``{checkpoint: FILE}``; a suite's ``prepare`` does not apply.
        finding: The class that it marks, named as in pools.
        threshold: Probability above which a pixel is marked.
        least: Minimum size of a marked region as a share of the picture.
    """

    system: str = "pranet"
    settings: dict[str, Any] = Field(default={}, json_schema_extra=TRUSTED)
    finding: str = Field(default="polyp", min_length=1, max_length=100)
    threshold: float = Field(default=0.5, ge=0, lt=1)
    least: float = Field(default=0.0, ge=0, le=1)


class Segments(PictureReader):
    """Detects one class with a segmentation system: one entity per connected region of the mask.

    It does not count, because one object may be marked in several regions.
    """

    Settings = SegmentsSettings
    settings: SegmentsSettings
    _system: System | None = None

    def __init__(self, name: str, settings: Any) -> None:
        super().__init__(name, settings)
        self._tells = Tells(
            classes=frozenset({self.settings.finding}),
            predicates=frozenset(PREDICATES),
            attributes=frozenset(),
            counts=False,
        )

    def _find_system(self) -> System | list[Mistake]:
        own = self.settings
        return named_system(own.system, own.settings, where=self.name, task="mask")

    def _create_system(self) -> System:
        """Return the system.

        Raises:
            UserMistakes: There is no such system, or its settings are wrong.
        """
        system = self._find_system()
        if isinstance(system, list):
            raise UserMistakes(system)
        return system

    def check(self) -> list[Mistake]:
        """Return the mistakes in the name of the system or its settings."""
        system = self._find_system()
        return system if isinstance(system, list) else [*system.check(), *super().check()]

    def without_card(self) -> dict[str, Json]:
        """Return everything its scenes depend on: the system with its weights, the class and the thresholds."""
        return {**super().without_card(), "system": print_of(self._create_system())}

    def notice(self) -> str:
        """Return the system's notice, and what is known about the reader's accuracy."""
        return " ".join(text for text in (self._create_system().notice(), super().notice()) if text)

    def open(self, *, device: str, threads: int) -> None:
        """Load the system.

        Raises:
            MedtestError: It cannot be loaded.
        """
        self._system = self._create_system()
        self._system.open(device=device, threads=threads)

    def close(self) -> None:
        """Release the system."""
        if self._system is not None:
            self._system.close()
            self._system = None

    def look(self, images: Sequence[Image], contents: Sequence[PictureContent]) -> list[Scene]:
        """Return the regions that the system marks.

        Raises:
            MedtestError: The reader is not open.
            BadOutput: The system gives no map for a picture.
        """
        if self._system is None:
            raise MedtestError(f"{self.name} was asked before it was opened")
        shown = [np.ascontiguousarray(image) for image in images]
        answers = list(self._system.predict(shown, [_ADDRESS] * len(shown)))
        if len(answers) != len(shown):
            raise BadOutput(f"gave {len(answers)} maps of {len(shown)} pictures")
        return [self._scene(image, answer) for image, answer in zip(shown, answers, strict=True)]

    def _scene(self, image: Image, answer: Any) -> Scene:
        if isinstance(answer, Missing):
            raise BadOutput(f"gave no map: {answer.reason}")
        height, width = image.shape[:2]
        probability = np.asarray(check_mask(answer, (height, width)).probability, np.float32)
        marked = (probability > self.settings.threshold).astype(np.uint8)
        count, pieces, measured, _ = cv2.connectedComponentsWithStats(marked, connectivity=8)
        least = self.settings.least * height * width
        selected = [piece for piece in range(1, count) if measured[piece, cv2.CC_STAT_AREA] >= max(least, 1)]
        selected = sorted(selected, key=lambda piece: -int(measured[piece, cv2.CC_STAT_AREA]))[:_MOST_PLACES]
        entities = []
        for piece in selected:
            left, top, wide, high = (int(measured[piece, place]) for place in range(4))
            box: Box = (left / width, top / height, (left + wide) / width, (top + high) / height)
            score = float(probability[pieces == piece].max())
            entities.append(SeenEntity(name=self.settings.finding, box=box, score=score))
        triples = triples_of(entities, width / height)
        return Scene(entities=tuple(entities), triples=triples, tells=self._tells)
