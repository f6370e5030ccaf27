"""What algorithms without weights share: nothing to load, images of any dtype and dimension, no batches."""

from __future__ import annotations

from collections.abc import Sequence

from medtest.core.cases import Address, Image, ImageSpec, Json
from medtest.systems.base import RawAnswer, System


class Algorithm(System):
    """A system that computes from its settings alone. Subclasses write :meth:`process`."""

    def fingerprint(self) -> dict[str, Json]:
        """Return nothing: settings and revision say it all. What reads a file states its SHA-256."""
        return {}

    def open(self, *, device: str, threads: int) -> None:
        """Do nothing: there is nothing to load."""

    def predict(self, images: Sequence[Image], addresses: Sequence[Address]) -> Sequence[RawAnswer]:
        """Answer 8-bit RGB images."""
        return self.process(images, [ImageSpec()] * len(images), addresses)
