"""Results of a system that answers questions: tables and report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from medtest.core.deferred import pd
from medtest.core.tasks.results import TaskPage, TaskResults
from medtest.readers.base import Readings
from medtest.report.charts.heat import percent, rows_of
from medtest.report.pages.material import Material
from medtest.report.pages.words import counted
from medtest.report.replayed import PictureKind, ReplayedPicture
from medtest.results.cube.axes import ALL, OVERALL
from medtest.results.rates.costs import cost_metrics
from medtest.results.rates.pivot import marked
from medtest.results.records.records_io import Records
from medtest.tasks.ask.report.accuracy import average_words, hidden_words, the_average
from medtest.tasks.ask.report.page import answers, floor_words, seconds_words
from medtest.tasks.ask.report.sheets import SHEETS, sheet_pictures
from medtest.tasks.ask.tables.readings import judged_table
from medtest.tasks.ask.tables.results import AnswerTables

TEMPLATE = Path(__file__).parent / "report" / "answers.html.j2"


class AskResults(TaskResults):
    """Tables of a system that answers questions.

    Args:
        tables: The tables.
    """

    mean_card: ClassVar[bool] = False  # included in the card of accuracies, weighted as in its table

    def __init__(self, tables: AnswerTables) -> None:
        super().__init__()
        self.tables = tables

    @property
    def reader(self) -> str:
        """Judge that read unparsed answers; "" for none."""
        return self.tables.judge

    def frames(self) -> Mapping[str, pd.DataFrame]:
        """Return the tables by file name."""
        return self.tables.frames()

    def read_by(self, records: Records, readings: Readings) -> AskResults:
        """Return a copy with the table of a judge's readings."""
        readings_table = judged_table(records, readings.facts)
        cost = readings.cost_usd
        return AskResults(replace(self.tables, judge=readings.reader, judged=readings_table, judge_cost_usd=cost))

    def page(self, material: Material) -> TaskPage:
        """Return accuracy, flips, refusals, the worst images and costs."""
        values = answers(self.tables, material.target)
        first = [("accuracy", "Accuracy")] if values["hidden"] else []
        first += [("flips", "Flips"), ("refusals", "Refusals")]
        first += [("images", "One image")] if values["worst"] else []
        last = [("cost", "Cost")] if values["costs"] else []
        return TaskPage(template=TEMPLATE, values=values, first=first, after=last)

    def cards(self) -> list[dict[str, Any]]:
        """Return cards with accuracy, refusals and cost."""
        cards: list[dict[str, Any]] = []
        average, row, total = the_average(self.tables), self._state(), self._total()
        if average is not None:
            cards.append(
                {
                    "name": "Accuracy, source \N{RIGHTWARDS ARROW} perturbed",
                    "value": f"{average['source']:.3f} \N{RIGHTWARDS ARROW} {average['perturbed']:.3f}",
                    "lines": [
                        f"any-hit, {average_words(average)}",
                        f"original less average {average['difference']:+.3f}",
                    ],
                }
            )
        if row:
            lines = [f"95 % interval {100 * row['ci_low']:.1f}\N{EN DASH}{100 * row['ci_high']:.1f} %"]
            lines.append(f"{row['refusal']:,} refused, {row['unparsed']:,} not parsed of {row['asked']:,}")
            cards.append({"name": "Refused", "value": percent(100 * row["refusal_rate"]), "lines": lines})
        if total and total["cost_usd"] > 0:
            lines = [f"{total['answers']:,} answers", seconds_words(total)]
            cards.append({"name": "Cost of the answers", "value": f"${total['cost_usd']:,.2f}", "lines": lines})
        return cards

    def sources(self, seeds: pd.DataFrame, trained_on: Sequence[str]) -> str:
        """Return the number of images by data set, and the number of questions."""
        images = seeds[["dataset", "seed_id"]].drop_duplicates()["dataset"].astype(str).value_counts(sort=False)
        listing = ", ".join(f"{marked(str(name), trained_on)} {count:,}" for name, count in images.items())
        question_count = self.tables.by_relation["item"].nunique()
        return (
            f"{len(seeds):,}: {counted(int(images.sum()), 'image')} ({listing}), {counted(question_count, 'question')}"
            "; a case is an image with a question"
        )

    def lines(self) -> list[str]:
        """Return summary lines: flips net of the floor, accuracy before and after, refusals, cost."""
        lines = [floor_words(self.tables.flips), hidden_words(self.tables)]
        row, total = self._state(), self._total()
        if row and (row["refusal"] or row["unparsed"]):
            lines.append(
                f"{row['refusal']:,} of {row['asked']:,} answers refused ({row['refused_after_answer']:,} where the "
                f"source was answered), {row['unparsed']:,} not parsed (tables/answer_states.csv)."
            )
        if total and total["cost_usd"] > 0:
            cost = total["cost_usd"]
            lines.append(f"The answers cost ${cost:,.2f}, {total['answers']:,} in all (tables/answer_costs.csv).")
        return [line for line in lines if line]

    def metrics(self) -> dict[str, float]:
        """Return the costs of API calls as metrics."""
        values = cost_metrics(self._total())
        if self.tables.judge_cost_usd is not None:
            values["cost/judge_usd"] = self.tables.judge_cost_usd
        return values

    def pictures(self, system: str) -> Sequence[tuple[PictureKind, Sequence[ReplayedPicture]]]:
        """Return sheets of the images with most flips."""
        return [(SHEETS, sheet_pictures(self.tables.worst))]

    def _state(self) -> Mapping[Any, Any]:
        """Return states over all questions and relations; empty without follow-ups."""
        return next(iter(rows_of(self.tables.states, item=ALL, relation=OVERALL)), {})

    def _total(self) -> Mapping[Any, Any]:
        """Return the costs of all answers; empty if records have none."""
        return next(iter(rows_of(self.tables.costs)), {})
