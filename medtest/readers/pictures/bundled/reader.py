"""The bundled reader: it recognizes the objects of drawn scenes (:mod:`medtest.phantoms.scenes`) and nothing else.

Its network was trained on scenes drawn by medtest (``medtest train model=scenes``). Its output for photographs, or for
pictures painted by another system, has no meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import cv2
import numpy as np
from pydantic import Field

from medtest.core.cases import Image
from medtest.core.deferred import torch
from medtest.core.errors import MedtestError, Mistake
from medtest.core.files.paths import package_folder
from medtest.core.plugins import TRUSTED
from medtest.core.scenes import Scene, SeenEntity, Tells
from medtest.readers.pictures.base import PictureContent, PictureReader, PictureSettings
from medtest.readers.pictures.card import SUFFIX
from medtest.readers.pictures.detectors.boxes import BoxFit, fractions, letterboxed
from medtest.readers.pictures.spatial import PREDICATES, triples_of
from medtest.systems.files import file_mistakes, user_path

if TYPE_CHECKING:
    from medtest.readers.pictures.bundled.network import SceneNet, SceneNetInfo
    from medtest.readers.pictures.bundled.peaks import DetectedObject

SHIPPED: Final = "bundled-scenes.safetensors"


class BundledSettings(PictureSettings):
    """Settings of :class:`Bundled`.

    Attributes:
        path: Weights from the user's own training (``medtest train model=scenes``); "" for the bundled ones.
        score: Minimum score of an object; 0 for the one determined by validation, which is stored in the weights.
    """

    path: str = Field(default="", json_schema_extra=TRUSTED)
    score: float = Field(default=0.0, ge=0, lt=1)


class Bundled(PictureReader):
    """Recognizes the objects of drawn scenes: classes, colours, boxes, and relations that follow from boxes."""

    Settings = BundledSettings
    settings: BundledSettings
    _network: SceneNet | None = None
    _info: SceneNetInfo | None = None
    _device = "cpu"

    @property
    def _file(self) -> Path:
        path = self.settings.path
        return user_path(path) if path else package_folder() / "weights" / SHIPPED

    def weights(self) -> Sequence[Path]:
        """Return the file of its network."""
        return [self._file] if self._file.is_file() else []

    def card_beside(self) -> Path | None:
        """Return the path of the weights with the suffix ``.card.json``."""
        return self._file.with_suffix(SUFFIX)

    def check(self) -> list[Mistake]:
        """Return the mistakes in the configured weights."""
        mistakes = file_mistakes(str(self._file), where=self.name, key="path", suffixes=(".safetensors",))
        return mistakes or super().check()

    def open(self, *, device: str, threads: int) -> None:
        """Load the network.

        Raises:
            MedtestError: The file does not belong to medtest, or its weights do not match its description.
        """
        from medtest.readers.pictures.bundled.network import load_scene_net

        torch.set_num_threads(max(threads, 1))
        network, self._info = load_scene_net(self._file)
        self._network, self._device = network.to(device), device

    def close(self) -> None:
        """Release the network."""
        self._network = None

    def look(self, images: Sequence[Image], contents: Sequence[PictureContent]) -> list[Scene]:
        """Return the objects in pictures, with relations that follow from their boxes.

        Raises:
            MedtestError: The reader is not open.
        """
        from medtest.readers.pictures.bundled.network import SIDE
        from medtest.readers.pictures.bundled.peaks import detected_objects

        if self._network is None or self._info is None:
            raise MedtestError(f"{self.name} is not open")
        if not images:
            return []
        shown = [letterboxed(_not_larger(image, SIDE), (SIDE, SIDE)) for image in images]
        pixels = torch.from_numpy(np.stack([picture for picture, _ in shown])).to(self._device)
        with torch.inference_mode():
            inputs = pixels.permute(0, 3, 1, 2).float().div(255).contiguous(memory_format=torch.channels_last)
            detected = detected_objects(self._network(inputs), self.settings.score or self._info.threshold)
        return [self._scene(objects, fit) for objects, (_, fit) in zip(detected, shown, strict=True)]

    def _scene(self, detected: Sequence[DetectedObject], fit: BoxFit) -> Scene:
        info = self._info
        assert info is not None  # noqa: S101 - told by look
        boxes = fractions(np.array([detection.box for detection in detected], np.float64).reshape(-1, 4), fit).tolist()
        entities = tuple(
            SeenEntity(
                name=info.classes[detection.label],
                box=(box[0], box[1], box[2], box[3]),
                score=detection.score,
                attributes=(info.colours[detection.colour],),
            )
            for detection, box in zip(detected, boxes, strict=True)
        )
        tells = Tells(
            classes=frozenset(info.classes), predicates=frozenset(PREDICATES), attributes=frozenset(info.colours)
        )
        return Scene(entities=entities, triples=triples_of(entities, fit.width / fit.height), tells=tells)


def _not_larger(image: Image, side: int) -> Image:
    """Return a picture whose sides are at most ``side``; it is scaled down by averaging, not by sampling."""
    height, width = image.shape[:2]
    if max(height, width) <= side:
        return image
    ratio = side / max(height, width)
    size = (max(round(width * ratio), 1), max(round(height * ratio), 1))
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)
