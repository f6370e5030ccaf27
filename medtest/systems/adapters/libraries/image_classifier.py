"""What the adapters of libraries of classification networks share: input, opening, scores."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from medtest.core.cases import Image
from medtest.core.errors import MedtestError, Mistake
from medtest.core.plugins import TRUSTED
from medtest.systems.adapters.libraries.label_names import LabelSettings, NamedSystem, naming_mistakes
from medtest.systems.adapters.libraries.weights import pointer_mistakes
from medtest.systems.base import RawAnswer
from medtest.systems.checkpoints.inputs import InputKind
from medtest.systems.classification.crops import Interpolation, middle, shorter_side, stretched
from medtest.systems.files import file_mistakes, user_path
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
        input: ``official`` resizes and crops as the network's own configuration says; ``as_is`` takes the image as it
            comes, resized only where it has another size than the network's; ``auto`` chooses
            (:mod:`medtest.systems.pytorch.field`).
        size: Side in pixels that the network takes; null for its own configuration's.
        resize: Pixels of the shorter side before the middle is cut; null for its own configuration's.
        interpolation: Filter of that; null for its own configuration's.
        mean: Subtracted per channel from pixels in [0, 1]; null for its own configuration's.
        std: Divided by per channel after that; null for its own configuration's.
        batch: Most images in one forward pass; null for as many as the run gives.
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
    """How a network's own configuration brings an image to its input.

    Attributes:
        size: Side that is cut from the middle.
        resize: Pixels of the shorter side before that.
        squash: Both sides are resized to that, whatever the image's shape.
        how: Filter.
        kind: Mean and standard deviation.
    """

    size: int
    resize: int
    how: Interpolation = "bilinear"
    kind: InputKind
    squash: bool = False


class ImageClassifier(CroppingSystem, NamedSystem, TorchSystem):
    """A classification network of a library."""

    Settings: ClassVar[type[ImageClassifierSettings]] = ImageClassifierSettings
    tasks: ClassVar[tuple[str, ...]] = ("label",)

    def __init__(self, name: str, settings: Any) -> None:
        super().__init__(name, settings)
        self._recipe: Preprocessing | None = None

    @property
    def gives(self) -> Literal["logits", "probabilities"]:
        """What the settings say of its scores."""
        given: Literal["logits", "probabilities"] = self.settings.gives
        return given

    @property
    def crops_image(self) -> bool:  # type: ignore[override]
        """Whether ``auto`` may leave the crop out; a side before it is asked for by those who want the crop."""
        return self.settings.resize is None

    def notice(self) -> str:
        """Return that prepared images are cropped again, if they are."""
        asked = self.settings.resize is not None and self.input == "official"
        return self.crop_notice if asked and self.squared else super().notice()

    def common_mistakes(self) -> list[Mistake]:
        """Return that the library is missing, and what is wrong with names and sizes."""
        found = [*self.library_mistakes(), *naming_mistakes(self.settings, self.file_names()[0], where=self.name)]
        size, resize = self.settings.size, self.settings.resize
        if size and resize and resize < size:
            found.append(Mistake(where=self.name, key="resize", found=str(resize), allowed=f"at least size, {size}"))
        return found

    def checkpoint_mistakes(self) -> list[Mistake]:
        """Return what is wrong with the file of weights."""
        given, where = self.settings.checkpoint, self.name
        found = file_mistakes(given, where=where, key="checkpoint", suffixes=SUFFIXES)
        return found or pointer_mistakes(user_path(given), where=where, key="checkpoint")

    def load(self) -> nn.Module:
        """Return the network; see :class:`medtest.systems.pytorch.torch_system.TorchSystem`.

        Raises:
            MedtestError: The library or the file has no such network, or it has another number of classes than names.
        """
        network, recipe, count = self.classifier()
        self.check_count(count)
        self._recipe = self._with_settings(recipe)
        return network

    @abstractmethod
    def classifier(self) -> tuple[nn.Module, Preprocessing, int]:
        """Return the network with its weights on the CPU, how it takes images, and the number of its classes."""

    def _with_settings(self, recipe: Preprocessing) -> Preprocessing:
        wanted, kind = self.settings, recipe.kind
        size = wanted.size or recipe.size
        # A side of the user's keeps the configuration's share of what is cut off.
        resize = wanted.resize or (recipe.resize if size == recipe.size else size * recipe.resize // recipe.size)
        return replace(
            recipe,
            size=size,
            resize=max(size, resize),
            how=wanted.interpolation or recipe.how,
            kind=InputKind.of(wanted.mean or kind.mean, wanted.std or kind.std),
        )

    @property
    def recipe(self) -> Preprocessing:
        """How images become inputs, once it is opened.

        Raises:
            MedtestError: It is not.
        """
        if self._recipe is None:
            raise MedtestError(f"{self.record_name} was asked before it was opened")
        return self._recipe

    @property
    def input_kind(self) -> InputKind:
        """That of the network's own configuration, or of the settings."""
        return self.recipe.kind

    def fitted(self, image: Image) -> Image:
        """Return an image at the size at which the network gets it."""
        return cut(image, self.recipe, self.input)

    def fitted_pixels(self, pixels: Tensor) -> Tensor:
        """Return pixels at the size at which the network gets them."""
        from medtest.systems.pytorch.pixels import middle, resized, shorter_side

        recipe = self.recipe
        if self.input == "as_is":
            return resized(pixels, (recipe.size, recipe.size), recipe.how)
        if recipe.squash:
            return middle(resized(pixels, (recipe.resize, recipe.resize), recipe.how), recipe.size)
        return middle(shorter_side(pixels, recipe.resize, recipe.how), recipe.size)

    def inputs(self, images: Sequence[Image]) -> Tensor:
        """Return normalised images."""
        import torch

        return torch.from_numpy(self.recipe.kind.tensor(np.stack(images)))

    def scores(self, outputs: Any) -> Tensor:
        """Return one score for each class and image."""
        return tensor_of(outputs)

    def answers(self, outputs: Any, images: Sequence[Image]) -> Sequence[RawAnswer]:
        """Return one score per class and image, in :attr:`answer_form`."""
        return self.label_answers(self.scores(outputs), len(images))


def cut(image: Image, recipe: Preprocessing, how: str) -> Image:
    """Return an image at the size at which a network gets it, uint8 RGB.

    Args:
        image: uint8 RGB H×W×3.
        recipe: The network's.
        how: ``official`` or ``as_is``.
    """
    if how == "as_is":
        return stretched(image, recipe.size, recipe.size, recipe.how)
    if recipe.squash:
        return middle(stretched(image, recipe.resize, recipe.resize, recipe.how), recipe.size)
    return middle(shorter_side(image, recipe.resize, recipe.how), recipe.size)
