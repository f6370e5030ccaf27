"""The rule by which weights and inputs of recorded outputs are filled: every entry from a stream named after it."""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import NDArray


def _stream(key: str) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(zlib.crc32(b"golden:" + key.encode())))


def weight(name: str, shape: tuple[int, ...]) -> NDArray[np.generic]:
    """Return the value of a state-dict entry."""
    rng = _stream(name)
    if name.endswith("num_batches_tracked"):
        return np.zeros(shape, np.int64)
    if name.endswith("running_var"):
        value = rng.uniform(0.5, 1.5, shape)
    elif name.endswith("running_mean"):
        value = 0.1 * rng.standard_normal(shape)
    elif len(shape) >= 2:
        value = rng.standard_normal(shape) * np.sqrt(1 / np.prod(shape[1:]))
    elif name.endswith("weight"):
        value = 1 + 0.1 * rng.standard_normal(shape)
    else:
        value = 0.1 * rng.standard_normal(shape)
    return np.asarray(value, np.float32)


def image(batch: int, channels: int, height: int, width: int) -> NDArray[np.float32]:
    """Return the input: six sinusoids per image and channel."""
    rng = _stream("input")
    y, x = np.arange(height)[:, None], np.arange(width)[None, :]
    out = np.zeros((batch, channels, height, width))
    for i in range(batch):
        for j in range(channels):
            for _ in range(6):
                fy, fx, p, a = rng.uniform(0.2, 6), rng.uniform(0.2, 6), rng.uniform(0, 6.28), rng.uniform(0.2, 0.6)
                out[i, j] += a * np.sin(2 * np.pi * (fy * y / height + fx * x / width) + p)
    return out.astype(np.float32)


def words() -> NDArray[np.float32]:
    """Return TGANet's second input: five vectors of 300 numbers."""
    return _stream("text").standard_normal((1, 5, 300)).astype(np.float32)
