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

from medtest.core.cases import Image
from medtest.core.scenes import Box, Scene, SeenEntity, Tells
from medtest.core.tasks.border import check_mask
from medtest.readers.pictures.base import PictureContent
from medtest.readers.pictures.named_system import SystemReader, SystemReaderSettings
from medtest.readers.pictures.spatial import PREDICATES, triples_of

_MOST_PLACES: Final = 100


class SegmentsSettings(SystemReaderSettings):
    """Settings of :class:`Segments`.

    Attributes:
        finding: The class that it marks, named as in pools.
        threshold: Probability above which a pixel is marked.
        least: Minimum size of a marked region as a share of the picture.
    """

    system: str = "pranet"
    finding: str = Field(default="polyp", min_length=1, max_length=100)
    threshold: float = Field(default=0.5, ge=0, lt=1)
    least: float = Field(default=0.0, ge=0, le=1)


class Segments(SystemReader):
    """Detects one class with a segmentation system: one entity per connected region of the mask.

    It does not count, because one object may be marked in several regions.
    """

    Settings = SegmentsSettings
    settings: SegmentsSettings
    system_task = "mask"

    def __init__(self, name: str, settings: Any) -> None:
        super().__init__(name, settings)
        self._tells = self._make_tells()

    def _make_tells(self) -> Tells:
        """Return the content that the reader can detect."""
        return Tells(
            classes=frozenset({self.settings.finding}),
            predicates=frozenset(PREDICATES),
            attributes=frozenset(),
            counts=False,
        )

    def _attributes(self, area: int, centre: float, width: int) -> tuple[str, ...]:
        """Return the attributes of a region, in alphabetical order.

        Args:
            area: Its pixels.
            centre: Horizontal position of its centroid in pixels, from the picture's left edge.
            width: Width of the picture in pixels.
        """
        return ()

    def open(self, *, device: str, threads: int) -> None:
        """Load the system.

        Raises:
            MedtestError: It cannot be loaded.
        """
        self._system = self.create_system()
        self._system.open(device=device, threads=threads)

    def look(self, images: Sequence[Image], contents: Sequence[PictureContent]) -> list[Scene]:
        """Return the regions that the system marks.

        Raises:
            MedtestError: The reader is not open.
            BadOutput: The system gives no map for a picture.
        """
        return [self._scene(image, answer) for image, answer in zip(images, self._predicted(images), strict=True)]

    def _scene(self, image: Image, answer: Any) -> Scene:
        height, width = image.shape[:2]
        probability = np.asarray(check_mask(answer, (height, width)).probability, np.float32)
        marked = (probability > self.settings.threshold).astype(np.uint8)
        count, pieces, measured, centroids = cv2.connectedComponentsWithStats(marked, connectivity=8)
        least = self.settings.least * height * width
        selected = [piece for piece in range(1, count) if measured[piece, cv2.CC_STAT_AREA] >= max(least, 1)]
        selected = sorted(selected, key=lambda piece: -int(measured[piece, cv2.CC_STAT_AREA]))[:_MOST_PLACES]
        entities = []
        for piece in selected:
            left, top, wide, high = (int(measured[piece, place]) for place in range(4))
            box: Box = (left / width, top / height, (left + wide) / width, (top + high) / height)
            score = float(probability[pieces == piece].max())
            area, centre = int(measured[piece, cv2.CC_STAT_AREA]), float(centroids[piece, 0]) + 0.5
            attributes = self._attributes(area, centre, width)
            entities.append(SeenEntity(name=self.settings.finding, box=box, score=score, attributes=attributes))
        triples = triples_of(entities, width / height)
        return Scene(entities=tuple(entities), triples=triples, tells=self._tells)
