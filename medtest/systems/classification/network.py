"""Base class of medtest's classification networks: conversion of images to inputs and of outputs to answers.

The setting ``input`` selects one of two ways of preparing an image; ``auto`` chooses
(:mod:`medtest.systems.pytorch.field`):

- ``official``: exactly as the network's authors test it, from the original image, as described in each class.
- ``as_is``: the image is the input. It is not cropped, and resized only if the network cannot accept its size; it is
  normalised as in training. For images already prepared by a suite (``prepare: {size: 224, resize: 256}``), whose
  perturbed pixels a further crop would remove.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from medtest.core.cases import Classes, Image
from medtest.core.errors import MedtestError, Mistake
from medtest.systems.base import LabelAnswer, RawAnswer
from medtest.systems.checkpoints.network import CheckpointNetwork, CheckpointSettings
from medtest.systems.checkpoints.weights import WeightsInfo, read_info
from medtest.systems.classification.crops import stretched
from medtest.systems.pytorch.field import CroppingSystem, Input
from medtest.systems.pytorch.pixels import resized

if TYPE_CHECKING:
    from torch import Tensor


COMPACT: Literal["compact"] = "compact"


class ClassifierSettings(CheckpointSettings):
    """Settings of a classification network.

    Attributes:
        input: ``official`` pre-processes as the network's authors do, ``as_is`` uses the image unchanged, ``auto``
            chooses (see the module).
        weights: Without a checkpoint: ``compact``, or the same network after adversarial training, ``standard``,
            ``mpadvt`` or ``maadvt`` (:mod:`medtest.training.defences`), if such weights ship.
    """

    input: Input = "auto"
    weights: Literal["compact", "standard", "mpadvt", "maadvt"] = Field(default=COMPACT)


class ClassificationNetwork(CroppingSystem, CheckpointNetwork):
    """Classification network. A subclass defines the network and its authors' pre-processing.

    A subclass sets ``family``, ``published``, ``published_size`` and ``own_classes``, and overrides what differs:
    :meth:`_official`, :meth:`_arguments`, :meth:`_masks`.

    Attributes:
        published_size: Input side of the published networks in pixels.
        takes_any_size: Whether the network accepts images of other sizes, so that ``as_is`` never resizes.
        own_classes: Classes of its scores, in their order.
        answer_output: Index of the answer among several outputs.
    """

    Settings = ClassifierSettings
    settings: ClassifierSettings
    tasks: ClassVar[tuple[str, ...]] = ("label",)
    answer_form = "logits"
    published_size: ClassVar[int] = 224
    takes_any_size: ClassVar[bool] = False
    own_classes: ClassVar[Classes]
    answer_output: ClassVar[int | None] = None
    _own_side_only = False
    _trained_classes: Classes | None = None

    def __init__(self, name: str, settings: ClassifierSettings) -> None:
        super().__init__(name, settings)
        self._size = self.published_size

    @property
    def classes(self) -> Classes:  # type: ignore[override]
        """Classes of its scores: the published classes, or those named in weights of ``medtest train``."""
        if self._trained_classes is None:
            self._trained_classes = self._named_classes()
        return self._trained_classes

    def _named_classes(self) -> Classes:
        if self.is_compact or self.is_published:
            return self.own_classes
        try:
            names = read_info(self.checkpoint).classes
        except MedtestError:
            names = ()  # the same error is reported, with its reason, when the network is opened
        return Classes(names=names, multi=self.own_classes.multi) if names else self.own_classes

    @property
    def compact_weights(self) -> Path:
        """File of the compact network's weights, or of those named in the settings."""
        usual = super().compact_weights
        return (
            usual if self._undefended else usual.with_name(f"{self.family}-compact-{self.settings.weights}.safetensors")
        )

    @property
    def _undefended(self) -> bool:
        return bool(self.settings.weights == COMPACT)

    def own_name(self) -> str:
        """Return the name of the network that runs, with its defence; a name given by the user is kept."""
        name = super().own_name()
        defended = self.is_compact and self.name == self.family and not self._undefended
        return f"{name}-{self.settings.weights}" if defended else name

    def notice(self) -> str:
        """Return a notice if the compact network runs, unless the user named its weights."""
        return super().notice() if self._undefended else ""

    def check(self) -> Sequence[Mistake]:
        """Return the problems of the checkpoint's path or of the named weights."""
        if self._undefended:
            return super().check()
        if not self.is_compact:
            fix = "a checkpoint is one set of weights, weights=NAME another: give one of the two"
            return [Mistake(where=self.name, key="weights", found=f"{self.settings.weights} and a checkpoint", fix=fix)]
        if self.compact_weights.is_file():
            return ()
        paths = self.compact_weights.parent.glob(f"{self.family}-compact-*.safetensors")
        allowed = ", ".join((COMPACT, *sorted(path.stem.rpartition("-")[2] for path in paths)))
        fix = f"medtest train further model={self.family} defence={self.settings.weights} … makes such weights"
        return [Mistake(where=self.name, key="weights", found=self.settings.weights, allowed=allowed, fix=fix)]

    def _take(self, info: WeightsInfo | None) -> None:
        self._size = self.published_size if info is None else info.size
        self._own_side_only = info is not None and info.resized

    def fitted(self, image: Image) -> NDArray[np.uint8]:
        """Return an image at the network's input size, uint8 RGB."""
        return self._as_is(image) if self.input == "as_is" else self._official(image)

    def _official(self, image: Image) -> NDArray[np.uint8]:
        """Crop and resize one image as the authors do; by default, to a square by PIL's antialiased bilinear filter."""
        return stretched(image, self._size, self._size)

    def _as_is(self, image: Image) -> NDArray[np.uint8]:
        """Return the image, resized to the network's side if it accepts no other."""
        unchanged = self._keeps(image.shape[0], image.shape[1])
        return image if unchanged else stretched(image, self._size, self._size)

    def _keeps(self, height: int, width: int) -> bool:
        """Return True if ``as_is`` keeps an image of this size, because network and weights both allow it."""
        return self._takes(height, width) and not (self._own_side_only and (height, width) != (self._size, self._size))

    def _takes(self, height: int, width: int) -> bool:
        """Return True if the network accepts images of this size."""
        return self.takes_any_size

    def fitted_pixels(self, pixels: Tensor) -> Tensor:
        """Return pixels at the network's input size."""
        return self._as_is_pixels(pixels) if self.input == "as_is" else self._official_pixels(pixels)

    def _official_pixels(self, pixels: Tensor) -> Tensor:
        """Apply the operations of :meth:`_official` to pixels."""
        return resized(pixels, (self._size, self._size))

    def _as_is_pixels(self, pixels: Tensor) -> Tensor:
        """Apply the operations of :meth:`_as_is` to pixels."""
        unchanged = self._keeps(int(pixels.shape[2]), int(pixels.shape[3]))
        return pixels if unchanged else resized(pixels, (self._size, self._size))

    def scores(self, outputs: Any) -> Tensor:
        """Return the answer's scores in the network's output, B×C in ``answer_form``."""
        scores: Tensor = outputs if self.answer_output is None else outputs[self.answer_output]
        return scores

    def answers(self, outputs: Any, images: Sequence[Image]) -> Sequence[RawAnswer]:
        """Return C numbers per image, float32, in ``answer_form``; with a mask if the network also segments."""
        scores = np.asarray(self.scores(outputs).float().cpu().numpy(), np.float32)
        masks = self._masks(outputs)
        if masks is None:
            return list(scores)
        return [LabelAnswer(scores=values, mask=mask) for values, mask in zip(scores, masks, strict=True)]

    def _masks(self, outputs: Any) -> Sequence[NDArray[np.float32]] | None:
        """Return the lesion's probability per image, float32 h×w in [0, 1], if the network also segments."""
        return None
