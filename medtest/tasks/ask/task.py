"""Questions about a picture, answered in words."""

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

    Nothing is kept beside the records: they hold an answer's words, which a later revision reads again.
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
        """Return those of a classifier's picture; the lesion is what must not be covered."""
        return picture_factors(seed)

    def check(self, raw: Any, shown: SystemInput, system: AskedSystem) -> AnswerOutput:
        """Return an answer that a system yielded.

        Raises:
            BadOutput: It is none.
        """
        if not isinstance(raw, AnswerOutput):
            raise BadOutput(f"gave {type(raw).__name__} where an answer in words is expected")
        return raw

    def expected_words(self, seed: PreparedSeed) -> str:
        """Return what a seed's mask stands for."""
        return "kept free of objects"

    def panels(self, case: Case) -> Panels:
        """Return source and follow-up, and beside them the words."""
        found = [
            Panel(name="source", image=case.seed.image),
            Panel(name="follow-up", image=case.image, words=case.reason),
        ]
        found += [Panel(name="", lines=case.words)] if case.words else []
        return Panels(panels=found, outlines=False)

    def words(self, record: Mapping[str, Any], source: Mapping[str, Any] | None) -> Words:
        """Return the question, both answers with what was read from them, and what was expected."""
        return words_of(record, source)

    def results(self, records: Any, context: Any) -> TaskResults:
        """Return flips, accuracy, states and costs; nothing of records without any answer."""
        from medtest.tasks.ask.results import AskResults
        from medtest.tasks.ask.tables.results import answer_tables

        found = answer_tables(records, phantom=context.phantom)
        return TaskResults() if found is None else AskResults(found)

    def side_by_side(self, systems: Sequence[tuple[str, TaskResults]]) -> Sequence[Mapping[str, Any]]:
        """Return flips and accuracy of all systems by question."""
        from medtest.tasks.ask.report.heat import system_heats
        from medtest.tasks.ask.results import AskResults

        return system_heats([(name, one.tables) for name, one in systems if isinstance(one, AskResults)])
