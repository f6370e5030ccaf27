"""AGDN in NumPy and SciPy, in double precision, on arrays as TensorFlow has them: images H×W×C, kernels H×W×in×out.

Written from the formulas alone, without the code under test; slow and plain.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage, signal, special

Array: TypeAlias = NDArray[np.float64]
Arrays: TypeAlias = Mapping[str, NDArray[Any]]


def convolve(x: Array, kernel: Array) -> Array:
    """Cross-correlate with zeros around, as many outputs as inputs."""
    reach = kernel.shape[0] // 2
    padded = np.pad(x, ((reach, reach), (reach, reach), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, kernel.shape[:2], axis=(0, 1))  # h, w, c, kh, kw
    return np.einsum("hwcij,ijco->hwo", windows, kernel, optimize=True)


def norm_relu(x: Array, arrays: Arrays, scope: str) -> Array:
    mean, variance = arrays[f"{scope}/moving_mean"], arrays[f"{scope}/moving_variance"]
    scaled = (x - mean) / np.sqrt(variance + 1e-5) * arrays[f"{scope}/gamma"] + arrays[f"{scope}/beta"]
    return np.asarray(np.maximum(scaled, 0.0), np.float64)


def composite(x: Array, arrays: Arrays, scope: str) -> Array:
    return convolve(norm_relu(x, arrays, f"{scope}/BatchNorm"), arrays[f"{scope}/kernel"])


def spectral(kernel: Array, u: Array) -> Array:
    """Divide a kernel by one power iteration's estimate of its largest singular value."""
    matrix = kernel.reshape(-1, kernel.shape[-1])
    v = u @ matrix.T
    v = v / (np.sqrt((v**2).sum()) + 1e-12)
    new = v @ matrix
    new = new / (np.sqrt((new**2).sum()) + 1e-12)
    return np.asarray(kernel / float((v @ matrix @ new.T).item()))


