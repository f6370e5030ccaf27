"""Figures of attacks: accuracy against ε, and the share of images flipped up to ε."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from medtest.core.deferred import pd
from medtest.report.charts import figures
from medtest.report.charts.heat import rows_of
from medtest.results.attacks.checking.found import LARGE
from medtest.results.attacks.settings import NOISE, STRONGEST
from medtest.results.cube.axes import ALL

if TYPE_CHECKING:
    from markupsafe import Markup

_GREY = "#5c6370"
_OTHERS = (figures.BLUE, figures.GREEN, figures.PURPLE, figures.ORANGE)


def epsilon_panels(rows: Sequence[Mapping[Any, Any]], measure: str, *, clean: float) -> list[dict[str, Any]]:
    """Return one panel per norm: accuracy against ε with a curve for each relation, and its legend.

    Uniform noise is grey, the strongest attack vermilion, the share on unchanged images dashed.

    Args:
        rows: Rows of ``attacks.csv`` over all data sets, those of natural relations left out.
        measure: Name of the share.
        clean: The share on the source images; NaN if unknown.
    """
    panels = []
    for norm in dict.fromkeys(str(row["norm"]) for row in rows):
        own = [row for row in rows if str(row["norm"]) == norm and row["accuracy"] == row["accuracy"]]
        own = [row for row in own if norm == "l2" or row["epsilon"] < LARGE]  # larger values only check the attack
        colours = _colours(own)
        curves = [
            figures.Curve(
                name=name,
                points=tuple(_point(row) for row in sorted(own, key=_epsilon) if row["relation"] == name),
                colour=colour,
            )
            for name, colour in colours.items()
        ]
        ends = [point.x for curve in curves for point in curve.points]
        if len(set(ends)) < 2:
            continue
        dashed = [figures.Point(x=x, y=clean) for x in (min(ends), max(ends))] if clean == clean else []
        if dashed:
            curves.insert(0, figures.Curve(name="sources", points=tuple(dashed), colour=figures.SKY, dashed=True))
        unit = "ε, L2, levels of 255" if norm == "l2" else "ε, levels of 255"
        panel = figures.curve_panel(
            f"{measure} against ε", curves, y_name=f"{measure}, share", x_name=unit, width=560, height=300
        )
        legend = [(name.replace("_", " "), colour) for name, colour in colours.items()]
        panels.append(
            {"svg": panel, "legend": [*legend, ("unchanged images (dashed)", figures.SKY)] if dashed else legend}
        )
    return panels


def _colours(rows: Sequence[Mapping[Any, Any]]) -> dict[str, str]:
    """Return the colour of each relation, in the order of the legend."""
    colours: dict[str, str] = {}
    others = 0
    for row in rows:
        name = str(row["relation"])
        if name in colours:
            continue
        if row["role"] == NOISE:
            colours[name] = _GREY
        elif row["part"] == STRONGEST:
            colours[name] = figures.VERMILION
        else:
            colours[name] = _OTHERS[others % len(_OTHERS)]
            others += 1
    return colours


def _epsilon(row: Mapping[Any, Any]) -> float:
    return float(row["epsilon"])


def _point(row: Mapping[Any, Any]) -> figures.Point:
    value, low, high = (float(row[name]) for name in ("accuracy", "accuracy_low", "accuracy_high"))
    return figures.Point(x=float(row["epsilon"]), y=value, low=low, high=high)


def smallest_panels(table: pd.DataFrame | None) -> list[Markup]:
    """Return one panel per relation: the share of images flipped up to ε.

    Args:
        table: ``smallest_epsilon_curve.csv``.
    """
    rows = [] if table is None or table.empty else rows_of(table, dataset=ALL)
    panels = []
    for relation, severity in dict.fromkeys((str(row["relation"]), str(row["severity"])) for row in rows):
        own = [row for row in rows if (str(row["relation"]), str(row["severity"])) == (relation, severity)]
        points = [
            figures.Point(
                x=float(row["epsilon"]),
                y=float(row["flipped_share"]),
                low=float(row["ci_low"]),
                high=float(row["ci_high"]),
                label=" " if 0 < number < len(own) - 1 else f"{row['epsilon']:.3g}",
            )
            for number, row in enumerate(own)
        ]
        curve = figures.Curve(name="flipped", points=tuple(points), colour=figures.VERMILION)
        title = relation.replace("_", " ")
        panels.append(
            figures.curve_panel(
                title, [curve], y_name="share flipped", x_name="ε, levels of 255", width=360, height=220
            )
        )
    return panels
