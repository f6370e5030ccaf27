"""Base class of exported graphs, for any runtime: file, classes, series of images.

For series, pixels are grey levels (the image's range mapped to 0 to 255) divided by ``scale``, in the order of
``channels`` and ``layout``; ``mean``, ``std`` and ``size`` do not apply, because they would have to be inverted. The
output is multiplied by ``scale``. A graph with one channel receives the colours one by one; a graph with three receives
a grey image three times, and the mean of its output counts. Volumes and films are processed slice by slice.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Address, Image, ImageSpec, Json
from medtest.core.errors import BadOutput
from medtest.systems.adapters.tensors import GraphSettings, answer_form, chosen, classes_of
from medtest.systems.base import RawAnswer, System
from medtest.systems.files import cached_sha256, user_path

WHITE = 255.0


class ExportedGraph(System):
    """Network saved as a graph, which runs without its original code."""

    tasks: ClassVar[tuple[str, ...]] = ("mask", "image", "label")
    needs_device = True
    settings: Any

    def __init__(self, name: str, settings: GraphSettings) -> None:
        super().__init__(name, settings)
        self.classes = classes_of(settings)
        self.answer_form = answer_form(settings)

    def fingerprint(self) -> dict[str, Json]:
        """Return the SHA-256 of the graph's file."""
        return {"file_sha256": cached_sha256(user_path(self.settings.path))}

    @property
    def size(self) -> tuple[int, int] | None:
        """Input height and width according to the user."""
        size = self.settings.size
        return None if size is None else (size[0], size[1])

    @property
    def channels(self) -> int:
        """Number of input channels: 1 or 3."""
        return 1 if self.settings.channels == "grey" else 3

    def process(
        self, images: Sequence[Image], specs: Sequence[ImageSpec], addresses: Sequence[Address]
    ) -> Sequence[RawAnswer]:
        """Return the graph's output for each image of a series (``gives: image``)."""
        if self.settings.gives != "image":
            raise BadOutput(f"gives={self.settings.gives} is for masks; gives=image is what this suite needs")
        return [self._mapped(image, spec) for image, spec in zip(images, specs, strict=True)]

    def _mapped(self, image: Image, spec: ImageSpec) -> Image:
        """Return the graph's output for one image, in the image's own units."""
        inner, scale = 3 if spec.coloured else 2, self.settings.scale
        levels = (image.astype(np.float32) - np.float32(spec.low)) * np.float32(WHITE / spec.span / scale)
        answers = [self._picture(picture) for picture in levels.reshape(-1, *levels.shape[-inner:])]
        whole = np.stack(answers).reshape(levels.shape).astype(np.float64)
        return np.asarray(whole * (scale * spec.span / WHITE) + spec.low)

    def _picture(self, picture: NDArray[np.float32]) -> NDArray[Any]:
        if picture.ndim == 2:
            return np.asarray(self._run_one(np.repeat(picture[..., None], self.channels, axis=2)).mean(axis=2))
        if self.channels == 1:
            return np.concatenate([self._run_one(picture[..., [colour]]) for colour in range(3)], axis=2)
        turn = slice(None, None, -1 if self.settings.channels == "bgr" else 1)
        return self._run_one(picture[..., turn])[..., turn]

    def _run_one(self, picture: NDArray[np.float32]) -> NDArray[Any]:
        """Run one H×W×C picture and return H×W×C."""
        nchw = self.settings.layout == "nchw"
        batch = np.ascontiguousarray(picture.transpose(2, 0, 1) if nchw else picture)[None]
        answer = np.asarray(chosen(self.run(batch), self.settings.output))
        if answer.shape != batch.shape:
            raise BadOutput(f"gave shape {answer.shape} for a picture of shape {batch.shape}; the same is expected")
        return np.asarray(answer[0].transpose(1, 2, 0) if nchw else answer[0])

    @abstractmethod
    def run(self, batch: NDArray[np.float32]) -> Sequence[NDArray[Any]]:
        """Return the graph's outputs for a batch of one picture of a series."""
