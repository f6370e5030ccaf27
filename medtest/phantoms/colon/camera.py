"""Conversion of linear light to the endoscope's display: tone, noise, soft colour, black frame, text."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.phantoms.colon.details import draw_text
from medtest.phantoms.colon.frames import DrawnFrame
from medtest.phantoms.drawing import grain, soft_colour, to_bytes
from medtest.phantoms.fields import Field, as_field


def develop(rng: np.random.Generator, linear: Field) -> tuple[NDArray[np.uint8], float]:
    """Turn linear light into an 8-bit picture: soft shoulder, gamma, noise of the sensor, soft colour.

    Args:
        rng: Source of random numbers.
        linear: float32 H×W×3, linear RGB, 1 where a channel saturates.

    Returns:
        uint8 H×W×3 RGB, and the standard deviation of the noise in grey levels.
    """
    shape = (linear.shape[0], linear.shape[1])
    # A short shoulder, 1.15 x / (1 + 0.15 x), clipped at x = 1: red saturates first, so over-exposed areas go through
    # orange to white, as on real sensors.
    picture = linear * np.float32(0.15)
    picture += np.float32(1.0)
    np.divide(linear, picture, out=picture)
    np.minimum(picture, np.float32(1.0 / 1.15), out=picture)
    picture *= np.float32(1.15 * 255.0 * 255.0)
    np.maximum(picture, np.float32(0.0), out=picture)
    np.sqrt(picture, out=picture)
    level = float(rng.uniform(0.8, 2.6))
    sensor = grain(rng, shape)
    sensor = as_field(cv2.blur(sensor, (2, 2)) * np.float32(2.0)) if shape[1] > 700 else sensor
    picture += (sensor * np.float32(level))[..., None]
    return soft_colour(to_bytes(picture)), level


def draw_frame(rng: np.random.Generator, picture: NDArray[np.uint8], frame: DrawnFrame) -> bool:
    """Draw the black frame, its boxes and the display's text over a picture, in place; return True if there is text."""
    shape = (picture.shape[0], picture.shape[1])
    level = int(rng.integers(0, 5))
    soft = frame.field if rng.random() < 0.5 else cv2.blur(frame.field, (3, 3))
    dark = np.frombuffer(rng.bytes(frame.field.size), np.uint8).reshape(shape) & (3 if level > 2 else 1)
    floor = (dark + np.uint8(level)) * (frame.field < 128)
    cv2.multiply(picture, cv2.merge([soft, soft, soft]), dst=picture, scale=1.0 / 255.0)
    cv2.add(picture, cv2.merge([floor, floor, floor]), dst=picture)
    for left, top, right, bottom in frame.boxes:
        green = int(rng.integers(30, 100))
        cv2.rectangle(picture, (left, top), (right, bottom), (4, green, 16), -1 if rng.random() < 0.4 else 2)
    text = bool(rng.random() < (0.45 if frame.kind in ("octagonal", "inset", "stepped") else 0.12))
    if text:
        canvas = np.zeros(shape, np.uint8)
        draw_text(rng, canvas, float(rng.uniform(0.1, 0.35)))
        lit = canvas > 0
        picture[lit] = np.maximum(picture[lit], (canvas[lit][:, None] * np.float32(0.85)).astype(np.uint8))
    return text
