"""What adapters share whose users say how a classifier answers: the classes, their order, and what the numbers are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from medtest.core.cases import Classes
from medtest.core.errors import BadOutput
from medtest.systems.base import LABEL_ONLY, SystemSettings

Output = TypeVar("Output")
FORMS: dict[str, str] = {
    "probability": "probabilities",
    "logits": "logits",
    "classes": "labels",
    "labels": "labels",
}
"""What the settings ``gives`` and ``values`` say, as :data:`medtest.systems.base.ANSWER_FORMS` calls it."""


class ClassListSettings(SystemSettings):
    """Settings of a classifier whose files do not say what its scores stand for.

    Attributes:
        classes: Names of the classes in the order of the scores; null where it is the seeds' order.
        multi: Several may be true at once (a score each, 0.5 decides). Only with ``classes``.
    """

    classes: list[str] | None = Field(default=None, min_length=1, max_length=10_000, json_schema_extra=LABEL_ONLY)
    multi: bool = Field(default=False, json_schema_extra=LABEL_ONLY)


class _Named(Protocol):
    classes: list[str] | None
    multi: bool


def classes_of(settings: _Named) -> Classes | None:
    """Return the classes that a user named, or None."""
    return None if settings.classes is None else Classes(names=tuple(settings.classes), multi=settings.multi)


def chosen(outputs: Sequence[Output], output: int) -> Output:
    """Return which of a graph's outputs is the answer, by position; negative counts from the end.

    Raises:
        BadOutput: There is no such output.
    """
    if not -len(outputs) <= output < len(outputs):
        raise BadOutput(f"gave {len(outputs)} outputs; output={output} is none of them")
    return outputs[output]


def scores_of(outputs: Sequence[NDArray[Any]], output: int, count: int) -> list[NDArray[Any]]:
    """Return one answer per image of what a graph gave.

    Args:
        outputs: Its outputs as arrays, B×C (or B of labels), with or without further axes of length 1.
        output: Which of them is the answer, by position; negative counts from the end.
        count: Number of images asked.

    Raises:
        BadOutput: There is no such output, or it does not answer each image.
    """
    answer = chosen(outputs, output)
    if answer.ndim == 0 or answer.shape[0] != count or any(side != 1 for side in answer.shape[2:]):
        raise BadOutput(f"gave shape {answer.shape} for {count} images; B×C scores are expected")
    return [np.asarray(one) for one in answer.reshape(count, -1)]
