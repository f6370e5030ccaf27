"""segmentation_models_pytorch network, saved as a folder or as a checkpoint with its architecture's name."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from medtest.core.cases import Image, Json
from medtest.core.deferred import torch
from medtest.core.errors import MedtestError, Mistake, did_you_mean
from medtest.core.plugins import TRUSTED
from medtest.systems.adapters.libraries.lesion import NetworkSettings, plain_names
from medtest.systems.adapters.libraries.torch_network import TorchNetwork
from medtest.systems.adapters.libraries.weights import (
    CONFIG,
    WEIGHTS,
    description,
    fill,
    hub_fingerprint,
    hub_mistakes,
    pointer_mistakes,
    weights_in,
)
from medtest.systems.adapters.tensors import GraphSettings, encode
from medtest.systems.checkpoints.checkpoint import read_weights
from medtest.systems.checkpoints.inputs import InputKind
from medtest.systems.files import file_mistakes, user_path
from medtest.systems.pytorch.pixels import resized

if TYPE_CHECKING:
    from torch import Tensor, nn

MOST_BYTES = 1 << 20
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
HALVES = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
DPN = ((124 / 255, 117 / 255, 104 / 255), (1 / (0.0167 * 255),) * 3)
"""Mean and std of pixels in [0, 1] in the encoders' pre-training (older ones: pretrained-models.pytorch)."""
_OWN = {"inceptionv4": HALVES, "inceptionresnetv2": HALVES, "xception": HALVES, "timm-tf_efficientnet_lite": HALVES}


class SmpSettings(NetworkSettings):
    """Settings of a network of segmentation_models_pytorch.

    ``size: null`` keeps the image's own size, rounded to multiples of the encoder's stride; ``mean`` and ``std`` null
    are those of the encoder's pre-training.

    Attributes:
        checkpoint: Weights only, instead of a folder (``path``); requires ``architecture`` and ``encoder``.
        architecture: ``Unet``, ``FPN``, ``DeepLabV3Plus`` and so on.
        encoder: The encoder's name, e.g. ``resnet34``.
    """

    checkpoint: str = Field(default="", json_schema_extra=TRUSTED)
    architecture: str = ""
    encoder: str = ""


class Smp(TorchNetwork):
    """Network saved by ``save_pretrained``, or a state dict with the names of its architecture and encoder.

    Nothing is downloaded: the encoder's ImageNet weights are not needed, because all weights are loaded strictly from
    the file. Preprocessing is the library's: RGB in [0, 1], normalised by the mean and std of the encoder's
    pre-training (the library asks the hub for them; the same numbers are stored here and taken from timm for ``tu-``
    encoders).
    """

    Settings: ClassVar[type[SmpSettings]] = SmpSettings
    settings: SmpSettings
    library = ("segmentation_models_pytorch", "smp")
    _input = GraphSettings()
    _ends_active = False

    def check(self) -> Sequence[Mistake]:
        """Return the problems of folder, checkpoint and names."""
        settings, where = self.settings, self.name
        mistakes = self.library_mistakes()
        if settings.checkpoint and settings.path:
            return [*mistakes, Mistake(where=where, key="path", found="path and checkpoint", allowed="one of them")]
        if settings.checkpoint:
            suffixes = (".pth", ".pt", ".ckpt", ".bin", ".tar", ".safetensors")
            mistakes += file_mistakes(settings.checkpoint, where=where, key="checkpoint", suffixes=suffixes)
            for key, like in (("architecture", "Unet"), ("encoder", "resnet34")):
                if not getattr(settings, key):
                    fix = f"add systems.{where}.{key}={like}"
                    mistakes.append(Mistake(where=where, key=key, found="nothing", allowed="its name", fix=fix))
            return mistakes or pointer_mistakes(user_path(settings.checkpoint), where=where, key="checkpoint")
        if not settings.path:
            named = f"systems.{where}.architecture=Unet systems.{where}.encoder=resnet34"
            fix = f"add path=FOLDER, or checkpoint=FILE {named}"
            return [*mistakes, Mistake(where=where, key="path", found="nothing", allowed="a folder", fix=fix)]
        allowed = f"a folder that save_pretrained wrote: {CONFIG} and {WEIGHTS[0]}"
        return [*mistakes, *hub_mistakes(settings.path, where=where, describe=_described, allowed=allowed)]

    def fingerprint(self) -> dict[str, Json]:
        """Return the SHA-256 of the weights and of the network's description."""
        return hub_fingerprint(self.settings.path, self.settings.checkpoint)

    def load(self) -> nn.Module:
        """Return the network; see :class:`medtest.systems.adapters.libraries.torch_network.TorchNetwork`.

        Raises:
            MedtestError: The description names no network of the library, or the weights do not match.
        """
        import segmentation_models_pytorch as library

        checkpoint = self.settings.checkpoint
        file = user_path(checkpoint) if checkpoint else weights_in(user_path(self.settings.path))
        state = read_weights(file, name=file.name)
        if self.settings.checkpoint:
            described: dict[str, Any] = {"encoder_name": self.settings.encoder, "classes": _heads_classes(state)}
            architecture = self.settings.architecture
        else:
            described = _described(user_path(self.settings.path))
            architecture = str(described.pop("_model_class"))
        architectures = library.MODEL_ARCHITECTURES_MAPPING
        kind = architectures.get(architecture.lower())
        if kind is None:
            raise MedtestError(
                _unknown(
                    "architecture",
                    architecture,
                    [architecture_class.__name__ for architecture_class in architectures.values()],
                )
            )
        encoder = str(described.get("encoder_name", ""))
        if not _is_encoder(encoder, library.encoders.encoders):
            raise MedtestError(_unknown("encoder", encoder, library.encoders.get_encoder_names()))
        trained = described.get("encoder_weights")
        arguments = _arguments(kind, described, file.name)
        network = fill(lambda: kind(**arguments), state, name=f"{kind.__name__} on {encoder}", file=file.name)
        mean, std = pretraining(encoder, trained if isinstance(trained, str) else None)
        self._input = GraphSettings(mean=self.settings.mean or list(mean), std=self.settings.std or list(std))
        self._ends_active = bool(described.get("activation"))
        self.has_classes(plain_names(int(arguments.get("classes", 1))))
        return network

    def has_classes(self, names: Sequence[str]) -> None:
        """Set the class names; scores are probabilities if the network ends in an activation."""
        super().has_classes(names)
        if self._ends_active and self.settings.activation == "auto":
            self._activation = "none"

    @property
    def input_kind(self) -> InputKind:
        """Input format of the encoder's pre-training, or of the settings."""
        return InputKind.of(self._input.mean, self._input.std)

    def inputs(self, images: Sequence[Image]) -> Tensor:
        """Return normalised images at the settings' size, or at theirs rounded to multiples of the encoder's stride."""
        return torch.from_numpy(encode(images, self._input, self._fitting(images[0].shape[0], images[0].shape[1])))

    def _fitting(self, height: int, width: int) -> tuple[int, int]:
        if self.settings.size is not None:
            return self.settings.size[0], self.settings.size[1]
        stride = int(getattr(getattr(self.network, "encoder", None), "output_stride", 32))
        rows, columns = (max(stride, round(side / stride) * stride) for side in (height, width))
        return rows, columns

    def fitted_pixels(self, pixels: Tensor) -> Tensor:
        """Return pixels at the network's input size."""
        return resized(pixels, self._fitting(int(pixels.shape[2]), int(pixels.shape[3])), "area")

    def scores(self, outputs: Any) -> Tensor:
        """Return the classes' scores; with a classification head the masks come first."""
        return super().scores(outputs[0] if isinstance(outputs, tuple) else outputs)


