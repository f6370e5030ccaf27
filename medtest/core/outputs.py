"""Output types: answers of systems and expected answers, one class per kind; part of :mod:`medtest.core.cases`."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.core.address import Address
from medtest.core.scenes import Prompt

Image: TypeAlias = NDArray[Any]
Mask: TypeAlias = NDArray[np.bool_]
Probability: TypeAlias = NDArray[np.float32]
Displacements: TypeAlias = NDArray[np.float16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Classes:
    """Possible answers of a classifier, in the order of its scores.

    Attributes:
        names: Names of the classes, distinct.
        multi: Several may be true at once, or none (findings of a chest film); else exactly one is.
    """

    names: tuple[str, ...]
    multi: bool = False

    def ordered(self, labels: Iterable[str]) -> tuple[str, ...]:
        """Return distinct labels in class order."""
        present = set(labels)
        return tuple(name for name in self.names if name in present)


class Output:
    """Checked answer of a system, or an expected answer: base class for every task.

    Attributes:
        kind: Name of its task.
        facts: The suite's reader's interpretation (:mod:`medtest.readers.base`); None if it has not been read.
        has_labels: True if answers are labels of the seeds' classes.
        marks_region: True if answers mark pixels or voxels.
    """

    has_labels: ClassVar[bool] = False
    marks_region: ClassVar[bool] = False
    kind: str
    facts: Any = None

    def read_as(self, facts: Any) -> Self:
        """Return a copy of the answer with a reader's facts."""
        answer = copy.copy(self)
        object.__setattr__(answer, "facts", facts)
        return answer


@dataclass(frozen=True, kw_only=True, eq=False)
class MaskOutput(Output):
    """Segmentation: expected (a mask) or answered by a system (a probability map).

    Attributes:
        mask: bool H×W at the prepared image's size.
        probability: float32 H×W in [0, 1] at the prepared image's size; None for a ground truth.
        native: float32 h×w in [0, 1] at the original size of the answer or mask file; None if equal.
    """

    marks_region: ClassVar[bool] = True
    mask: Mask
    probability: Probability | None = None
    native: Probability | None = None
    kind: str = field(default="mask", init=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class ImageOutput(Output):
    """Processed image returned by an image-to-image algorithm.

    Attributes:
        image: Of the input's shape and dtype.
        given: The input image, so that an oracle can tell whether the answer is worse.
    """

    image: Image
    given: Image
    kind: str = field(default="image", init=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class RegionOutput(Output):
    """Segmentation of an image of any dimension (volumes, films).

    Attributes:
        region: bool, of the input's spatial shape.
    """

    marks_region: ClassVar[bool] = True
    region: NDArray[np.bool_]
    kind: str = field(default="region", init=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelOutput(Output):
    """Classification by a system.

    Attributes:
        classes: The classes of the seeds, which define the order of the answer.
        labels: Predicted labels in class order: one label, or any number if several may be true.
        probabilities: float32 C in [0, 1], one per class, None if the system returns only labels. They sum to 1 unless
            several classes may be true.
        mask: Segmentation of the lesion at the prepared image's size; None if the system does not segment.
    """

    has_labels: ClassVar[bool] = True
    classes: Classes
    labels: tuple[str, ...]
    probabilities: Probability | None = None
    mask: MaskOutput | None = None
    kind: str = field(default="label", init=False)


@dataclass(frozen=True, kw_only=True)
class AnswerOutput(Output):
    """Text answer, unchanged from the system; an oracle reads a value from it.

    Attributes:
        address: Address of the case; its ``item`` is the question.
        text: The words; "" if there are none.
        state: ``answered``, ``refusal``, ``content_filter``, ``length`` (cut off), ``malformed``: as
            :class:`medtest.api.calls.request.CallState`, whose ``error`` is not an answer.
        model: Model name reported by the server; "" if not reported.
        prompt_tokens: Tokens of the question as reported by the server (a share, if one call asked several).
        completion_tokens: Tokens of the answer.
        cost_usd: Cost in US dollars, whenever it was paid; None without a price or a count.
        seconds: Duration of the successful call.
        attempts: Calls sent, including the successful one; 0 if none was sent.
        mode: Requested format: ``schema``, ``json`` (the prompt describes the schema), or ``words``.
        shaped: True if the answer followed the schema; ``text`` then is its value in plain English.
        likely: Likely tokens with their log-probabilities where the answer says yes or no; empty if not requested or
            not reported.
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
    likely: tuple[tuple[str, float], ...] = ()
    kind: str = field(default="answer", init=False)


@dataclass(frozen=True, kw_only=True)
class PictureOutput(Output):
    """Picture drawn by a text-to-image system, or the reason for its absence; a reader describes it (``facts``).

    Attributes:
        address: Address of the case.
        prompt: The prompt.
        picture: SHA-256 of its pixels (:func:`image_sha256` of uint8 H×W×3), by which the run's folder keeps it; "" if
            none was drawn.
        state: ``answered``, ``refusal``, ``content_filter``, ``malformed``: as
            :class:`medtest.api.calls.request.CallState`.
        why: Evidence if there is no picture: "the service answered with an empty list".
        revised_prompt: Prompt that the service reports to have used instead; "" if not reported.
        model: Model name reported by the server; "" if not reported.
        prompt_tokens: Tokens of the prompt as reported by the server.
        completion_tokens: Tokens of the picture.
        cost_usd: Cost in US dollars; None without a price.
        seconds: Duration of the successful call.
        attempts: Calls sent; 0 if none was sent.
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
