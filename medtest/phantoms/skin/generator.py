"""Generator of dermoscopic pictures from an index and the suite's seed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from medtest.core.cases import Json
from medtest.phantoms.classes import DERMOSCOPY
from medtest.phantoms.drawing import blurred, grain, plane, portable_opencv, soft_colour, to_bytes
from medtest.phantoms.fields import as_field
from medtest.phantoms.labelled import LabelledPhantom, balanced, check_request, stream
from medtest.phantoms.skin.abcd import BENIGN_BELOW, MELANOMA_ABOVE, draw_signs, total_score
from medtest.phantoms.skin.lesion import draw_outline, paint
from medtest.phantoms.skin.surroundings import draw_over, draw_skin, vignette

REVISION = 2
"""Increased whenever the same random numbers give other pixels."""
WHAT = "dermoscopy"
NAMES = DERMOSCOPY.names
SIZE = 256
"""Default pixels a side."""


def judge(facts: dict[str, Any]) -> str:
    """Return the class of a drawing by the ABCD rule (see :mod:`medtest.phantoms.skin.abcd`).

    Raises:
        ValueError: The lesion is suspicious by the rule, which no phantom should be.
    """
    score = total_score(facts["asymmetry"], facts["border"], len(facts["colours"]), len(facts["structures"]))
    if score < BENIGN_BELOW:
        return "benign"
    if score > MELANOMA_ABOVE:
        return "melanoma"
    raise ValueError(f"a total score of {score} is neither benign nor melanoma")


def make(index: int, suite_seed: int, *, size: int = SIZE) -> LabelledPhantom:
    """Draw one picture. It is a drawing for tests and no clinical evidence.

    Args:
        index: Index from 0; each pair contains a benign lesion and a melanoma.
        suite_seed: The suite's seed.
        size: Pixels a side, 128 to 1024.

    Returns:
        The picture, its class, the lesion's mask, and ``facts``: ``asymmetry`` (0–2), ``border`` (abrupt segments,
        0–8), ``colours``, ``structures``, ``score`` (total dermatoscopy score), ``radius``, ``contrast``,
        ``lesion_area`` (share of the picture), ``skin``, ``hairs``, ``ruler``, ``vignette``, ``blur``.

    Raises:
        ValueError: The index or size is out of range.
    """
    check_request(index, size)
    label = balanced(suite_seed, WHAT, index, NAMES)
    with portable_opencv():
        return _render(partial(stream, suite_seed, WHAT, index), size, label)


def _render(part: Callable[[str], np.random.Generator], size: int, label: str) -> LabelledPhantom:

    rng = part("plan")
    signs = draw_signs(rng, label)
    outline = draw_outline(rng, signs)
    where = plane(size)
    picture, skin = draw_skin(part("skin"), where)
    alpha = paint(part("lesion"), picture, where, outline, signs)
    over = draw_over(part("over"), picture, where)
    shot = part("shot")
    blur = float(shot.uniform(0.5, 1.5)) if shot.random() < 0.3 else 0.0
    exposure = float(shot.uniform(0.82, 1.12))
    cast = [exposure * float(v) for v in shot.uniform(0.96, 1.04, 3)]
    field, rim = vignette(shot, where)
    for channel in range(3):
        picture[..., channel] *= field * np.float32(cast[channel])
    eight = blurred(to_bytes(picture), blur * size / 256.0)
    noisy = eight + grain(part("sensor"), (size, size))[..., None] * np.float32(float(shot.uniform(1.0, 4.0)))
    image = soft_colour(to_bytes(as_field(noisy)))
    truth = (alpha > 0.5) & (field > 0.35)
    facts: dict[str, Json] = {
        "revision": REVISION,
        "asymmetry": signs.asymmetry,
        "border": sum(signs.border),
        "colours": list(signs.colours),
        "structures": list(signs.structures),
        "score": signs.score,
        "radius": round(outline.radius, 4),
        "contrast": round(outline.contrast, 3),
        "lesion_area": round(float(truth.mean()), 5),
        "skin": skin,
        **over,
        "vignette": rim,
        "blur": round(blur, 3),
    }
    return LabelledPhantom(image=image, labels=(judge(facts),), mask=truth, facts=facts)
