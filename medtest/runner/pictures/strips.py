"""Sample strips: source, follow-up, truth, prediction before, prediction after, side by side, for people to look at."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image as PillowImage
from PIL import ImageDraw, ImageFont

from medtest.cases import Image, Mask, PreparedSeed
from medtest.runner.folder import writing
from medtest.runner.pictures.lettering import fitted
from medtest.runner.pictures.montage import MontageRow, draw_montage, save_montage
from medtest.runner.pictures.volume_cases import draw_volume, is_volume, shown_systems
from medtest.runner.pool.messages import Montage, Strip, StripTask
from medtest.runner.units.parts import MadeCase, Parts, SystemAnswer, answers, describe
from medtest.systems.asking import draws_calls
from medtest.systems.base import System
from medtest.tasks.base import Case, CaseAnswer, Panel, task_of

Picture: TypeAlias = NDArray[np.uint8]

PANEL = 300
"""Height of a panel in pixels; its width follows the image."""

_GAP = 6
_HEAD = 50
_FOOT = 26
_LINE = 18
_PAPER = (255, 255, 255)
_INK = (28, 30, 34)
_FAINT = (104, 108, 116)
_TRUTH = (0, 230, 118)
_ANSWER = (255, 64, 178)
_HALO = (0, 0, 0)
_TINT = 0.22
_WORDS, _MOST_LINES = 430, 4
_TITLE, _TEXT = ImageFont.load_default(17), ImageFont.load_default(14)


def draw_strips(parts: Parts, systems: Sequence[System], task: StripTask) -> tuple[str, ...]:
    """Make cases of one seed again and draw them; called in a worker.

    The systems are asked about the source and the follow-up alone, not about their whole batches, so that an outline
    may differ from what was scored by a pixel that stood exactly at the threshold.

    Returns:
        What could not be drawn, in words.
    """
    try:
        seed = parts.prepared(task.source, task.ref)
    except Exception as error:  # noqa: BLE001 - as in a run, a seed source may raise anything
        return (f"Sample strips of one seed could not be drawn: {describe(error)}",)
    cases = parts.unit(task.ref).cases
    made: dict[int, MadeCase] = {}
    known: dict[tuple[int, int], SystemAnswer] = {}
    for strip in task.strips:
        for index in (0, strip.case):
            if index not in made:
                made[index] = parts.make(seed, cases[index])
            if (strip.system, index) not in known:
                known[strip.system, index] = _answer(systems[strip.system], made[index])
        before, after = known[strip.system, 0], known[strip.system, strip.case]
        picture = draw_strip(
            seed, made[strip.case], before, after, title=strip.title, detail=strip.detail, words=strip.words
        )
        _save(picture, strip)
    for montage in task.montages:
        _draw_montage(systems, seed, montage, [parts.make(seed, cases[index]) for index in montage.cases])
    if task.volumes and is_volume(seed):
        shown = shown_systems(systems)
        for volume in task.volumes:
            case = parts.make(seed, cases[volume.case])
            draw_volume(seed, case, shown, [_answer(system, case) for system in shown], volume)
    return ()


def _draw_montage(systems: Sequence[System], seed: PreparedSeed, montage: Montage, made: Sequence[MadeCase]) -> None:
    rows = [
        MontageRow(
            label="" if case.follow is None else f"{case.follow.scale:g}",
            image=None if case.follow is None else case.follow.image,
            answers=[_answer(system, case) for system in systems],
        )
        for case in made
    ]
    names = [system.record_name for system in systems]
    save_montage(draw_montage(seed, rows, names, title=montage.title), Path(montage.file))


def _answer(system: System, case: MadeCase) -> SystemAnswer:
    if case.follow is None or draws_calls(system):  # asking again would cost, and say nothing more
        return SystemAnswer(output=None, verdict=case.verdict, reason=case.reason)
    return answers(system, (case,), lambda: None)[0]


def _save(picture: Picture, strip: Strip) -> None:
    with writing(Path(strip.file)) as file:
        PillowImage.fromarray(picture).save(file, format="PNG")


def draw_strip(
    seed: PreparedSeed,
    case: MadeCase,
    before: SystemAnswer,
    after: SystemAnswer,
    *,
    title: str,
    detail: str,
    words: Sequence[tuple[str, str]] = (),
) -> Picture:
    """Draw one strip.

    Args:
        seed: The prepared source case.
        case: The follow-up.
        before: The system's answer to the source.
        after: Its answer to the follow-up.
        title: First line.
        detail: Second line.
        words: Of questions: headings and texts that stand beside the pictures.

    Returns:
        uint8 RGB picture.
    """
    shown = task_of(seed.kind).panels(
        Case(
            seed=seed,
            image=None if case.follow is None else case.follow.image,
            reason=case.reason,
            before=CaseAnswer(output=before.output, reason=before.reason),
            after=CaseAnswer(output=after.output, reason=after.reason),
            words=words,
        )
    )
    panels = [(panel.name, _drawn(panel)) for panel in shown.panels]
    return _assemble(panels, title, detail, with_truth=shown.truth, outlines=shown.outlines)


def _drawn(panel: Panel) -> Picture:
    if panel.lines:
        return _words_panel(panel.lines)
    return _panel(panel.image, panel.words, truth=panel.truth, answer=panel.answer)


def _panel(image: Image | None, words: str = "", *, truth: Mask | None = None, answer: Mask | None = None) -> Picture:
    if image is None:
        picture = np.full((PANEL, PANEL, 3), 236, dtype=np.uint8)
        _write_inside(picture, words or "none", _INK)
        return picture
    height, width = image.shape[:2]
    size = (max(1, round(PANEL * width / height)), PANEL)
    picture = np.ascontiguousarray(cv2.resize(_as_bytes(image), size, interpolation=cv2.INTER_AREA), dtype=np.uint8)
    if answer is not None:
        inside = _resized(answer, size).view(np.bool_)
        picture[inside] = (picture[inside] * (1 - _TINT) + np.array(_ANSWER) * _TINT).astype(np.uint8)
    for mask, colour in ((truth, _TRUTH), (answer, _ANSWER)):
        if mask is not None:
            outlines, _ = cv2.findContours(_resized(mask, size), cv2.RETR_LIST, cv2.CHAIN_APPROX_NONE)
            cv2.drawContours(picture, outlines, -1, colour, 2 if mask is truth else 1, cv2.LINE_AA)
    if words:
        _write_inside(picture, words, _PAPER)
    return picture


def _words_panel(words: Sequence[tuple[str, str]]) -> Picture:
    """Return headings and texts one below the other, as high as a panel."""
    canvas = PillowImage.new("RGB", (_WORDS, PANEL), _PAPER)
    draw = ImageDraw.Draw(canvas)
    top = 0
    for name, text in words:
        lines = _wrap(draw, text, _WORDS - 8)[:_MOST_LINES]
        if top + _LINE * (1 + len(lines)) > PANEL:
            break
        draw.text((0, top), name, fill=_FAINT, font=_TEXT)
        for line in lines:
            top += _LINE
            draw.text((8, top), fitted(draw, line, _TEXT, _WORDS - 8), fill=_INK, font=_TEXT)
        top += _LINE + 4
    return np.asarray(canvas)


def _as_bytes(image: Image) -> Picture:
    if image.dtype == np.uint8 and image.ndim == 3:
        return image
    low, high = float(image.min()), float(image.max())
    scaled = (image.astype(np.float32) - low) * (255.0 / (high - low) if high > low else 0.0)
    grey = scaled.astype(np.uint8)
    return grey if grey.ndim == 3 else np.repeat(grey[..., None], 3, axis=2)


def _resized(mask: Mask, size: tuple[int, int]) -> Picture:
    small = cv2.resize(np.ascontiguousarray(mask).view(np.uint8), size, interpolation=cv2.INTER_NEAREST)
    return np.asarray(small, dtype=np.uint8)


def _write_inside(picture: Picture, words: str, colour: tuple[int, int, int]) -> None:
    canvas = PillowImage.fromarray(picture)
    draw = ImageDraw.Draw(canvas)
    lines = _wrap(draw, words, picture.shape[1] - 24)[:6]
    top = (picture.shape[0] - 18 * len(lines)) // 2
    for number, line in enumerate(lines):
        draw.text((picture.shape[1] // 2, top + 18 * number), line, fill=colour, font=_TEXT, anchor="ma")
    picture[:] = np.asarray(canvas)


def _wrap(draw: ImageDraw.ImageDraw, words: str, width: int) -> list[str]:
    lines = [""]
    for word in words.split():
        longer = f"{lines[-1]} {word}".strip()
        if draw.textlength(longer, font=_TEXT) <= width or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def _assemble(
    panels: list[tuple[str, Picture]], title: str, detail: str, *, with_truth: bool, outlines: bool = True
) -> Picture:
    """Put panels side by side; the lines of a panel's name stand below it."""
    width = sum(picture.shape[1] for _, picture in panels) + _GAP * (len(panels) + 1)
    lines = max(name.count("\n") for name, _ in panels)
    canvas = PillowImage.new("RGB", (width, _HEAD + PANEL + _FOOT + lines * _LINE), _PAPER)
    draw = ImageDraw.Draw(canvas)
    draw.text((_GAP, 5), fitted(draw, title, _TITLE, width - 2 * _GAP), fill=_INK, font=_TITLE)
    legend = _legend(draw, width, with_truth=with_truth) if outlines else width
    draw.text((_GAP, 28), fitted(draw, detail, _TEXT, legend - 3 * _GAP), fill=_FAINT, font=_TEXT)
    left = _GAP
    for name, picture in panels:
        canvas.paste(PillowImage.fromarray(picture), (left, _HEAD))
        for number, line in enumerate(name.split("\n")):
            at = (left + picture.shape[1] // 2, _HEAD + PANEL + 5 + number * _LINE)
            shown = fitted(draw, line, _TEXT, picture.shape[1])
            draw.text(at, shown, fill=_INK, font=_TEXT, anchor="ma")
        left += picture.shape[1] + _GAP
    return np.asarray(canvas)


def _legend(draw: ImageDraw.ImageDraw, width: int, *, with_truth: bool) -> int:
    """Draw what the colours mean at the right of the head; return where it begins."""
    right = width - _GAP
    for words, colour in (("answer", _ANSWER), *((("expected", _TRUTH),) if with_truth else ())):
        right -= int(draw.textlength(words, font=_TEXT))
        draw.text((right, 28), words, fill=_INK, font=_TEXT)
        draw.rectangle((right - 22, 34, right - 6, 38), fill=colour, outline=_HALO)
        right -= 38
    return right
