"""Sample strips: source, follow-up, truth, prediction before and prediction after, side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image as PillowImage
from PIL import ImageDraw, ImageFont

from medtest.core.cases import Effect, Image, PreparedSeed
from medtest.core.scenes import Box
from medtest.core.tasks.base import Case, CaseAnswer, Panel, SystemInput, task_of
from medtest.relations.base import CraftedRelation
from medtest.runner.pictures.montage import draw_montage
from medtest.runner.pictures.panels import (
    FAINT,
    INK,
    PAPER,
    Colour,
    Picture,
    canvas,
    fitted,
    mask_panel,
    outline,
    panel,
    paste,
    save,
    wrapped,
)
from medtest.runner.pictures.volume_cases import draw_volume, is_volume, shown_systems
from medtest.runner.pool.messages import Montage, StripTask
from medtest.runner.units.made_case import MadeCase, SystemAnswer, describe
from medtest.runner.units.parts import Parts, answers
from medtest.systems.answering.asking import draws_calls
from medtest.systems.base import System

PANEL = 300
"""Height of a panel in pixels; its width follows the image."""

_GAP = 6
_HEAD = 50
_FOOT = 26
_LINE = 18
_TRUTH = (0, 230, 118)
_ANSWER = (255, 64, 178)
_HALO = (0, 0, 0)
_TINT = 0.22
_WORDS, _MOST_LINES = 430, 4
_SMALL = 32
"""Changes of more levels than this are visible without amplifying."""
_TITLE, _TEXT = ImageFont.load_default(17), ImageFont.load_default(14)
_SMALL_TEXT, _SMALL_LINE = ImageFont.load_default(11), 14


def draw_strips(parts: Parts, systems: dict[int, System], task: StripTask) -> tuple[str, ...]:
    """Make cases of one seed again and draw them; called in a worker.

    Answers stored in the run's folder are drawn. Without them the systems are asked about the source and the follow-up
    alone, not about their whole batches, so that an outline may differ from the scored one by pixels exactly at the
    threshold.

    Args:
        parts: The suite's parts.
        systems: The systems by number, each opened when it is first looked up.
        task: The pictures to draw.

    Returns:
        Descriptions of pictures that could not be drawn.
    """
    try:
        seed = parts.prepared(task.source, task.ref)
    except Exception as error:  # noqa: BLE001 - as in a run, a seed source may raise anything
        return (f"Sample strips of one seed could not be drawn: {describe(error)}",)
    cases = parts.unit(task.ref).cases
    cases_made: dict[tuple[int, int], MadeCase] = {}
    answers: dict[tuple[int, int], SystemAnswer] = {}
    attacked = any(isinstance(relation, CraftedRelation) for relation in parts.relations.values())
    for strip in task.strips:
        for index, stored in zip((0, strip.case), strip.stored, strict=True):
            key = (parts.owner(cases[index], strip.system), index)
            if key not in cases_made:
                cases_made[key] = parts.make(seed, cases[index], strip.system)
            if (strip.system, index) not in answers:
                restored = _restore_answer(stored, seed, cases_made[key])
                answers[strip.system, index] = restored or _ask(systems[strip.system], cases_made[key])
        before, after = (
            answer if recorded is None else replace(answer, output=recorded)
            for answer, recorded in zip(
                (answers[strip.system, 0], answers[strip.system, strip.case]), strip.answers, strict=True
            )
        )
        case = cases_made[parts.owner(cases[strip.case], strip.system), strip.case]
        picture = draw_strip(
            seed,
            case,
            before,
            after,
            title=strip.title,
            detail=strip.detail,
            words=strip.words,
            amplify=attacked,
            pixels=parts.pixels,
        )
        save(picture, Path(strip.file))
    volumes = task.volumes if is_volume(seed) else ()
    every = [systems[number] for number in range(len(parts.suite.systems))] if task.montages or volumes else []
    for montage in task.montages:
        _draw_montage(every, seed, montage, [parts.make(seed, cases[index]) for index in montage.cases])
    drawn_systems = shown_systems(every)
    for volume in volumes:
        case = parts.make(seed, cases[volume.case])
        draw_volume(seed, case, drawn_systems, [_ask(system, case) for system in drawn_systems], volume)
    return ()


def _draw_montage(systems: Sequence[System], seed: PreparedSeed, montage: Montage, cases: Sequence[MadeCase]) -> None:
    rows = [(case.follow, [_ask(system, case) for system in systems]) for case in cases]
    names = [system.record_name for system in systems]
    save(draw_montage(seed, rows, names, title=montage.title), Path(montage.file))


def _restore_answer(stored: bytes | None, seed: PreparedSeed, case: MadeCase) -> SystemAnswer | None:
    """Return an answer stored in the run's folder; None if there is none, or it is unreadable."""
    if stored is None or case.follow is None:
        return None
    system_input = SystemInput(image=case.follow.image, spec=case.spec, classes=case.classes)
    try:
        return SystemAnswer(output=case.task.storage.restore(stored, seed, system_input))
    except Exception:  # noqa: BLE001 - a task may be a plug-in; the system is asked instead
        return None


