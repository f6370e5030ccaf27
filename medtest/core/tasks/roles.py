"""Roles of a task: border, storage, scoring, drawing, tables, report.

Each role is a small class with defaults that suit any kind of answer; a task holds one object of each. A caller asks
only for the role that it needs: the runner for border, storage and drawing, tables for scoring and tables, reports for
report.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Classes, Effect, FollowUp, Image, ImageSpec, Mask, Output, PreparedSeed, Seed
from medtest.core.deferred import pd
from medtest.core.oracles.moves import moved_mask
from medtest.core.tasks.panels import Case, CaseAnswer, FlatView, Panel, Panels
from medtest.core.tasks.results import Graded, RunRecords, Section, TaskResults


class AskedSystem(Protocol):
    """Facts about a system that a border check may need."""

    @property
    def classes(self) -> Classes | None:
        """Classes of the scores, in their order; None if they are the seeds' classes in the seeds' order."""

    @property
    def answer_form(self) -> str:
        """``probabilities``, ``logits`` or ``labels``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemInput:
    """Input of a system.

    Attributes:
        image: The image.
        spec: Meaning of its numbers and axes.
        classes: The seeds' classes, if any.
    """

    image: Image
    spec: ImageSpec = ImageSpec()
    classes: Classes | None = None


class Border(ABC):
    """Checks of seeds and answers as they come in."""

    @abstractmethod
    def check(self, raw: Any, shown: SystemInput, system: AskedSystem) -> Output:
        """Check a system's raw answer and return it as the task's output.

        Args:
            raw: The answer to one image.
            shown: The system's input.
            system: The system that answered.

        Raises:
            BadOutput: The answer is invalid; the message gives the reason, and the case becomes ERROR.
        """

    def truth(self, seed: Seed) -> tuple[Mask | None, Image | None]:
        """Return the mask and the clean image of a series seed's expected answer, None for the one that does not apply.

        Raises:
            ValueError: The expected answer does not fit the image.
        """
        return seed.expected, None

    def factors(self, seed: PreparedSeed) -> dict[str, float | None]:
        """Return the factor columns of a prepared seed, those in its oracle's ``seed_factors``."""
        return {}

    def facts(self, seed: PreparedSeed, follow: FollowUp) -> Mapping[str, float]:
        """Return further :attr:`~medtest.core.cases.FollowUp.facts` of a follow-up, or of the source's own image.

        Args:
            seed: The source case.
            follow: The checked follow-up.
        """
        return {}

    def misfit(self, own: Classes | None, requested: Classes) -> str:
        """Return the reason why a system's classes do not suit the seeds', or "" if they do."""
        return ""


class Storage:
    """Stored answers, which a later revision of an oracle judges again; by default nothing is stored.

    Attributes:
        pictures: Stored answers are pictures, which packs include only if they include all pictures.
        said_columns: Text columns of records that hold words of prompts.
        named_columns: Text columns of records that hold JSON with names taken from prompts.
    """

    pictures: ClassVar[bool] = False
    said_columns: ClassVar[tuple[str, ...]] = ()
    named_columns: ClassVar[tuple[str, ...]] = ()

    def keep(self, output: Output, seed: PreparedSeed, *, maps: bool) -> bytes | None:
        """Serialise an answer for the run's folder.

        :func:`medtest.core.files.arrays.packed` turns arrays into bytes. The answer that :meth:`restore` returns must
        be judged like the original.

        Args:
            output: A checked answer.
            seed: The source case.
            maps: True to also keep 8-bit probability maps (``answers: maps``).

        Returns:
            None if nothing is kept: the system is asked again if an oracle needs the answer.
        """
        return None

    def restore(self, stored: bytes, seed: PreparedSeed, shown: SystemInput) -> Output:
        """Restore an answer from the bytes of :meth:`keep`.

        Args:
            stored: The stored bytes.
            seed: The source case.
            shown: The system's input, recreated.

        Raises:
            MedtestError: The bytes are not from this task.
        """
        raise NotImplementedError


