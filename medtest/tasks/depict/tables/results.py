"""All tables of a system that draws pictures, made together from its records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from medtest.core.records import is_simulated
from medtest.readers.pictures.card import Card
from medtest.results.columns import columns_in, seeds_of
from medtest.results.rates.costs import cost_rows
from medtest.results.records.records_io import Records
from medtest.tasks.depict.tables.cases import DepictedCases, cases_of, has_depictions
from medtest.tasks.depict.tables.classes import class_table
from medtest.tasks.depict.tables.correction import Correction
from medtest.tasks.depict.tables.errors import error_table, miss_table
from medtest.tasks.depict.tables.net import net_table
from medtest.tasks.depict.tables.refusals import refusal_table

if TYPE_CHECKING:
    import pandas as pd

COST_COLUMNS = columns_in(__file__, "depiction_costs")


@dataclass(frozen=True, kw_only=True, eq=False)
class DepictTables:
    """The tables of a system that draws pictures.

    Attributes:
        system: Its name in the records.
        errors: Error rates (equations 17 and 18) by operator, rule and kind.
        net: The same net of asking again.
        misses: Miss rates (equations 19 and 20).
        refusals: What became of the calls.
        classes: Classes and predicates by how often they are missed.
        costs: Tokens, dollars, seconds.
        weighted: Whether rates are weighted by what drawn prompts stand for.
        reader: Who saw the pictures; "" where nobody says.
        card: Its card; None without one.
        phantom: Whether any of the seeds are made.
        pictures: How many different pictures were drawn.
    """

    system: str
    errors: pd.DataFrame
    net: pd.DataFrame
    misses: pd.DataFrame
    refusals: pd.DataFrame
    classes: pd.DataFrame
    costs: pd.DataFrame
    weighted: bool = False
    reader: str = ""
    card: Card | None = None
    phantom: bool = False

    @property
    def simulated(self) -> bool:
        """Whether the system simulates a product."""
        return is_simulated(self.system)

    def frames(self) -> dict[str, pd.DataFrame]:
        """Return every table by its file name."""
        named = {
            "actesting.csv": self.errors,
            "actesting_net.csv": self.net,
            "actesting_miss.csv": self.misses,
            "refusals.csv": self.refusals,
            "depiction_classes.csv": self.classes,
            "depiction_costs.csv": self.costs,
        }
        subject = "simulated" if self.simulated else "real"
        last = {
            "weights": "density" if self.weighted else "",
            "reader": self.reader,
            "card": "" if self.card is None else self.card.sha256,
            "system": self.system,
            "subject": subject,
            **seeds_of(phantom=self.phantom),
        }
        return {name: frame.assign(**last) for name, frame in named.items()}


def depict_tables(records: Records, *, phantom: bool = False) -> DepictTables | None:
    """Return the tables of a system that draws pictures, or None where the records are of another kind.

    Args:
        records: Records of one system.
        phantom: Whether any of the seeds are made.
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
        classes=class_table(cases, card),
        costs=cost_table(records),
        weighted=cases.weighted,
        reader=reader,
        card=card,
        phantom=phantom,
    )


def reader_of(said: Mapping[str, Any]) -> tuple[str, Card | None]:
    """Return a reader's name and its card, as a run's account of it says (``reader`` of ``run.json``)."""
    name, card = str(said.get("name") or ""), said.get("card")
    try:
        return name, None if not card else Card.of_json(card)
    except ValueError:
        return name, None


def cost_table(records: Records) -> pd.DataFrame:
    """Return tokens, cost, latency and calls sent, in all and by relation, with exactly :data:`COST_COLUMNS`."""
    frames = [frame[frame["answer_state"].notna()] for frame in (records.sources, records.followups)]
    return cost_rows(frames, ("relation",), COST_COLUMNS)


__all__ = ["DepictedCases", "DepictTables", "depict_tables"]
