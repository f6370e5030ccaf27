"""Answers of user-supplied classifiers: classes, their order, and the meaning of the numbers."""

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
"""Values of :data:`medtest.systems.base.ANSWER_FORMS` by the settings ``gives`` and ``values``."""


class ClassListSettings(SystemSettings):
    """Settings of a classifier whose files do not define the meaning of its scores.

    Attributes:
        classes: Names of the classes in the order of the scores; null for the seeds' order.
        multi: Whether several classes may be true at once (a score each, cut at 0.5). Only with ``classes``.
    """

    classes: list[str] | None = Field(default=None, min_length=1, max_length=10_000, json_schema_extra=LABEL_ONLY)
    multi: bool = Field(default=False, json_schema_extra=LABEL_ONLY)


class _Named(Protocol):
    classes: list[str] | None
    multi: bool


def classes_of(settings: _Named) -> Classes | None:
    """Return the classes named by the user, or None."""
    return None if settings.classes is None else Classes(names=tuple(settings.classes), multi=settings.multi)


def chosen(outputs: Sequence[Output], output: int) -> Output:
    """Return the output at a position, which may be negative.

    Raises:
        BadOutput: There is no such output.
    """
    if not -len(outputs) <= output < len(outputs):
        raise BadOutput(f"gave {len(outputs)} outputs; output={output} is none of them")
    return outputs[output]


def scores_of(outputs: Sequence[NDArray[Any]], output: int, count: int) -> list[NDArray[Any]]:
    """Return one answer per image from a graph's outputs.

    Args:
        outputs: Its outputs as arrays, B×C (or B of labels), with or without further axes of length 1.
        output: Position of the answer among them; may be negative.
        count: Number of images.

    Raises:
        BadOutput: There is no such output, or it does not have one answer per image.
    """
    answer = chosen(outputs, output)
    if answer.ndim == 0 or answer.shape[0] != count or any(side != 1 for side in answer.shape[2:]):
        raise BadOutput(f"gave shape {answer.shape} for {count} images; B×C scores are expected")
    return [np.asarray(scores) for scores in answer.reshape(count, -1)]