class Scoring:
    """Correctness and differences of answers, beyond the scores of an oracle; by default undefined."""

    def probability_gaps(self, probabilities: Output | NDArray[np.float64], answer: Output) -> NDArray[np.float64]:
        """Return the differences between probabilities and those of an answer, see ``probe_gap``."""
        raise NotImplementedError

    def graded(self, records: Any, place: Any) -> Graded | None:
        """Return the correctness of the answers to follow-ups, for tables of attacks; None if it is undefined.

        Args:
            records: Records of one system (:class:`medtest.results.records.records_io.Records`), with follow-ups.
            place: Their axes (:func:`medtest.results.cube.axes.axes`).
        """
        return None

    def decided(self, records: Any, frame: pd.DataFrame) -> pd.DataFrame | None:
        """Return the correctness of some records, for tables of defences; None if it is undefined.

        Args:
            records: Records of one system.
            frame: Some of its rows, sources or follow-ups.

        Returns:
            With the index of ``frame``: ``value`` in [0, 1], NaN without an answer or an expected answer; the texts
            ``answer`` and ``expected``; the number of ``positives`` in a case and how many of them are ``found``, the
            number of ``negatives`` and how many of them are ``cleared``; and ``chance``, the balanced accuracy of
            guessing.
        """
        return None

    def flip_probability(self, records: Any) -> float | None:
        """Return the mean frequency of answer changes along sequences of small perturbations; None without any."""
        return None


