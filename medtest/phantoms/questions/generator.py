"""Generator of question pictures from an index and the suite's seed, with the true answers to the 18 questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image, Json, Mask
from medtest.phantoms.colon.camera import develop
from medtest.phantoms.colon.details import draw_highlights, draw_vessels
from medtest.phantoms.drawing import portable_opencv
from medtest.phantoms.fields import Field, as_field, resize
from medtest.phantoms.labelled import check_request, stream
from medtest.phantoms.questions.answers import true_answers
from medtest.phantoms.questions.canvas import WORK, PictureDraft, cells_of
from medtest.phantoms.questions.display import (
    CORNERS,
    box_place,
    draw_box,
    draw_text,
    field_of_view,
    text_box,
    text_lines,
)
from medtest.phantoms.questions.findings import draw_findings, lesion_of
from medtest.phantoms.questions.instruments import draw_instrument
from medtest.phantoms.questions.plan import SCENES, QuestionScene, scene_of
from medtest.phantoms.questions.walls import make_wall

REVISION = 2
"""Increased whenever the same random numbers give other pixels or other answers."""
WHAT = "questions"
SIZE = 512
"""Default pixels a side."""


@dataclass(frozen=True, kw_only=True, eq=False)
class QuestionPhantom:
    """Drawn picture with its answers.

    Attributes:
        image: uint8 size×size×3 RGB.
        answers: True answers by question, in the contest's words; each of the 18 has at least one.
        mask: bool size×size, True on everything that must stay visible for the answers to hold: local findings
            and landmarks, instruments, text, box.
        facts: Description as JSON values.
    """

    image: Image
    answers: Mapping[str, tuple[str, ...]]
    mask: Mask
    facts: dict[str, Json] = field(default_factory=dict)


def make(index: int, suite_seed: int, *, size: int = SIZE) -> QuestionPhantom:
    """Draw one picture. It is a drawing for tests and no clinical evidence.

    Args:
        index: Index from 0; each run of twenty contains every scene of :data:`~.plan.SCENES` once.
        suite_seed: The suite's seed.
        size: Pixels a side, 128 to 1024. The answers do not depend on it, except positions of instruments at a border.

    Raises:
        ValueError: The index or size is out of range.
    """
    check_request(index, size)
    with portable_opencv():
        return render(partial(stream, suite_seed, WHAT, index), size, plan(index, suite_seed))


def plan(index: int, suite_seed: int) -> QuestionScene:
    """Return the scene of a picture."""
    block, place = divmod(index, len(SCENES))
    order = stream(suite_seed, WHAT, block, "order").permutation(len(SCENES))
    return scene_of(stream(suite_seed, WHAT, index, "plan"), SCENES[int(order[place])], redraw=block > 0)


def render(part: Callable[[str], np.random.Generator], size: int, scene: QuestionScene) -> QuestionPhantom:
    """Draw a scene, each part of it from its own random stream."""
    work = make_wall(part("wall"), scene)
    polyps = draw_findings(part("findings"), work, scene)
    field_ = field_of_view(part("frame"), size)
    keep = _protected_area(work, scene, size)
    lines, corner = _text_place(part("text"), scene, keep)
    if lines:
        keep |= text_box(corner, lines, size)
    picture = _render_wall(part, work, size)
    instruments = []
    for number, tool in enumerate(scene.instruments):
        laid = draw_instrument(part(f"instrument {number}"), picture, tool, keep) & (field_ > 0.5)
        if scene.box:
            laid &= ~box_place(size)
        instruments.append(laid)
        keep |= laid
    eight, _ = develop(part("sensor"), as_field(picture * np.float32(float(part("shot").uniform(0.92, 1.06)))))
    eight = np.rint(eight * field_[..., None]).astype(np.uint8)
    if scene.box:
        draw_box(part("box"), eight)
    if lines:
        draw_text(eight, lines, corner)
    inside = resize(as_field(field_), (WORK, WORK), smooth=False) > 0.5
    tools = zip(scene.instruments, instruments, strict=True)
    answers = true_answers(
        scene,
        finding_cells=_cells(work, inside, ("polyp ", "disease")),
        landmark_cells=_cells(work, inside, ("landmark",)),
        instrument_cells=[cell for tool, laid in tools for cell in (tool.cell, *cells_of(laid))],
    )
    facts: dict[str, Json] = {
        "revision": REVISION,
        "region": scene.region,
        "polyps": [
            {**drawn, "size": polyp.size, "colour": polyp.colour, "type": polyp.type}
            for polyp, drawn in zip(scene.polyps, polyps, strict=True)
        ],
        "disease": scene.disease,
        "removed": scene.removed,
        "hard": scene.hard,
        "instruments": [tool.kind for tool in scene.instruments],
        "text": [*lines],
        "box": scene.box,
    }
    return QuestionPhantom(image=eight, answers=answers, mask=keep, facts=facts)


def _protected_area(work: PictureDraft, scene: QuestionScene, size: int) -> NDArray[np.bool_]:
    """Return the area of local findings, landmark and box that must stay visible."""
    local = np.zeros((WORK, WORK), np.bool_)
    for place in work.things.values():
        if float(place.mean()) < 0.5:
            local |= place
    full = np.asarray(resize(as_field(local), (size, size), smooth=False) > 0.5)
    return full | box_place(size) if scene.box else full


def _text_place(rng: np.random.Generator, scene: QuestionScene, keep: NDArray[np.bool_]) -> tuple[list[str], str]:
    """Return the lines of the display and the corner where they cover least; no lines without text."""
    lines = text_lines(rng)
    if not scene.text:
        return [], ""
    cover = {corner: float((text_box(corner, lines, keep.shape[0]) & keep).sum()) for corner in CORNERS}
    return lines, min(CORNERS, key=lambda corner: cover[corner])


def _render_wall(part: Callable[[str], np.random.Generator], work: PictureDraft, size: int) -> Field:
    """Return linear RGB size×size×3: the lit wall with texture, vessels and highlights."""
    shape = (size, size)
    lesion = lesion_of(work)
    linear = resize(as_field(work.albedo * work.light[..., None]), shape, smooth=False)
    wet = resize(work.wet, shape, smooth=False)
    rng = part("texture")
    vessels = draw_vessels(part("vessels"), shape) * wet * np.float32(float(rng.uniform(0.12, 0.35)))
    for channel, red in enumerate((0.25, 0.75, 0.6)):
        linear[..., channel] *= 1.0 - np.float32(red) * vessels
    facing = resize(as_field(np.clip(work.light, 0.0, 1.6) - 1.25 - 0.4 * lesion), shape, smooth=False)
    shine = draw_highlights(part("highlights"), shape, facing) * np.float32(float(rng.uniform(0.4, 0.9)))
    linear += shine[..., None]
    return as_field(linear)


def _cells(work: PictureDraft, inside: NDArray[np.bool_], names: tuple[str, ...]) -> list[str]:
    return [cell for name, place in work.things.items() if name.startswith(names) for cell in cells_of(place & inside)]
