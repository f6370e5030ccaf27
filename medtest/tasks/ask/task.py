"""Task of questions about a picture, with answers in text form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from medtest.core.cases import AnswerOutput, Output, PreparedSeed
from medtest.core.errors import BadOutput
from medtest.core.records import text_in
from medtest.core.tasks.base import (
    QUESTION,
    AskedSystem,
    Border,
    Case,
    Panel,
    Panels,
    SystemInput,
    Task,
    TaskDrawing,
    TaskReport,
    TaskTables,
)
from medtest.core.tasks.results import TaskResults
from medtest.preparation.factors import picture_factors
from medtest.tasks.ask.words import COLUMNS, READ_TABLE, Words, reading_of, words_of


class AnswerBorder(Border):
    """Checks of answers in words."""

    def factors(self, seed: PreparedSeed) -> dict[str, float | None]:
        """Return the factors of a classifier's picture; the lesion is the region that must not be covered."""
        return picture_factors(seed)

    def check(self, raw: Any, shown: SystemInput, system: AskedSystem) -> AnswerOutput:
        """Return an answer that a system yielded.

        Raises:
            BadOutput: The value is not an answer.
        """
        if not isinstance(raw, AnswerOutput):
            raise BadOutput(f"gave {type(raw).__name__} where an answer in words is expected")
        return raw


class AnswerDrawing(TaskDrawing):
    """Pictures with questions and answers beside them."""

    word_columns: ClassVar[tuple[str, ...]] = COLUMNS
    state_column: ClassVar[str] = "state"
    outlined: ClassVar[str] = "kept free of objects"

    def expected_words(self, seed: PreparedSeed) -> str:
        """Return the meaning of a seed's mask."""
        return self.outlined

    def panels(self, case: Case) -> Panels:
        """Return panels of source and follow-up, with the texts."""
        panels = [
            Panel(name="source", image=case.seed.image),
            Panel(name="follow-up", image=case.image, words=case.reason),
        ]
        panels += [Panel(name="", lines=case.words)] if case.words else []
        return Panels(panels=panels, outlines=False)

    def words(self, record: Mapping[str, Any], source: Mapping[str, Any] | None) -> Words:
        """Return the question, both answers with the values parsed from them, and the expected answer."""
        return words_of(record, source)

    def browsed(self, record: Mapping[str, Any], source: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the texts, and the passages that the values were read from."""
        marked = [text for one in (record, source or {}) if (text := text_in(one, "evidence"))]
        short = " → ".join(reading_of(one) for one in (source, record) if one is not None)
        return {**super().browsed(record, source), "marked": marked, "short": short}


class AnswerTaskTables(TaskTables):
    """Tables of flips, accuracy, states and costs."""

    names: ClassVar[tuple[str, ...]] = ("flips", "flips_detail", "flip_directions", "answer_*", "answers_*")
    categories: ClassVar[tuple[str, ...]] = ("kind",)
    readings: ClassVar[str] = READ_TABLE

    def results(self, records: Any, context: Any) -> TaskResults:
        """Return flips, accuracy, states and costs; empty for records without answers."""
        from medtest.tasks.ask.results import AskResults
        from medtest.tasks.ask.tables.results import answer_tables

        tables = answer_tables(records, phantom=context.phantom)
        return TaskResults() if tables is None else AskResults(tables)


class AnswerReport(TaskReport):
    """Heat maps of several systems."""

    def side_by_side(self, systems: Sequence[tuple[str, TaskResults]]) -> Sequence[Mapping[str, Any]]:
        """Return flips and accuracy of all systems by question."""
        from medtest.tasks.ask.report.heat import system_heats
        from medtest.tasks.ask.results import AskResults

        return system_heats([(name, result.tables) for name, result in systems if isinstance(result, AskResults)])


class AskTask(Task):
    """Systems draw questions from a stream and yield answers, see :mod:`medtest.systems.answering.asking`.

    Only records are stored: they contain the texts of answers, which a later revision can parse again.
    """

    name: ClassVar[str] = "answer"
    output: ClassVar[type[Output]] = AnswerOutput
    input: ClassVar[str] = QUESTION
    oracle: ClassVar[str] = "answers"
    border: ClassVar[Border] = AnswerBorder()
    drawing: ClassVar[TaskDrawing] = AnswerDrawing()
    tables: ClassVar[TaskTables] = AnswerTaskTables()
    report: ClassVar[TaskReport] = AnswerReport(
        rate_words="The rates of all questions together, as gates use them; the flips of each question are above.",
        strip_words="Beside the pictures: question, answer, expected answer, and the value parsed from the answer.",
    )
