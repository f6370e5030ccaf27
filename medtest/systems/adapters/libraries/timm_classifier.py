"""timm classification network, from a folder in the hub's format or from a checkpoint and the network's name."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from medtest.core.cases import Json
from medtest.core.errors import MedtestError, Mistake, did_you_mean
from medtest.core.plugins import TRUSTED
from medtest.systems.adapters.libraries.image_classifier import (
    ImageClassifier,
    ImageClassifierSettings,
    Preprocessing,
)
from medtest.systems.adapters.libraries.label_names import real_names
from medtest.systems.adapters.libraries.weights import (
    CONFIG,
    WEIGHTS,
    description,
    fill,
    hub_fingerprint,
    hub_mistakes,
    weights_in,
)
from medtest.systems.checkpoints.checkpoint import fitting_names, read_weights
from medtest.systems.checkpoints.inputs import InputKind
from medtest.systems.files import user_path

if TYPE_CHECKING:
    from torch import Tensor, nn

FILTERS = ("nearest", "bilinear", "bicubic", "lanczos")
MOST_CLASSES = 100_000
_WORD = re.compile(r"\w{1,40}", re.ASCII)
"""Text arguments of a network must be words (``avg``, ``relu``), not paths or addresses."""


class TimmSettings(ImageClassifierSettings):
    """Settings of a network of timm.

    Attributes:
        path: A folder with ``config.json`` and weights, as written by ``timm.models.save_for_hf`` and used on the hub;
            instead of ``architecture`` and ``checkpoint``.
    """

    path: str = Field(default="", json_schema_extra=TRUSTED)


class TimmClassifier(ImageClassifier):
    """timm network with the user's weights, loaded strictly.

    Nothing is downloaded. Class names, size, relative crop, filter, mean and standard deviation are those of the
    folder's configuration, or with a checkpoint only those of timm's own for this name. Official input: the shorter
    side resized to the side divided by the relative crop (``squash``: both sides), then the centre crop.
    """

    Settings: ClassVar[type[TimmSettings]] = TimmSettings
    settings: TimmSettings
    library = ("timm", "timm")

    def file_names(self) -> tuple[tuple[str, ...] | None, bool]:
        """Return the folder's class names."""
        try:
            config = self._described()
        except MedtestError:
            return None, False  # the reason is reported by check
        own = config.get("pretrained_cfg")
        names = config.get("label_names") or (own.get("label_names") if isinstance(own, Mapping) else None)
        return real_names(names if isinstance(names, Mapping | list) else None, config.get("num_classes")), False

    def _described(self) -> dict[str, Any]:
        return _config(user_path(self.settings.path)) if self.settings.path else {}

    def check(self) -> Sequence[Mistake]:
        """Return the problems of folder, checkpoint and names."""
        where, settings = self.name, self.settings
        mistakes = self.common_mistakes()
        if not settings.path:
            if not settings.architecture:
                fix = f"add path=FOLDER, or systems.{where}.architecture=resnet50 and checkpoint=FILE"
                mistakes.append(Mistake(where=where, key="architecture", found="nothing", allowed="a name", fix=fix))
            return [*mistakes, *self.checkpoint_mistakes()]
        if settings.checkpoint or settings.architecture:
            key = "checkpoint" if settings.checkpoint else "architecture"
            return [*mistakes, Mistake(where=where, key=key, found=f"path and {key}", allowed="one of them")]
        allowed = f"a folder of timm's: {CONFIG} and {WEIGHTS[0]}"
        return [*mistakes, *hub_mistakes(settings.path, where=where, describe=_config, allowed=allowed)]

    def fingerprint(self) -> dict[str, Json]:
        """Return the SHA-256 of the weights, and of the folder's configuration."""
        return hub_fingerprint(self.settings.path, self.settings.checkpoint)

    def classifier(self) -> tuple[nn.Module, Preprocessing, int]:
        """Return the network; see :class:`medtest.systems.adapters.libraries.image_classifier.ImageClassifier`.

        Raises:
            MedtestError: timm is missing or has no such network, or the weights do not match.
        """
        import timm

        described = self._described()
        name = str(described.get("architecture", self.settings.architecture))
        if not timm.models.is_model(name):
            meant = did_you_mean(name, timm.list_models())
            raise MedtestError(f"{self.name}: timm has no network {name[:60]!r}{meant}")
        own = timm.models.get_pretrained_cfg(name)
        configured = {**(own.to_dict() if own is not None else {}), **dict(described.get("pretrained_cfg") or {})}
        file = weights_in(user_path(self.settings.path)) if self.settings.path else user_path(self.settings.checkpoint)
        state = read_weights(file, name=file.name)
        options = _options(described.get("model_args") or {}, timm.create_model)
        count = described.get("num_classes") or _classes_of(state, configured.get("classifier"), file.name)
        if not isinstance(count, int) or not 1 <= count <= MOST_CLASSES:
            raise MedtestError(f"{CONFIG}: num_classes {str(count)[:40]}; 1 to {MOST_CLASSES:,} are possible")
        options["num_classes"] = count
        network = fill(lambda: timm.create_model(name, pretrained=False, **options), state, name=name, file=file.name)
        return network, _recipe(configured), count


