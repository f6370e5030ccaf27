"""Task of questions about a picture, with answers in text form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from medtest.core.cases import AnswerOutput, Output, PreparedSeed
from medtest.core.errors import BadOutput
from medtest.core.tasks.base import AskedSystem, Case, Panel, Panels, SystemInput, Task
from medtest.core.tasks.results import TaskResults
from medtest.preparation.factors import picture_factors
from medtest.tasks.ask.words import COLUMNS, READ_TABLE, Words, words_of


class AskTask(Task):
    """Systems draw questions from a stream and yield answers, see :mod:`medtest.systems.answering.asking`.

    Only records are stored: they contain the texts of answers, which a later revision can parse again.
    """

    name: ClassVar[str] = "answer"
    output: ClassVar[type[Output]] = AnswerOutput
    stream: ClassVar[bool] = True
    oracle: ClassVar[str] = "answers"
    choose: ClassVar[str] = (
        "choose one with model=NAME: a preset that knows its server, or any server with "
        "model=openai_compatible base_url=URL model_name=NAME"
    )
    source_words: ClassVar[str] = "answer{} to source images"
    word_columns: ClassVar[tuple[str, ...]] = COLUMNS
    read_table: ClassVar[str] = READ_TABLE
    table_names: ClassVar[tuple[str, ...]] = ("flips", "flips_detail", "flip_directions", "answer_*", "answers_*")
    strip_words: ClassVar[str] = (
        "Beside the pictures stands what was asked, answered and expected, and the value that was read."
    )

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

    def expected_words(self, seed: PreparedSeed) -> str:
        """Return the meaning of a seed's mask."""
        return "kept free of objects"

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

    def results(self, records: Any, context: Any) -> TaskResults:
        """Return flips, accuracy, states and costs; empty for records without answers."""
        from medtest.tasks.ask.results import AskResults
        from medtest.tasks.ask.tables.results import answer_tables

        tables = answer_tables(records, phantom=context.phantom)
        return TaskResults() if tables is None else AskResults(tables)

    def side_by_side(self, systems: Sequence[tuple[str, TaskResults]]) -> Sequence[Mapping[str, Any]]:
        """Return flips and accuracy of all systems by question."""
        from medtest.tasks.ask.report.heat import system_heats
        from medtest.tasks.ask.results import AskResults

        return system_heats([(name, result.tables) for name, result in systems if isinstance(result, AskResults)])
