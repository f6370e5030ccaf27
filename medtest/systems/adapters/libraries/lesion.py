"""Selection of the lesion's class, and conversion of scores to the lesion's map.

Shared by the adapters of families of networks (Hugging Face, MONAI bundles, segmentation_models_pytorch), whose files
state the number of classes and possibly their names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from medtest.core.deferred import torch
from medtest.core.errors import BadOutput, MedtestError, did_you_mean
from medtest.core.plugins import TRUSTED
from medtest.core.tasks.border import CUT
from medtest.systems.base import SystemSettings
from medtest.systems.pytorch.pixels import logits_of
from medtest.systems.pytorch.torch_system import exactly, tensor_of

if TYPE_CHECKING:
    from torch import Tensor

Activation: TypeAlias = Literal["auto", "sigmoid", "softmax", "winner", "none"]
BACKGROUND = frozenset({"background", "bg", "normal", "unlabeled", "unlabelled", "none", "other"})
"""Names that never denote a lesion: of two classes, the one with such a name is not the lesion."""
SHOWN = 60


class NetworkSettings(SystemSettings):
    """Settings of a network that comes with its own description.

    Attributes:
        path: Its folder (or file).
        lesion: Index or name of the lesion's class, or a list of them; null for the only class, or for the one of two
            that is not background.
        size: Input height and width in pixels; null for the value in its files.
        mean: Subtracted per channel from pixels in [0, 1]; null for the value in its files.
        std: Divisor per channel; null for the value in its files.
        threshold: A pixel is lesion if its probability exceeds this; null for the value in its files, or 0.5.
        activation: Conversion of scores to probabilities; ``auto`` is ``sigmoid`` for one class, ``softmax`` for two
            and ``winner`` for more, unless the network's files state otherwise. See :func:`lesion_map`.
        batch: Maximum number of images in one forward pass; null for no limit other than ``batch_size=``.
    """

    path: str = Field(default="", json_schema_extra=TRUSTED)
    lesion: int | str | list[int | str] | None = None
    size: list[int] | None = Field(default=None, min_length=2, max_length=2)
    mean: list[float] | None = Field(default=None, min_length=3, max_length=3)
    std: list[float] | None = Field(default=None, min_length=3, max_length=3)
    threshold: float | None = Field(default=None, gt=0, lt=1)
    activation: Activation = "auto"
    batch: int | None = Field(default=None, ge=1)


def plain_names(count: int) -> tuple[str, ...]:
    """Return default names of unnamed classes."""
    return tuple(f"class {index}" for index in range(count))


def lesion_classes(
    setting: int | str | list[int | str] | None, names: Sequence[str], *, system: str
) -> tuple[int, ...]:
    """Return the indices of the lesion's classes.

    Args:
        setting: The setting ``lesion``.
        names: Every class's name, by index.
        system: The system's id, for messages.

    Raises:
        MedtestError: The setting is missing and the choice is ambiguous, or there is no such class; classes are listed.
    """
    if setting is None:
        if len(names) == 1:
            return (0,)
        if len(names) == 2:
            plain = [name.strip().lower() in BACKGROUND for name in names]
            return (0,) if plain == [False, True] else (1,)
        raise MedtestError(
            f"{system}: this network has {len(names)} classes; choose the lesion with "
            f"systems.{system}.lesion=INDEX or NAME: {_listed(names)}"
        )
    indices = tuple(
        dict.fromkeys(_index(choice, names, system) for choice in (setting if isinstance(setting, list) else [setting]))
    )
    if not indices:
        raise MedtestError(f"{system}: lesion is an empty list; the classes are {_listed(names)}")
    if len(names) > 1 and len(indices) == len(names):
        raise MedtestError(f"{system}: lesion names every class, so that nothing is left: {_listed(names)}")
    return indices


def _index(choice: int | str, names: Sequence[str], system: str) -> int:
    if isinstance(choice, int):
        if 0 <= choice < len(names):
            return choice
        raise MedtestError(f"{system}: there is no class {choice}; the classes are {_listed(names)}")
    asked_name = choice.strip().lower()
    lower = [name.strip().lower() for name in names]
    if lower.count(asked_name) == 1:
        return lower.index(asked_name)
    if lower.count(asked_name) > 1:
        raise MedtestError(f"{system}: several classes are called {choice!r}; give an index: {_listed(names)}")
    meant = did_you_mean(asked_name, names)
    raise MedtestError(f"{system}: there is no class {choice!r}{meant} The classes are {_listed(names)}")


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"{index} {str(name)[:40]!r}" for index, name in enumerate(names[:SHOWN]))
    return shown + (f", … ({len(names)} in all)" if len(names) > SHOWN else "")


def resolved_activation(activation: Activation, count: int, *, system: str) -> Activation:
    """Return the meaning of ``auto`` for this number of classes.

    Raises:
        MedtestError: The activation compares classes, but there is only one.
    """
    if activation == "auto":
        return "sigmoid" if count == 1 else "softmax" if count == 2 else "winner"
    if count == 1 and activation in ("softmax", "winner"):
        raise MedtestError(
            f"{system}: activation={activation} compares classes, and this network has one; sigmoid is for one class"
        )
    return activation


def lesion_map(scores: Tensor, classes: Sequence[int], activation: Activation) -> Tensor:
    """Return the lesion's probability from the scores of all classes.

    Args:
        scores: B×C×h×w, float.
        classes: Indices of the lesion's classes.
        activation: ``sigmoid``: the largest of the lesion's; ``softmax``: the sum of the lesion's shares; ``winner``:
            the softmax between the best of the lesion's classes and the best of the others, which exceeds 0.5 exactly
            where a lesion's class wins the argmax; ``none``: scores are probabilities, the largest of the lesion's.

    Returns:
        B×h×w float.
    """
    chosen = scores[:, list(classes)]
    if activation == "softmax":
        return scores.softmax(dim=1)[:, list(classes)].sum(dim=1)
    if activation == "winner":
        others = [index for index in range(scores.shape[1]) if index not in classes]
        return (chosen.amax(dim=1) - scores[:, others].amax(dim=1)).sigmoid()
    best = chosen.amax(dim=1)
    return best.sigmoid() if activation == "sigmoid" else best


def lesion_logits(scores: Tensor, classes: Sequence[int], activation: Activation) -> Tensor:
    """Return the logits of :func:`lesion_map`, B×h×w, exact even if that is saturated."""
    chosen = scores[:, list(classes)]
    if activation in ("sigmoid", "none"):
        best = chosen.amax(dim=1)
        return best if activation == "sigmoid" else logits_of(best, multi=True)
    others = scores[:, [index for index in range(scores.shape[1]) if index not in classes]]
    if activation == "winner":
        return chosen.amax(dim=1) - others.amax(dim=1)
    return torch.logsumexp(chosen, dim=1) - torch.logsumexp(others, dim=1)


def checked_scores(outputs: object, images: int | None, classes: int | None) -> Tensor:
    """Return a network's output as B×C×h×w float32 (or float64), with B and C checked if known.

    Raises:
        BadOutput: It is something else, or has another number of images or classes.
    """
    scores = tensor_of(outputs)
    if scores.ndim != 4 or images not in (None, scores.shape[0]):
        expected = "images × classes × h × w are expected"
        raise BadOutput(f"gave shape {tuple(scores.shape)} for {images or 'some'} images; {expected}")
    if classes not in (None, scores.shape[1]):
        raise BadOutput(f"gave {scores.shape[1]} classes where its files promise {classes}")
    return exactly(scores)


def at_half(probability: NDArray[Any], threshold: float) -> NDArray[np.float32]:
    """Return probabilities rescaled so that ``threshold`` maps to 0.5; 0 and 1 stay, piecewise linear.

    Values exceed 0.5 afterwards if and only if they exceeded the threshold.
    """
    values = np.asarray(probability, np.float32)
    if threshold == CUT:
        return values
    exact = values.astype(np.float64)
    moved = np.where(
        exact > threshold, CUT + (1 - CUT) * (exact - threshold) / (1 - threshold), CUT * exact / threshold
    ).astype(np.float32)
    cut = np.float32(CUT)
    moved = np.where((exact > threshold) & (moved <= cut), np.nextafter(cut, np.float32(1)), moved)
    return np.where((exact <= threshold) & (moved > cut), cut, moved).astype(np.float32)
