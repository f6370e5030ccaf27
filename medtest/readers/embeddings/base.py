"""What a network of pictures is: pixels in, a row of features out, and what figures of them may be called."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image
from medtest.core.errors import Mistake

Rows: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Embedded:
    """What a network says of N pictures or texts.

    Attributes:
        features: float32 N×D.
        scores: float32 N×C, scores of classes before the softmax; C is 0 where it has none.
    """

    features: Rows
    scores: Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureNames:
    """What figures of a network's features are called; "" where it makes none.

    Attributes:
        frechet: The Fréchet distance.
        kernel: The kernel distance.
        score: The inception score.
        precision: R-precision.
    """

    frechet: str = ""
    kernel: str = ""
    score: str = ""
    precision: str = ""


class Embedder(ABC):
    """A network of pictures.

    Attributes:
        name: What tables call it, and settings that choose it.
        figures: What figures of it are called.
        at_once: Pictures that one call of :meth:`embed` takes at most.
    """

    name: ClassVar[str]
    figures: ClassVar[FigureNames]
    at_once: ClassVar[int] = 16

    @property
    def temperature(self) -> float | None:
        """What its scores are best divided by, where that was fitted; None where nobody fitted it."""
        return None

    def check(self) -> list[Mistake]:
        """Return the user's mistakes that can be seen before anything runs."""
        return []

    @abstractmethod
    def fingerprint(self) -> Mapping[str, Any]:
        """Return all that its features depend on, as JSON values: weights by their SHA-256, a revision; no path."""

    @abstractmethod
    def open(self, *, device: str, threads: int) -> None:
        """Load it; called once in the process that embeds.

        Args:
            device: ``cpu`` or ``cuda:N``.
            threads: Intra-op threads it may use.

        Raises:
            MedtestError: Its files do not hold it.
        """

    @abstractmethod
    def embed(self, images: Sequence[Image]) -> Embedded:
        """Return what it says of pictures.

        Args:
            images: uint8 H×W×3 RGB, of any sizes, at most ``at_once``.
        """

    def embed_texts(self, texts: Sequence[str]) -> Embedded:
        """Return what it says of texts, comparable with pictures.

        Args:
            texts: At most ``at_once``.

        Raises:
            NotImplementedError: It reads no texts.
        """
        raise NotImplementedError
