"""Base class of adapters for families of segmentation networks: conversion of scores to maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from medtest.core.cases import Image
from medtest.core.tasks.border import CUT
from medtest.systems.adapters.libraries.lesion import (
    Activation,
    NetworkSettings,
    at_half,
    checked_scores,
    lesion_classes,
    lesion_logits,
    lesion_map,
    plain_names,
    resolved_activation,
)
from medtest.systems.base import RawAnswer
from medtest.systems.pytorch.pixels import at_half as logits_at_half
from medtest.systems.pytorch.pixels import resized_map
from medtest.systems.pytorch.torch_system import TorchSystem

if TYPE_CHECKING:
    from torch import Tensor


class TorchNetwork(TorchSystem):
    """Segmentation network described by its own files; see :class:`TorchSystem`.

    Its :meth:`load` calls :meth:`has_classes` if its files name the classes.
    """

    Settings: ClassVar[type[NetworkSettings]] = NetworkSettings
    settings: NetworkSettings
    _names: tuple[str, ...] | None = None
    _classes: tuple[int, ...] = ()
    _activation: Activation = "auto"
    _threshold = CUT

    def has_classes(self, names: Sequence[str]) -> None:
        """Set the names of the network's classes.

        Raises:
            MedtestError: The lesion's class is not specified.
        """
        self._names = tuple(names)
        self._classes = lesion_classes(self.settings.lesion, self._names, system=self.name)
        self._activation = resolved_activation(self.settings.activation, len(names), system=self.name)

    def scores(self, outputs: Any) -> Tensor:
        """Return the classes' scores, in their order, B×C×h×w."""
        return checked_scores(outputs, None, None)

    def answers(self, outputs: Any, images: Sequence[Image]) -> Sequence[RawAnswer]:
        """Return one map per image, at the network's output size."""
        return list(self.probability(checked_scores(self.scores(outputs), len(images), None)))

    def probability(self, scores: Tensor) -> Any:
        """Return the lesion's probability of B×C×h×w scores as float32 B×h×w, with the threshold moved to 0.5."""
        return at_half(self.to_probability(self._of_known_classes(scores)).cpu().numpy(), self.threshold)

    def _of_known_classes(self, scores: Tensor) -> Tensor:
        if self._names is None:
            self.has_classes(plain_names(scores.shape[1]))
        return checked_scores(scores, None, len(self._names or ()))

    def lesion_logits(self, pixels: Tensor, shape: tuple[int, int]) -> Tensor:
        """Return logits whose sigmoid is the lesion's probability at the images' size; see the base class."""
        scores = checked_scores(self.scores(self.forward(self.normalised(pixels))), len(pixels), None)
        return resized_map(self.map_logits(scores), shape)

    def map_logits(self, scores: Tensor) -> Tensor:
        """Return the logits of :meth:`probability`, B×h×w."""
        return logits_at_half(self.to_logits(self._of_known_classes(scores)), self.threshold)

    def to_logits(self, scores: Tensor) -> Tensor:
        """Return logits of the lesion's probability of B×C×h×w scores."""
        return lesion_logits(scores, self._classes, self._activation)

    @property
    def threshold(self) -> float:
        """The user's threshold, or that of the network's files."""
        threshold: float | None = self.settings.threshold
        return self._threshold if threshold is None else threshold

    def to_probability(self, scores: Tensor) -> Tensor:
        """Return the lesion's probability of B×C×h×w scores."""
        return lesion_map(scores, self._classes, self._activation)
