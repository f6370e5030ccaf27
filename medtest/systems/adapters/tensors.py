"""Inputs and answers of user-supplied networks: images to tensors, outputs to maps and labels, classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from medtest.core.cases import Classes, Image
from medtest.core.errors import BadOutput
from medtest.core.plugins import TRUSTED
from medtest.core.tasks.border import SLACK
from medtest.systems.base import LABEL_ONLY, SystemSettings

Output = TypeVar("Output")
FORMS: dict[str, str] = {
    "probability": "probabilities",
    "logits": "logits",
    "classes": "labels",
    "labels": "labels",
}
"""Values of :data:`medtest.systems.base.ANSWER_FORMS` by the settings ``gives`` and ``values``."""


class ClassListSettings(SystemSettings):
    """Settings of a classifier whose files do not define the meaning of its scores.

    Attributes:
        classes: Names of the classes in the order of the scores; null for the seeds' order.
        multi: Whether several classes may be true at once (a score each, cut at 0.5). Only with ``classes``.
    """

    classes: list[str] | None = Field(default=None, min_length=1, max_length=10_000, json_schema_extra=LABEL_ONLY)
    multi: bool = Field(default=False, json_schema_extra=LABEL_ONLY)


def classes_of(settings: ClassListSettings) -> Classes | None:
    """Return the classes named by the user, or None."""
    return None if settings.classes is None else Classes(names=tuple(settings.classes), multi=settings.multi)


def chosen(outputs: Sequence[Output], output: int) -> Output:
    """Return the output at a position, which may be negative.

    Raises:
        BadOutput: There is no such output.
    """
    if not -len(outputs) <= output < len(outputs):
        raise BadOutput(f"gave {len(outputs)} outputs; output={output} is none of them")
    return outputs[output]


def scores_of(outputs: Sequence[NDArray[Any]], output: int, count: int) -> list[NDArray[Any]]:
    """Return one answer per image from a graph's outputs.

    Args:
        outputs: Its outputs as arrays, B×C (or B of labels), with or without further axes of length 1.
        output: Position of the answer among them; may be negative.
        count: Number of images.

    Raises:
        BadOutput: There is no such output, or it does not have one answer per image.
    """
    answer = chosen(outputs, output)
    if answer.ndim == 0 or answer.shape[0] != count or any(side != 1 for side in answer.shape[2:]):
        raise BadOutput(f"gave shape {answer.shape} for {count} images; B×C scores are expected")
    return [np.asarray(scores) for scores in answer.reshape(count, -1)]


Maps = TypeVar("Maps", bound=Any)
NEAR_ZERO = 0.05
"""A map in [0, 1] with a minimum below this holds probabilities: logits that confident would be below zero."""


class TensorSettings(ClassListSettings):
    """Settings of systems that take images as one tensor.

    Attributes:
        size: Input height and width in pixels; null for the graph's own, or else the image's own.
        layout: ``nchw`` or ``nhwc``.
        channels: Order of the colours, ``rgb`` or ``bgr``; ``grey`` is one channel, for graphs that return images.
        scale: Divisor of pixel values (1 keeps 0 to 255).
        mean: Subtracted per channel after scaling, in the order of ``channels``.
        std: Divisor per channel.
        antialias: Average areas when the image shrinks; false is plain bilinear, OpenCV's default.
        output: Position of the answer among several outputs; may be negative.
        gives: ``probability`` (0 to 1), ``logits`` (sigmoid, or softmax over several channels), ``classes`` (a label
            per pixel, or per image for label suites), or ``image`` (a processed image; see
            :mod:`medtest.systems.adapters.graph`).
        channel: Index of the lesion among several channels or classes.
    """

    size: list[int] | None = Field(default=None, min_length=2, max_length=2)
    layout: Literal["nchw", "nhwc"] = "nchw"
    channels: Literal["rgb", "bgr", "grey"] = "rgb"
    scale: float = Field(default=255.0, gt=0)
    mean: list[float] = Field(default=[0.485, 0.456, 0.406], min_length=3, max_length=3)
    std: list[float] = Field(default=[0.229, 0.224, 0.225], min_length=3, max_length=3)
    antialias: bool = True
    output: int = -1
    gives: Literal["probability", "logits", "classes", "image"] = "logits"
    channel: int = Field(default=1, ge=0)


class GraphSettings(TensorSettings):
    """Settings of an exported graph (ONNX, TorchScript).

    Attributes:
        path: Its file.
    """

    path: str = Field(default="", json_schema_extra=TRUSTED)


def answer_form(settings: TensorSettings) -> str:
    """Return the form of a classifier's answers, one of :data:`medtest.systems.base.ANSWER_FORMS`."""
    return FORMS.get(settings.gives, "logits")


def answers_of(
    outputs: Sequence[NDArray[Any]], settings: TensorSettings, count: int, *, labels: bool
) -> list[NDArray[Any]]:
    """Return one answer per image from a graph's outputs: scores for labels, otherwise a map.

    Raises:
        BadOutput: As :func:`decode` and :func:`medtest.systems.adapters.tensors.scores_of`.
    """
    if not labels:
        return decode(outputs, settings, count)
    if settings.gives == "image":
        raise BadOutput("gives=image is for suites whose answers are images; here labels are expected")
    return scores_of(outputs, settings.output, count)


