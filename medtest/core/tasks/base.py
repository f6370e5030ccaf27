"""Task base class: everything that runner, suites, tables and reports need to know about one kind of answer.

A task is a class in its own folder, found by name like other parts: ``conf/tasks/mask.yaml`` names one of medtest's, an
entry point in the group ``medtest.tasks`` one of another package. Seeds name their task, systems the tasks they
support, oracles the task they judge. Engines use the task object; none of them depends on its name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Address, Classes, Effect, Image, ImageSpec, Mask, Output, PreparedSeed, Seed
from medtest.core.errors import Mistake, nearest_name
from medtest.core.oracles.moves import moved_mask
from medtest.core.plugins import Part, parts
from medtest.core.tasks.panels import Case as Case
from medtest.core.tasks.panels import CaseAnswer as CaseAnswer
from medtest.core.tasks.panels import FlatView as FlatView
from medtest.core.tasks.panels import Panel as Panel
from medtest.core.tasks.panels import Panels as Panels
from medtest.core.tasks.results import Graded, TaskResults
from medtest.core.tasks.results import RunRecords as RunRecords
from medtest.core.tasks.results import Section as Section

if TYPE_CHECKING:
    import pandas as pd

PICTURE = "picture"
"""Default of relations: any task whose seeds are pictures, volumes or films."""
PROMPT = "prompt"
"""For relations that change text: tasks whose seeds are prompts."""


class AskedSystem(Protocol):
    """Interface that a task needs from a system."""

    @property
    def classes(self) -> Classes | None:
        """Classes of the scores, in their order; None if they are the seeds' classes in the seeds' order."""

    @property
    def answer_form(self) -> str:
        """``probabilities``, ``logits`` or ``labels``."""

    def predict(self, images: Sequence[Image], addresses: Sequence[Address]) -> Sequence[Any]:
        """Answer one batch of pictures."""

    def process(self, images: Sequence[Image], specs: Sequence[ImageSpec], addresses: Sequence[Address]) -> Any:
        """Answer one batch of a series."""


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


class Task(Part, ABC):
    """Base class of a task, one kind of answer.

    Attributes:
        name: Name in records, digests and suites; also the name of its YAML file or entry point.
        output: Class of its checked answers, a subclass of :class:`medtest.core.cases.Output`.
        takes: Kind of its seeds: :data:`PICTURE`, or a word that relations name in ``takes``.
        series: Seeds are images of any dtype, range and dimension, not resized or otherwise prepared.
        stream: Seeds ask questions; systems draw them from a stream and yield text answers.
        labels: Answers use the seeds' classes.
        masks: Answers mark pixels or voxels; their files hold labels instead of grey levels.
        pictured: :meth:`keep` keeps pictures, which packs include only if they include all pictures.
        crops: Cropping the middle of a picture does not change its answer.
        oracle: Name of the default oracle; "" for the first that judges the task.
        folder: The system that reads answers from files named like exported follow-ups; "" if there is none.
        choose: How to choose a system on the command line, for the message about a suite without one.
        seeds: Name of source cases in counts.
        case_input: Name of a case's input.
        source_words: Phrase for a source case in terminal counts, with {} for the plural's s.
        word_columns: Text columns of records that :meth:`words` reads.
        state_column: The text column with the outcome of a call; null if there was no answer.
        read_table: Name of the table of a reader's readings; "" if answers are not read.
        table_names: Names of task-specific tables, which other packages may not use; ``*`` matches any ending.
        said_columns: Text columns of records that hold words of prompts.
        named_columns: Text columns of records that hold JSON with names taken from prompts.
        rate_words: Text of the report above the rates of all relations, if the task-specific sections come first.
        strip_words: Text of the report above its strips.
        measures: Further measures of :meth:`differences` by name: the title of their section, and the label of all rows
            together.
    """

    name: ClassVar[str]
    output: ClassVar[type[Output]] = Output
    takes: ClassVar[str] = PICTURE
    series: ClassVar[bool] = False
    stream: ClassVar[bool] = False
    labels: ClassVar[bool] = False
    masks: ClassVar[bool] = False
    pictured: ClassVar[bool] = False
    crops: ClassVar[bool] = False
    oracle: ClassVar[str] = ""
    folder: ClassVar[str] = ""
    choose: ClassVar[str] = "choose one with model=NAME"
    seeds: ClassVar[str] = "images"
    case_input: ClassVar[str] = "image"
    source_words: ClassVar[str] = "source image{}"
    word_columns: ClassVar[tuple[str, ...]] = ()
    state_column: ClassVar[str] = "state"
    said_columns: ClassVar[tuple[str, ...]] = ()
    named_columns: ClassVar[tuple[str, ...]] = ()
    read_table: ClassVar[str] = ""
    table_names: ClassVar[tuple[str, ...]] = ()
    rate_words: ClassVar[str] = (
        "The rates of all questions together, as gates take them; which questions flipped stands above."
    )
    strip_words: ClassVar[str] = "Green outlines what was expected, magenta what the system answered."
    measures: ClassVar[Mapping[str, tuple[str, str]]] = {}

    @property
    def noun(self) -> str:
        """Its name with an article for use in sentences, see :func:`noun`."""
        return noun(self.name)

    @property
    def prompts(self) -> bool:
        """True if a case's input is a prompt and not an image."""
        return self.takes == PROMPT

    def fits(self, takes: frozenset[str]) -> bool:
        """Return True if relations with this ``Relation.takes`` apply to its seeds."""
        return not takes.isdisjoint((self.takes, self.name))

    # --- a case: input, answer --------------------------------------------------------------------------------------

    def truth(self, seed: Seed) -> tuple[Mask | None, Image | None]:
        """Return the mask and the clean image of a series seed's expected answer, None for the one that does not apply.

        Raises:
            ValueError: The expected answer does not fit the image.
        """
        return seed.expected, None

    def factors(self, seed: PreparedSeed) -> dict[str, float | None]:
        """Return the factor columns of a prepared seed, those in its oracle's ``seed_factors``."""
        return {}

    def ask(
        self, system: AskedSystem, images: Sequence[Image], specs: Sequence[ImageSpec], addresses: Sequence[Address]
    ) -> Sequence[Any]:
        """Ask a system for the answers to one batch.

        Args:
            system: The opened system.
            images: Sources and follow-ups.
            specs: Meaning of each image's numbers and axes.
            addresses: Their addresses.
        """
        answers: Sequence[Any] = (
            system.process(images, specs, addresses) if self.series else system.predict(images, addresses)
        )
        return answers

    @abstractmethod
    def check(self, raw: Any, shown: SystemInput, system: AskedSystem) -> Output:
        """Check a system's raw answer and return it as this task's output.

        Args:
            raw: The answer to one image.
            shown: The system's input.
            system: The system that answered.

        Raises:
            BadOutput: The answer is invalid; the message gives the reason, and the case becomes ERROR.
        """

    def misfit(self, own: Classes | None, asked: Classes) -> str:
        """Return the reason why a system's classes do not suit the seeds', or "" if they do."""
        return ""

    def keep(self, output: Output, seed: PreparedSeed, *, maps: bool) -> bytes | None:
        """Serialise an answer for the run's folder, so that a later revision of an oracle can judge it again.

        :func:`medtest.core.files.arrays.packed` turns arrays into bytes. The answer that :meth:`restore` returns must
        be judged like the original.

        Args:
            output: A checked answer.
            seed: The source case.
            maps: True to also keep 8-bit probability maps (``answers: maps``).

        Returns:
            None, the default, if nothing is kept: the system is asked again if an oracle needs the answer.
        """
        return None

    def restore(self, kept: bytes, seed: PreparedSeed, shown: SystemInput) -> Output:
        """Restore an answer from the bytes of :meth:`keep`.

        Args:
            kept: The stored bytes.
            seed: The source case.
            shown: The system's input, recreated.

        Raises:
            MedtestError: The bytes are not from this task.
        """
        raise NotImplementedError

    # --- what people look at -----------------------------------------------------------------------------------------

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

    def apart(self, given: Output | NDArray[np.float64], answer: Output) -> NDArray[np.float64]:
        """Return the differences between probabilities and those of an answer, see :func:`probe_gap`."""
        raise NotImplementedError

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

    def expected_words(self, seed: PreparedSeed) -> str:
        """Return the caption for a seed's expected answer."""
        return f"expected {self.name}"

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

    def recorded(self, record: Mapping[str, Any]) -> Output | None:
        """Restore an answer from a record, for strips of systems that are not asked again; None if there is none.

        Args:
            record: A record, with :attr:`word_columns`.
        """
        return None

    # --- what is made of records -------------------------------------------------------------------------------------

    def tables(self, records: RunRecords) -> Mapping[str, pd.DataFrame]:
        """Return the task's own tables by file name (``boxes.csv``), in addition to those of every task.

        They are pure functions of the records: no system is asked and no image is read.
        """
        return {}

    def sections(self, tables: Mapping[str, pd.DataFrame]) -> Sequence[Section]:
        """Return the task's own sections of the report.

        Args:
            tables: The result of :meth:`tables`.
        """
        return ()

    def results(self, records: RunRecords, context: Any) -> TaskResults:
        """Return the task's own results from records: :meth:`tables` and their presentation in reports.

        Args:
            records: Records of one system.
            context: Further information on the run (:class:`medtest.results.tables.Context`).
        """
        return TaskResults(self.tables(records), self.sections)

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

    def reference(self, records: Any) -> Any:
        """Return the reference for other systems' figures (``Context.reference``), or None."""
        return None

    def side_by_side(self, systems: Sequence[tuple[str, TaskResults]]) -> Sequence[Mapping[str, Any]]:
        """Return heat maps (:mod:`medtest.report.charts.heat`) that compare systems side by side.

        Args:
            systems: Names and results of the systems.
        """
        return ()

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


def noun(name: str) -> str:
    """Return a task's name as used in sentences: "a mask", "an image", or the plural "keypoints"."""
    if name.endswith("s") and not name.endswith("ss"):
        return name
    return f"{'an' if name[:1] in 'aeiou' else 'a'} {name}"


@cache
def task_of(name: str) -> Task:
    """Return the task with a name.

    Raises:
        UserMistakes: No installed package provides it.
    """
    infos = parts("tasks")
    if name not in infos:
        fix = "install the package that brings it; seeds, systems and oracles name it in their attribute `task`"
        raise Mistake(
            where="medtest",
            key="task",
            found=repr(name),
            allowed=", ".join(infos),
            nearest=nearest_name(name, infos),
            fix=fix,
        ).as_error()
    task: Task = infos[name].load()()
    return task
