"""A segmentation system as a reader: whether a picture shows what the system marks, and where.

A network that marks polyps well where there are some need not know that there are none: its card says so
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
    """Settings of a segmentation system as a reader.

    Attributes:
        system: Name of the system (``medtest list systems``).
        settings: Its settings, as ``{checkpoint: FILE}``; ``prepare`` of a suite does not apply.
        finding: The class that it marks, as pools name it.
        threshold: Probability above which a pixel is marked.
        least: Least share of the picture that one marked place has.
    """

    system: str = "pranet"
    settings: dict[str, Any] = Field(default={}, json_schema_extra=TRUSTED)
    finding: str = Field(default="polyp", min_length=1, max_length=100)
    threshold: float = Field(default=0.5, ge=0, lt=1)
    least: float = Field(default=0.0, ge=0, le=1)


class Segments(PictureReader):
    """Sees one class, wherever a segmentation system marks it: a place for each connected piece of the mask.

    It does not count: one thing may be marked in pieces.
    """

    Settings = SegmentsSettings
    settings: SegmentsSettings

    def __init__(self, name: str, settings: Any) -> None:
        super().__init__(name, settings)
        self._system: System | None = None
        self._tells = Tells(
            classes=frozenset({self.settings.finding}),
            predicates=frozenset(PREDICATES),
            attributes=frozenset(),
            counts=False,
        )

    def _named(self) -> System | list[Mistake]:
        own = self.settings
        return named_system(own.system, own.settings, where=self.name, task="mask")

    def _made(self) -> System:
        """Return the system.

        Raises:
            UserMistakes: It is none, or its settings are wrong.
        """
        found = self._named()
        if isinstance(found, list):
            raise UserMistakes(found)
        return found

    def check(self) -> list[Mistake]:
        """Return what is wrong with the system that is named, or its settings."""
        found = self._named()
        return found if isinstance(found, list) else [*found.check(), *super().check()]

    def without_card(self) -> dict[str, Json]:
        """Return what its scenes depend on: the system with its weights, class, thresholds."""
        return {**super().without_card(), "system": print_of(self._made())}

    def notice(self) -> str:
        """Return what the system says, and what is known of how well it sees."""
        return " ".join(one for one in (self._made().notice(), super().notice()) if one)

    def open(self, *, device: str, threads: int) -> None:
        """Load the system.

        Raises:
            MedtestError: It cannot be loaded.
        """
        self._system = self._made()
        self._system.open(device=device, threads=threads)

    def close(self) -> None:
        """Let go of the system."""
        if self._system is not None:
            self._system.close()
            self._system = None

    def look(self, images: Sequence[Image], contents: Sequence[PictureContent]) -> list[Scene]:
        """Return what the system marks.

        Raises:
            MedtestError: The reader is not opened.
            BadOutput: The system gives no map of a picture.
        """
        if self._system is None:
            raise MedtestError(f"{self.name} was asked before it was opened")
        shown = [np.ascontiguousarray(one) for one in images]
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
        kept = [piece for piece in range(1, count) if measured[piece, cv2.CC_STAT_AREA] >= max(least, 1)]
        kept = sorted(kept, key=lambda piece: -int(measured[piece, cv2.CC_STAT_AREA]))[:_MOST_PLACES]
        entities = []
        for piece in kept:
            left, top, wide, high = (int(measured[piece, place]) for place in range(4))
            box: Box = (left / width, top / height, (left + wide) / width, (top + high) / height)
            score = float(probability[pieces == piece].max())
            entities.append(SeenEntity(name=self.settings.finding, box=box, score=score))
        triples = triples_of(entities, width / height)
        return Scene(entities=tuple(entities), triples=triples, tells=self._tells)
