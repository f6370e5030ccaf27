"""Tables 2 to 9 of the MedTest report, with the user's rates next to the published ones.

They are built only when comparable: data sets that the report used, artefacts drawn from ranges (severity 0), and the
expected mask as the reference. Published figures are included for networks of the report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from medtest.core.deferred import pd
from medtest.results.published.reference import ARTEFACTS, DATASET_SIZES, SOURCE, cells, models
from medtest.results.rates import efr
from medtest.seeds.datasets.facts import plain

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
"""Table number in the report for a network and a threshold."""

SCORES: dict[str, str] = {"dice": "Dice", "iou": "IoU"}
COVERAGE = "paper_coverage.csv"
ALL_CASES = "All cases"
MEAN_OF_CELLS = "Mean of cells"
PUBLISHED = "published"


@dataclass(frozen=True, kw_only=True, eq=False)
class Paper:
    """The report's tables for one system.

    Attributes:
        model: The report's network that the system is, or "".
        tables: By threshold: columns ``artefact``, ``relation``, then for each of the report's four data sets and both
            scores ``<set> <score>`` and ``<set> <score> published`` in percent, and ``<set> cases``; one row for each
            artefact in the report's order, then all cases and the mean of the cells. Cells without cases are empty.
        coverage: One row for each data set: images used, images published, whether it is complete.
    """

    model: str
    tables: Mapping[float, pd.DataFrame]
    coverage: pd.DataFrame

    def frames(self) -> dict[str, pd.DataFrame]:
        """Return the tables by file name."""
        frames = {f"paper_t{threshold:g}.csv": table for threshold, table in self.tables.items()}
        return {**frames, COVERAGE: self.coverage} if frames else {}

    def title(self, threshold: float) -> str:
        """Return the title of a table."""
        number = NUMBERS.get((self.model, threshold))
        return f"t = {threshold:g}" + (f" (table {number} of the report)" if number else "")

    @property
    def partial(self) -> str:
        """Message on data sets that are missing or incomplete, or ""."""
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


def _latex_cell(rate: object, published: object) -> str:
    return f"{number(rate) or '--'}{f' ({number(published)})' if number(published) else ''}"


def number(value: object) -> str:
    """Return a rate with one decimal as in the report, or "" if there is none."""
    return f"{value:.1f}" if isinstance(value, float) and value == value else ""


def model_of(system: str) -> str:
    """Return the report's network that prefixes a system's name (``pranet-compact`` is PraNet), or ""."""
    return next((name for name in models() if plain(system).startswith(plain(name))), "")


def paper_of(
    rates: pd.DataFrame,
    *,
    system: str,
    seeds: Mapping[str, int],
    relations: Mapping[str, str],
    thresholds: Sequence[float],
) -> Paper | None:
    """Return the report's tables, or None if they do not apply to the run.

    Args:
        rates: Table from :func:`medtest.results.rates.efr.efr_table`.
        system: Name of the system in its records.
        seeds: Number of source images by data set.
        relations: Relation ids of the suite, each with the name of its part.
        thresholds: Thresholds to show.
    """
    names = {plain(name): name for name in DATASET_SIZES}
    sets = {names[plain(dataset)]: dataset for dataset in seeds if plain(dataset) in names}
    levels = {str(level) for level in rates["severity"].unique()} - {str(efr.ALL), "0"}
    relation_of = {part: relation for relation, part in relations.items() if part in ARTEFACTS.values()}
    selected = [t for t in thresholds if any(t == cell.threshold for cell in cells())]
    if not sets or levels or not relation_of or not selected:
        return None
    truth = rates.loc[((rates["against"] == "truth") & (rates["severity"].astype(str) == str(efr.ALL))).to_numpy()]
    if truth.empty:
        return None
    measured = {
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
    tables = {threshold: _table(measured, sets, relation_of, model, threshold) for threshold in selected}
    return Paper(model=model, tables=tables, coverage=coverage)


def _table(
    measured: Mapping[tuple[str, str, str, float], tuple[float, object]],
    sets: Mapping[str, str],
    relations: Mapping[str, str],
    model: str,
    threshold: float,
) -> pd.DataFrame:
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
                rate, number = measured.get((sets.get(name, ""), relation, score, threshold), (float("nan"), 0))
                cases = int(str(number))
                row[f"{name} {title}"] = rate if cases else float("nan")
                row[f"{name} {title} {PUBLISHED}"] = _published(published, name, part, score)
            row[f"{name} cases"] = cases
        rows.append(row)
    return pd.DataFrame(rows)


def _published(values_of: Mapping[tuple[str, str, str], float], dataset: str, part: str, score: str) -> float:
    """Return a published cell, or the unweighted mean over all artefacts of a data set: every image got each once."""
    if part in (efr.OVERALL, efr.OVERALL_CELLS):
        values = [rate for (name, _, kind), rate in values_of.items() if (name, kind) == (dataset, score)]
        return sum(values) / len(values) if values else float("nan")
    return values_of.get((dataset, part, score), float("nan"))
