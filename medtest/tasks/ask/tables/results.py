"""Tables of a system that answers questions, built from its records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from medtest.core.deferred import pd
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

FLIPS = "flips.csv"
SYSTEM, SUBJECT = "system", "subject"
"""Last columns of every table but ``flips.csv``, whose columns are fixed: system, and real or simulated."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AnswerTables:
    """Tables of a system that answers questions.

    Attributes:
        system: Name of the system in the records.
        flips: Flips of every question × relation with pools: all columns of :func:`answer_flips.flip_table`.
        directions: Transitions of answers between right and wrong.
        accuracy: Accuracy by question, for real systems with the published figures.
        by_relation: Accuracy of every question × relation.
        changes: Differences between answers and the sources'.
        states: Refusals and unparsed answers.
        costs: Tokens, dollars, seconds.
        hidden: Flips hidden by the difference of accuracies; None without any truth.
        judge: Judge that read unparsed answers, or "".
        judged: Readings of the judge (:data:`medtest.tasks.ask.tables.readings.JUDGED_COLUMNS`), None without a judge.
        judge_cost_usd: Cost of the readings when they were made, in US dollars; None without a price or a call.
        worst: Images with most flips.
        phantom: True if any seeds are phantoms.
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
        """True if the system simulates a product."""
        return is_simulated(self.system)

    def frames(self) -> dict[str, pd.DataFrame]:
        """Return every table by its file name."""
        tables = {
            "flips_detail.csv": self.flips,
            "flip_directions.csv": self.directions,
            "answer_accuracy.csv": self.accuracy,
            "answer_accuracy_by_relation.csv": self.by_relation,
            "answer_changes.csv": self.changes,
            "answer_states.csv": self.states,
            "answer_costs.csv": self.costs,
        }
        if self.judged is not None:
            tables[READ_TABLE] = self.judged.assign(judge=self.judge, judge_cost_usd=self.judge_cost_usd)
        subject = "simulated" if self.simulated else "real"
        last = {SYSTEM: self.system, SUBJECT: subject, **seeds_of(phantom=self.phantom)}
        contract = self.flips[list(CONTRACT)] if not self.flips.empty else self.flips
        return {FLIPS: contract, **{name: frame.assign(**last) for name, frame in tables.items()}}


def answer_tables(records: Records, *, phantom: bool = False) -> AnswerTables | None:
    """Return the tables of a system that answers questions, or None if the records are of another kind.

    Args:
        records: Records of one system.
        phantom: True if any seeds are phantoms.
    """
    if records.followups.empty or not has_answers(records):
        return None
    rows, words = answer_rows(records), wordings(records)
    system = str(records.followups["system"].iloc[0])
    accuracy = accuracy_table(rows)
    if is_simulated(system):  # published figures are of a real product and must not share a table with a simulation
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
    """Return a table with the questions as they were worded in the run."""
    if table.empty:
        return table
    wordings_column = table["item"].map(lambda item: words.get(str(item), ""))
    return table.assign(question=wordings_column.where(wordings_column != "", table["question"].fillna("")))
