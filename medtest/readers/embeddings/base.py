"""Base class for networks that turn pictures into rows of features, and the names of metrics based on them."""

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
    """Output of a network for N pictures or texts.

    Attributes:
        features: float32 N×D.
        scores: float32 N×C, class scores before the softmax; C is 0 if there are none.
    """

    features: Rows
    scores: Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureNames:
    """Names of the metrics based on a network's features; "" if a metric does not exist.

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
    """A network for pictures.

    Attributes:
        name: Name in tables and in the settings that select it.
        figures: Names of the metrics based on it.
        at_once: Maximum number of pictures per call of :meth:`embed`.
    """

    name: ClassVar[str]
    figures: ClassVar[FigureNames]
    at_once: ClassVar[int] = 16

    @property
    def temperature(self) -> float | None:
        """The fitted temperature to divide its scores by; None if none was fitted."""
        return None

    def check(self) -> list[Mistake]:
        """Return the user's mistakes that can be detected before a run starts."""
        return []

    @abstractmethod
    def fingerprint(self) -> Mapping[str, Any]:
        """Return everything the features depend on, as JSON values: SHA-256 of the weights and revision, no path."""

    @abstractmethod
    def open(self, *, device: str, threads: int) -> None:
        """Load the network; called once in the process that embeds.

        Args:
            device: ``cpu`` or ``cuda:N``.
            threads: Intra-op threads it may use.

        Raises:
            MedtestError: The files do not contain the network.
        """

    @abstractmethod
    def embed(self, images: Sequence[Image]) -> Embedded:
        """Return the features and scores of pictures; called by several threads at once.

        Args:
            images: uint8 H×W×3 RGB, of any sizes, at most ``at_once``.
        """

    def embed_texts(self, texts: Sequence[str]) -> Embedded:
        """Return features of texts that can be compared with those of pictures.

        Args:
            texts: At most ``at_once``.

        Raises:
            NotImplementedError: The network does not support texts.
        """
        raise NotImplementedError
