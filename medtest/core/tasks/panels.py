"""How a task's cases are looked at: flat views, and the panels of a strip."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Effect, Image, Mask, Output, PreparedSeed
from medtest.core.scenes import Box


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatView:
    """A picture as a person looks at it.

    Attributes:
        image: uint8 H×W×3.
        region: bool H×W that is outlined; None where there is none.
    """

    image: NDArray[np.uint8]
    region: Mask | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One picture of a strip.

    Attributes:
        name: What stands below it; several lines are parted by line feeds.
        image: H×W×3, any size; None for an empty panel.
        words: What is written across it: why there is nothing to see.
        truth: bool H×W, outlined as expected.
        answer: bool H×W, outlined and tinted as answered.
        lines: Headings and texts that stand in the panel in place of a picture.
        boxes: Boxes that are drawn on it, as fractions of its width and height, each with what stands at it.
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
    """A system's answer, or why there is none."""

    output: Output | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A case as strips show it.

    Attributes:
        seed: The source case.
        image: The follow-up; None where there is none.
        reason: Why there is none.
        effect: What the relation did to the expected answer.
        before: The answer to the source.
        after: The answer to the follow-up.
        words: Headings and texts of :meth:`Task.words`.
        pixels: Returns a picture that an answer names by its SHA-256, uint8 H×W×3; None where it is no longer there.
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
    """A strip.

    Attributes:
        panels: From left to right.
        outlines: Whether a legend says what the outlines' colours mean.
        truth: Whether what is expected is among them.
    """

    panels: Sequence[Panel]
    outlines: bool = True
    truth: bool = False
