"""Layers of random shapes for snow and spatter, made on a grid whose shorter side is 224.

On the grid all published constants in pixels hold unchanged for any picture size; the layer is then resized to the
picture. With ``raw`` the grid is the picture's own.
"""

from __future__ import annotations

import math
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Params, PreparedSeed
from medtest.relations.corruptions.random_fields import normal_quantiles, random_words
from medtest.relations.levels import number

Layer = NDArray[np.float32]


def grid_of(seed: PreparedSeed, params: Params) -> tuple[int, int]:
    """Return rows and columns of the grid; the stored ``unit`` is the size of its pixels in pixels of the picture."""
    unit = number(params, "unit")
    return max(1, round(seed.height / unit)), max(1, round(seed.width / unit))


def normal_layer(shape: tuple[int, int], params: Params) -> Layer:
    """Return independent normal values with the stored ``mean`` and ``std``, seeded by ``layer_seed``; float32."""
    words = random_words(int(number(params, "layer_seed")), shape[0] * shape[1]).reshape(shape)
    values = (number(params, "mean") + number(params, "std") * normal_quantiles()).astype(np.float32)
    return np.take(values, words)


def zoomed_layer(shape: tuple[int, int], params: Params) -> Layer:
    """Return a normal layer enlarged about its centre by the stored ``zoom``, bilinearly; float32 of ``shape``."""
    zoom = number(params, "zoom")
    cells = (math.ceil(shape[0] / zoom) + 2, math.ceil(shape[1] / zoom) + 2)
    small = normal_layer(cells, params)
    inverse = np.array(
        [
            [1.0 / zoom, 0.0, (cells[1] - 1) / 2.0 - (shape[1] - 1) / 2.0 / zoom],
            [0.0, 1.0 / zoom, (cells[0] - 1) / 2.0 - (shape[0] - 1) / 2.0 / zoom],
        ]
    )
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    large: Any = cv2.warpAffine(small, inverse, (shape[1], shape[0]), flags=flags, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(large, dtype=np.float32)


def smoothed(layer: Layer, sigma: float, truncate: float = 4.0) -> Layer:
    """Return float32 values smoothed by a Gaussian cut at ``truncate`` standard deviations, with replicated edges."""
    side = 2 * int(truncate * sigma + 0.5) + 1
    return np.asarray(
        cv2.GaussianBlur(layer, (side, side), sigma, sigmaY=sigma, borderType=cv2.BORDER_REPLICATE), dtype=np.float32
    )


def fitted(layer: Layer, seed: PreparedSeed) -> Layer:
    """Return a layer, float32 on any grid, resized bilinearly to the picture: float32 H×W."""
    if layer.shape == (seed.height, seed.width):
        return layer
    return np.asarray(cv2.resize(layer, (seed.width, seed.height), interpolation=cv2.INTER_LINEAR), dtype=np.float32)
