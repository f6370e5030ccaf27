"""Tables 2 to 9 of the MedTest report, filled with the user's own rates and the published ones beside them.

They are made where they mean something: data sets that the report used, artefacts drawn from ranges (severity 0), and
the expected mask as the reference. A network of the report stands beside its own table; others stand alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from medtest.results.published.reference import ARTEFACTS, DATASET_SIZES, SOURCE, cells, models
from medtest.results.rates import efr
from medtest.seeds.datasets.facts import plain

if TYPE_CHECKING:
    import pandas as pd

NUMBERS: dict[tuple[str, float], int] = {
    ("PraNet", 0.5): 2,
    ("SANet", 0.5): 3,
    ("SSFormer", 0.5): 4,
    ("TGANet", 0.5): 5,
    ("PraNet", 0.25): 6,
    ("SANet", 0.25): 7,
    ("SSFormer", 0.25): 8,
    ("TGANet", 0.25): 9,
}
"""The report's number of the table of a network and a threshold."""

SCORES: dict[str, str] = {"dice": "Dice", "iou": "IoU"}
COVERAGE = "paper_coverage.csv"
ALL_CASES = "All cases"
MEAN_OF_CELLS = "Mean of cells"
PUBLISHED = "published"


@dataclass(frozen=True, kw_only=True, eq=False)
class Paper:
    """The report's tables of one system.

    Attributes:
        model: The report's network that the system is, or "".
        tables: By threshold: columns ``artefact``, ``relation``, then for each of the report's four data sets and
            both scores ``<set> <score>`` and ``<set> <score> published`` in percent, and ``<set> cases``; one row for
            each artefact in the report's order, then all cases and the mean of the cells. Cells without cases are
            empty.
        coverage: One row for each data set: images used, images published, whether it is whole.
    """

    model: str
    tables: Mapping[float, pd.DataFrame]
    coverage: pd.DataFrame

    def frames(self) -> dict[str, pd.DataFrame]:
        """Return the tables by file name."""
        named = {f"paper_t{threshold:g}.csv": table for threshold, table in self.tables.items()}
        return {**named, COVERAGE: self.coverage} if named else {}

    def title(self, threshold: float) -> str:
        """Return what a table is called."""
        number = NUMBERS.get((self.model, threshold))
        return f"t = {threshold:g}" + (f" (table {number} of the report)" if number else "")

    @property
    def partial(self) -> str:
        """Which data sets are missing or not whole, in words, or ""."""
        rows = self.coverage.to_dict("records")
        lacking = [f"{r['dataset']} {r['images']:,} of {r['published']:,}" for r in rows if not r["whole"]]
        return f"partial: {', '.join(lacking)} images" if lacking else ""

    def latex(self) -> dict[str, str]:
        """Return each table as LaTeX (booktabs) by file name."""
        return {f"paper_t{threshold:g}.tex": self._latex(threshold) for threshold in self.tables}

    def _latex(self, threshold: float) -> str:
        sets = list(DATASET_SIZES)
        lines = [
            rf"% {SOURCE}; own rates with the published ones in brackets; made by medtest.",
            r"\begin{tabular}{l" + "rr" * len(sets) + "}",
            r"\toprule",
            " & ".join([""] + [rf"\multicolumn{{2}}{{c}}{{{name}}}" for name in sets]) + r" \\",
            " & ".join(["$t = " + f"{threshold:g}$"] + list(SCORES.values()) * len(sets)) + r" \\",
            r"\midrule",
        ]
        for row in self.tables[threshold].to_dict("records"):
            if row["artefact"] == ALL_CASES:
                lines.append(r"\midrule")
            texts = [str(row["artefact"])]
            for name in sets:
                for score in SCORES.values():
                    texts.append(_latex_cell(row[f"{name} {score}"], row[f"{name} {score} {PUBLISHED}"]))
            lines.append(" & ".join(texts) + r" \\")
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _latex_cell(own: object, published: object) -> str:
    return f"{number(own) or '--'}{f' ({number(published)})' if number(published) else ''}"


