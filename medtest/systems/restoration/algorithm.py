"""Base class of algorithms without weights: nothing to load, images of any dtype and dimension, no batches."""

from __future__ import annotations

from collections.abc import Sequence

from medtest.core.cases import Address, Image, ImageSpec, Json
from medtest.systems.base import RawAnswer, System


class Algorithm(System):
    """System that is fully determined by its settings. Subclasses implement :meth:`process`."""

    def fingerprint(self) -> dict[str, Json]:
        """Return an empty fingerprint: settings and revision suffice. Subclasses that read files add their SHA-256."""
        return {}

    def open(self, *, device: str, threads: int) -> None:
        """Do nothing, because there is nothing to load."""

    def predict(self, images: Sequence[Image], addresses: Sequence[Address]) -> Sequence[RawAnswer]:
        """Answer 8-bit RGB images."""
        return self.process(images, [ImageSpec()] * len(images), addresses)