def encode(
    images: Sequence[Image], settings: TensorSettings, size: tuple[int, int] | None = None, dtype: str = "float32"
) -> NDArray[Any]:
    """Convert images to a batch in the graph's format.

    Args:
        images: uint8 RGB H×W×3.
        settings: Format of the graph's input.
        size: Height and width, or None for the images' own (all of the same size).
        dtype: Type of the graph's input; ``uint8`` receives unscaled pixels.
    """
    if settings.channels == "grey":
        raise BadOutput("channels=grey is for suites whose answers are images; here RGB images are given")
    pixels = [image if size is None else resized(image, size, antialias=settings.antialias) for image in images]
    batch = np.stack(pixels)
    if settings.channels == "bgr":
        batch = batch[..., ::-1]
    if dtype != "uint8":
        mean, std = np.array(settings.mean, np.float32), np.array(settings.std, np.float32)
        batch = ((batch.astype(np.float32) / np.float32(settings.scale) - mean) / std).astype(dtype)
    if settings.layout == "nchw":
        batch = batch.transpose(0, 3, 1, 2)
    return np.ascontiguousarray(batch)


def resized(image: Image, size: tuple[int, int], *, antialias: bool) -> Image:
    """Return an image at height and width, by area averages if it shrinks and ``antialias`` is set, else bilinear."""
    height, width = size
    if image.shape[:2] == (height, width):
        return image
    shrinks = height <= image.shape[0] and width <= image.shape[1]
    interpolation = cv2.INTER_AREA if antialias and shrinks else cv2.INTER_LINEAR
    return cv2.resize(image, (width, height), interpolation=interpolation)


def decode(outputs: Sequence[NDArray[Any]], settings: TensorSettings, count: int) -> list[NDArray[Any]]:
    """Return one map per image from a graph's outputs.

    Args:
        outputs: Its outputs as arrays.
        settings: Position and layout of the answer: B×h×w, B×C×h×w (``nchw``) or B×h×w×C (``nhwc``).
        count: Number of images.

    Raises:
        BadOutput: There is no such output, or its shape fits none of these.
    """
    if settings.gives == "image":
        raise BadOutput("gives=image is for suites whose answers are images; here maps are expected")
    return [_lesion(scores, settings) for scores in as_maps(chosen(outputs, settings.output), settings, count)]


def as_maps(answer: Maps, settings: TensorSettings, count: int) -> Maps:
    """Return a graph's answer, an array or a tensor, as B×C×h×w.

    Raises:
        BadOutput: It has another number of images or axes.
    """
    if answer.ndim not in (3, 4) or answer.shape[0] != count:
        shape = tuple(answer.shape)
        raise BadOutput(f"gave shape {shape} for {count} images; B×h×w or four axes with a channel are expected")
    maps: Maps = answer[:, None] if answer.ndim == 3 else answer
    if answer.ndim == 4 and settings.layout == "nhwc":
        maps = answer.swapaxes(2, 3).swapaxes(1, 2)  # supported by both arrays and tensors
    return maps


def _lesion(answer: NDArray[Any], settings: TensorSettings) -> NDArray[Any]:
    """Return the lesion's map from C×h×w scores."""
    several = answer.shape[0] > 1
    if several and settings.gives == "classes":
        raise BadOutput(f"gave {answer.shape[0]} channels where one class per pixel is expected")
    if several and settings.channel >= answer.shape[0]:
        raise BadOutput(f"gave {answer.shape[0]} channels; channel={settings.channel} is none of them")
    if settings.gives == "classes":
        return np.asarray(answer[0] == settings.channel)
    if answer.dtype == np.bool_:
        return np.asarray(answer[settings.channel] if several else answer[0])
    if not np.issubdtype(answer.dtype, np.floating):
        raise BadOutput(f"gave {answer.dtype} where {settings.gives} are expected; gives=classes is for labels")
    if settings.gives == "probability":
        chosen = np.asarray(answer[settings.channel] if several else answer[0])
        if chosen.min() < -SLACK or chosen.max() > 1 + SLACK:
            low, high = float(chosen.min()), float(chosen.max())
            raise BadOutput(f"gave values from {low:.4g} to {high:.4g} as probabilities; gives=logits is for such")
        return chosen
    values = answer.astype(np.float32)
    if _are_probabilities(values):
        raise BadOutput("gave what looks like probabilities where logits are expected; gives=probability is for them")
    if not several:
        return np.asarray(_sigmoid(values[0]))
    shares = np.exp(values - values.max(axis=0, keepdims=True))
    return np.asarray(shares[settings.channel] / shares.sum(axis=0))


def _are_probabilities(values: NDArray[np.float32]) -> bool:
    """Return True if C×h×w scores have already passed a sigmoid or softmax.

    The sigmoid of a probability is never below 0.5, so that treating them as logits would mark everything as lesion.
    """
    low, high = float(values.min()), float(values.max())
    if not (low >= 0 and high <= 1):
        return False
    if values.shape[0] > 1:
        return bool(np.abs(values.sum(axis=0) - 1).max() < SLACK)
    return low < NEAR_ZERO and high > low


def _sigmoid(values: NDArray[np.float32]) -> NDArray[np.float32]:
    small = np.exp(-np.abs(values))
    return np.where(values >= 0, 1 / (1 + small), small / (1 + small)).astype(np.float32)