def number(value: object) -> str:
    """Return a rate with the report's one decimal, or "" where there is none."""
    return f"{value:.1f}" if isinstance(value, float) and value == value else ""


def model_of(system: str) -> str:
    """Return the report's network that a system's name begins with (``pranet-compact`` is PraNet), or ""."""
    return next((name for name in models() if plain(system).startswith(plain(name))), "")


def paper_of(
    rates: pd.DataFrame,
    *,
    system: str,
    seeds: Mapping[str, int],
    relations: Mapping[str, str],
    thresholds: Sequence[float],
) -> Paper | None:
    """Return the report's tables, or None where a run has nothing to do with them.

    Args:
        rates: What :func:`medtest.results.rates.efr.efr_table` gave.
        system: The system's name in its records.
        seeds: Source images by data set.
        relations: Relation ids of the suite, with the name of the part.
        thresholds: Thresholds shown.
    """
    import pandas as pd

    names = {plain(name): name for name in DATASET_SIZES}
    sets = {names[plain(own)]: own for own in seeds if plain(own) in names}
    levels = {str(level) for level in rates["severity"].unique()} - {str(efr.ALL), "0"}
    known = {part: own for own, part in relations.items() if part in ARTEFACTS.values()}
    shown = [t for t in thresholds if any(t == cell.threshold for cell in cells())]
    if not sets or levels or not known or not shown:
        return None
    truth = rates.loc[((rates["against"] == "truth") & (rates["severity"].astype(str) == str(efr.ALL))).to_numpy()]
    if truth.empty:
        return None
    own = {
        (str(r.dataset), str(r.relation), str(r.score), float(str(r.threshold))): (float(str(r.efr_percent)), r.cases)
        for r in truth.itertuples(index=False)
    }
    model = model_of(system)
    coverage = pd.DataFrame(
        [
            {
                "dataset": name,
                "images": int(seeds.get(sets.get(name, ""), 0)),
                PUBLISHED: size,
                "whole": int(seeds.get(sets.get(name, ""), 0)) == size,
            }
            for name, size in DATASET_SIZES.items()
        ]
    )
    tables = {threshold: _table(own, sets, known, model, threshold) for threshold in shown}
    return Paper(model=model, tables=tables, coverage=coverage)


def _table(
    own: Mapping[tuple[str, str, str, float], tuple[float, object]],
    sets: Mapping[str, str],
    relations: Mapping[str, str],
    model: str,
    threshold: float,
) -> pd.DataFrame:
    import pandas as pd

    published = {
        (cell.dataset, cell.relation, cell.score): cell.efr_percent
        for cell in cells()
        if cell.model == model and cell.threshold == threshold
    }
    lines = [(word, part, relations.get(part, "")) for word, part in ARTEFACTS.items()]
    lines += [(ALL_CASES, efr.OVERALL, efr.OVERALL), (MEAN_OF_CELLS, efr.OVERALL_CELLS, efr.OVERALL_CELLS)]
    rows = []
    for word, part, relation in lines:
        row: dict[str, object] = {"artefact": word, "relation": relation or part}
        for name in DATASET_SIZES:
            cases = 0
            for score, title in SCORES.items():
                rate, cases_ = own.get((sets.get(name, ""), relation, score, threshold), (float("nan"), 0))
                cases = int(str(cases_))
                row[f"{name} {title}"] = rate if cases else float("nan")
                row[f"{name} {title} {PUBLISHED}"] = _published(published, name, part, score)
            row[f"{name} cases"] = cases
        rows.append(row)
    return pd.DataFrame(rows)


def _published(found: Mapping[tuple[str, str, str], float], dataset: str, part: str, score: str) -> float:
    """Return a published cell, or over all artefacts of a data set their mean: every image got each one once."""
    if part in (efr.OVERALL, efr.OVERALL_CELLS):
        values = [rate for (name, _, kind), rate in found.items() if (name, kind) == (dataset, score)]
        return sum(values) / len(values) if values else float("nan")
    return found.get((dataset, part, score), float("nan"))
