"""Task-specific results from the records of one system; engines use them without knowing their tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Classes
from medtest.core.deferred import pd


class RunRecords(Protocol):
    """Records of one system as read by tables."""

    @property
    def followups(self) -> pd.DataFrame:
        """One row per follow-up case: the columns of the results contract, including the oracle's scores and texts."""

    @property
    def sources(self) -> pd.DataFrame:
        """One row per source case."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Graded:
    """Correctness of the answers to follow-ups, and how much they changed: the measures of attacks.

    Each case has ``whole`` decisions (1, or one per label if several may be true), of which ``right`` are as expected;
    a case without an answer or a reference has none. All arrays are float64 N, one value per follow-up.

    Attributes:
        measure: Name of ``right / whole``: ``accuracy``, ``right decisions``, ``Dice``.
        right: In [0, whole].
        whole: At least 0.
        before: ``right`` for the answer to the source image.
        changed: Decisions that differ from those on the source image, in [0, compared].
        compared: Decisions known for both images.
        unrounded: ``right`` for the pixels before rounding to 8 bits.
        unrounded_whole: ``whole`` for the pixels before rounding; 0 if unknown.
        areas: Mean area under the ROC curve with its interval, columns ``dataset``, ``relation``, ``severity``,
            ``auroc``, ``auroc_low``, ``auroc_high``; None if answers have none.
    """

    measure: str
    right: NDArray[np.float64]
    whole: NDArray[np.float64]
    before: NDArray[np.float64]
    changed: NDArray[np.float64]
    compared: NDArray[np.float64]
    unrounded: NDArray[np.float64]
    unrounded_whole: NDArray[np.float64]
    areas: pd.DataFrame | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Section of the report. All values are text, which the page escapes.

    Attributes:
        name: Its anchor: lower-case letters, digits, - and _; different from those of the standard sections.
        title: Its heading.
        words: A paragraph below the heading.
        columns: Column titles of its table.
        rows: Rows of cells; no table if empty.
    """

    name: str
    title: str
    words: str = ""
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()


@dataclass(frozen=True, kw_only=True)
class TaskPage:
    """Task-specific part of the page of one system.

    Attributes:
        template: File of task-specific sections (Jinja2); None if it only has :attr:`sections`.
        values: Values for the template as ``p.own``.
        first: Name and title of the sections before the rates; if there are any, the rates and most cases are folded,
            every criterion is shown once, and the template places the rates.
        after: Name and title of the sections after the rates.
        rate_words: A sentence below the rates.
        sections: Sections without their own template.
    """

    template: Path | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    first: Sequence[tuple[str, str]] = ()
    after: Sequence[tuple[str, str]] = ()
    rate_words: str = ""
    sections: Sequence[Section] = ()


class TaskResults:
    """Task-specific results of one system, in addition to those of every task.

    Engines call its methods instead of looking up tables. This class serves tasks that only have
    ``TaskTables.frames``.

    Attributes:
        mean_card: True if the page has a card with the mean score of the source cases.

    Args:
        tables: The task's tables by file name.
    """

    mean_card: ClassVar[bool] = True

    def __init__(self, tables: Mapping[str, pd.DataFrame] | None = None) -> None:
        self._tables = tables or {}

    def frames(self) -> Mapping[str, pd.DataFrame]:
        """Return the tables by file name."""
        return self._tables

    @property
    def classes(self) -> Classes | None:
        """Classes of the answers; None if they have none."""
        return None

    @property
    def flip_probability(self) -> tuple[float, float] | None:
        """Mean flip probability of the types of sequences, and the same relative to the reference (NaN without one)."""
        return None

    @property
    def reader(self) -> str:
        """Name of the reader of answers without a recognised value; "" if there is none."""
        return ""

    def read_by(self, records: Any, readings: Any) -> TaskResults:
        """Return a copy that includes a reader's readings of records (:class:`medtest.readers.base.Readings`)."""
        return self

    def page(self, material: Any) -> TaskPage:
        """Return the task-specific part of the page of one system (``medtest.report.pages.material.Material``)."""
        return TaskPage()

    def may_be_weakest(self, relation: str) -> bool:
        """Return False if a relation's violations do not exceed those of repeated inputs."""
        return True

    def cards(self) -> Sequence[Mapping[str, Any]]:
        """Return cards of the page: ``name``, ``value``, ``lines``."""
        return ()

    def sources(self, seeds: pd.DataFrame, trained_on: Sequence[str]) -> str:
        """Return the number of source cases as a phrase; "" if the count by data set suffices."""
        return ""

    def lines(self) -> Sequence[str]:
        """Return sentences for the terminal after a run."""
        return ()

    def metrics(self) -> Mapping[str, float]:
        """Return metrics for MLflow by name."""
        return {}

    def pictures(self, system: str) -> Sequence[tuple[Any, Sequence[Any]]]:
        """Return kinds of pictures with those to draw (:mod:`medtest.report.replayed`)."""
        return ()
