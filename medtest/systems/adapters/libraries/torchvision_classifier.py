"""torchvision classification network, by name, with the user's checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from medtest.core.cases import Json
from medtest.core.deferred import torch
from medtest.core.errors import MedtestError, Mistake, did_you_mean
from medtest.systems.adapters.libraries.image_classifier import (
    ImageClassifier,
    ImageClassifierSettings,
    Preprocessing,
)
from medtest.systems.adapters.libraries.weights import fill
from medtest.systems.checkpoints.checkpoint import fitting_names, read_weights
from medtest.systems.checkpoints.inputs import InputKind
from medtest.systems.files import cached_sha256, user_path

if TYPE_CHECKING:
    from torch import Tensor, nn

FIRST = "IMAGENET1K_V1"
"""Preferred weights for the configuration if torchvision has several: those that fine-tuning scripts follow."""
SIDE_HEADS = {"inception_v3": "AuxLogits.", "googlenet": "aux1."}
"""Networks with auxiliary heads for training, and the prefix of the heads' names."""


class TorchvisionSettings(ImageClassifierSettings):
    """Settings of a network of torchvision.

    Attributes:
        transform_input: For ``inception_v3`` and ``googlenet``: whether the network first converts ImageNet's
            normalisation to its own, as with torchvision's pretrained weights. The checkpoint does not record this.
    """

    transform_input: bool = True


class TorchvisionClassifier(ImageClassifier):
    """torchvision network (``vgg19``, ``resnet50`` …) with the user's state dict, loaded strictly.

    Nothing is downloaded. The number of classes is that of the checkpoint's last layer. Official input: that of
    torchvision's own configuration of the network's ImageNet weights (the older ones if it has two): shorter side
    resized (antialiased), centre crop, mean and standard deviation.
    """

    Settings: ClassVar[type[TorchvisionSettings]] = TorchvisionSettings
    settings: TorchvisionSettings

    def check(self) -> Sequence[Mistake]:
        """Return the problems of checkpoint, architecture and names."""
        where, settings = self.name, self.settings
        mistakes = self.common_mistakes()
        if not settings.architecture:
            fix = f"add systems.{where}.architecture=resnet50"
            mistakes.append(Mistake(where=where, key="architecture", found="nothing", allowed="a name", fix=fix))
        return [*mistakes, *self.checkpoint_mistakes()]

    def fingerprint(self) -> dict[str, Json]:
        """Return the SHA-256 of the weights."""
        return {"weights_sha256": cached_sha256(user_path(self.settings.checkpoint))}

    def classifier(self) -> tuple[nn.Module, Preprocessing, int]:
        """Return the network; see :class:`medtest.systems.adapters.libraries.image_classifier.ImageClassifier`.

        Raises:
            MedtestError: torchvision has no such network, or the weights do not match.
        """
        from torchvision import models

        name = self.settings.architecture
        names = models.list_models(module=models)
        if name not in names:
            meant = did_you_mean(name, names)
            raise MedtestError(
                f"{self.name}: torchvision has no classification network {name[:60]!r}{meant} It has {', '.join(names)}"
            )
        file = user_path(self.settings.checkpoint)
        state = read_weights(file, name=file.name)
        options = self._options(name, state)
        count = _classes_of(name, state, options, file.name)
        network = fill(
            lambda: models.get_model(name, weights=None, num_classes=count, **options),
            state,
            name=name,
            file=file.name,
        )
        return network, recipe_of(name), count

    def _options(self, name: str, state: Mapping[str, Tensor]) -> dict[str, Any]:
        """Return the constructor's arguments besides the number of classes."""
        if name not in SIDE_HEADS:
            return {}
        return {
            "aux_logits": any(SIDE_HEADS[name] in key for key in state),
            "transform_input": self.settings.transform_input,
            "init_weights": False,
        }


def recipe_of(name: str) -> Preprocessing:
    """Return the preprocessing in torchvision's configuration of a network's ImageNet weights."""
    from torchvision import models

    weights: Any = models.get_model_weights(name)
    preset = (weights[FIRST] if FIRST in weights.__members__ else weights.DEFAULT).transforms()
    return Preprocessing(
        size=int(preset.crop_size[0]),
        resize=int(preset.resize_size[0]),
        filter_name=preset.interpolation.value,
        kind=InputKind.of([float(v) for v in preset.mean], [float(v) for v in preset.std]),
    )


def _classes_of(name: str, state: Mapping[str, Tensor], options: Mapping[str, Any], file: str) -> int:
    """Return a checkpoint's number of classes, from the layers whose shape depends on it.

    Raises:
        MedtestError: The checkpoint has no such entry.
    """
    from torchvision import models

    with torch.device("meta"):
        first, second = (models.get_model(name, weights=None, num_classes=n, **options).state_dict() for n in (7, 11))
    heads = [key for key, value in first.items() if value.shape != second[key].shape]
    fitting = fitting_names(state, first)
    head = next((fitting[key] for key in reversed(heads) if key in fitting and fitting[key].ndim), None)
    if head is None:
        raise MedtestError(
            f"{file}: {heads[-1]}, the last layer of {name}, is not in this file. Is it of another architecture, or "
            "was its last layer replaced by one of another form?"
        )
    return int(head.shape[0])
