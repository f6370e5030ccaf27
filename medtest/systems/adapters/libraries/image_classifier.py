"""Base class of adapters for libraries of classification networks: input, opening, scores."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from medtest.core.cases import Image
from medtest.core.deferred import torch
from medtest.core.errors import MedtestError, Mistake
from medtest.core.plugins import TRUSTED
from medtest.systems.adapters.libraries.label_names import LabelSettings, NamedSystem, naming_mistakes
from medtest.systems.adapters.libraries.weights import pointer_mistakes
from medtest.systems.base import RawAnswer
from medtest.systems.checkpoints.inputs import InputKind
from medtest.systems.classification.crops import Interpolation, middle, shorter_side, stretched
from medtest.systems.files import file_mistakes, user_path
from medtest.systems.pytorch import pixels as of_pixels
from medtest.systems.pytorch.field import CroppingSystem, Input
from medtest.systems.pytorch.torch_system import TorchSystem, tensor_of

if TYPE_CHECKING:
    from torch import Tensor, nn

SUFFIXES = (".pth", ".pt", ".ckpt", ".bin", ".tar", ".pkl", ".safetensors")


class ImageClassifierSettings(LabelSettings):
    """Settings of a classification network of a library.

    Attributes:
        checkpoint: Its weights.
        architecture: The library's name of the network.
        gives: Whether its scores are ``logits`` or ``probabilities``.
        input: ``official`` resizes and crops according to the network's own configuration; ``as_is`` uses the whole
            image, resized only if its size differs from the network's; ``auto`` chooses
            (:mod:`medtest.systems.pytorch.field`).
        size: Input side in pixels; null for the network's own configuration.
        resize: Shorter side in pixels before the centre crop; null for the network's own configuration.
        interpolation: Filter for resizing; null for the network's own configuration.
        mean: Subtracted per channel from pixels in [0, 1]; null for the network's own configuration.
        std: Divisor per channel; null for the network's own configuration.
        batch: Maximum number of images in one forward pass; null for no limit.
    """

    checkpoint: str = Field(default="", json_schema_extra=TRUSTED)
    architecture: str = ""
    gives: Literal["logits", "probabilities"] = "logits"
    input: Input = "auto"
    size: int | None = Field(default=None, ge=16, le=2048)
    resize: int | None = Field(default=None, ge=16, le=4096)
    interpolation: Interpolation | None = None
    mean: list[float] | None = Field(default=None, min_length=3, max_length=3)
    std: list[float] | None = Field(default=None, min_length=3, max_length=3)
    batch: int | None = Field(default=None, ge=1)


@dataclass(frozen=True, kw_only=True)
class Preprocessing:
    """Preprocessing of a network's own configuration.

    Attributes:
        size: Side of the centre crop.
        resize: Shorter side in pixels before the crop.
        squash: Whether both sides are resized to that, ignoring the aspect ratio.
        filter_name: Filter.
        kind: Mean and standard deviation.
    """

    size: int
    resize: int
    filter_name: Interpolation = "bilinear"
    kind: InputKind
    squash: bool = False


class ImageClassifier(CroppingSystem, NamedSystem, TorchSystem):
    """Classification network of a library."""

    Settings: ClassVar[type[ImageClassifierSettings]] = ImageClassifierSettings
    settings: ImageClassifierSettings
    tasks: ClassVar[tuple[str, ...]] = ("label",)
    _recipe: Preprocessing | None = None

    @property
    def gives(self) -> Literal["logits", "probabilities"]:
        """Form of its scores according to the settings."""
        form: Literal["logits", "probabilities"] = self.settings.gives
        return form

    @property
    def crops_image(self) -> bool:  # type: ignore[override]
        """Whether ``auto`` may skip the crop; not if the user set ``resize``, which implies the crop."""
        return self.settings.resize is None

    def notice(self) -> str:
        """Return a notice if prepared images are cropped again."""
        crops_on_request = self.settings.resize is not None and self.input == "official"
        return self.crop_notice if crops_on_request and self.squared else super().notice()

    def common_mistakes(self) -> list[Mistake]:
        """Return a missing library, and problems of names and sizes."""
        mistakes = [*self.library_mistakes(), *naming_mistakes(self.settings, self.file_names()[0], where=self.name)]
        size, resize = self.settings.size, self.settings.resize
        if size and resize and resize < size:
            mistakes.append(Mistake(where=self.name, key="resize", found=str(resize), allowed=f"at least size, {size}"))
        return mistakes

    def checkpoint_mistakes(self) -> list[Mistake]:
        """Return the problems of the weights file."""
        checkpoint, where = self.settings.checkpoint, self.name
        mistakes = file_mistakes(checkpoint, where=where, key="checkpoint", suffixes=SUFFIXES)
        return mistakes or pointer_mistakes(user_path(checkpoint), where=where, key="checkpoint")

    def load(self) -> nn.Module:
        """Return the network; see :class:`medtest.systems.pytorch.torch_system.TorchSystem`.

        Raises:
            MedtestError: The library or the file has no such network, or the numbers of classes and names differ.
        """
        network, recipe, count = self.classifier()
        self.check_count(count)
        self._recipe = self._with_settings(recipe)
        return network

    @abstractmethod
    def classifier(self) -> tuple[nn.Module, Preprocessing, int]:
        """Return the network with its weights on the CPU, its preprocessing, and its number of classes."""

    def _with_settings(self, recipe: Preprocessing) -> Preprocessing:
        settings, kind = self.settings, recipe.kind
        size = settings.size or recipe.size
        # A size set by the user keeps the relative crop of the configuration.
        resize = settings.resize or (recipe.resize if size == recipe.size else size * recipe.resize // recipe.size)
        return replace(
            recipe,
            size=size,
            resize=max(size, resize),
            filter_name=settings.interpolation or recipe.filter_name,
            kind=InputKind.of(settings.mean or kind.mean, settings.std or kind.std),
        )

    @property
    def recipe(self) -> Preprocessing:
        """Preprocessing of the opened network.

        Raises:
            MedtestError: It is not open.
        """
        if self._recipe is None:
            raise MedtestError(f"{self.record_name} is not open")
        return self._recipe

    @property
    def input_kind(self) -> InputKind:
        """Input format of the network's own configuration, or of the settings."""
        return self.recipe.kind

    def fitted(self, image: Image) -> Image:
        """Return an image at the network's input size."""
        return cut(image, self.recipe, self.input)

    def fitted_pixels(self, pixels: Tensor) -> Tensor:
        """Return pixels at the network's input size."""
        recipe = self.recipe
        if self.input == "as_is":
            return of_pixels.resized(pixels, (recipe.size, recipe.size), recipe.filter_name)
        if recipe.squash:
            return of_pixels.middle(
                of_pixels.resized(pixels, (recipe.resize, recipe.resize), recipe.filter_name), recipe.size
            )
        return of_pixels.middle(of_pixels.shorter_side(pixels, recipe.resize, recipe.filter_name), recipe.size)

    def inputs(self, images: Sequence[Image]) -> Tensor:
        """Return normalised images."""
        return torch.from_numpy(self.recipe.kind.tensor(np.stack(images)))

    def scores(self, outputs: Any) -> Tensor:
        """Return one score per class and image."""
        return tensor_of(outputs)

    def answers(self, outputs: Any, images: Sequence[Image]) -> Sequence[RawAnswer]:
        """Return one score per class and image, in :attr:`answer_form`."""
        return self.label_answers(self.scores(outputs), len(images))


def cut(image: Image, recipe: Preprocessing, field: str) -> Image:
    """Resize and crop an image to the network's input size, uint8 RGB.

    Args:
        image: uint8 RGB H×W×3.
        recipe: The network's preprocessing.
        field: ``official`` or ``as_is``.
    """
    if field == "as_is":
        return stretched(image, recipe.size, recipe.size, recipe.filter_name)
    if recipe.squash:
        return middle(stretched(image, recipe.resize, recipe.resize, recipe.filter_name), recipe.size)
    return middle(shorter_side(image, recipe.resize, recipe.filter_name), recipe.size)