def deformable(x: Array, kernel: Array, bias: Array, offsets: Array) -> Array:
    """Sample every tap at its moved place, zeros beyond the border, then sum: nine offsets of rows, nine of columns."""
    height, width, channels = x.shape
    rows, columns = np.mgrid[0:height, 0:width].astype(float)
    out = np.zeros((height, width, kernel.shape[-1])) + bias
    for tap in range(9):
        place = [rows + tap // 3 - 1 + offsets[..., tap], columns + tap % 3 - 1 + offsets[..., 9 + tap]]
        sampled = np.stack(
            [ndimage.map_coordinates(x[..., c], place, order=1, mode="grid-constant") for c in range(channels)], axis=-1
        )
        out += sampled @ kernel[tap // 3, tap % 3]
    return out


def aggregate(x: Array, arrays: Arrays, scope: str) -> Array:
    name = scope.rpartition("/")[2]
    inner = f"{scope}/{name}f_conv"
    reach = 0.25 * x.shape[0]
    offsets = convolve(x, arrays[f"{inner}/conv2d/kernel"]) + arrays[f"{inner}/conv2d/bias"]
    kernel = spectral(arrays[f"{inner}/feature/kernel"], arrays[f"{inner}/feature/u"])
    f = deformable(x, kernel, arrays[f"{inner}/feature/bias"], np.clip(offsets, -reach, reach))
    f = np.maximum(f, 0).reshape(-1, f.shape[-1])
    c = f.shape[1]
    affinity = special.softmax(f @ (np.eye(c) / c - np.ones((c, c)) / c**2) @ f.T, axis=-1)
    h = convolve(x, spectral(arrays[f"{scope}/h_conv/kernel"], arrays[f"{scope}/h_conv/u"]))
    h = (h + arrays[f"{scope}/h_conv/bias"]).reshape(-1, x.shape[-1])
    return np.asarray(arrays[f"{scope}/gamma"] * (affinity @ h).reshape(x.shape) + x)


def pool(x: Array) -> Array:
    """Take the largest of three by three at every second place; even sides lack one place at their end."""
    size = x.shape[0] // 2
    padded = np.pad(x, ((0, 1), (0, 1), (0, 0)), constant_values=-np.inf)
    return np.stack(
        [
            [padded[2 * i : 2 * i + 3, 2 * j : 2 * j + 3].max(axis=(0, 1)) for j in range(x.shape[1] // 2)]
            for i in range(size)
        ]
    )


def classify(x: Array, arrays: Arrays, scope: str) -> Array:
    mean = norm_relu(x, arrays, f"{scope}/BatchNorm").mean(axis=(0, 1))
    return np.asarray(mean @ arrays[f"{scope}/final_layer/kernel"][0, 0])


def branch(x: Array, arrays: Arrays, scope: str, layers: tuple[int, ...]) -> tuple[Array, Array]:
    x = pool(convolve(x, arrays[f"{scope}/Initial_convolution/kernel"]))
    for block, count in enumerate(layers):
        for layer in range(count):
            inner = f"{scope}/Block_{block}/layer_{layer}"
            new = composite(composite(x, arrays, f"{inner}/bottleneck"), arrays, f"{inner}/composite_function")
            x = np.concatenate([x, new], axis=-1)
        if block < len(layers) - 1:
            x = composite(x, arrays, f"{scope}/Transition_after_block_{block}/composite_function")
            x = x.reshape(x.shape[0] // 2, 2, x.shape[1] // 2, 2, -1).mean(axis=(1, 3))
            x = aggregate(x, arrays, f"{scope}/TLFA{block + 1}")
    return classify(x, arrays, f"{scope}/Transition_to_classes"), x


def resize(x: Array, height: int, width: int) -> Array:
    """TensorFlow 1's bilinear resize, place by place."""
    out = np.zeros((height, width, *x.shape[2:]))
    for i in range(height):
        for j in range(width):
            row, column = i * x.shape[0] / height, j * x.shape[1] / width
            top, left = int(row), int(column)
            bottom, right = min(top + 1, x.shape[0] - 1), min(left + 1, x.shape[1] - 1)
            a, b = row - top, column - left
            upper = x[top, left] * (1 - b) + x[top, right] * b
            lower = x[bottom, left] * (1 - b) + x[bottom, right] * b
            out[i, j] = upper * (1 - a) + lower * a
    return out


def attention(features: Array) -> Array:
    strength = np.maximum(features, 0).mean(axis=-1)
    return np.asarray((strength - strength.min() + 1e-8) / (strength.max() - strength.min() + 1e-8))


def grids(guide: Array) -> tuple[Array, Array]:
    """Return the structured and the pixel-wise grid, n×n×2 (x, y) in [0, 1]."""
    size = guide.shape[0]
    padded = np.pad(guide, 30, mode="edge")
    steps = (np.arange(size + 60) - 30) / (size - 1)
    line = np.exp(-4 * np.log(2) * (np.arange(61) - 30) ** 2 / 81)
    columns, rows = padded.max(axis=0), padded.max(axis=1)
    x, y = (np.convolve(p * steps, line, "valid") / np.convolve(p, line, "valid") for p in (columns, rows))
    structured = np.stack(np.broadcast_arrays(x[None, :], y[:, None]), axis=-1)
    disc = np.exp(-4 * np.log(2) * ((np.arange(61) - 30) ** 2 + (np.arange(61)[:, None] - 30) ** 2) / 81)
    total = signal.fftconvolve(padded, disc, "valid")
    pixelwise = np.stack(
        [
            signal.fftconvolve(padded * steps[None, :], disc, "valid") / total,
            signal.fftconvolve(padded * steps[:, None], disc, "valid") / total,
        ],
        axis=-1,
    )
    return np.clip(structured, 0, 1), np.clip(pixelwise, 0, 1)


def deform(image: Array, guide: Array, side: int) -> Array:
    structured, pixelwise = grids(guide)
    grid = resize((structured + pixelwise) / 2, side, side)
    place = [grid[..., 1] * (image.shape[0] - 2), grid[..., 0] * (image.shape[1] - 2)]
    return np.stack([ndimage.map_coordinates(image[..., c], place, order=1) for c in range(image.shape[-1])], axis=-1)


def agdn(image: Array, arrays: Arrays, layers: tuple[int, ...]) -> tuple[Array, Array, Array]:
    """Return the probabilities of both branches and of both together, of one image in [0, 1]."""
    logits1, features1 = branch(resize(image, 128, 128), arrays, "net1", layers)
    guide = resize(attention(features1), 31, 31)
    logits2, features2 = branch(deform(image, guide, 128), arrays, "net2", layers)
    both = classify(np.concatenate([features1, features2], axis=-1), arrays, "Sum_branch")
    first, second, answer = (special.softmax(logits) for logits in (logits1, logits2, both))
    return first, second, answer
