"""Base class of exported graphs, for any runtime: file, classes, series of images."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Address, Image, ImageSpec, Json
from medtest.core.errors import BadOutput
from medtest.systems.adapters.graph_images import processed
from medtest.systems.adapters.label_answers import classes_of
from medtest.systems.adapters.tensors import answer_form
from medtest.systems.base import RawAnswer, System
from medtest.systems.files import cached_sha256, user_path


class ExportedGraph(System):
    """Network saved as a graph, which runs without its original code."""

    tasks: ClassVar[tuple[str, ...]] = ("mask", "image", "label")
    needs_device = True

    def __init__(self, name: str, settings: Any) -> None:
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
        return [
            processed(image, spec, self.settings, self.channels, self.run)
            for image, spec in zip(images, specs, strict=True)
        ]

    @abstractmethod
    def run(self, batch: NDArray[np.float32]) -> Sequence[NDArray[Any]]:
        """Return the graph's outputs for a batch of one picture of a series."""
