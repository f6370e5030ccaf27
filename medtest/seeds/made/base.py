"""Base classes of synthetic sources: a digest over their settings, and pictures drawn by number.

They exercise a suite without clinical images and are not clinical evidence.
"""

from __future__ import annotations

import importlib
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import Field

from medtest.core.cases import SeedRef
from medtest.core.files import json_sha256
from medtest.core.plugins import PartSettings
from medtest.phantoms.labelled import MAX_SIZE, MIN_SIZE
from medtest.seeds.base import SeedSource


def settings_digest(source: SeedSource, generator: str) -> str:
    """Return a SHA-256 over a generator and its revision, the settings, the data set's id and the suite's seed."""
    content = {
        "generator": generator,
        "revision": source.revision,
        "settings": source.settings.counted(),
        "dataset": source.dataset,
        "suite_seed": source.suite_seed,
    }
    return json_sha256(content)


class NumberedSettings(PartSettings):
    """Settings of pictures drawn by number.

    Attributes:
        count: Number of pictures, 1 to 100,000.
        start: Number of the first, so that two data sets of one suite share none.
        size: Pixels a side, 128 to 1024; None for the generator's own.
    """

    count: int = Field(default=24, ge=1, le=100_000)
    start: int = Field(default=0, ge=0, le=10_000_000)
    size: int | None = Field(default=None, ge=MIN_SIZE, le=MAX_SIZE)


class NumberedPhantoms(SeedSource):
    """Base class of pictures drawn by number.

    Picture ``i`` depends only on the suite's seed, generator, ``size`` and ``i``, not on the number of pictures. Each
    is its own cluster.
    """

    phantom: ClassVar[bool] = True

    @abstractmethod
    def generator_name(self) -> str:
        """Return the name of the generator's module, which is imported on use."""

    @abstractmethod
    def named(self) -> str:
        """Return the prefix of seed ids."""

    def items(self) -> tuple[str, ...]:
        """Return the names of the questions asked of every picture; a single empty name without questions."""
        return ("",)

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Return further values that determine the seeds, as JSON values: generator name and settings."""

    def refs(self) -> Sequence[SeedRef]:
        """Return ``<name>-00000``, ``<name>-00001``, … from ``start`` on."""
        first, items, name = self.settings.start, self.items(), self.named()
        return tuple(
            SeedRef(dataset=self.dataset, seed_id=f"{name}-{index:05d}", items=items, locator=str(index))
            for index in range(first, first + self.settings.count)
        )

    def make(self, ref: SeedRef) -> Any:
        """Draw one picture with its ground truth."""
        generator, size = self._generator_and_size()
        return generator.make(int(ref.locator), self.suite_seed, size=size)

    def digest(self) -> str:
        """Return a SHA-256 over the generator and its revision, range and size of pictures, suite seed and facts."""
        generator, size = self._generator_and_size()
        content = {
            "revision": generator.REVISION,
            "first": self.settings.start,
            "count": self.settings.count,
            "size": size,
            "suite_seed": self.suite_seed,
        }
        return json_sha256(content | self.facts())

    def _generator_and_size(self) -> tuple[Any, int]:
        """Return the generator and the size of its pictures."""
        generator = importlib.import_module(self.generator_name())
        return generator, generator.SIZE if self.settings.size is None else self.settings.size