def _config(folder: Path) -> dict[str, Any]:
    config = description(folder, key="architecture", library="timm")
    if not isinstance(config.get("pretrained_cfg"), dict):
        # Older files have one object for everything.
        config = {**config, "pretrained_cfg": {k: v for k, v in config.items() if k != "architecture"}}
    return config


def _options(arguments: Any, make: Any) -> dict[str, Any]:
    """Return the arguments of a network in an untrusted file: only numbers, booleans and words, no downloads."""
    if not isinstance(arguments, dict):
        raise MedtestError(f"{CONFIG}: model_args is not an object")
    reserved = {*inspect.signature(make).parameters, "num_classes", "features_only", "cache_dir"}
    for key, value in arguments.items():
        if key in reserved or key.startswith("pretrained"):
            if key == "num_classes":
                continue
            raise MedtestError(f"{CONFIG}: model_args may not hold {key[:40]}")
        if not all(_plain(element) for element in (value if isinstance(value, list) else [value])):
            raise MedtestError(f"{CONFIG}: model_args.{key[:40]} is not a number, truth value or word")
    if arguments.get("in_chans", 3) != 3:
        raise MedtestError(f"{CONFIG}: the network takes {arguments['in_chans']} channels; RGB images have three")
    return {key: tuple(v) if isinstance(v, list) else v for key, v in arguments.items() if key != "num_classes"}


def _plain(value: object) -> bool:
    if isinstance(value, str):
        return _WORD.fullmatch(value) is not None
    return value is None or isinstance(value, bool | int | float)


def _classes_of(state: Mapping[str, Tensor], classifier: Any, file: str) -> int:
    """Return the number of classes of a checkpoint: the length of its last layer.

    Raises:
        MedtestError: It has no such layer.
    """
    heads = [classifier] if isinstance(classifier, str) else list(classifier or ())
    names = {f"{head}.weight" for head in heads}
    fitting = fitting_names(state, names)
    last_layer = next((fitting[name] for name in sorted(names) if name in fitting and fitting[name].ndim), None)
    if last_layer is None:
        expected = ", ".join(sorted(names)) or "a last layer"
        raise MedtestError(f"{file}: {expected} is not in this file. Is it of another architecture?")
    return int(last_layer.shape[0])


def _recipe(configured: Mapping[str, Any]) -> Preprocessing:
    """Return the preprocessing of a timm configuration.

    Raises:
        MedtestError: It needs images other than square RGB ones, or resizes them differently.
    """
    from timm.data import resolve_data_config

    try:
        resolved = resolve_data_config({}, pretrained_cfg=dict(configured))
        channels, height, width = (int(side) for side in resolved["input_size"])
        share, mode = float(resolved["crop_pct"]), str(resolved["crop_mode"])
        mean, std = ([float(value) for value in resolved[key]] for key in ("mean", "std"))
        interpolation = str(resolved["interpolation"])
        fits = channels == 3 and height == width and 16 <= height <= 4096 and 0.2 <= share <= 1
        if not (
            fits
            and mode in ("center", "squash")
            and interpolation in FILTERS
            and len(mean) == len(std) == 3
            and min(std) > 0
        ):
            raise ValueError(f"input {channels}×{height}×{width}, crop {mode} {share:g}, {interpolation}")
    except (KeyError, TypeError, ValueError, AssertionError) as error:
        raise MedtestError(
            f"{CONFIG}: square RGB images of 16 to 4096 pixels, cut from the middle (center or squash), are possible; "
            f"found: {str(error)[:200]}"
        ) from error
    return Preprocessing(
        size=height,
        resize=math.floor(height / share),
        filter_name=interpolation,  # type: ignore[arg-type]
        kind=InputKind.of(mean, std),
        squash=mode == "squash",
    )
