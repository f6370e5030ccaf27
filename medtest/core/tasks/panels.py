"""Presentation of a task's cases: flat views, and the panels of a strip."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Effect, Image, Mask, Output, PreparedSeed
from medtest.core.scenes import Box


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatView:
    """Flat picture for display.

    Attributes:
        image: uint8 H×W×3.
        region: bool H×W to outline; None if there is none.
    """

    image: NDArray[np.uint8]
    region: Mask | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One picture of a strip.

    Attributes:
        name: Caption; may have several lines.
        image: H×W×3, any size; None for an empty panel.
        words: Text written across an empty panel: the reason why there is no picture.
        truth: bool H×W, outlined as expected.
        answer: bool H×W, outlined and tinted as answered.
        lines: Headings and texts shown in place of a picture.
        boxes: Boxes drawn on the picture, as fractions of its width and height, each with its label.
    """

    name: str
    image: Image | None = None
    words: str = ""
    truth: Mask | None = None
    answer: Mask | None = None
    lines: Sequence[tuple[str, str]] = ()
    boxes: Sequence[tuple[Box, str]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseAnswer:
    """A system's answer, or the reason for its absence."""

    output: Output | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Case data for strips.

    Attributes:
        seed: The source case.
        image: The follow-up; None if there is none.
        reason: Reason for a missing follow-up.
        effect: Effect of the relation on the expected answer.
        before: The answer to the source.
        after: The answer to the follow-up.
        words: Headings and texts of :meth:`Task.words`.
        pixels: Returns the picture with the SHA-256 named by an answer, uint8 H×W×3; None if it no longer exists.
    """

    seed: PreparedSeed
    image: Image | None
    reason: str = ""
    effect: Effect = Effect()
    before: CaseAnswer
    after: CaseAnswer
    words: Sequence[tuple[str, str]] = ()
    pixels: Callable[[str], Image | None] = lambda sha256: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Panels:
    """Strip of panels.

    Attributes:
        panels: From left to right.
        outlines: True if a legend explains the outlines' colours.
        truth: True if the expected answer is outlined.
    """

    panels: Sequence[Panel]
    outlines: bool = True
    truth: bool = False
