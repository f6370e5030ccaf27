"""Results of a system that draws pictures: tables and report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from medtest.core.deferred import pd
from medtest.core.tasks.results import TaskPage, TaskResults
from medtest.report.charts.heat import NOT_MEASURED, percent, rows_of
from medtest.report.pages.material import Material
from medtest.report.pages.words import TOO_FEW, few_words
from medtest.results.columns import seeds_of
from medtest.results.cube.axes import ALL, OVERALL
from medtest.results.fidelity.tables import PictureTables
from medtest.results.rates.costs import cost_metrics
from medtest.tasks.depict.oracle import WHOLE
from medtest.tasks.depict.report.ordered import ordered_section
from medtest.tasks.depict.report.page import depict_page, reader_words, shown, soft_words
from medtest.tasks.depict.rules import LEAST_JUDGED, STRICT
from medtest.tasks.depict.tables.results import DepictTables

LARGEST = "Largest net error rate"
_NONE_ABOVE = f"no operator's net error rate, over at least {LEAST_JUDGED} pairs,"
_NO_FLOOR = "no prompt has a second picture that was judged"
TEMPLATE = Path(__file__).parent / "report" / "depictions.html.j2"


class DepictResults(TaskResults):
    """Tables of a system that draws pictures.

    Args:
        tables: Judgements of its pairs.
        pictures: Figures of its pictures.
    """

    mean_card: ClassVar[bool] = False

    def __init__(self, tables: DepictTables, pictures: PictureTables | None = None) -> None:
        super().__init__()
        self.tables, self.drawn = tables, pictures

    def frames(self) -> Mapping[str, pd.DataFrame]:
        """Return the tables by file name."""
        frames = self.tables.frames()
        subject = "simulated" if self.tables.simulated else "real"
        last = {"system": self.tables.system, "subject": subject, **seeds_of(phantom=self.tables.phantom)}
        picture_frames = {} if self.drawn is None else self.drawn.frames
        return {**frames, **{name: frame.assign(**last) for name, frame in picture_frames.items()}}

    def page(self, material: Material) -> TaskPage:
        """Return error rates with published ones, rates net of repeats, misses, refusals, classes and costs."""
        values = {**depict_page(self.tables), "ordered": ordered_section(self.tables, material.folder)}
        first = [("ordered", "Ordered and seen")] if values["ordered"] else []
        first += [("error-rates", "Error rates")]
        first += [("net", "Net")] if values["net"] else []
        first += [("misses", "Missed")]
        first += [("questions", "Questions")] if values["questions"] else []
        first += [("refusals", "Refusals"), ("reader", "The reader")]
        last = [("cost", "Cost")] if values["costs"] else []
        sections = () if self.drawn is None else self.drawn.sections()
        return TaskPage(template=TEMPLATE, values=values, first=first, after=last, sections=sections)

    def cards(self) -> list[dict[str, Any]]:
        """Return cards with the largest net error rate, misses, refusals and cost."""
        cards: list[dict[str, Any]] = []
        row = self._strongest()
        if row:
            ends = f"{100 * row['ci_low']:+.1f} to {100 * row['ci_high']:+.1f}"
            lines = [f"95 % interval {ends} points, under {shown(row['relation'])}"]
            lines.append(f"rate {percent(100 * row['rate'])} of {row['cases']:,} pairs, strict")
            lines.append(f"cannot tell {_count(row['cannot_tell'], row['cannot_tell_rate'])} further pairs")
            cards.append({"name": LARGEST, "value": f"{100 * row['net']:+.1f} points", "lines": lines})
        elif self._measured():
            cards.append({"name": LARGEST, "value": "none shown", "lines": [f"{_NONE_ABOVE} is above its floor"]})
        elif not self.tables.net.empty:
            cards.append({"name": LARGEST, "value": NOT_MEASURED, "lines": [_NO_FLOOR]})
        for kind, words in (("entities", "Entities missed"), ("relations", "Relations missed")):
            missed = self._missed(kind)
            if missed and missed["said"] < LEAST_JUDGED:
                lines = [_judged(missed), few_words(LEAST_JUDGED)]
                cards.append({"name": words, "value": TOO_FEW, "lines": lines})
            elif missed:
                ends = f"{100 * missed['ci_low']:.1f}\N{EN DASH}{100 * missed['ci_high']:.1f} %"
                lines = [f"95 % interval {ends}", f"{missed['seen']:,} of {missed['said']:,} seen, all operators"]
                cards.append(
                    {"name": words, "value": percent(100 * missed["miss"]), "lines": [*lines, _shares(missed)]}
                )
        refused = self._refused()
        if refused and refused["withheld"]:
            lines = [f"{refused['withheld']:,} of {refused['asked']:,} prompts"]
            lines.append(f"{refused['withheld_after_drawn']:,} where the source was drawn")
            cards.append({"name": "Refused", "value": percent(100 * refused["withheld_rate"]), "lines": lines})
        total = self._total()
        if total and total["cost_usd"] > 0:
            lines = [f"{total['answers']:,} prompts"]
            cards.append({"name": "Cost of the pictures", "value": f"${total['cost_usd']:,.2f}", "lines": lines})
        return cards

    def lines(self) -> list[str]:
        """Return summary lines: error rates net of repeats, misses, refusals, undetermined cases."""
        lines = []
        row = self._strongest()
        if row:
            lines.append(
                f"{shown(row['relation'])} has the largest net error rate: {100 * row['net']:+.1f} points "
                f"[{100 * row['ci_low']:+.1f}, {100 * row['ci_high']:+.1f}] over repeated prompts; "
                "tables/actesting_net.csv."
            )
        elif not self.tables.net.empty and not self._measured():
            lines.append(f"net error rates are {NOT_MEASURED}: {_NO_FLOOR}; tables/actesting_net.csv.")
        elif self._measured():
            lines.append(f"{_NONE_ABOVE} is above that of repeated prompts; tables/actesting_net.csv.")
        missed = {kind: counts for kind in ("entities", "relations") if (counts := self._missed(kind))}
        if missed:
            parts = "; ".join(_missed_words(kind, counts) for kind, counts in missed.items())
            lines.append(f"missed in the prompts: {parts}; tables/actesting_miss.csv.")
        refused = self._refused()
        if refused and refused["withheld"]:
            lines.append(
                f"{refused['withheld']:,} of {refused['asked']:,} prompts were refused "
                f"({refused['withheld_after_drawn']:,} where the source was drawn); tables/refusals.csv."
            )
        if refused and refused["malformed"]:
            lines.append(
                f"{refused['malformed']:,} of {refused['asked']:,} prompts have an answer that is not a picture and "
                "are not judged; see answer_why in records.csv."
            )
        if refused and refused["rewritten"]:
            share = percent(100 * refused["rewritten_rate"])
            lines.append(
                f"{refused['rewritten']:,} of {refused['drawn']:,} pictures ({share}) show a rewritten prompt, as "
                "the service states; tables/refusals.csv."
            )
        if refused and refused["cannot_tell"]:
            lines.append(
                f"for {refused['cannot_tell']:,} pictures ({percent(100 * refused['cannot_tell_rate'])}) the reader "
                "cannot detect the effect of the change; they are not judged."
            )
        return [*lines, *filter(None, (reader_words(self.tables), soft_words(self.tables)))]

    def metrics(self) -> dict[str, float]:
        """Return error, net and miss rates by operator, if enough was judged, and costs."""
        values: dict[str, float] = {}
        for row in rows_of(self.tables.errors, rule=STRICT, against="source"):
            if row["kind"] in ("entities", "relations") and row["cases"] >= LEAST_JUDGED:
                values[f"error_{row['kind']}/{row['relation']}"] = float(row["rate"])
        for row in rows_of(self.tables.net, rule=STRICT):
            enough = row["cases"] >= LEAST_JUDGED and row["unchanged_cases"]
            if row["kind"] in ("entities", "relations") and enough:
                values[f"net_{row['kind']}/{row['relation']}"] = float(row["net"])
        for row in rows_of(self.tables.misses, rule=STRICT):
            if row["said"] >= LEAST_JUDGED:
                values[f"miss_{row['kind']}/{row['relation']}"] = float(row["miss"])
        return {**values, **cost_metrics(self._total())}

    def sources(self, seeds: pd.DataFrame, trained_on: Sequence[str]) -> str:
        """Return the number of prompts, by data set."""
        counts = seeds["dataset"].astype(str).value_counts(sort=False)
        return f"{len(seeds):,}: {', '.join(f'{name} {count:,}' for name, count in counts.items())}; a case is a prompt"

    def may_be_weakest(self, relation: str) -> bool:
        """Return False if an operator's net rate is not above 0, or rests on too few pairs."""
        rows = self._measured()
        return not rows or any(row["relation"] == relation for row in rows if _is_above(row))

    def _measured(self) -> list[dict[Any, Any]]:
        """Return the net rates of operators that have a floor."""
        return [row for row in rows_of(self.tables.net, rule=STRICT, kind=WHOLE) if row["unchanged_cases"]]

    def _strongest(self) -> Mapping[Any, Any]:
        rows = [row for row in self._measured() if _is_above(row)]
        return max(rows, key=lambda row: float(row["net"]), default={})

    def _missed(self, kind: str) -> Mapping[Any, Any]:
        rows = rows_of(self.tables.misses, rule=STRICT, kind=kind)
        return next((row for row in rows if row["relation"] == OVERALL), next(iter(rows), {}))

    def _refused(self) -> Mapping[Any, Any]:
        rows = rows_of(self.tables.refusals)
        return next((row for row in rows if row["relation"] == OVERALL), next(iter(rows), {}))

    def _total(self) -> Mapping[Any, Any]:
        return next(iter(rows_of(self.tables.costs, by=ALL)), {})


def _is_above(row: Mapping[Any, Any]) -> bool:
    """Return True if a net rate is a headline: enough pairs, and an interval above 0."""
    return bool(row["cases"] >= LEAST_JUDGED and row["ci_low"] > 0)


def _count(number: int, share: float) -> str:
    return f"{number:,} ({percent(100 * share)})" if number else "no"


def _judged(missed: Mapping[Any, Any]) -> str:
    total = missed["said"] + missed["cannot_tell"]
    return f"{missed['said']:,} of {total:,} judged, cannot tell {100 * missed['cannot_tell_rate']:.0f} %"


def _shares(missed: Mapping[Any, Any]) -> str:
    untold = 100 * missed["cannot_tell_rate"]
    return f"judged {100 - untold:.0f} %, cannot tell {untold:.0f} %"


def _missed_words(kind: str, missed: Mapping[Any, Any]) -> str:
    if missed["said"] < LEAST_JUDGED:
        return f"{kind}: {_judged(missed)}, too few for a rate"
    return f"{100 * missed['miss']:.1f} % of {kind} ({_shares(missed)})"
