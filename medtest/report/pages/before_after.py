"""Page comparing a network before and after further training, made from tables and facts alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from medtest.core import __version__
from medtest.core.deferred import pd
from medtest.report.charts import figures
from medtest.report.charts.heat import rows_of
from medtest.report.pages.page import render
from medtest.results.before_after import change as before_after
from medtest.results.before_after import words as before_after_words
from medtest.results.published import retraining
from medtest.results.published.retraining import AVERAGE, ORIGINAL
from medtest.results.rates.efr import ALL

if TYPE_CHECKING:
    from markupsafe import Markup

_SUMS = (before_after.RELATIONS, AVERAGE)


def before_after_html(
    *,
    network: str,
    family: str,
    suite: str,
    table: pd.DataFrame,
    training: Mapping[str, Any],
    command: str = "",
    links: Sequence[tuple[str, str]] = (),
    phantom: bool = False,
    unpaired: int = 0,
    excluded: str = "",
) -> str:
    """Return the HTML page.

    Args:
        network: Name of the network.
        family: Its family, for the published figures.
        suite: Name and version of the suite.
        table: The long table of :mod:`medtest.results.before_after.change`.
        training: ``training.json`` of the training.
        command: The command as typed, without paths of this machine.
        links: Names and relative addresses of the reports of both runs.
        phantom: Whether the test seeds are generated images.
        unpaired: Number of cases left out because only one side answered.
        excluded: Follow-ups that raters judged unfit, as a sentence; "" if the suite excludes none.
    """
    return render(
        "before_after.html.j2",
        {
            "network": network,
            "suite": suite,
            "phantom": phantom,
            "trained": _trained(training),
            "cards": _cards(table),
            "forest": _forest(table),
            "leading": ("mean Dice" if before_after.headline(table) == "dice" else _leading(table).lower()),
            "unit": _unit(table),
            "unpaired": unpaired,
            "excluded": excluded,
            "parts": [_part(table, dataset, family) for dataset in dict.fromkeys(table["dataset"])],
            "facts": _facts(training),
            "history": _history(training),
            "history_score": _score(_watched(training)),
            "command": command,
            "links": list(links),
            "medtest": __version__,
        },
    )


def row_words(relation: str) -> str:
    """Return the readable name of a row."""
    words = {
        ORIGINAL: "Original",
        AVERAGE: "Average with originals",
        before_after.RELATIONS: "Mean of relations",
        "specularity": "Specularity (spot)",
    }
    return words.get(relation, relation.replace("_", " ").capitalize())


def _unit(table: pd.DataFrame) -> str:
    first = before_after.row_of(table, ORIGINAL)
    return "seeds" if first is None else f"{int(first.seeds)} seeds (patients or videos where they are known)"


def _sign(row: pd.Series) -> str:
    """Return ``up`` or ``down`` if the interval excludes 0."""
    if row.ci_low is None or row.ci_low != row.ci_low:
        return ""
    return "up" if row.ci_low > 0 else "down" if row.ci_high < 0 else ""


def _cards(table: pd.DataFrame) -> list[dict[str, str]]:
    cards = []
    for relation in (ORIGINAL, *_SUMS):
        row = before_after.row_of(table, relation)
        if row is None:
            continue
        interval = before_after_words.points(row).partition(" ")[2]
        cards.append(
            {
                "name": f"{_leading(table)}, {row_words(relation).lower()}",
                "value": f"{100 * row.difference:+.1f} points",
                "note": f"{row.before:.3f} → {row.after:.3f} {interval}",
                "sign": _sign(row),
            }
        )
    return cards


def _forest(table: pd.DataFrame) -> Markup:
    rows = [before_after.row_of(table, str(relation)) for relation in dict.fromkeys(table["relation"])]
    return figures.difference_panel(
        f"{_leading(table)}, points gained",
        [
            figures.Bar(
                label=row_words(str(row.relation)),
                value=100 * row.difference,
                low=100 * (row.difference if row.ci_low is None or row.ci_low != row.ci_low else row.ci_low),
                high=100 * (row.difference if row.ci_high is None or row.ci_high != row.ci_high else row.ci_high),
            )
            for row in rows
            if row is not None
        ],
    )


def _part(table: pd.DataFrame, dataset: str, family: str) -> dict[str, Any]:
    rows_of_dataset = table.loc[(table["dataset"] == dataset).to_numpy()]
    scores = list(dict.fromkeys(rows_of_dataset["score"]))
    exact = bool(rows_of_dataset["published_before"].notna().any())
    elsewhere = not exact and bool(rows_of_dataset["published_mean_difference"].notna().any())
    columns = {"before": "published_before", "after": "published_after"} if exact else {}
    if elsewhere:
        columns = {"points": "published_mean_difference"}
    rows = []
    for relation in dict.fromkeys(rows_of_dataset["relation"]):
        cells = []
        for score in scores:
            row = before_after.row_of(rows_of_dataset, str(relation), score=score, dataset=dataset)
            empty = {"before": "", "after": "", "points": "", "sign": ""}
            cells.append(
                empty
                if row is None
                else {
                    "before": f"{row.before:.3f}",
                    "after": f"{row.after:.3f}",
                    "points": before_after_words.points(row),
                    "sign": _sign(row),
                }
            )
        rows.append(
            {
                "name": row_words(str(relation)),
                "sum": relation in _SUMS,
                "cells": cells,
                "published": [
                    _published(rows_of_dataset, column, relation=relation, score=score)
                    for score in scores
                    for column in columns.values()
                ],
            }
        )
    heads = [f"{_score(score)}{' ' if exact else ', '}{name}" for score in scores for name in columns]
    where = dataset if exact else f"mean of {' and '.join(retraining.datasets(family))}"
    if len(retraining.datasets(family)) == 1:
        where = retraining.datasets(family)[0]
    model = retraining.NETWORKS.get(family, "")
    return {
        "title": "All data sets" if dataset == ALL else f"Data set {dataset}",
        "scores": [_score(score) for score in scores],
        "rows": rows,
        "published": len(heads),
        "published_heads": heads,
        "published_title": f"published {model}, {where}",
    }


def _published(table: pd.DataFrame, column: str, **keys: object) -> str:
    values = [row[column] for row in rows_of(table, **keys) if row[column] is not None and row[column] == row[column]]
    if not values:
        return ""
    return f"{100 * values[0]:+.1f}" if column == "published_mean_difference" else f"{values[0]:.3f}"


def _score(name: str) -> str:
    return before_after_words.score_words(name)


def _leading(table: pd.DataFrame) -> str:
    """Return the leading score of the page, such as Dice or accuracy."""
    words = _score(before_after.headline(table))
    return words[:1].upper() + words[1:]


def _trained(training: Mapping[str, Any]) -> str:
    pairs = training.get("pairs", {})
    recipe = training.get("recipe", {})
    if not pairs:
        return ""
    return (
        f"Trained on {pairs.get('originals', 0):,} original pairs and {pairs.get('perturbed', 0):,} perturbed images "
        f"drawn from them, with the recipe {recipe.get('name', '')}; {pairs.get('held_clean', 0):,} further pairs were "
        "held out for validation. No test image has the same pixels as a training image."
    )


def _facts(training: Mapping[str, Any]) -> list[tuple[str, str]]:
    if not training:
        return []
    recipe, pairs = training.get("recipe", {}), training.get("pairs", {})
    quirks = [name.replace("_", " ") for name, on in recipe.get("quirks", {}).items() if on]
    return [
        ("Network", str(training.get("network", ""))),
        ("Recipe", f"{recipe.get('name', '')}: {recipe.get('summary', '')}"),
        ("Optimizer", ", ".join(f"{k} {v}" for k, v in recipe.get("optimizer", {}).items() if v is not None)),
        ("Schedule", ", ".join(f"{k} {v}" for k, v in recipe.get("schedule", {}).items())),
        ("Loss", ", ".join(f"{k} {v}" for k, v in recipe.get("loss", {}).items())),
        ("Quirks of the published code, reproduced", ", ".join(quirks) or "none"),
        ("Batch", str(recipe.get("batch", ""))),
        ("Optimizer steps", f"{training.get('steps', '')}, weights of step {training.get('kept_step', '')} kept"),
        ("Pairs", ", ".join(f"{k.replace('_', ' ')} {v:,}" for k, v in pairs.items())),
        ("Weights before (SHA-256)", str(training.get("from_sha256", ""))),
        ("Weights after (SHA-256)", str(training.get("weights_sha256", ""))),
        *(("Note", str(note)) for note in recipe.get("notes", [])),
    ]


def _watched(training: Mapping[str, Any]) -> str:
    """Return the score that the training monitored: ``dice``, ``accuracy``."""
    entries: Sequence[Mapping[str, Any]] = training.get("history", [])
    keys = [key for entry in entries for key in entry if key.endswith("_clean")]
    return str(keys[0]).removesuffix("_clean") if keys else "dice"


def _history(training: Mapping[str, Any]) -> list[dict[str, Any]]:
    def number(entry: Mapping[str, Any], key: str) -> str:
        return f"{float(entry[key]):.3f}" if key in entry else ""

    entries: Sequence[Mapping[str, Any]] = training.get("history", [])
    watched = _watched(training)
    step = max(1, len(entries) // 40)
    return [
        {
            "step": f"{int(entry['step']):,}",
            "clean": number(entry, f"{watched}_clean"),
            "perturbed": number(entry, f"{watched}_perturbed"),
            "loss": number(entry, "loss"),
            "kept": int(entry["step"]) == training.get("kept_step"),
        }
        for place, entry in enumerate(entries)
        if place % step == 0 or int(entry["step"]) == training.get("kept_step") or entry is entries[-1]
    ]
