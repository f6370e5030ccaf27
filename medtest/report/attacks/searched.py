"""The section of the report on searches: pictures beside a threshold, and the share still passing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from medtest.core.errors import MedtestError
from medtest.core.plugins import parts
from medtest.core.records import ADDRESS
from medtest.relations.calibration.searching.queries import MILDEST
from medtest.report.charts import figures
from medtest.report.charts.heat import percent, rows_of
from medtest.report.charts.svg import closed, open_svg
from medtest.report.pages.browser.pictures import ShownPictures
from medtest.report.pages.browser.strips import replay_command
from medtest.results.cube.axes import ALL
from medtest.runner.records.answers import THUMBNAILS, AnswerStore
from medtest.runner.records.thumbnails import MARKS, NAMED_BY, Marks, of_record

if TYPE_CHECKING:
    from medtest.report.pages.material import Material
    from medtest.results.attacks.searched import MildestPair

_EXPECTED, _ANSWERED = "#00e676", "#ff40b2"
_TITLES = {
    MILDEST: ("mildest failing picture", "its passing neighbour"),
    "worst": ("worst picture of the search", "worst picture of the random search"),
}


def searches(material: Material) -> dict[str, Any]:
    """Return the template's data on searches; ``searches`` is None where the suite has none.

    Args:
        material: Material of the report.
    """
    tables = material.tables.searched
    summary = tables.named.get("search_relations.csv")
    if summary is None or summary.empty:
        return {"searches": None}
    rows = rows_of(summary, dataset=ALL)
    page = {
        "phantom": material.wanted.phantom,
        "mildest": [_mildest(row) for row in rows if row["search"] == MILDEST],
        "worst": [_worst(row) for row in rows if row["search"] != MILDEST],
        "panels": _panels(material),
        "pairs": _pairs(material),
    }
    return {"searches": page}


def _mildest(row: Mapping[Any, Any]) -> dict[str, Any]:
    return {
        "name": str(row["relation"]).replace("_", " "),
        "searches": f"{row['searches']:,}",
        **{name: f"{row[name]:,}" for name in ("failed", "failing_sources", "passed", "skipped", "ambiguous")},
        "median": _number(row["median"]) or "not reached",
        "range": _range(row["median_low"], row["median_high"]),
        "queries": f"{row['queries']:,.0f}",
    }


def _worst(row: Mapping[Any, Any]) -> dict[str, Any]:
    def share(failures: float, queries: float) -> str:
        return f"{failures:,.0f} of {queries:,.0f} ({percent(100 * failures / queries)})" if queries > 0 else ""

    return {
        "name": str(row["relation"]).replace("_", " "),
        "searches": f"{row['searches']:,}",
        "failed": f"{row['failed']:,}",
        "found": share(row["failures"], row["queries"]),
        "random": share(row["random_failures"], row["random_queries"]),
        "more": f"{row['more_than_random']:,.0f} of {row['searches']:,}",
    }


def _number(value: Any) -> str:
    return "" if value is None or value != value else f"{float(value):.4g}"


def _range(low: Any, high: Any) -> str:
    if not _number(low):
        return ""
    return f"{_number(low)} to {_number(high)}" if _number(high) else f"above {_number(low)}"


def _panels(material: Material) -> list[Markup]:
    """Return one panel for each relation: the share of source cases still passing up to each scale."""
    table = material.tables.searched.named["search_curve.csv"]
    rows = [] if table.empty else rows_of(table, dataset=ALL)
    panels = []
    for relation in dict.fromkeys(str(row["relation"]) for row in rows):
        own = [row for row in rows if str(row["relation"]) == relation]
        curve = figures.Curve(name="passing", points=tuple(_steps(own)), colour=figures.BLUE)
        panels.append(
            figures.curve_panel(
                relation.replace("_", " "),
                [curve],
                y_name="share still passing",
                x_name=_unit(material, relation) or "scale",
                width=360,
                height=220,
            )
        )
    return panels


def _steps(rows: Sequence[Mapping[Any, Any]]) -> list[figures.Point]:
    """Return the corners of a curve that falls in steps."""
    corners: list[tuple[float, Mapping[Any, Any]]] = []
    for number, row in enumerate(rows):
        if number:
            corners.append((float(row["scale"]), rows[number - 1]))
        corners.append((float(row["scale"]), row))
    labelled = _labelled([float(row["scale"]) for row in rows])
    return [
        figures.Point(
            x=scale,
            y=float(row["passing_share"]),
            low=float(row["ci_low"]),
            high=float(row["ci_high"]),
            label=f"{scale:.3g}" if scale in labelled else " ",
        )
        for scale, row in corners
    ]


def _labelled(scales: Sequence[float]) -> set[float]:
    """Return scales far enough apart for their numbers, with the first and the last."""
    span = max(scales) - min(scales) or 1.0
    chosen = [scales[0], scales[-1]]
    for scale in scales:
        if all(abs(scale - other) >= span / 6 for other in chosen):
            chosen.append(scale)
    return set(chosen)


def _unit(material: Material, relation: str) -> str:
    try:
        unit = parts("relations")[material.wanted.relations.get(relation, relation)].load().scale_unit
    except (KeyError, MedtestError):
        return ""
    return str(unit)


def _pairs(material: Material) -> list[dict[str, Any]]:
    shown = material.tables.searched.pairs
    records = [record for pair in shown for record in pair.records if record is not None]
    store = AnswerStore(material.folder, THUMBNAILS)
    pictures, names = ShownPictures(), [str(record["followup_sha256"]) for record in records]
    thumbnails = {} if material.wanted.images == "none" else store.read_all(names)
    pictures.convert(thumbnails)
    return [_pair(material, pair, pictures, store) for pair in shown]


def _pair(material: Material, pair: MildestPair, pictures: ShownPictures, store: AnswerStore) -> dict[str, Any]:
    shown = []
    for title, record in zip(_TITLES[pair.search], pair.records, strict=True):
        if record is None:
            continue
        shown.append(
            {
                "title": title,
                "picture": _picture(title, record, pictures, store),
                "words": f"scale {_number(record['scale'])}, {record['verdict']}",
                "address": str(record[ADDRESS]),
                "command": replay_command(material, str(record[ADDRESS])),
            }
        )
    return {"name": pair.relation.replace("_", " "), "shown": shown}


def _picture(title: str, record: Mapping[str, Any], pictures: ShownPictures, store: AnswerStore) -> Markup | None:
    """Return a follow-up with the outlines of what is expected and what was answered; None without a thumbnail."""
    number = pictures.add(str(record["followup_sha256"]))
    if number is None:
        return None
    name = of_record(MARKS, {column: record[column] for column in NAMED_BY})
    data = store.read(name.encode())
    marks = None if data is None else Marks.of_bytes(data)
    width, height = (160, 160) if marks is None else (marks.width, marks.height)
    svg = [
        open_svg(width, height, title),
        f'<image href="data:image/webp;base64,{pictures.shown[number]}" width="{width}" height="{height}"/>',
    ]
    for path, colour in () if marks is None else ((marks.expected, _EXPECTED), (marks.answered, _ANSWERED)):
        if path:
            svg.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{width / 120:.2f}"/>')
    return closed(svg)
