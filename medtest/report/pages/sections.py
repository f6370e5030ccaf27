"""Sections of the report: severity curves, factors, (α,σ), metadata, published figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from medtest.core.cases import UNCHANGED
from medtest.core.deferred import pd
from medtest.core.oracles import criteria
from medtest.report.charts import figures
from medtest.report.charts.heat import SUMS, EfrRows, cell, heat_map, interval, percent, rows_of
from medtest.report.pages.words import (
    cluster_word,
    criterion_keys,
    curve_words,
    limit_words,
    p_words,
    robustness_against,
    score_words,
)
from medtest.results.published import reference
from medtest.results.rates import efr
from medtest.results.rates.factors import all_factors
from medtest.results.series.alpha_sigma import TOO_FEW_SCALES

if TYPE_CHECKING:
    from medtest.report.pages.material import Material

_SCORE, _RATE = figures.BLUE, figures.VERMILION


def curve_score(material: Material) -> str:
    """Return the score whose curves are drawn: the primary one, or the first of a combined rule."""
    return criteria.components(material.wanted.primary.score)[0]


def _mean_rows(material: Material) -> pd.DataFrame:
    table = material.tables.severity
    against = material.wanted.curve_against
    return table.loc[
        (
            (table["score"] == curve_score(material)) & (table["against"] == against) & (table["dataset"] == efr.ALL)
        ).to_numpy(dtype=bool)
    ]


def _levels(rows: pd.DataFrame) -> list[figures.Point]:
    ordered = rows.sort_values("severity")[["severity", "mean", "ci_low", "ci_high"]].astype(float)
    return [figures.Point(x=x, y=y, low=low, high=high) for x, y, low, high in ordered.to_numpy().tolist()]


def severity(material: Material) -> dict[str, Any]:
    """Return one panel per relation: mean score and EFR over severities, with intervals."""
    primary, rates = material.wanted.primary, material.rates
    score = curve_words(curve_score(material), material.wanted.curve_against)
    means = _mean_rows(material)
    panels = []
    for name in rates.changing:
        rows = means.loc[((means["relation"] == name) & (means["severity"] > 0)).to_numpy(dtype=bool)]
        points = _levels(rows)
        if len(points) < 2:
            continue
        source = float(rows["source_mean"].mean())
        shares = [
            figures.Point(
                x=float(level), y=row["efr_percent"] / 100, low=row["ci_low"] / 100, high=row["ci_high"] / 100
            )
            for level in rates.severities
            if level != "0" and (row := material.row(name, severity=level)) is not None and int(row["cases"])
        ]
        flat = tuple(figures.Point(x=p.x, y=source) for p in (points[0], points[-1]))
        panels.append(
            figures.curve_panel(
                name.replace("_", " "),
                [
                    figures.Curve(name="sources", points=flat, colour=figures.SKY, dashed=True),
                    figures.Curve(name=curve_score(material), points=tuple(points), colour=_SCORE),
                    figures.Curve(name="EFR", points=tuple(shares), colour=_RATE),
                ],
                y_name=f"{score}; EFR",
            )
        )
    legend = [
        (f"mean {score}", _SCORE),
        (f"EFR ({limit_words(primary.score, primary.threshold)}), as a fraction", _RATE),
        (f"mean {score} on the source images (dashed)", figures.SKY),
    ]
    return {"curves": panels, "curve_legend": legend}


def weakest(material: Material) -> tuple[str, Mapping[str, Any]] | None:
    """Return the relation with the highest rate that may be a headline, and its row; None if there is none."""
    least = material.wanted.task.report.least_judged
    return material.rates.weakest(criterion_keys(material), material.tables.own.may_be_weakest, least)


def mean_on_sources(material: Material) -> str:
    """Return the mean score on source images as text, or "" without truth."""
    score = curve_score(material)
    seeds = material.tables.seeds
    if seeds.empty or score not in seeds.columns or not seeds[score].notna().any():
        return ""
    return f"{float(seeds[score].mean()):.3f}"


def mean_cards(material: Material) -> list[dict[str, Any]]:
    """Return a card with the mean score on source images; none without truth."""
    mean = mean_on_sources(material)
    if not mean:
        return []
    seeds = material.tables.seeds
    judged = int(seeds[curve_score(material)].notna().sum())
    score = curve_score(material)
    after = _mean_rows(material)
    after = after.loc[(after["relation"] != UNCHANGED).to_numpy(dtype=bool)]
    lines = [f"mean {'accuracy' if score == 'agreement' else score_words(score)} of {judged:,} source cases"]
    if not after.empty and material.wanted.curve_against == "truth":
        weighted = float((after["mean"] * after["cases"]).sum() / after["cases"].sum())
        lines.append(f"{weighted:.3f} over all follow-ups")
    return [{"name": "On source images", "value": mean, "lines": lines}]


def factors(material: Material) -> dict[str, Any]:
    """Return the factor figure: a panel for each factor, and the model's odds ratios."""
    table = material.tables.factors
    known_factors = all_factors(curve_score(material))
    label = {factor.name: factor.label for factor in known_factors}
    empty: dict[str, Any] = {"factor_panels": [], "odds": "", "odds_words": ""}
    if table.empty:
        return empty
    top = figures.nice_top(float(table["ci_high"].max()))
    panels = []
    for name in dict.fromkeys(table["factor"]):
        rows = rows_of(table, factor=name)
        bars = [
            figures.Bar(
                label=_range(row["from"], row["to"]),
                value=float(row["efr_percent"]),
                low=float(row["ci_low"]),
                high=float(row["ci_high"]),
                note=f"{row['violations']:,}/{row['cases']:,}",
            )
            for row in rows
        ]
        panels.append(
            figures.interval_panel(label.get(str(name), str(name)), bars, high=top, x_name="EFR", unit=rows[0]["unit"])
        )
    return {"factor_panels": panels, **_model(material.tables.model, label)}


