"""Results of a classifier: tables and report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from medtest.core.cases import Classes
from medtest.core.deferred import pd
from medtest.core.tasks.results import TaskPage, TaskResults
from medtest.report.charts.heat import percent, rows_of
from medtest.report.pages.material import Material
from medtest.report.replayed import PictureKind, ReplayedPicture
from medtest.results.cube.axes import ALL, OVERALL
from medtest.tasks.classify.report.film_strips import FILMS, film_pictures
from medtest.tasks.classify.report.page import label_page, shown_films
from medtest.tasks.classify.tables.flips import AUTO
from medtest.tasks.classify.tables.results import LabelTables

TEMPLATE = Path(__file__).parent / "report" / "labels.html.j2"
_FIRST_FRAMES = (
    "Every frame of a sequence is a case. The first frame is mostly the source itself and then passes, so the flip "
    "probability below excludes it."
)


class LabelResults(TaskResults):
    """Tables of a classifier.

    Args:
        tables: The tables.
    """

    def __init__(self, tables: LabelTables) -> None:
        super().__init__()
        self.tables = tables

    @property
    def classes(self) -> Classes:
        """The classes."""
        return self.tables.classes

    @property
    def flip_probability(self) -> tuple[float, float] | None:
        """Mean flip probability over the types, if there are sequences."""
        row = next(iter(self._flips(OVERALL)), None)
        return None if row is None or row["fp"] != row["fp"] else (float(row["fp"]), float(row["rfp"]))

    def frames(self) -> Mapping[str, pd.DataFrame]:
        """Return the tables by file name."""
        return self.tables.frames()

    def page(self, material: Material) -> TaskPage:
        """Return accuracy, flips, errors and film strips."""
        values = label_page(
            self.tables,
            relations=material.wanted.relations,
            films=shown_films(material.target),
            warn=material.tables.attacks.warn,
        )
        after = [("accuracy", "Accuracy")]
        after += [("attack-labels", "Labels under attack")] if values["attack_labels"] else []
        return TaskPage(
            template=TEMPLATE,
            values=values,
            after=[("flips", "Flips"), *after] if values["flips"] else after,
            rate_words=_FIRST_FRAMES if values["flips"] else "",
        )

    def cards(self) -> list[dict[str, object]]:
        """Return a card with the mean flip probability over the types, if there are sequences."""
        row = next(iter(self._flips(OVERALL)), None)
        if row is None or row["fp"] != row["fp"]:
            return []
        lines = [f"95 % interval {100 * row['ci_low']:.1f}\N{EN DASH}{100 * row['ci_high']:.1f} %"]
        lines.append(f"{row['sequences']:,} sequences; mean of the types")
        return [{"name": "Flip probability", "value": percent(100 * row["fp"]), "lines": lines}]

    def lines(self) -> list[str]:
        """Return the flip probability in one line; empty without sequences."""
        if self.tables.flips.empty:
            return []
        rows = self._flips()
        mean = next((row for row in rows if row["relation"] == OVERALL), None)
        if mean is None or mean["fp"] != mean["fp"]:
            return ["no two frames of a sequence could be compared."]
        rate, low, high = (100 * float(mean[name]) for name in ("fp", "ci_low", "ci_high"))
        over = f", mean of {len(rows) - 1} types" if len(rows) > 2 else ""
        return [f"flip probability {rate:.1f} % [{low:.1f}, {high:.1f}]{over}; tables/flip_probability.csv."]

    def pictures(self, system: str) -> Sequence[tuple[PictureKind, Sequence[ReplayedPicture]]]:
        """Return the film strips of the sequences with most flips."""
        return [(FILMS, film_pictures(self.tables.films, system))]

    def _flips(self, *relations: str) -> list[dict[Any, Any]]:
        rows = rows_of(self.tables.flips, dataset=ALL, severity=ALL, rule=AUTO)
        return [row for row in rows if not relations or row["relation"] in relations]
