"""Generator of fundus photographs from an index and the suite's seed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from medtest.core.cases import Json
from medtest.phantoms.classes import FUNDUS
from medtest.phantoms.drawing import Plane, blurred, grain, plane, portable_opencv, soft_colour, to_bytes
from medtest.phantoms.fields import Field, as_field, smoothstep
from medtest.phantoms.fundus.grades import draw_counts, grade
from medtest.phantoms.fundus.lesions import draw_harmless, draw_lesions
from medtest.phantoms.fundus.retina import RADIUS, Fundus, background, draw_anatomy, draw_disc, draw_vessels
from medtest.phantoms.labelled import LabelledPhantom, balanced, check_request, stream

REVISION = 1
"""Increased whenever the same random numbers give other pixels."""
WHAT = "fundus"
NAMES = FUNDUS.names
SIZE = 320
"""Default pixels a side."""


def judge(facts: dict[str, Any]) -> str:
    """Return the class of the counts by Messidor's definition (see :mod:`medtest.phantoms.fundus.grades`)."""
    return NAMES[grade(facts["microaneurysms"], facts["haemorrhages"], facts["neovascularisation"])]


def make(index: int, suite_seed: int, *, size: int = SIZE) -> LabelledPhantom:
    """Draw one photograph. It is a drawing for tests and no clinical evidence.

    Args:
        index: Index from 0; each run of four contains every grade once.
        suite_seed: The suite's seed.
        size: Pixels a side, 128 to 1024.

    Returns:
        The photograph (black outside the field), its grade, the lesions' mask, and ``facts``: ``microaneurysms``,
        ``haemorrhages``, ``neovascularisation``, ``exudates``, ``drusen``, ``specks``, ``contrast`` (of red lesions),
        ``lesion_area`` (share of the field), ``disc`` and ``fovea`` (centres in half sides), ``pigment``,
        ``exposure``, ``blur``.

    Raises:
        ValueError: The index or size is out of range.
    """
    check_request(index, size)
    label = balanced(suite_seed, WHAT, index, NAMES)
    with portable_opencv():
        return _render(partial(stream, suite_seed, WHAT, index), size, NAMES.index(label))


def _field(rng: np.random.Generator, where: Plane) -> Field:
    """Return the round field of view, cut above and below in some cameras."""
    distance = as_field(np.sqrt(where.x * where.x + where.y * where.y))
    edge = 3.0 / where.size
    field = as_field(1.0 - smoothstep(distance, RADIUS - edge, RADIUS + edge))
    if rng.random() < 0.3:
        field = as_field(field * (np.abs(where.y) < np.float32(0.86)))
    return field


def _render(part: Callable[[str], np.random.Generator], size: int, target_grade: int) -> LabelledPhantom:

    rng = part("plan")
    anatomy = draw_anatomy(rng)
    counts = draw_counts(rng, target_grade)
    where = plane(size)
    picture, mask = background(part("background"), where, anatomy), np.zeros(where.shape, np.float32)
    fundus = Fundus(where=where, anatomy=anatomy, picture=picture, mask=mask)
    draw_disc(part("disc"), fundus)
    draw_vessels(part("vessels"), fundus)
    harmless = draw_harmless(part("harmless"), fundus)
    contrast = draw_lesions(part("lesions"), fundus, counts)
    shot = part("shot")
    exposure = float(shot.uniform(0.72, 1.18))
    hazy = float(shot.uniform(0.0, 0.18)) if shot.random() < 0.3 else 0.0
    blur = float(shot.uniform(0.5, 1.1)) if shot.random() < 0.3 else 0.0
    picture *= np.float32(exposure * (1.0 - hazy))
    picture += np.array([150.0, 104.0, 66.0], np.float32) * np.float32(hazy)
    field = _field(shot, where)
    picture *= field[..., None]
    eight = blurred(to_bytes(picture), blur * size / 320.0)
    level = np.float32(shot.uniform(1.0, 3.2)) * (0.25 + 0.75 * field)
    noisy = eight + grain(part("sensor"), (size, size))[..., None] * level[..., None]
    image = soft_colour(to_bytes(as_field(noisy)))
    inside = field > 0.5
    truth = (mask > 0.5) & inside
    facts: dict[str, Json] = {
        "revision": REVISION,
        **counts,
        **harmless,
        "contrast": round(contrast, 3),
        "lesion_area": round(float(truth.sum()) / float(inside.sum()), 5),
        "disc": [round(v, 4) for v in anatomy.disc],
        "fovea": [round(v, 4) for v in anatomy.fovea],
        "pigment": round(anatomy.pigment, 3),
        "exposure": round(exposure, 4),
        "blur": round(blur, 3),
    }
    return LabelledPhantom(image=image, labels=(judge(facts),), mask=truth, facts=facts)