def slices(material: Material) -> dict[str, Any]:
    """Return the combinations of factors that fail more often, with links to their worst cases in the browser."""
    confirmed = material.tables.slices
    rows = [
        {
            "words": str(row["slice"]).replace("_", " "),
            "efr": percent(row["efr_percent"]),
            "range": interval(row),
            "counts": f"{row['violations']:,} of {row['cases']:,}",
            "rest": percent(row["rest_percent"]),
            "difference": f"{row['difference']:+.1f} ({row['difference_low']:.1f} to {row['difference_high']:.1f})",
            "p": p_words(row["p_holm"]),
            "discovered": f"{percent(row['discovered_percent'])} | {percent(row['discovered_rest_percent'])}",
            "worst": [(address, quote(address, safe="")) for address in worst],
        }
        for row, worst in zip(rows_of(confirmed.frame), confirmed.worst, strict=True)
    ]
    return {"slices": rows, "slices_tested": confirmed.tested, "slice_clusters": cluster_word(material)}


def _range(low: float, high: float) -> str:
    return f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"


def _model(model: pd.DataFrame, label: Mapping[str, str]) -> dict[str, Any]:
    rows = model.to_dict("records")
    shown = [row for row in rows if row["kind"] == "factor"]
    if not shown:
        note = str(rows[0]["note"]) if rows else ""
        return {"odds": "", "odds_words": f"No joint model of all factors: {note}." if note else ""}
    odds = [
        figures.Bar(
            label=label.get(str(row["term"]), str(row["term"])),
            value=float(row["odds_ratio"]),
            low=float(row["ci_low"]),
            high=float(row["ci_high"]),
        )
        for row in shown
    ]
    first = shown[0]
    words = (
        "Odds ratio of a violation per standard deviation of each factor, adjusted for the other factors, relation, "
        f"severity and data set: logistic regression on {int(first['cases']):,} cases ({int(first['violations']):,} "
        f"violations, {int(first['clusters']):,} clusters) with cluster-robust intervals. An interval that excludes 1 "
        "shows an association, not a cause."
    )
    return {"odds": figures.odds_panel("Odds ratio per standard deviation of each factor", odds), "odds_words": words}


def robustness(material: Material) -> dict[str, Any]:
    """Return the (α,σ) table over all data sets for the drawn score; empty if no relation has two scales."""
    score, against = curve_score(material), robustness_against(material)
    table = material.tables.alpha_sigma
    records = rows_of(table, dataset=efr.ALL, score=score, against=against)
    if all(row["note"] == TOO_FEW_SCALES for row in records):
        records = []
    rows = []
    for row in records:
        has_seeds = row["seeds"] > 0
        qualities = f"{row['source_quality']:.3f} | {row['qualities']}" if has_seeds else ""
        note = str(row["note"] or "")
        steep = row["alpha_from_source"]
        if has_seeds and steep is not None and steep == steep and steep > row["alpha"] > 0:
            note = f"{note} steeper from the source to the first scale: {steep:.3g}".strip()
        rows.append(
            {
                "relation": str(row["relation"]),
                "alpha": f"{row['alpha']:.3g}" if has_seeds else "",
                "alpha_range": _ends(row, "alpha"),
                "sigma": f"{row['sigma']:.3g}" if has_seeds else "",
                "sigma_range": _ends(row, "sigma"),
                "seeds": f"{row['seeds']:,}",
                "qualities": qualities,
                "note": note,
            }
        )
    return {"alpha_sigma": rows, "alpha_score": curve_words(score, against)}


def _ends(row: Mapping[Any, Any], name: str) -> str:
    low, high = row.get(f"{name}_low"), row.get(f"{name}_high")
    if low is None or high is None or low != low or high != high:
        return ""
    return f"{low:.3g} to {high:.3g}"


