"""Exported graphs that map images to images: conversion of pictures to tensors and back.

Pixels are grey levels (the image's range mapped to 0 to 255) divided by ``scale``, in the order of ``channels`` and
``layout``; ``mean``, ``std`` and ``size`` do not apply, because they would have to be inverted. The output is
multiplied by ``scale``. A graph with one channel receives the colours one by one; a graph with three receives a grey
image three times, and the mean of its output counts. Volumes and films are processed slice by slice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image, ImageSpec
from medtest.core.errors import BadOutput
from medtest.systems.adapters.label_answers import chosen
from medtest.systems.adapters.tensors import GraphSettings

Run: TypeAlias = "Callable[[NDArray[np.float32]], Sequence[NDArray[Any]]]"
WHITE = 255.0


def processed(image: Image, spec: ImageSpec, settings: GraphSettings, channels: int, run: Run) -> Image:
    """Return a graph's output for one image, in the image's own units.

    Args:
        image: Of any dtype and dimension.
        spec: Its range and axes.
        settings: Input format of the graph.
        channels: Number of input channels: 1 or 3.
        run: Returns the graph's outputs for a float32 batch of one picture.

    Raises:
        BadOutput: The output is no picture of that size.
    """
    inner = 3 if spec.coloured else 2
    levels = (image.astype(np.float32) - np.float32(spec.low)) * np.float32(WHITE / spec.span / settings.scale)
    stack = levels.reshape(-1, *levels.shape[-inner:])
    answers = [_picture(picture, settings, channels, run) for picture in stack]
    whole = np.stack(answers).reshape(levels.shape).astype(np.float64)
    return np.asarray(whole * (settings.scale * spec.span / WHITE) + spec.low)


def _picture(picture: NDArray[np.float32], settings: GraphSettings, channels: int, run: Run) -> NDArray[Any]:
    if picture.ndim == 2:
        answer = _run_one(np.repeat(picture[..., None], channels, axis=2), settings, run)
        return np.asarray(answer.mean(axis=2))
    if channels == 1:
        colours = [_run_one(picture[..., [colour]], settings, run) for colour in range(3)]
        return np.concatenate(colours, axis=2)
    turned = settings.channels == "bgr"
    answer = _run_one(picture[..., ::-1] if turned else picture, settings, run)
    return answer[..., ::-1] if turned else answer


def _run_one(picture: NDArray[np.float32], settings: GraphSettings, run: Run) -> NDArray[Any]:
    """Run one H×W×C picture and return H×W×C."""
    nchw = settings.layout == "nchw"
    batch = np.ascontiguousarray(picture.transpose(2, 0, 1) if nchw else picture)[None]
    outputs = run(batch)
    answer = np.asarray(chosen(outputs, settings.output))
    if answer.shape != batch.shape:
        raise BadOutput(f"gave shape {answer.shape} for a picture of shape {batch.shape}; the same is expected")
    return np.asarray(answer[0].transpose(1, 2, 0) if nchw else answer[0])
