"""All tables of a system that answers questions, made together from its records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from medtest.core.records import is_simulated
from medtest.results.columns import seeds_of
from medtest.results.records.records_io import Records
from medtest.tasks.ask.tables.accuracy import accuracy_table, relation_table
from medtest.tasks.ask.tables.changes import change_table
from medtest.tasks.ask.tables.flips import CONTRACT, direction_table, flip_table
from medtest.tasks.ask.tables.hidden import Hidden, hidden_flips
from medtest.tasks.ask.tables.records import answer_rows, has_answers, wordings
from medtest.tasks.ask.tables.states import cost_table, state_table
from medtest.tasks.ask.tables.worst import Illustration, worst_images
from medtest.tasks.ask.words import READ_TABLE

if TYPE_CHECKING:
    import pandas as pd

FLIPS = "flips.csv"
SYSTEM, SUBJECT = "system", "subject"
"""Last columns of every table but ``flips.csv``, whose columns are fixed: the system, and whether it is simulated."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AnswerTables:
    """The tables of a system that answers questions.

    Attributes:
        system: Its name in the records.
        flips: Flips of every question × relation with pools: all columns of :func:`answer_flips.flip_table`.
        directions: Which way answers went between right and wrong.
        accuracy: Accuracy per question, of real systems beside the published.
        by_relation: Accuracy of every question × relation.
        changes: How answers differ from the sources'.
        states: Refusals, and what could not be read.
        costs: Tokens, dollars, seconds.
        hidden: What the difference of accuracies hides; None without any truth.
        judge: Who read answers in which the parser found nothing, or "" for nobody.
        judged: Its readings (:data:`medtest.tasks.ask.tables.readings.JUDGED_COLUMNS`), None without a judge.
        judge_cost_usd: What its readings cost when they were asked, in US dollars; None without a price or a call.
        worst: The images that flip most.
        phantom: Whether any of the seeds are made images.
    """

    system: str
    flips: pd.DataFrame
    directions: pd.DataFrame
    accuracy: pd.DataFrame
    by_relation: pd.DataFrame
    changes: pd.DataFrame
    states: pd.DataFrame
    costs: pd.DataFrame
    hidden: Hidden | None = None
    worst: tuple[Illustration, ...] = ()
    phantom: bool = False
    judge: str = ""
    judged: pd.DataFrame | None = None
    judge_cost_usd: float | None = None

    @property
    def simulated(self) -> bool:
        """Whether the system simulates a product."""
        return is_simulated(self.system)

    def frames(self) -> dict[str, pd.DataFrame]:
        """Return every table by its file name."""
        named = {
            "flips_detail.csv": self.flips,
            "flip_directions.csv": self.directions,
            "answer_accuracy.csv": self.accuracy,
            "answer_accuracy_by_relation.csv": self.by_relation,
            "answer_changes.csv": self.changes,
            "answer_states.csv": self.states,
            "answer_costs.csv": self.costs,
        }
        if self.judged is not None:
            named[READ_TABLE] = self.judged.assign(judge=self.judge, judge_cost_usd=self.judge_cost_usd)
        subject = "simulated" if self.simulated else "real"
        last = {SYSTEM: self.system, SUBJECT: subject, **seeds_of(phantom=self.phantom)}
        contract = self.flips[list(CONTRACT)] if not self.flips.empty else self.flips
        return {FLIPS: contract, **{name: frame.assign(**last) for name, frame in named.items()}}


def answer_tables(records: Records, *, phantom: bool = False) -> AnswerTables | None:
    """Return the tables of a system that answers questions, or None where the records are of another kind.

    Args:
        records: Records of one system.
        phantom: Whether any of the seeds are made images.
    """
    if records.followups.empty or not has_answers(records):
        return None
    rows, words = answer_rows(records), wordings(records)
    system = str(records.followups["system"].iloc[0])
    accuracy = accuracy_table(rows)
    if is_simulated(system):  # the published figures are of a real product, which shares no table with a simulation
        accuracy = accuracy.drop(columns=[name for name in accuracy if str(name).startswith("published_")])
    return AnswerTables(
        system=system,
        flips=_worded(flip_table(rows), words),
        directions=_worded(direction_table(rows), words),
        accuracy=_worded(accuracy, words),
        by_relation=relation_table(rows),
        changes=change_table(records),
        states=state_table(records),
        costs=cost_table(records),
        hidden=hidden_flips(rows),
        worst=worst_images(records),
        phantom=phantom,
    )


def _worded(table: pd.DataFrame, words: Mapping[str, str]) -> pd.DataFrame:
    """Return a table with the questions in the words in which they were asked."""
    if table.empty:
        return table
    asked = table["item"].map(lambda item: words.get(str(item), ""))
    return table.assign(question=asked.where(asked != "", table["question"].fillna("")))
