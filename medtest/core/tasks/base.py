"""What a task is: everything that runner, suites, tables and reports have to know of one kind of answer.

A task is a class in a folder of its own, found by its name as other parts are: ``conf/tasks/mask.yaml`` names one of
ours, an entry point in the group ``medtest.tasks`` one of another package. Seeds say by that name which task they are
for, systems which ones they can do, oracles which one they judge. Engines hold the object and ask it; none of them
looks at its name.
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
"""What relations take unless they say otherwise: any task whose seeds are pictures, volumes or films."""
PROMPT = "prompt"
"""What relations take that change words: tasks whose seeds are prompts."""


class AskedSystem(Protocol):
    """What a task needs of a system that it asks."""

    @property
    def classes(self) -> Classes | None:
        """What its scores stand for, in their order; None where they are the seeds' classes in the seeds' order."""

    @property
    def answer_form(self) -> str:
        """``probabilities``, ``logits`` or ``labels``."""

    def predict(self, images: Sequence[Image], addresses: Sequence[Address]) -> Sequence[Any]:
        """Answer one batch of pictures."""

    def process(self, images: Sequence[Image], specs: Sequence[ImageSpec], addresses: Sequence[Address]) -> Any:
        """Answer one batch of a series."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemInput:
    """What a system was shown.

    Attributes:
        image: The image.
        spec: What its numbers and axes mean.
        classes: The seeds' classes, where they have some.
    """

    image: Image
    spec: ImageSpec = ImageSpec()
    classes: Classes | None = None


