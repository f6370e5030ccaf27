"""Generator of chest radiographs from an index and the suite's seed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Json
from medtest.phantoms.chest.anatomy import (
    Build,
    Chest,
    attenuation,
    build_chest,
    draw_bones,
    draw_build,
    draw_markings,
)
from medtest.phantoms.chest.devices import draw_devices
from medtest.phantoms.chest.findings import Drawn, draw_findings
from medtest.phantoms.chest.plan import apply_plan, plan_findings
from medtest.phantoms.classes import CHEST, CHEST_PREVALENCE
from medtest.phantoms.drawing import blurred, grain, plane, portable_opencv, to_bytes
from medtest.phantoms.fields import Field, as_field
from medtest.phantoms.labelled import LabelledPhantom, check_request, stream

REVISION = 2
"""Increased whenever the same random numbers give other pixels."""
WHAT = "chest"
NAMES = CHEST.names
SIZE = 256
"""Default pixels a side."""


def judge(facts: dict[str, Any]) -> tuple[str, ...]:
    """Return the findings that follow from the drawing, in class order.

    A heart wider than half the thorax is cardiomegaly; a round opacity of at most 30 mm is a nodule and a larger one a
    mass (D. M. Hansell et al., "Fleischner Society: glossary of terms for thoracic imaging", Radiology
    2008;246:697–722); the others hold if ``facts["traces"]`` contains their trace.
    """
    held = set(facts["traces"])
    if facts["cardiothoracic_ratio"] > 0.5:
        held.add("cardiomegaly")
    for opacity in facts["round_opacities"]:
        held.add("nodule" if opacity["diameter_mm"] <= 30.0 else "mass")
    return tuple(name for name in NAMES if name in held)


def make(index: int, suite_seed: int, *, size: int = SIZE) -> LabelledPhantom:
    """Draw one radiograph. It is a drawing for tests and no clinical evidence.

    Args:
        index: Index from 0. Findings are drawn independently with the probabilities of
            :data:`~medtest.phantoms.classes.CHEST_PREVALENCE`.
        suite_seed: The suite's seed.
        size: Pixels a side, 128 to 1024.

    Returns:
        The radiograph (three equal channels), its findings, no mask, and ``facts``: ``cardiothoracic_ratio``,
        ``round_opacities`` (``diameter_mm``, ``side``, ``centre``), ``traces`` (by finding),
        ``portable``, ``breasts``, ``devices``, ``exposure``, ``blur``.

    Raises:
        ValueError: The index or size is out of range.
    """
    check_request(index, size)
    with portable_opencv():
        part = partial(stream, suite_seed, WHAT, index)
        plan = plan_findings(part("findings"), CHEST_PREVALENCE)
        build = apply_plan(part("build"), draw_build(part("patient")), plan)
        return render(part, size, build, lambda chest: draw_findings(part, chest, plan))


def render(
    part: Callable[[str], np.random.Generator], size: int, build: Build, draw: Callable[[Chest], Drawn]
) -> LabelledPhantom:
    """Draw a radiograph of a patient.

    Args:
        part: Returns the random stream of a part of the picture.
        size: Pixels a side.
        build: The patient's build, changed by the findings.
        draw: Draws the findings on the patient.
    """
    where = plane(size, zoom=build.zoom, shift=build.shift)
    chest = build_chest(where, build)
    drawn = draw(chest)
    total = attenuation(part("tissue"), chest, drawn.air)
    draw_bones(part("bones"), total, chest)
    markings = draw_markings(part("markings"), chest)
    total += 0.19 * build.markings * markings * drawn.markings * chest.lungs * (1.0 - 0.5 * chest.heart)
    total += drawn.added
    devices = draw_devices(part("devices"), total, chest)
    image, exposure, blur = _expose(part("shot"), part("sensor"), total, build.portable)
    facts: dict[str, Json] = {
        "revision": REVISION,
        "cardiothoracic_ratio": round(build.heart, 4),
        "round_opacities": list(drawn.round_opacities),
        "traces": dict(drawn.traces),
        "portable": build.portable,
        "breasts": build.breasts > 0,
        "devices": devices,
        "exposure": round(exposure, 4),
        "blur": round(blur, 3),
    }
    return LabelledPhantom(image=image, labels=judge(facts), mask=None, facts=facts)


def _expose(
    rng: np.random.Generator, sensor: np.random.Generator, total: Field, portable: bool
) -> tuple[NDArray[np.uint8], float, float]:
    """Return the film as grey RGB, its exposure and its blur (pixels at 256)."""
    size = total.shape[0]
    exposure = float(rng.uniform(0.85, 1.15))
    contrast = float(rng.uniform(0.8, 0.95) if portable else rng.uniform(0.9, 1.12))
    level = np.clip((total - 0.45) * np.float32(contrast) + 0.45 * exposure, 0.0, 1.2)
    if rng.random() < 0.5:
        level = as_field(0.6 * level + 0.4 * level * level)
    blur = float(rng.uniform(0.4, 0.9)) if rng.random() < 0.35 else 0.0
    picture = blurred(to_bytes(as_field(level * np.float32(238.0))), blur * size / 256.0)
    noisy = picture + grain(sensor, (size, size)) * np.float32(float(rng.uniform(1.5, 5.0)))
    grey = to_bytes(as_field(noisy))
    return np.asarray(cv2.merge([grey, grey, grey]), np.uint8), exposure, blur
