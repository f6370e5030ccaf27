"""Display forms of the comparison before and after training: the layout of the slides, and Markdown."""

from __future__ import annotations

from medtest.core.deferred import pd
from medtest.results.before_after.change import headline, row_of


def slides_table(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table in the layout of the slides.

    Rows are relations; columns are data set, score, before, after and difference.
    """
    names = list(dict.fromkeys(table["relation"]))
    columns: dict[str, list[object]] = {"relation": list(names)}
    for (dataset, score), part in table.groupby(["dataset", "score"], sort=False):
        indexed = part.set_index("relation")
        for column in ("before", "after", "difference", "ci_low", "ci_high"):
            values = [indexed[column].get(name) for name in names]
            columns[f"{dataset} {score} {column}"] = values
    return pd.DataFrame(columns)


def markdown(table: pd.DataFrame, *, title: str = "") -> str:
    """Return the table as Markdown: scores with three decimals, differences in points with their intervals.

    Args:
        table: The long table.
        title: Title in bold above the table; none if empty.
    """
    pairs = list(dict.fromkeys(zip(table["dataset"], table["score"], strict=True)))
    head = ["", *(f"{dataset} {score_words(score)} before | after | points (95 %)" for dataset, score in pairs)]
    published = table["published_mean_difference"].notna().any()
    head += [f"published, points of {score_words(headline(table))}"] if published else []
    lines = [f"**{title}**", ""] if title else []
    lines += ["| " + " | ".join(head) + " |", "|" + "---|" * (1 + 3 * len(pairs) + published)]
    for relation in dict.fromkeys(table["relation"]):
        cells = [str(relation).replace("_", " ")]
        for dataset, score in pairs:
            row = row_of(table, relation, score=score, dataset=dataset)
            cells += ["", "", ""] if row is None else [f"{row.before:.3f}", f"{row.after:.3f}", points(row)]
        if published:
            beside = retraining_points(table, str(relation))
            cells.append("" if beside is None else f"{beside:+.1f}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def retraining_points(table: pd.DataFrame, relation: str) -> float | None:
    """Return the mean difference of the leading score in the slides, in points; None if they have none."""
    leading = (table["relation"] == relation) & (table["score"] == headline(table))
    published = table.loc[leading, "published_mean_difference"]
    values = published.dropna()
    return None if values.empty else 100 * float(values.iloc[0])


def points(row: pd.Series) -> str:
    """Return a difference in points (hundredths of the score) with its interval."""
    if row.ci_low is None or row.ci_low != row.ci_low:
        return _signed(row.difference)
    return f"{_signed(row.difference)} ({_signed(row.ci_low)} to {_signed(row.ci_high)})"


def _signed(value: float) -> str:
    return f"{round(100 * value, 1) + 0.0:+.1f}"


def score_words(name: str) -> str:
    """Return the display name of a score."""
    words = {"dice": "Dice", "iou": "IoU", "kappa": "Cohen's κ", "f1": "weighted F1", "auroc": "mean AUROC"}
    return words.get(name, name.replace("_", " "))
