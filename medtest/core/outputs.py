"""What systems answer and seeds expect: one class for each kind of answer; part of :mod:`medtest.core.cases`."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.core.address import Address
from medtest.core.scenes import Prompt

Image: TypeAlias = NDArray[Any]
Mask: TypeAlias = NDArray[np.bool_]
Probability: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Classes:
    """What a classifier can answer, in the order of its scores.

    Attributes:
        names: Names of the classes, distinct.
        multi: Several may be true at once, or none (findings of a chest film); else exactly one is.
    """

    names: tuple[str, ...]
    multi: bool = False

    def ordered(self, labels: Iterable[str]) -> tuple[str, ...]:
        """Return labels in the order of the classes, each once."""
        given = set(labels)
        return tuple(name for name in self.names if name in given)


class Output:
    """What a system answered, checked, or what is expected: the base of every task's own class.

    Attributes:
        kind: Name of its task.
        facts: What the suite's reader tells of it (:mod:`medtest.readers.base`); None where none has read it.
    """

    kind: str
    facts: Any = None

    def read_as(self, facts: Any) -> Self:
        """Return the answer with what a reader tells of it."""
        read = copy.copy(self)
        object.__setattr__(read, "facts", facts)
        return read


@dataclass(frozen=True, kw_only=True, eq=False)
class MaskOutput(Output):
    """A segmentation: expected (a mask) or answered by a system (a probability map).

    Attributes:
        mask: bool H×W at the prepared image's size.
        probability: float32 H×W in [0, 1] at the prepared image's size; None for a ground truth.
        native: float32 h×w in [0, 1] at the size the system or the mask file had; None where it is the same.
    """

    mask: Mask
    probability: Probability | None = None
    native: Probability | None = None
    kind: str = field(default="mask", init=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class ImageOutput(Output):
    """A processed image, answered by an algorithm that maps images to images.

    Attributes:
        image: Of the input's shape and dtype.
        given: The image it was asked about, so that an oracle can say whether the answer is worse.
    """

    image: Image
    given: Image
    kind: str = field(default="image", init=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class RegionOutput(Output):
    """A segmentation of an image of any dimension (volumes, films).

    Attributes:
        region: bool, of the input's spatial shape.
    """

    region: NDArray[np.bool_]
    kind: str = field(default="region", init=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelOutput(Output):
    """A classification, answered by a system.

    Attributes:
        classes: The classes of the seeds; the answer is in their order.
        labels: What it decided, in the order of the classes: one label, or any number where several may be true.
        probabilities: float32 C in [0, 1], one for each class, None where the system gives labels alone. They sum to 1
            unless several classes may be true.
        mask: Where it also segments the lesion: at the prepared image's size; None else.
    """

    classes: Classes
    labels: tuple[str, ...]
    probabilities: Probability | None = None
    mask: MaskOutput | None = None
    kind: str = field(default="label", init=False)


@dataclass(frozen=True, kw_only=True)
class AnswerOutput(Output):
    """An answer in words, as a system gave it; an oracle reads a value from it.

    Attributes:
        address: Whose answer it is: the question is its ``item``.
        text: The words; "" where there are none.
        state: ``answered``, ``refusal``, ``content_filter``, ``length`` (cut off), ``malformed``: as
            :class:`medtest.api.calls.request.CallState`, whose ``error`` is no answer.
        model: What the server says answered; "" where it does not say.
        prompt_tokens: Tokens of the question as the server counted them (a share, where one call asked several), if so.
        completion_tokens: The same of the answer.
        cost_usd: What it cost, in US dollars, whenever it was paid for; None without a price or a count.
        seconds: Duration of the call that answered.
        attempts: Calls sent for it, the one that answered included; 0 where none was.
        mode: How it was asked for: ``schema``, ``json`` (in words, the schema among them), or ``words``.
        shaped: Whether it came in the shape of the schema; ``text`` then is its value in plain English.
    """

    address: Address
    text: str
    state: str = "answered"
    mode: str = "words"
    shaped: bool = False
    model: str = ""
    prompt_tokens: float | None = None
    completion_tokens: float | None = None
    cost_usd: float | None = None
    seconds: float | None = None
    attempts: int = 0
    kind: str = field(default="answer", init=False)


@dataclass(frozen=True, kw_only=True)
class PictureOutput(Output):
    """A picture that a text-to-image system drew, or why there is none; a reader says what it shows (``facts``).

    Attributes:
        address: Whose answer it is.
        prompt: What was asked.
        picture: SHA-256 of its pixels (:func:`image_sha256` of uint8 H×W×3), by which the run's folder keeps it; ""
            where none was drawn.
        state: ``answered``, ``refusal``, ``content_filter``, ``malformed``: as
            :class:`medtest.api.calls.request.CallState`.
        why: What says so, where there is none: "the service answered with an empty list".
        revised_prompt: What the service says it drew instead; "" where it says nothing.
        model: What the server says answered; "" where it does not say.
        prompt_tokens: Tokens of the prompt as the server counted them, if so.
        completion_tokens: The same of the picture.
        cost_usd: What it cost, in US dollars; None without a price.
        seconds: Duration of the call that answered.
        attempts: Calls sent for it; 0 where none was.
    """

    address: Address
    prompt: Prompt
    picture: str = ""
    state: str = "answered"
    why: str = ""
    revised_prompt: str = ""
    model: str = ""
    prompt_tokens: float | None = None
    completion_tokens: float | None = None
    cost_usd: float | None = None
    seconds: float | None = None
    attempts: int = 0
    kind: str = field(default="depiction", init=False)