def strata(material: Material, most: int = 60) -> dict[str, Any]:
    """Return the overall rate of every value of every metadata column."""
    table = material.tables.strata
    if table.empty:
        return {"strata": []}
    rows = rows_of(table, dataset=efr.ALL, relation=efr.OVERALL)
    return {
        "strata": [
            {
                "stratum": str(row["stratum"]),
                "value": str(row["value"]),
                "efr": percent(row["efr_percent"]),
                "range": interval(row),
                "counts": f"{row['violations']:,} of {row['cases']:,}",
            }
            for row in rows[:most]
        ]
    }


def published(material: Material) -> dict[str, Any]:
    """Return published figures beside the user's, for the same score and threshold against truth."""
    primary = material.wanted.primary
    score = curve_score(material)
    thresholds = {cell_.threshold for cell_ in reference.cells()}
    nothing: dict[str, Any] = {"published": [], "published_models": [], "published_words": ""}
    if primary.threshold not in thresholds or score not in {"dice", "iou"}:
        return nothing
    models = reference.models()
    keys = {"score": score, "threshold": primary.threshold, "against": "truth"}

    def row(title: str, relation: str, values: Sequence[float | None]) -> dict[str, Any]:
        cells = ["" if value is None else f"{value:.2f} %" for value in values]
        return {
            "relation": title,
            "own": _own(material.rates, relation, keys),
            "cells": cells,
            "sum": relation == efr.OVERALL,
        }

    chosen: dict[str, Any] = {"score": score, "threshold": primary.threshold}
    rows = []
    for name in material.rates.plain_relations:
        part = material.wanted.relations.get(name, name)
        values = [reference.relation_rate(model, part, **chosen) for model in models]
        if any(value is not None for value in values):
            rows.append(row(name, name, values))
    if not rows:
        return nothing
    outside = "mean of the cells (published: CVC-300 and CVC-ColonDB, not used in training)"
    outside_rates = [reference.overall_cells(model, datasets=reference.OUTSIDE_TRAINING, **chosen) for model in models]
    rows += [
        row("over all cases", efr.OVERALL, [reference.overall(model, **chosen) for model in models]),
        row(outside, efr.OVERALL_CELLS, outside_rates),
    ]
    seeds = "phantoms" if material.wanted.phantom else "other images"
    words = (
        f"{score.upper() if score == 'iou' else 'Dice'}, threshold {primary.threshold:g}, against the expected "
        f"mask. {reference.SOURCE}: 2,052 real images with parameters drawn from the report's ranges. This run uses "
        f"{seeds} and severities from 1 to 5: compare orders of magnitude and rankings, not decimals."
    )
    return {"published": rows, "published_models": list(models), "published_words": words}


def _own(rates: EfrRows, relation: str, keys: Mapping[str, Any]) -> str:
    row = rates.get(relation=relation, **keys)
    if row is None or not int(row["cases"]):
        return ""
    return f"{row['efr_percent']:.2f} % ({interval(row)})"


def comparison_heats(materials: Sequence[Material]) -> list[dict[str, Any]]:
    """Return heat maps of relations by systems: all severities and, if there are several, the highest one."""
    rates, primary = [material.rates for material in materials], criterion_keys(materials[0])
    names = list(dict.fromkeys(name for rate in rates for name in rate.changing))
    names += [UNCHANGED] if any(UNCHANGED in rate.relations for rate in rates) else []
    groups = {name: group for rate in rates for name, group in rate.groups.items()}
    systems = [material.system for material in materials]
    last = sorted({level for rate in rates for level in rate.severities if level != "0"}, key=int)
    heats = []
    for title, severity_ in (("All severities", efr.ALL), *((f"Severity {level}", level) for level in last[1:][-1:])):
        keys = {**primary, "severity": severity_}
        heats.append(
            heat_map(
                [*names, *SUMS],
                groups,
                title=title,
                columns=systems,
                cells=lambda relation, keys=keys: [  # type: ignore[misc]
                    cell(rate.get(relation=relation, **keys)) for rate in rates
                ],
                clusters=cluster_word(materials[0]),
            )
        )
    return heats


def comparison_curves(materials: Sequence[Material]) -> list[Any]:
    """Return one panel per relation with a curve for each system: the mean score over severities."""
    means = [_mean_rows(material) for material in materials]
    names = list(dict.fromkeys(str(name) for table in means for name in table["relation"]))
    panels = []
    for name in names:
        if name == UNCHANGED:
            continue
        curves = [
            figures.Curve(
                name=material.system,
                points=tuple(
                    _levels(table.loc[((table["relation"] == name) & (table["severity"] > 0)).to_numpy(dtype=bool)])
                ),
                colour=figures.SERIES[number % len(figures.SERIES)],
            )
            for number, (material, table) in enumerate(zip(materials, means, strict=True))
        ]
        drawn = [curve for curve in curves if len(curve.points) > 1]
        if drawn:
            y_name = f"mean {curve_words(curve_score(materials[0]), materials[0].wanted.curve_against)}"
            panels.append(figures.curve_panel(name.replace("_", " "), drawn, y_name=y_name))
    return panels
