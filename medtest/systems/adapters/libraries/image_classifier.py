"""What the adapters of libraries of classification networks share: input, opening, scores."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from medtest.cases import Address, Classes, Image, Json
from medtest.errors import BadOutput, MedtestError, Mistake
from medtest.plugins import TRUSTED
from medtest.systems.adapters.libraries.label_names import LabelSettings, Naming, naming, naming_mistakes
from medtest.systems.adapters.libraries.torch_network import groups
from medtest.systems.base import RawAnswer, System
from medtest.systems.checkpoints.inputs import InputKind
from medtest.systems.classification.crops import Interpolation, middle, shorter_side, stretched
from medtest.systems.field import Input, crop_notice, resolved_input

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
            (:mod:`medtest.systems.field`).
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


class ImageClassifier(System):
    """A classification network of a library.

    Attributes:
        library: The module it needs beside torch, and the extra that installs it ("" where medtest needs it anyway).
    """

    Settings: ClassVar[type[ImageClassifierSettings]] = ImageClassifierSettings
    tasks: ClassVar[tuple[str, ...]] = ("label",)
    needs_device = True
    library: ClassVar[tuple[str, str]] = ("", "")

    def __init__(self, name: str, settings: Any) -> None:
        super().__init__(name, settings)
        self._network: nn.Module | None = None
        self._recipe: Preprocessing | None = None
        self._device = "cpu"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_network": None}

    def file_names(self) -> tuple[str, ...] | None:
        """Return the names of classes in its own files, in the order of its scores; None where there are none."""
        return None

    @property
    def naming(self) -> Naming | None:
        """Its classes, and what they stand for."""
        return naming(self.settings, self.file_names())

    @property
    def classes(self) -> Classes | None:  # type: ignore[override]
        """What its answers stand for; None for the seeds' classes in their order."""
        found = self.naming
        return None if found is None else found.classes

    @property
    def answer_form(self) -> str:  # type: ignore[override]
        """``probabilities`` where classes are merged, else what the settings say."""
        found = self.naming
        return "probabilities" if found is not None and found.merges else str(self.settings.gives)

    @property
    def input(self) -> Literal["official", "as_is"]:
        """How images become inputs. A side before the crop is asked for by those who want the crop."""
        asked: Input = self.settings.input
        return resolved_input(asked, squared=self.squared, crops=self.settings.resize is None)

    def resolved(self) -> dict[str, Json]:
        """Return how images become inputs."""
        return {"input": self.input}

    def notice(self) -> str:
        """Return that prepared images are cropped again, if they are."""
        crops = self.input == "official"
        asked: Input = "official" if self.settings.resize is not None else self.settings.input
        return crop_notice(self.name, asked, squared=self.squared, crops=crops)

    def common_mistakes(self) -> list[Mistake]:
        """Return that the library is missing, and what is wrong with names and sizes."""
        module, extra = self.library
        found = naming_mistakes(self.settings, self.file_names(), where=self.name)
        if extra and find_spec(module) is None:
            fix = f"pip install 'medtest[{extra}]'"
            found.insert(0, Mistake(where=self.name, found=f"{module} is not installed", fix=fix))
        size, resize = self.settings.size, self.settings.resize
        if size and resize and resize < size:
            found.append(Mistake(where=self.name, key="resize", found=str(resize), allowed=f"at least size, {size}"))
        return found

    def open(self, *, device: str, threads: int) -> None:
        """Load the network; see :class:`medtest.systems.base.System`.

        Raises:
            MedtestError: The library or the file has no such network, or it has another number of classes than names.
        """
        import torch

        torch.set_num_threads(max(1, threads))
        network, recipe, count = self.load()
        found = self.naming
        if found is not None and len(found.own) != count:
            raise MedtestError(
                f"{self.name}: this network has {count} classes, and {len(found.own)} are named: {', '.join(found.own)}"
            )
        self._recipe = self._with_settings(recipe)
        self._device = device
        self._network = network.to(device).eval()

    @abstractmethod
    def load(self) -> tuple[nn.Module, Preprocessing, int]:
        """Return the network with its weights on the CPU, how it takes images, and the number of its classes."""

    def _with_settings(self, recipe: Preprocessing) -> Preprocessing:
        wanted = self.settings
        size = wanted.size or recipe.size
        # A side of the user's keeps the configuration's share of what is cut off.
        resize = wanted.resize or (recipe.resize if size == recipe.size else size * recipe.resize // recipe.size)
        return Preprocessing(
            size=size,
            resize=max(size, resize),
            how=wanted.interpolation or recipe.how,
            kind=InputKind(
                mean=recipe.kind.mean if wanted.mean is None else (wanted.mean[0], wanted.mean[1], wanted.mean[2]),
                std=recipe.kind.std if wanted.std is None else (wanted.std[0], wanted.std[1], wanted.std[2]),
            ),
            squash=recipe.squash,
        )

    def predict(self, images: Sequence[Image], addresses: Sequence[Address]) -> Sequence[RawAnswer]:
        """Return one score per class and image, in :attr:`answer_form`."""
        import torch

        if self._network is None or self._recipe is None:
            raise MedtestError(f"{self.name} was asked before it was opened")
        found, answers = self.naming, list[RawAnswer]()
        for group in groups([cut(image, self._recipe, self.input) for image in images], self.settings.batch):
            with torch.inference_mode():
                batch = torch.from_numpy(self._recipe.kind.tensor(np.stack(group))).to(self._device)
                scores = checked(self._network(batch), len(group), None if found is None else len(found.own))
            merges = found is not None and found.merges
            answers += [found.merged(one, self.settings.gives) if merges and found else one for one in scores]
        return answers

    def close(self) -> None:
        """Let go of the network."""
        self._network = None


def cut(image: Image, recipe: Preprocessing, how: str) -> Image:
    """Return an image at the size at which a network gets it, uint8 RGB.

    Args:
        image: uint8 RGB H×W×3.
        recipe: The network's.
        how: ``official`` or ``as_is``.
    """  # noqa: RUF002
    if how == "as_is":
        return stretched(image, recipe.size, recipe.size, recipe.how)
    if recipe.squash:
        return middle(stretched(image, recipe.resize, recipe.resize, recipe.how), recipe.size)
    return middle(shorter_side(image, recipe.resize, recipe.how), recipe.size)


def checked(given: Any, images: int, classes: int | None) -> NDArray[np.float32]:
    """Return a network's output as float32 B×C.

    Raises:
        BadOutput: It is something else, or has another number of images or classes.
    """  # noqa: RUF002
    import torch

    if not isinstance(given, torch.Tensor):
        raise BadOutput(f"gave {type(given).__name__} where a tensor is expected")
    if given.ndim != 2 or given.shape[0] != images or (classes is not None and given.shape[1] != classes):
        wanted = f"{images} × {classes or 'classes'}"  # noqa: RUF001
        raise BadOutput(f"gave shape {tuple(given.shape)}; {wanted} is expected")
    return np.asarray(_plain(given).numpy(), np.float32)


def _plain(given: Tensor) -> Tensor:
    return given.detach().float().cpu()
