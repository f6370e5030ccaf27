"""Tables of a system that draws pictures, built from its records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from medtest.core.deferred import pd
from medtest.core.records import is_simulated
from medtest.readers.pictures.card import Card
from medtest.results.columns import columns_in, seeds_of
from medtest.results.rates.costs import cost_rows
from medtest.results.records.records_io import Records
from medtest.tasks.depict.tables.cases import cases_of, has_depictions
from medtest.tasks.depict.tables.classes import class_table
from medtest.tasks.depict.tables.correction import Correction
from medtest.tasks.depict.tables.errors import error_table, miss_table
from medtest.tasks.depict.tables.findings import findings_table
from medtest.tasks.depict.tables.net import net_table
from medtest.tasks.depict.tables.ordered import OrderedPicture, ordered_pictures
from medtest.tasks.depict.tables.questions import question_table
from medtest.tasks.depict.tables.refusals import refusal_table

COST_COLUMNS = columns_in(__file__, "depiction_costs")
MOST_ORDERED = 24
"""Largest number of pictures of orders in the report."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DepictTables:
    """Tables of a system that draws pictures.

    Attributes:
        system: Name of the system in the records.
        errors: Error rates (equations 17 and 18) by operator, rule and kind.
        net: Error rates net of repeats.
        misses: Miss rates (equations 19 and 20).
        refusals: Outcomes of the calls.
        questions: Questions of prompts, without those about things that are missing.
        classes: Classes and predicates by miss rate.
        findings: Findings of orders; empty for other prompts.
        ordered: Pictures of orders for the report, those with most differences first.
        costs: Tokens, dollars, seconds.
        weighted: True if rates are weighted by the weights of drawn prompts.
        reader: Name of the reader of the pictures, or "".
        card: Card of the reader; None without one.
        soft: True if the reader asks its model for probabilities.
        phantom: True if any seeds are phantoms.
    """

    system: str
    errors: pd.DataFrame
    net: pd.DataFrame
    misses: pd.DataFrame
    refusals: pd.DataFrame
    questions: pd.DataFrame
    classes: pd.DataFrame
    costs: pd.DataFrame
    findings: pd.DataFrame
    ordered: Sequence[OrderedPicture] = ()
    weighted: bool = False
    reader: str = ""
    card: Card | None = None
    soft: bool = False
    phantom: bool = False

    @property
    def simulated(self) -> bool:
        """True if the system simulates a product."""
        return is_simulated(self.system)

    def frames(self) -> dict[str, pd.DataFrame]:
        """Return every table by its file name."""
        tables = {
            "actesting.csv": self.errors,
            "actesting_net.csv": self.net,
            "actesting_miss.csv": self.misses,
            "refusals.csv": self.refusals,
            "depiction_questions.csv": self.questions,
            "depiction_classes.csv": self.classes,
            "depiction_costs.csv": self.costs,
        }
        if not self.findings.empty:
            tables["findings.csv"] = self.findings
        subject = "simulated" if self.simulated else "real"
        last = {
            "weights": "density" if self.weighted else "",
            "reader": self.reader,
            "card": "" if self.card is None else self.card.sha256,
            "system": self.system,
            "subject": subject,
            **seeds_of(phantom=self.phantom),
        }
        return {name: frame.assign(**last) for name, frame in tables.items()}


def depict_tables(records: Records, *, phantom: bool = False) -> DepictTables | None:
    """Return the tables of a system that draws pictures, or None if the records are of another kind.

    Args:
        records: Records of one system.
        phantom: True if any seeds are phantoms.
    """
    if not has_depictions(records):
        return None
    cases = cases_of(records)
    reader, card = reader_of(records.reader)
    correction = None if card is None else Correction(card)
    frame = records.sources if records.followups.empty else records.followups
    return DepictTables(
        system=str(frame["system"].iloc[0]),
        errors=error_table(cases, correction),
        net=net_table(cases),
        misses=miss_table(cases, correction),
        refusals=refusal_table(cases),
        questions=question_table(cases),
        classes=class_table(cases, card),
        costs=cost_table(records),
        findings=findings_table(cases, card),
        ordered=ordered_pictures(records, MOST_ORDERED) if cases.orders.any() else (),
        weighted=cases.weighted,
        reader=reader,
        card=card,
        soft=_asks_softly(records.reader),
        phantom=phantom,
    )


def reader_of(stated_reader: Mapping[str, Any]) -> tuple[str, Card | None]:
    """Return a reader's name and card from a run's information on it (``reader`` of ``run.json``)."""
    name, card = str(stated_reader.get("name") or ""), stated_reader.get("card")
    try:
        return name, None if not card else Card.of_json(card)
    except ValueError:
        return name, None


def _asks_softly(stated_reader: Mapping[str, Any]) -> bool:
    """Return True if a reader, or one of its readers, asks its model for probabilities."""
    readers = stated_reader.get("readers")
    return bool(stated_reader.get("soft")) or any(_asks_softly(reader) for reader in (readers or {}).values())


def _answered(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[frame["answer_state"].notna()]


def cost_table(records: Records) -> pd.DataFrame:
    """Return tokens, cost, latency and calls, in total and by relation, with exactly :data:`COST_COLUMNS`."""
    return cost_rows([records.sources, records.followups], ("relation",), COST_COLUMNS, _answered)