def _ask(system: System, case: MadeCase) -> SystemAnswer:
    if case.follow is None or draws_calls(system):  # asking again would cost money and show nothing new
        return SystemAnswer(output=None, verdict=case.verdict, reason=case.reason)
    return answers(system, (case,), lambda: None)[0]


def draw_strip(
    seed: PreparedSeed,
    case: MadeCase,
    before: SystemAnswer,
    after: SystemAnswer,
    *,
    title: str,
    detail: str,
    words: Sequence[tuple[str, str]] = (),
    amplify: bool = False,
    pixels: Callable[[str], Image | None] = lambda sha256: None,
) -> Picture:
    """Draw one strip.

    Args:
        seed: The prepared source case.
        case: The follow-up.
        before: The system's answer to the source.
        after: Its answer to the follow-up.
        title: First line.
        detail: Second line.
        words: For questions: headings and texts beside the pictures.
        amplify: True to add an amplified difference between source and follow-up if the change is too small to see.
        pixels: Returns the picture with the SHA-256 named by an answer, None if it no longer exists.

    Returns:
        uint8 RGB picture.
    """
    strip = task_of(seed.kind).drawing.panels(
        Case(
            seed=seed,
            image=None if case.follow is None else case.follow.image,
            reason=case.reason.text,
            effect=Effect() if case.follow is None else case.follow.effect,
            before=CaseAnswer(output=before.output, reason=before.reason.text),
            after=CaseAnswer(output=after.output, reason=after.reason.text),
            words=words,
            pixels=pixels,
        )
    )
    panels = [(part.name, _draw_panel(part)) for part in strip.panels]
    if amplify and case.follow is not None:
        change = amplified(seed.image, case.follow.image)
        panels[1:1] = [] if change is None else [(change.name, _draw_panel(change))]
    return _assemble(panels, title, detail, with_truth=strip.truth, outlines=strip.outlines)


def amplified(source: Image, followup: Image) -> Panel | None:
    """Return the change from a source to its follow-up, amplified around grey; None if it is visible anyway, or zero.

    Args:
        source: uint8 H×W×3.
        followup: The same.
    """
    if source.shape != followup.shape or source.dtype != np.uint8 or followup.dtype != np.uint8:
        return None
    change = followup.astype(np.int16) - source.astype(np.int16)
    largest = int(np.abs(change).max(initial=0))
    if not 0 < largest <= _SMALL:
        return None
    factor = 127 // largest
    image = np.asarray(128 + factor * change, np.uint8)
    return Panel(name=f"change, amplified {factor} times\nat most {largest} of 255", image=image)


def _draw_panel(part: Panel) -> Picture:
    if part.lines:
        return _words_panel(part.lines)
    picture = panel(part.image, PANEL)
    if part.image is None:
        _write_inside(picture, part.words or "none", INK)
        return picture
    if part.answer is not None:
        inside = mask_panel(part.answer, picture).view(np.bool_)
        picture[inside] = (picture[inside] * (1 - _TINT) + np.array(_ANSWER) * _TINT).astype(np.uint8)
    outline(picture, part.truth, _TRUTH, 2)
    outline(picture, part.answer, _ANSWER, 2 if part.answer is part.truth else 1)
    _draw_boxes(picture, part.boxes)
    if part.words:
        _write_inside(picture, part.words, PAPER)
    return picture


