"""Specifics of transformers' classification networks: class names and input."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtest.core.cases import Image
from medtest.core.deferred import torch
from medtest.core.errors import MedtestError, Mistake
from medtest.systems.adapters.libraries.huggingface_folder import PROCESSORS, config_of
from medtest.systems.adapters.libraries.label_names import naming_mistakes, real_names
from medtest.systems.adapters.libraries.weights import read_json
from medtest.systems.adapters.tensors import GraphSettings, encode
from medtest.systems.classification.crops import stretched
from medtest.systems.files import user_path

if TYPE_CHECKING:
    from torch import Tensor

_CONVNEXT_WHOLE = 384
MANY = "multi_label_classification"


def names_in(folder: Path) -> tuple[tuple[str, ...] | None, bool]:
    """Return the class names in a folder (None if only numbered), and whether several may be true."""
    try:
        config = config_of(folder)
    except MedtestError:
        return None, False  # the reason is reported by check
    id2label = config.get("id2label")
    return real_names(id2label if isinstance(id2label, dict) else None), config.get("problem_type") == MANY


def other_mistakes(settings: Any, *, labels: bool, where: str) -> list[Mistake]:
    """Return settings for the other kind of answer, and problems of class names."""
    if labels:
        other = [key for key in ("lesion", "threshold") if getattr(settings, key) is not None]
        other += ["activation"] if settings.activation != "auto" else []
        names, _ = names_in(user_path(settings.path)) if settings.path else (None, False)
        mistakes = naming_mistakes(settings, names, where=where)
    else:
        other = [key for key in ("classes", "multi") if getattr(settings, key) is not None]
        other += ["labels"] if settings.labels else []
        mistakes = []
    expected, beside = ("labels", "masks") if labels else ("masks", "labels")
    problem = f"a setting for {beside}, and the suite's seeds expect {expected}"
    return [*mistakes, *(Mistake(where=where, key=key, found=problem, fix="leave it out") for key in other)]


def crops_images(folder: Path) -> bool:
    """Return True if a folder's image processor crops images, according to its file."""
    for name in PROCESSORS:
        try:
            config = read_json(folder / name)
        except MedtestError:
            continue
        inner = config.get("image_processor")
        config = {**config, **(inner if isinstance(inner, dict) else {})}
        size = config.get("size")
        edge = size.get("shortest_edge") if isinstance(size, dict) else size
        # ConvNeXt's processor resizes to the side divided by that share, and crops the middle, below 384 pixels.
        shrinks = bool(config.get("crop_pct")) and isinstance(edge, int) and edge < _CONVNEXT_WHOLE
        return bool(config.get("do_center_crop")) or shrinks
    return False


def label_inputs(images: Sequence[Image], processor: Any, settings: Any, field: str) -> Tensor:
    """Return images of one size in the input format of a classification network, float32 B×3×H×W.

    Args:
        images: uint8 RGB.
        processor: The folder's image processor, or None.
        settings: The user's settings.
        field: ``official`` or ``as_is``.
    """
    size, changes = label_changes(processor, settings, field)
    fitted = [image if size is None else stretched(image, *size) for image in images]
    if processor is None:
        changed = {key: getattr(settings, key) for key in ("mean", "std") if getattr(settings, key) is not None}
        return torch.from_numpy(encode(fitted, GraphSettings(**changed), None))
    batch = processor(images=fitted, return_tensors="pt", input_data_format="channels_last", **changes)
    pixels: Tensor = batch["pixel_values"]
    return pixels


def label_changes(processor: Any, settings: Any, field: str) -> tuple[tuple[int, int] | None, dict[str, Any]]:
    """Return the size to which images are resized before the image processor, and overrides of its settings.

    Args:
        processor: As in :func:`label_inputs`.
        settings: As in :func:`label_inputs`.
        field: As in :func:`label_inputs`.
    """
    size = None if settings.size is None else (settings.size[0], settings.size[1])
    if processor is None:
        return size, {}
    overrides = {f"image_{key}": getattr(settings, key) for key in ("mean", "std")}
    changes: dict[str, Any] = {key: value for key, value in overrides.items() if value is not None}
    if changes:
        changes["do_normalize"] = True
    if size is None and field == "as_is":
        size = _side_of(processor)
    if size is not None or field == "as_is":
        changes |= {"do_resize": False, "do_center_crop": False}
    return size, changes


def _side_of(processor: Any) -> tuple[int, int] | None:
    """Return height and width of an image processor's output, None if it keeps the image's size."""
    cropped = bool(getattr(processor, "do_center_crop", False))
    if not cropped and not getattr(processor, "do_resize", False):
        return None
    size = dict((processor.crop_size if cropped else processor.size) or {})
    height, width, edge = (size.get(key) for key in ("height", "width", "shortest_edge"))
    if height and width:
        return int(height), int(width)
    return (int(edge), int(edge)) if edge else None
