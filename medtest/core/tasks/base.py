"""Task base class: one kind of answer, composed of the roles of :mod:`medtest.core.tasks.roles`.

A task is a class in its own folder, found by name like other parts: ``conf/tasks/mask.yaml`` names one of medtest's, an
entry point in the group ``medtest.tasks`` one of another package. Seeds name their task, systems the tasks they
support, oracles the task they judge. Engines use the task object; none of them depends on its name.
"""

from __future__ import annotations

from functools import cache
from typing import ClassVar

from medtest.core.cases import Output
from medtest.core.errors import Mistake, nearest_name
from medtest.core.plugins import Part, parts
from medtest.core.tasks.panels import Case as Case
from medtest.core.tasks.panels import CaseAnswer as CaseAnswer
from medtest.core.tasks.panels import FlatView as FlatView
from medtest.core.tasks.panels import Panel as Panel
from medtest.core.tasks.panels import Panels as Panels
from medtest.core.tasks.results import RunRecords as RunRecords
from medtest.core.tasks.results import Section as Section
from medtest.core.tasks.roles import AskedSystem as AskedSystem
from medtest.core.tasks.roles import Border as Border
from medtest.core.tasks.roles import Scoring as Scoring
from medtest.core.tasks.roles import Storage as Storage
from medtest.core.tasks.roles import SystemInput as SystemInput
from medtest.core.tasks.roles import TaskDrawing as TaskDrawing
from medtest.core.tasks.roles import TaskReport as TaskReport
from medtest.core.tasks.roles import TaskTables as TaskTables

PICTURE = "picture"
"""Input of a task: pictures, prepared at one size. Relations that take it also suit series and questions."""
SERIES = "series"
"""Input of a task: images of any dtype, range and dimension, not resized or otherwise prepared."""
QUESTION = "question"
"""Input of a task: pictures with questions; systems draw them from a stream and yield answers in any order."""
PROMPT = "prompt"
"""Input of a task: prompts; systems draw them from a stream and yield answers in any order."""


class Task(Part):
    """Base class of a task, one kind of answer.

    Attributes:
        name: Name in records, digests and suites; also the name of its YAML file or entry point.
        output: Class of its checked answers, a subclass of :class:`medtest.core.cases.Output`.
        input: :data:`PICTURE`, :data:`SERIES`, :data:`QUESTION` or :data:`PROMPT`.
        oracle: Name of the default oracle; "" for the first that judges the task.
        folder: The system that reads answers from files named like exported follow-ups; "" if there is none.
        border: Checks of seeds and answers; the only role without a default.
        storage: Stored answers.
        scoring: Correctness and differences of answers, beyond the oracle's scores.
        drawing: Pictures and captions of cases.
        tables: Tables from records.
        report: Words and sections in reports.
    """

    name: ClassVar[str]
    output: ClassVar[type[Output]] = Output
    input: ClassVar[str] = PICTURE
    oracle: ClassVar[str] = ""
    folder: ClassVar[str] = ""
    border: ClassVar[Border]
    storage: ClassVar[Storage] = Storage()
    scoring: ClassVar[Scoring] = Scoring()
    drawing: ClassVar[TaskDrawing] = TaskDrawing()
    tables: ClassVar[TaskTables] = TaskTables()
    report: ClassVar[TaskReport] = TaskReport()

    @property
    def noun(self) -> str:
        """Its name with an article for use in sentences, see :func:`noun`."""
        return noun(self.name)

    @property
    def series(self) -> bool:
        """True if seeds are passed to systems unchanged, with an :class:`~medtest.core.cases.ImageSpec`."""
        return self.input == SERIES

    @property
    def stream(self) -> bool:
        """True if systems draw calls from a stream."""
        return self.input in (QUESTION, PROMPT)

    @property
    def prompts(self) -> bool:
        """True if a case's input is a prompt and not an image."""
        return self.input == PROMPT

    @property
    def labels(self) -> bool:
        """True if answers are labels of the seeds' classes."""
        return self.output.has_labels

    @property
    def masks(self) -> bool:
        """True if answers mark pixels or voxels; their files hold labels instead of grey levels."""
        return self.output.marks_region

    def fits(self, takes: frozenset[str]) -> bool:
        """Return True if relations with this ``Relation.takes`` apply to its seeds."""
        return not takes.isdisjoint((PROMPT if self.prompts else PICTURE, self.name))


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
        fix = "install the package that provides it; seeds, systems and oracles name it in their attribute `task`"
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