def _draw_boxes(picture: Picture, boxes: Sequence[tuple[Box, str]]) -> None:
    """Draw boxes with their labels above them or, at the upper edge, inside."""
    if not boxes:
        return
    paper = PillowImage.fromarray(picture)
    draw = ImageDraw.Draw(paper)
    height, width = picture.shape[:2]
    for (x_min, top, right, bottom), words in boxes:
        x0, y0, x1, y1 = x_min * width, top * height, right * width - 1, bottom * height - 1
        draw.rectangle((x0 - 1, y0 - 1, x1 + 1, y1 + 1), outline=_HALO)
        draw.rectangle((x0, y0, x1, y1), outline=_ANSWER)
        label = fitted(draw, words, _SMALL_TEXT, width - 4)
        wide = draw.textlength(label, font=_SMALL_TEXT)
        at = (max(0, min(x0, width - wide - 4)), y0 - _SMALL_LINE if y0 >= _SMALL_LINE else y0)
        draw.rectangle((*at, at[0] + wide + 4, at[1] + _SMALL_LINE), fill=_HALO)
        draw.text((at[0] + 2, at[1]), label, fill=PAPER, font=_SMALL_TEXT)
    picture[:] = np.asarray(paper)


def _words_panel(words: Sequence[tuple[str, str]]) -> Picture:
    """Draw headings and texts below each other, as high as a panel."""
    paper, draw = canvas((_WORDS, PANEL))
    top = 0
    for name, text in words:
        lines = wrapped(draw, text, _TEXT, _WORDS - 8)[:_MOST_LINES]
        if top + _LINE * (1 + len(lines)) > PANEL:
            break
        draw.text((0, top), name, fill=FAINT, font=_TEXT)
        for line in lines:
            top += _LINE
            draw.text((8, top), fitted(draw, line, _TEXT, _WORDS - 8), fill=INK, font=_TEXT)
        top += _LINE + 4
    return np.asarray(paper)


def _write_inside(picture: Picture, words: str, colour: Colour) -> None:
    paper = PillowImage.fromarray(picture)
    draw = ImageDraw.Draw(paper)
    lines = wrapped(draw, words, _TEXT, picture.shape[1] - 24)[:6]
    top = (picture.shape[0] - 18 * len(lines)) // 2
    for number, line in enumerate(lines):
        draw.text((picture.shape[1] // 2, top + 18 * number), line, fill=colour, font=_TEXT, anchor="ma")
    picture[:] = np.asarray(paper)


def _assemble(
    panels: list[tuple[str, Picture]], title: str, detail: str, *, with_truth: bool, outlines: bool = True
) -> Picture:
    """Put panels side by side, each with the lines of its name below."""
    width = sum(picture.shape[1] for _, picture in panels) + _GAP * (len(panels) + 1)
    lines = max(name.count("\n") for name, _ in panels)
    paper, draw = canvas((width, _HEAD + PANEL + _FOOT + lines * _LINE))
    draw.text((_GAP, 5), fitted(draw, title, _TITLE, width - 2 * _GAP), fill=INK, font=_TITLE)
    legend = _legend(draw, width, with_truth=with_truth) if outlines else width
    draw.text((_GAP, 28), fitted(draw, detail, _TEXT, legend - 3 * _GAP), fill=FAINT, font=_TEXT)
    x = _GAP
    for name, picture in panels:
        paste(paper, picture, (x, _HEAD))
        for number, line in enumerate(name.split("\n")):
            at = (x + picture.shape[1] // 2, _HEAD + PANEL + 5 + number * _LINE)
            text = fitted(draw, line, _TEXT, picture.shape[1])
            draw.text(at, text, fill=INK, font=_TEXT, anchor="ma")
        x += picture.shape[1] + _GAP
    return np.asarray(paper)


def _legend(draw: ImageDraw.ImageDraw, width: int, *, with_truth: bool) -> int:
    """Draw the legend of colours at the right of the head; return where it begins."""
    right = width - _GAP
    for words, colour in (("answer", _ANSWER), *((("expected", _TRUTH),) if with_truth else ())):
        right -= int(draw.textlength(words, font=_TEXT))
        draw.text((right, 28), words, fill=INK, font=_TEXT)
        draw.rectangle((right - 22, 34, right - 6, 38), fill=colour, outline=_HALO)
        right -= 38
    return right