def _is_encoder(name: str, own: Collection[str]) -> bool:
    """Return True if the library or timm has an encoder; excludes timm's addresses (``hf-hub:``), which download."""
    if not name.startswith("tu-"):
        return name in own
    import timm

    return bool(timm.models.is_model(name.removeprefix("tu-")))


def pretraining(encoder: str, weights: str | None) -> tuple[Sequence[float], Sequence[float]]:
    """Return mean and std, of RGB pixels in [0, 1], of an encoder's pre-training.

    Args:
        encoder: The library's name of it.
        weights: The library's name of its weights (``imagenet``, ``advprop`` …), or None if unknown.
    """
    if encoder.startswith("tu-"):
        import timm

        name = encoder.removeprefix("tu-")
        config = timm.models.get_pretrained_cfg(name) if timm.models.is_model(name) else None
        return IMAGENET if config is None else (config.mean, config.std)
    if weights == "advprop":
        return HALVES
    if encoder.startswith("dpn"):
        return DPN
    return next((value for start, value in _OWN.items() if encoder.startswith(start)), IMAGENET)


def _described(folder: Path) -> dict[str, Any]:
    return description(folder, key="_model_class", library="segmentation_models_pytorch", most_bytes=MOST_BYTES)


def _heads_classes(state: Mapping[str, Tensor]) -> int:
    """Return the number of classes of a checkpoint's segmentation head, 1 if it has another form."""
    heads = [value for name, value in state.items() if name.endswith("segmentation_head.0.weight")]
    return int(heads[0].shape[0]) if heads else 1


def _arguments(kind: type[Any], described: Mapping[str, Any], file: str) -> dict[str, Any]:
    """Return the network's arguments: its description, without weights to download."""
    parameters = inspect.signature(kind).parameters
    takes_any = any(str(parameter).startswith("**") for parameter in parameters.values())
    # Arguments passed on to the encoder may be numbers, but not paths from which timm would read weights.
    unknown = [
        name
        for name, value in described.items()
        if name not in parameters and not (takes_any and (value is None or isinstance(value, bool | int | float)))
    ]
    if unknown:
        raise MedtestError(
            f"{file}: {kind.__name__} of the installed library does not take {', '.join(sorted(unknown)[:6])}"
        )
    channels = described.get("in_channels", 3)
    if channels != 3:
        raise MedtestError(f"{file}: the network takes {channels} channels; medtest gives RGB images, which have three")
    return {**described, "encoder_weights": None}


def _unknown(kind: str, name: str, names: Sequence[str]) -> str:
    meant = did_you_mean(name, names)
    return f"segmentation_models_pytorch has no {kind} {name[:60]!r}{meant} It has {', '.join(list(names)[:80])}"