class TaskDrawing:
    """Pictures and captions of a task's cases.

    Attributes:
        word_columns: Text columns of records that :meth:`words` and :meth:`recorded` read.
        state_column: One of them, null where a system gave no answer; "" if all records have an answer.
        outlined: Name of what :meth:`expected_region` outlines.
    """

    word_columns: ClassVar[tuple[str, ...]] = ()
    state_column: ClassVar[str] = ""
    outlined: ClassVar[str] = "expected"

    def view(self, seed: PreparedSeed, image: Image, region: NDArray[np.bool_] | None = None) -> FlatView:
        """Return an image of a seed as a flat picture for display.

        Args:
            seed: The seed of the image.
            image: The source, a follow-up or an answer, of the seed's shape.
            region: A region of its spatial shape.
        """
        return FlatView(image=image, region=region)

    def region(self, output: Output) -> NDArray[np.bool_] | None:
        """Return the pixels or voxels marked by an answer; None if it marks none."""
        return None

    def expected_region(self, seed: PreparedSeed, effect: Effect) -> NDArray[np.bool_] | None:
        """Return the expected region for outlines: by default the seed's mask, moved by the relation.

        A task whose seeds have another expectation (``PreparedSeed.truth``) marks its pixels here.

        Args:
            seed: The source case.
            effect: Effect of the relation; ``Effect()`` for the source itself.

        Returns:
            bool of the image's spatial shape; None if nothing is outlined.
        """
        return None if seed.mask is None else moved_mask(seed.mask, effect)

    def answer_view(self, seed: PreparedSeed, image: Image, output: Output) -> FlatView:
        """Return an answer as a flat picture, drawn on its input image."""
        return self.view(seed, image, self.region(output))

    def answer_picture(
        self, seed: PreparedSeed, output: Output, pixels: Callable[[str], Image | None]
    ) -> NDArray[np.uint8] | None:
        """Return the picture that an answer consists of, for thumbnails; None if it is not a picture.

        Args:
            seed: The source case.
            output: The answer.
            pixels: Returns the picture with the SHA-256 named by an answer, uint8 H×W×3; None if it no longer exists.

        Returns:
            uint8 H×W×3.
        """
        return None

    def expected_words(self, seed: PreparedSeed) -> str:
        """Return the caption for a seed's expected answer."""
        return "expected answer"

    def answer_words(self, answer: CaseAnswer) -> str:
        """Return a one-line text of an answer, "" if a picture shows it; without an answer, the reason."""
        return "" if answer.output is not None else answer.reason or "not asked"

    def panels(self, case: Case) -> Panels:
        """Return the strip of a case: source and follow-up with expected and actual answers, and its texts."""
        seed = case.seed
        panels = []
        for name, image, effect, answer in (
            ("source", seed.image, Effect(), case.before),
            ("follow-up", case.image, case.effect, case.after),
        ):
            words = self.answer_words(answer)
            caption = f"{name}\n{words}" if words else name
            if image is None:
                panels.append(Panel(name=caption, words=case.reason))
                continue
            marked = None if answer.output is None else self.region(answer.output)
            panels.append(Panel(name=caption, image=image, truth=self.expected_region(seed, effect), answer=marked))
        panels += [Panel(name="", lines=case.words)] if case.words else []
        truth = any(panel.truth is not None for panel in panels)
        return Panels(panels=panels, outlines=truth or any(panel.answer is not None for panel in panels), truth=truth)

    def words(self, record: Mapping[str, Any], source: Mapping[str, Any] | None) -> tuple[tuple[str, str], ...]:
        """Return headings and texts displayed beside a follow-up's strip.

        Args:
            record: Its record, with :attr:`word_columns`.
            source: The source's record; None if unknown.
        """
        return ()

    def browsed(self, record: Mapping[str, Any], source: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the texts and figures beside a follow-up's pictures in the report's browser, as JSON values.

        Args:
            record: Its record, with all text columns.
            source: The source's record; None if unknown.

        Returns:
            Any of these: ``short``, both answers in a few words; ``words``, headings and texts; ``marked``, passages of
            these texts to mark as evidence; ``bars``, rows of a class's name, probability before and after (null if
            unknown), and whether it is expected; ``boxes`` and ``source_boxes``, pairs of a box (fractions of width and
            height) and its label on the answered pictures.
        """
        words = self.words(record, source)
        return {"words": [list(pair) for pair in words]} if words else {}

    def recorded(self, record: Mapping[str, Any]) -> Output | None:
        """Restore an answer from a record, for strips of systems that are not asked again; None if there is none.

        Args:
            record: A record, with :attr:`word_columns`.
        """
        return None


class TaskTables:
    """Tables of a task, in addition to those of every task; pure functions of records.

    Attributes:
        names: Names of the tables, which other packages may not use; ``*`` matches any ending.
        categories: Text columns of records, such as the expected class, whose values may form a failing slice.
        readings: Name of the table of a reader's readings; "" if answers are not read.
        measures: Measures of :meth:`differences` by name: the title of their section, and the label of all rows
            together.
    """

    names: ClassVar[tuple[str, ...]] = ()
    categories: ClassVar[tuple[str, ...]] = ()
    readings: ClassVar[str] = ""
    measures: ClassVar[Mapping[str, tuple[str, str]]] = {}

    def frames(self, records: RunRecords) -> Mapping[str, pd.DataFrame]:
        """Return the tables by file name (``boxes.csv``)."""
        return {}

    def results(self, records: RunRecords, context: Any) -> TaskResults:
        """Return the tables with their presentation in reports; by default those of :meth:`frames`.

        Args:
            records: Records of one system.
            context: Further information on the run (:class:`medtest.results.tables.Context`).
        """
        return TaskResults(self.frames(records))

    def reference(self, records: Any) -> Any:
        """Return the reference for other systems' figures (``Context.reference``), or None."""
        return None

    def differences(self, sides: Mapping[str, Any], place: Any) -> Iterable[tuple[Any, Sequence[Any]]]:
        """Yield groupings and cases of the systems for further measures in which two systems may differ.

        Args:
            sides: Records of each system's common cases (:func:`medtest.results.rates.differences.difference_table`).
            place: Their axes.
        """
        return ()

    def before_after(
        self, before: Any, after: Any, order: Sequence[str], family: str
    ) -> tuple[pd.DataFrame, int] | None:
        """Return the changes after further training, and the number of cases that only one of both systems answered.

        If None, the scores are compared (:mod:`medtest.results.before_after.change`).
        """
        return None


@dataclass(frozen=True, kw_only=True)
class TaskReport:
    """Words and sections of a task in reports.

    Attributes:
        case_input: Name of a case's input.
        rate_words: Text above the rates of all relations, if the task-specific sections come first.
        strip_words: Text above the strips.
        least_judged: Number of judged cases below which a rate is no headline.
    """

    case_input: str = "image"
    least_judged: int = 0
    rate_words: str = "The rates of all relations, as gates use them."
    strip_words: str = "Green outlines the expected answer, magenta the system's answer."

    def sections(self, tables: Mapping[str, pd.DataFrame]) -> Sequence[Section]:
        """Return sections of the report that need no template of their own.

        Args:
            tables: The task's tables by file name.
        """
        return ()

    def side_by_side(self, systems: Sequence[tuple[str, TaskResults]]) -> Sequence[Mapping[str, Any]]:
        """Return heat maps (:mod:`medtest.report.charts.heat`) that compare systems side by side.

        Args:
            systems: Names and results of the systems.
        """
        return ()
