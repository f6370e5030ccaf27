"""What a task makes of the records of one system: engines ask for it and know no table in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Classes

if TYPE_CHECKING:
    import pandas as pd


class RunRecords(Protocol):
    """The records of one system, as tables read them."""

    @property
    def followups(self) -> pd.DataFrame:
        """One row per follow-up case: the columns of the results contract, the oracle's scores and texts among them."""

    @property
    def sources(self) -> pd.DataFrame:
        """One row per source case."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Graded:
    """How right the answers to follow-ups are, and how much they changed: what attacks are measured by.

    Each case has ``whole`` decisions (1, or one a label where several may be true), of which ``right`` are as
    expected; a case without an answer, or that nothing is known to compare with, has none. All arrays are float64 N,
    one for each follow-up.

    Attributes:
        measure: What ``right / whole`` is called: ``accuracy``, ``right decisions``, ``Dice``.
        right: In [0, whole].
        whole: At least 0.
        before: The same as ``right`` of the answer to the source image.
        changed: Decisions that differ from those on the source image, in [0, compared].
        compared: Decisions that are known on both.
        unrounded: As ``right``, of the pixels before they were rounded to 8 bits.
        unrounded_whole: As ``whole``, likewise; 0 where nothing is known of them.
        areas: Mean area under the ROC curve with its interval, columns ``dataset``, ``relation``, ``severity``,
            ``auroc``, ``auroc_low``, ``auroc_high``; None where answers have none.
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
    """A section of the report. Everything in it is text; the page escapes it.

    Attributes:
        name: Its anchor: small letters, digits, - and _; unlike those of every report.
        title: Its heading.
        words: A paragraph below the heading.
        columns: Heads of its table.
        rows: Cells, a row each; no table where there are none.
    """

    name: str
    title: str
    words: str = ""
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()


@dataclass(frozen=True, kw_only=True)
class TaskPage:
    """What a task shows on the page of one system.

    Attributes:
        template: File of its own sections (Jinja2); None where :attr:`sections` are all there is.
        values: What the template shows as ``p.own``.
        first: Name and title of the sections that stand before the rates; where there are some, the rates and most
            cases are folded, every criterion is shown once, and the template says where the rates stand.
        after: Name and title of those that follow the rates.
        rate_words: A sentence below the rates.
        sections: Sections without a template of their own.
    """

    template: Path | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    first: Sequence[tuple[str, str]] = ()
    after: Sequence[tuple[str, str]] = ()
    rate_words: str = ""
    sections: Sequence[Section] = ()


class TaskResults:
    """What a task makes of the records of one system, beside what is made of every task's.

    Engines ask it and look up no table of it. This one is of tasks that have :meth:`Task.tables` and
    :meth:`Task.sections` alone.

    Attributes:
        mean_card: Whether the mean score of the source cases has a card on the page.

    Args:
        tables: The task's tables by file name.
        sections: Makes sections of them.
    """

    mean_card: ClassVar[bool] = True

    def __init__(
        self,
        tables: Mapping[str, pd.DataFrame] | None = None,
        sections: Callable[[Mapping[str, pd.DataFrame]], Sequence[Section]] = lambda tables: (),
    ) -> None:
        self._tables, self._sections = tables or {}, sections

    def frames(self) -> Mapping[str, pd.DataFrame]:
        """Return its tables by file name."""
        return self._tables

    @property
    def classes(self) -> Classes | None:
        """What answers are in; None where they are in no classes."""
        return None

    @property
    def flip_probability(self) -> tuple[float, float] | None:
        """Mean flip probability of the types of sequences, and the same relative to the reference (NaN without one)."""
        return None

    @property
    def reader(self) -> str:
        """Who read answers in which no value was found; "" for nobody."""
        return ""

    def read_by(self, records: Any, readings: Any) -> TaskResults:
        """Return the same with what a reader read of records (:class:`medtest.readers.base.Readings`)."""
        return self

    def page(self, material: Any) -> TaskPage:
        """Return what the page of one system (``medtest.report.pages.material.Material``) shows of it."""
        return TaskPage(sections=self._sections(self._tables))

    def cards(self) -> Sequence[Mapping[str, Any]]:
        """Return cards of the page: ``name``, ``value``, ``lines``."""
        return ()

    def sources(self, seeds: pd.DataFrame, trained_on: Sequence[str]) -> str:
        """Return how many source cases there are in words; "" where a count by data set says it."""
        return ""

    def lines(self) -> Sequence[str]:
        """Return sentences that the terminal shows after a run."""
        return ()

    def metrics(self) -> Mapping[str, float]:
        """Return metrics for MLflow by name."""
        return {}

    def pictures(self, system: str) -> Sequence[tuple[Any, Sequence[Any]]]:
        """Return kinds of pictures with those to be drawn (:mod:`medtest.report.replayed`)."""
        return ()