class Task(Part, ABC):
    """One kind of answer.

    Attributes:
        name: What records, digests and suites call it; also the name of its YAML file or entry point.
        output: Class of its checked answers, a subclass of :class:`medtest.core.cases.Output`.
        takes: What its seeds are: :data:`PICTURE`, or a word that relations name in ``takes``.
        series: Seeds are images of any dtype, range and dimension, neither resized nor otherwise prepared.
        stream: Seeds ask questions; systems draw them from a stream and yield answers in words.
        labels: Answers are in the seeds' classes.
        masks: Answers mark pixels or voxels; files of them hold labels and no grey levels.
        pictured: What :meth:`keep` keeps is pictures, which travel in packs only where all pictures do.
        crops: A crop from the middle of a picture leaves its answer as it is.
        oracle: Name of the oracle that judges it where a suite names none; "" for the first that does.
        folder: The system that reads answers from files under the names of exported follow-ups; "" where there is none.
        choose: How a system is chosen on the command line, for the message about a suite without one.
        seeds: What source cases are called in counts.
        case_input: What a case's input is called.
        source_words: A source case as the terminal counts them, with {} for the plural's s.
        word_columns: Text columns of records that :meth:`words` reads.
        state_column: The one of them that says what became of a call; null where nothing was answered.
        read_table: Name of the table of what a reader read; "" where answers are not read.
        table_names: Names of its own tables, which no package's may have; ``*`` stands for any ending.
        said_columns: Text columns of records that hold words of prompts.
        named_columns: Text columns of records that hold JSON in which things are named with such words.
        rate_words: What the report says above rates of all relations, where sections of the task's own stand first.
        strip_words: What the report says of its strips.
        measures: Further measures of :meth:`differences` by name: what their section is called, and all rows together.
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
        """Its name as sentences say it, see :func:`noun`."""
        return noun(self.name)

    @property
    def prompts(self) -> bool:
        """Whether a case's input is a prompt and no image."""
        return self.takes == PROMPT

    def fits(self, takes: frozenset[str]) -> bool:
        """Say whether relations that take these (``Relation.takes``) can be used on its seeds."""
        return not takes.isdisjoint((self.takes, self.name))

    # --- a case: input, answer --------------------------------------------------------------------------------------

    def truth(self, seed: Seed) -> tuple[Mask | None, Image | None]:
        """Return the mask and the clean image that the expected answer of a series' seed is, None for what it is not.

        Raises:
            ValueError: It does not fit the image.
        """
        return seed.expected, None

    def factors(self, seed: PreparedSeed) -> dict[str, float | None]:
        """Return the factor columns of a prepared seed, those that its oracle names in ``seed_factors``."""
        return {}

    def ask(
        self, system: AskedSystem, images: Sequence[Image], specs: Sequence[ImageSpec], addresses: Sequence[Address]
    ) -> Sequence[Any]:
        """Have a system answer one batch.

        Args:
            system: The opened system.
            images: Sources and follow-ups.
            specs: What each one's numbers and axes mean.
            addresses: Their addresses.
        """
        given: Sequence[Any] = (
            system.process(images, specs, addresses) if self.series else system.predict(images, addresses)
        )
        return given

    @abstractmethod
    def check(self, raw: Any, shown: SystemInput, system: AskedSystem) -> Output:
        """Return a system's raw answer as this task's output: the border where answers come in.

        Args:
            raw: What it gave for one image.
            shown: What it was shown.
            system: Who answered.

        Raises:
            BadOutput: It is no answer; the message says why, and the case becomes ERROR.
        """

    def misfit(self, own: Classes | None, asked: Classes) -> str:
        """Return why a system's classes cannot answer for the seeds', or ""."""
        return ""

    def keep(self, output: Output, seed: PreparedSeed, *, maps: bool) -> bytes | None:
        """Return what a run keeps of an answer, so that a later revision of an oracle can judge it again.

        :func:`medtest.core.files.arrays.packed` makes bytes of arrays. What :meth:`restore` makes of them must be
        judged as the answer is.

        Args:
            output: A checked answer.
            seed: The source case.
            maps: Whether 8-bit probability maps are kept too (``answers: maps``).

        Returns:
            None where nothing is kept, as by default: the system is asked again where an oracle needs the answer.
        """
        return None

    def restore(self, kept: bytes, seed: PreparedSeed, shown: SystemInput) -> Output:
        """Return the answer of which :meth:`keep` gave these bytes.

        Args:
            kept: What the run kept.
            seed: The source case.
            shown: What the system was shown, made again.

        Raises:
            MedtestError: They are none of this task's.
        """
        raise NotImplementedError

    # --- what people look at -----------------------------------------------------------------------------------------

    def view(self, seed: PreparedSeed, image: Image, region: NDArray[np.bool_] | None = None) -> FlatView:
        """Return what an image of a seed looks like.

        Args:
            seed: Whose it is.
            image: The source, a follow-up or an answer, of the seed's shape.
            region: A region of its spatial shape.
        """
        return FlatView(image=image, region=region)

    def region(self, output: Output) -> NDArray[np.bool_] | None:
        """Return the pixels or voxels that an answer marks; None where it marks none."""
        return None

    def apart(self, given: Output | NDArray[np.float64], answer: Output) -> NDArray[np.float64]:
        """Return by how much probabilities differ from an answer's, see :func:`probe_gap`."""
        raise NotImplementedError

    def expected_region(self, seed: PreparedSeed, effect: Effect) -> NDArray[np.bool_] | None:
        """Return what pictures outline as expected: by default the seed's mask, moved as our oracles move it.

        A task whose seeds expect something else (``PreparedSeed.truth``) marks its pixels here.

        Args:
            seed: The source case.
            effect: What a relation did to it; ``Effect()`` for the source itself.

        Returns:
            bool of the image's spatial shape; None where nothing is outlined.
        """
        return None if seed.mask is None else moved_mask(seed.mask, effect)

    def answer_view(self, seed: PreparedSeed, image: Image, output: Output) -> FlatView:
        """Return what an answer looks like on the image that was asked about."""
        return self.view(seed, image, self.region(output))

    def expected_words(self, seed: PreparedSeed) -> str:
        """Return what stands below a picture with a seed's expected answer."""
        return f"expected {self.name}"

    def answer_words(self, answer: CaseAnswer) -> str:
        """Return an answer in a line, "" where a picture shows it; without one, why there is none."""
        return "" if answer.output is not None else answer.reason or "not asked"

    def panels(self, case: Case) -> Panels:
        """Return the strip of a case: source and follow-up with what is expected and answered there, and its words."""
        seed = case.seed
        found = []
        for name, image, effect, answer in (
            ("source", seed.image, Effect(), case.before),
            ("follow-up", case.image, case.effect, case.after),
        ):
            words = self.answer_words(answer)
            below = f"{name}\n{words}" if words else name
            if image is None:
                found.append(Panel(name=below, words=case.reason))
                continue
            marked = None if answer.output is None else self.region(answer.output)
            found.append(Panel(name=below, image=image, truth=self.expected_region(seed, effect), answer=marked))
        found += [Panel(name="", lines=case.words)] if case.words else []
        truth = any(panel.truth is not None for panel in found)
        return Panels(panels=found, outlines=truth or any(panel.answer is not None for panel in found), truth=truth)

    def words(self, record: Mapping[str, Any], source: Mapping[str, Any] | None) -> tuple[tuple[str, str], ...]:
        """Return headings and texts that stand beside a follow-up's strip.

        Args:
            record: Its record, with :attr:`word_columns`.
            source: The source's record; None where it is not known.
        """
        return ()

    def recorded(self, record: Mapping[str, Any]) -> Output | None:
        """Return an answer as a record holds it, for strips of systems that are not asked again; None where none does.

        Args:
            record: A record, with :attr:`word_columns`.
        """
        return None

    # --- what is made of records -------------------------------------------------------------------------------------

    def tables(self, records: RunRecords) -> Mapping[str, pd.DataFrame]:
        """Return the task's own tables by file name (``boxes.csv``), beside those that every task has.

        They are pure functions of the records: no system is asked and no image is read.
        """
        return {}

    def sections(self, tables: Mapping[str, pd.DataFrame]) -> Sequence[Section]:
        """Return the task's own sections of the report.

        Args:
            tables: What :meth:`tables` gave.
        """
        return ()

    def results(self, records: RunRecords, context: Any) -> TaskResults:
        """Return what is made of records beyond rates: :meth:`tables` and what reports show of them.

        Args:
            records: Records of one system.
            context: What else is known of the run (:class:`medtest.results.tables.Context`).
        """
        return TaskResults(self.tables(records), self.sections)

    def graded(self, records: Any, place: Any) -> Graded | None:
        """Return how right the answers to follow-ups are, for tables of attacks; None where nothing says so.

        Args:
            records: Records of one system (:class:`medtest.results.records.records_io.Records`), with follow-ups.
            place: Their axes (:func:`medtest.results.cube.axes.axes`).
        """
        return None

    def decided(self, records: Any, frame: pd.DataFrame) -> pd.DataFrame | None:
        """Return how right each of some records is, for tables of defences; None where nothing says so.

        Args:
            records: Records of one system.
            frame: Some of its rows, sources or follow-ups.

        Returns:
            With the index of ``frame``: ``value`` in [0, 1], NaN where nothing is answered or expected; the texts
            ``answer`` and ``expected``; how many ``positives`` a case has and how many of them are ``found``, how many
            ``negatives`` and how many of them are ``cleared``; and ``chance``, the balanced accuracy of guessing.
        """
        return None

    def flip_probability(self, records: Any) -> float | None:
        """Return how often answers change along sequences of small perturbations; None where there are no sequences."""
        return None

    def reference(self, records: Any) -> Any:
        """Return what other systems' figures can be relative to (``Context.reference``), or None."""
        return None

    def side_by_side(self, systems: Sequence[tuple[str, TaskResults]]) -> Sequence[Mapping[str, Any]]:
        """Return heat maps (:mod:`medtest.report.charts.heat`) that set systems beside one another, by their names."""
        return ()

    def differences(self, sides: Mapping[str, Any], place: Any) -> Iterable[tuple[Any, Sequence[Any]]]:
        """Yield groupings and systems' cases of further measures in which two systems may differ.

        Args:
            sides: Records of each system's common cases (:func:`medtest.results.rates.differences.difference_table`).
            place: Their axes.
        """
        return ()

    def before_after(
        self, before: Any, after: Any, order: Sequence[str], family: str
    ) -> tuple[pd.DataFrame, int] | None:
        """Return what further training changed, and how many cases only one of both answered.

        None has the scores compared (:mod:`medtest.results.before_after.change`).
        """
        return None


def noun(name: str) -> str:
    """Return a task's name as sentences say it: "a mask", "an image", and of several things "keypoints"."""
    if name.endswith("s") and not name.endswith("ss"):
        return name
    return f"{'an' if name[:1] in 'aeiou' else 'a'} {name}"


@cache
def task_of(name: str) -> Task:
    """Return the task of a name.

    Raises:
        UserMistakes: No installed package brings it.
    """
    known = parts("tasks")
    if name not in known:
        fix = "install the package that brings it; seeds, systems and oracles name it in their attribute `task`"
        raise Mistake(
            where="medtest",
            key="task",
            found=repr(name),
            allowed=", ".join(known),
            nearest=nearest_name(name, known),
            fix=fix,
        ).as_error()
    made: Task = known[name].load()()
    return made
