"""Generator of capsule frames from an index and the suite's seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Json
from medtest.phantoms.capsule.contents import draw_contents
from medtest.phantoms.capsule.lesions import KINDS, Lesion, paint, plan_lesions, villi
from medtest.phantoms.capsule.wall import make_wall
from medtest.phantoms.classes import CAPSULE
from medtest.phantoms.colon.camera import develop
from medtest.phantoms.colon.details import draw_highlights, draw_vessels
from medtest.phantoms.drawing import Canvas, blurred, octagon, plane, portable_opencv
from medtest.phantoms.fields import Field, as_field, resize
from medtest.phantoms.labelled import LabelledPhantom, balanced, check_request, stream

REVISION = 1
"""Increased whenever the same random numbers give other pixels."""
WHAT = "capsule"
NAMES = CAPSULE.names
SIZE = 320
"""Default pixels a side."""


def judge(facts: dict[str, Any]) -> str:
    """Return the class that follows from the lesions drawn; ``normal`` without lesions.

    Blood and angiectasias are vascular; ulcers, erosions and erythema are inflammatory, as in the three classes of
    CAD-CAP (R. Leenhardt et al., Endosc Int Open 2020;8:E415–E420).
    """
    kinds = {lesion["kind"] for lesion in facts["lesions"]}
    for label in NAMES[1:]:
        if kinds and kinds <= {kind for kind, _ in KINDS[label]}:
            return label
    return "normal"


def make(index: int, suite_seed: int, *, size: int = SIZE) -> LabelledPhantom:
    """Draw one frame. It is a drawing for tests and no clinical evidence.

    Args:
        index: Index from 0; each run of three contains every class once.
        suite_seed: The suite's seed.
        size: Pixels a side, 128 to 1024.

    Returns:
        The frame (black outside the round or octagonal field), its class, the lesion's mask, and ``facts``:
        ``lesions`` (kind, centre, radius, contrast), ``lesion_area`` (share of the field), ``view``, ``hue``,
        ``contents`` (bile, debris, bubbles), ``exposure``, ``blur``, ``frame``.

    Raises:
        ValueError: The index or size is out of range.
    """
    check_request(index, size)
    label = balanced(suite_seed, WHAT, index, NAMES)
    with portable_opencv():
        part = partial(stream, suite_seed, WHAT, index)
        return render(part, size, lambda light: plan_lesions(part("plan"), label, light))


def _field(frame: str, size: int) -> Field:
    """Return the field of view, 1 inside and 0 outside."""
    canvas = Canvas(size)
    if frame == "round":
        canvas.disc(0.0, 0.0, 0.985)
    else:
        canvas.polygon(octagon(1.01, 0.67))
    return canvas.field()


def render(
    part: Callable[[str], np.random.Generator], size: int, plan: Callable[[Field], Sequence[Lesion]]
) -> LabelledPhantom:
    """Draw a frame.

    Args:
        part: Returns the random stream of a part of the picture.
        size: Pixels a side.
        plan: Returns the lesions on a wall with this light, float32 h×w.
    """
    shot = part("shot")
    dark = shot.random() < 0.12
    exposure = float(shot.uniform(0.3, 0.55)) if dark else 2.0 ** float(shot.normal(0.0, 0.28))
    blur = float(shot.uniform(0.6, 1.6)) if shot.random() < 0.25 else 0.0
    frame = "round" if shot.random() < 0.6 else "octagonal"
    wall = make_wall(part("wall"))
    lesions = [*plan(wall.light)]
    shape = (size, size)
    where = plane(size)
    pixels = size / 320.0
    albedo, light = resize(wall.albedo, shape), resize(wall.light, shape)
    mask, wet = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    for lesion in lesions:
        paint(part(f"lesion {lesion.number}"), albedo, where, lesion, mask, wet)
    contents = draw_contents(part("contents"), albedo, light, where, lesions, mask, wet)
    rng = part("texture")
    velvet, relief = villi(rng, shape, pixels)
    amount = float(rng.uniform(0.03, 0.12))
    rough = as_field((1.0 - 0.85 * wet) * amount)
    shade = as_field(1.0 + rough * (velvet + 0.7 * relief))
    vessels = draw_vessels(part("vessels"), shape) * np.float32(float(rng.uniform(0.0, 0.3)))
    linear = as_field(albedo * (light * np.float32(0.42 * exposure))[..., None])
    for channel, (grainy, red) in enumerate(((0.8, 0.2), (1.0, 0.8), (1.0, 0.7))):
        linear[..., channel] *= 1.0 + np.float32(grainy) * (shade - 1.0) - np.float32(red) * vessels * (1.0 - wet)
    facing = as_field(np.clip(wall.light, 0.0, 2.2) - np.float32(1.25))
    shine = draw_highlights(part("highlights"), shape, facing) * np.float32(float(rng.uniform(0.3, 1.0)))
    linear += shine[..., None]
    picture, _ = develop(part("sensor"), linear)
    field = _field(frame, size)
    picture = _black_frame(blurred(picture, blur * pixels), field)
    inside = field > 0.5
    truth = (mask > 0.5) & inside
    facts: dict[str, Json] = {
        "revision": REVISION,
        "lesions": [lesion.describe() for lesion in lesions],
        "lesion_area": round(float(truth.sum()) / float(inside.sum()), 5),
        "view": wall.view,
        "hue": wall.hue,
        "contents": contents,
        "exposure": round(exposure, 4),
        "blur": round(blur, 3),
        "frame": frame,
    }
    return LabelledPhantom(image=picture, labels=(judge(facts),), mask=truth, facts=facts)


def _black_frame(picture: NDArray[np.uint8], field: Field) -> NDArray[np.uint8]:
    whole = cv2.convertScaleAbs(field * np.float32(255.0))
    return np.asarray(cv2.multiply(picture, cv2.merge([whole] * 3), scale=1.0 / 255.0), np.uint8)
