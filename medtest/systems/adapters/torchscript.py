"""TorchScript archive as a system under test."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image
from medtest.core.deferred import torch
from medtest.core.errors import BadOutput, MedtestError, Mistake
from medtest.core.probes import Need
from medtest.systems.adapters.graph import WHITE, ExportedGraph
from medtest.systems.adapters.tensors import GraphSettings, answers_of, as_maps, chosen, encode, resized
from medtest.systems.base import RawAnswer
from medtest.systems.checkpoints.archives import check_archive
from medtest.systems.checkpoints.inputs import InputKind
from medtest.systems.files import file_mistakes, user_path
from medtest.systems.pytorch.pixels import logits_of, resized_map
from medtest.systems.pytorch.pixels import resized as resized_pixels
from medtest.systems.pytorch.torch_system import TorchSystem, exactly

if TYPE_CHECKING:
    from torch import Tensor, nn


class TorchScript(ExportedGraph, TorchSystem):
    """Network saved by ``torch.jit.save``. The archive is a program: only run one whose origin you trust.

    It does not record its input size: set ``size`` unless any size is accepted.
    """

    Settings = GraphSettings
    settings: GraphSettings
    file_format: ClassVar[str] = "torchscript"

    def check(self) -> Sequence[Mistake]:
        """Return the problems of the path."""
        return file_mistakes(self.settings.path, where=self.name, key="path", suffixes=(".pt", ".pth", ".ts", ".jit"))

    def load(self) -> nn.Module:
        """Return the archive's network; see :class:`medtest.systems.pytorch.torch_system.TorchSystem`.

        Raises:
            MedtestError: torch cannot load the archive.
        """
        path = user_path(self.settings.path)
        check_archive(path)
        try:
            return load_script(str(path), self._device)
        except (RuntimeError, ValueError, OSError) as error:
            raise MedtestError(
                f"{path.name}: not a TorchScript archive (torch.jit.save makes one; for a state dict use "
                f"model=pranet checkpoint=…): {str(error).splitlines()[0][:200]}"
            ) from error

    def fitted(self, image: Image) -> Image:
        """Return an image at the network's input size."""
        return image if self.size is None else resized(image, self.size, antialias=self.settings.antialias)

    def inputs(self, images: Sequence[Image]) -> Tensor:
        """Convert images to the network's input according to the settings."""
        return torch.from_numpy(encode(images, self.settings))

    @property
    def input_kind(self) -> InputKind:
        """Input format according to the settings."""
        settings, share = self.settings, self.settings.scale / WHITE
        order = slice(None, None, -1 if settings.channels == "bgr" else 1)  # mean, std: in the order of the channels
        mean, std = ([value * share for value in values[order]] for values in (settings.mean, settings.std))
        return replace(InputKind.of(mean, std), blue_first=settings.channels == "bgr")

    def normalised(self, pixels: Tensor) -> Tensor:
        """Return pixels in the network's input format and layout."""
        normalised: Tensor = super().normalised(pixels)
        return normalised if self.settings.layout == "nchw" else normalised.permute(0, 2, 3, 1)

    def offers(self) -> Need:
        """Return gradients, or scores if the network itself decides the class of each pixel."""
        decides = self.settings.gives == "classes" and not self.task.labels
        return Need.SCORES if decides and super().offers() is Need.GRADIENTS else super().offers()

    def fitted_pixels(self, pixels: Tensor) -> Tensor:
        """Return pixels at the network's input size."""
        if self.size is None:
            return pixels
        return resized_pixels(pixels, self.size, "area" if self.settings.antialias else "linear")

    def class_logits(self, scores: Tensor, *, multi: bool) -> Tensor:
        """Return logits of the classes, B×C; see the base class."""
        return super().class_logits(scores.flatten(1) if scores.ndim > 2 else scores, multi=multi)

    def lesion_logits(self, pixels: Tensor, shape: tuple[int, int]) -> Tensor:
        """Return logits whose sigmoid is the lesion's probability at the images' size; see the base class."""
        scores = self.scores(self.forward(self.normalised(pixels)))
        return resized_map(lesion_logits(scores, self.settings, len(pixels)), shape)

    def scores(self, outputs: Any) -> Tensor:
        """Return the output that contains the answer."""
        return chosen(_tensors(outputs), self.settings.output)

    def answers(self, outputs: Any, images: Sequence[Image]) -> Sequence[RawAnswer]:
        """Return one map per image, at the network's output size, or its scores."""
        return answers_of(_arrays(outputs), self.settings, len(images), labels=self.task.labels)

    def run(self, batch: NDArray[np.float32]) -> Sequence[NDArray[Any]]:
        """Run the network on a picture of a series."""
        with torch.inference_mode():
            return _arrays(self.forward(torch.from_numpy(batch)))


def lesion_logits(scores: Tensor, settings: GraphSettings, count: int) -> Tensor:
    """Return logits of the lesion's map in :func:`medtest.systems.adapters.tensors.decode`, B×h×w.

    Raises:
        BadOutput: There is no such channel, or the number of axes is wrong.
    """
    maps = exactly(as_maps(scores, settings, count))
    several = maps.shape[1] > 1
    if several and settings.channel >= maps.shape[1]:
        raise BadOutput(f"gave {maps.shape[1]} channels; channel={settings.channel} is none of them")
    lesion = maps[:, settings.channel if several else 0]
    if settings.gives == "probability":
        return logits_of(lesion, multi=True)
    if not several:
        return lesion
    others = [index for index in range(maps.shape[1]) if index != settings.channel]
    return lesion - torch.logsumexp(maps[:, others], dim=1)


def load_script(file: Any, device: str = "cpu") -> nn.Module:
    """Return the network of a TorchScript archive, a path or an open file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch announces the end of TorchScript, but archives are still in use
        network: nn.Module = torch.jit.load(file, map_location=device)  # type: ignore[no-untyped-call]
    return network


def _tensors(outputs: Any) -> list[Tensor]:
    """Return a network's output as tensors: one, or those of a list, tuple or dictionary in its order."""
    if isinstance(outputs, torch.Tensor):
        outputs = [outputs]
    elif isinstance(outputs, dict):
        outputs = list(outputs.values())
    if not isinstance(outputs, list | tuple) or not all(isinstance(output, torch.Tensor) for output in outputs):
        raise BadOutput(f"gave {type(outputs).__name__} where a tensor or a list of tensors is expected")
    return list(outputs)


def _arrays(outputs: Any) -> list[NDArray[Any]]:
    return [
        np.asarray(output.detach().float().cpu() if output.is_floating_point() else output.cpu())
        for output in _tensors(outputs)
    ]
