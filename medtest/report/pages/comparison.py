"""``comparison.html``: the page comparing the systems of one run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from medtest.core import __version__
from medtest.core.deferred import pd
from medtest.core.files.written import WrittenFiles
from medtest.report.alpha_sigma.section import SeriesResult, sections_of, write_series
from medtest.report.attacks.side_by_side import table_four, transfer, transfer_heats
from medtest.report.charts import figures
from medtest.report.charts.heat import interval, percent
from medtest.report.pages import sections
from medtest.report.pages.browser.data import BUDGET, NO_BROWSER, browser_of
from medtest.report.pages.conclusions import conclusions, rests_on
from medtest.report.pages.intervals import legend, short_words
from medtest.report.pages.material import Material
from medtest.report.pages.page import render
from medtest.report.pages.words import cluster_word, criterion_words, model_words, phantom_banner, score_words
from medtest.results.rates.differences import LEVEL, difference_table
from medtest.results.records.common_cases import Common, common_cases
from medtest.results.records.records_io import Records
from medtest.results.tables import tables_of
from medtest.runner.folder import OUTPUTS, output_problems, writing_text
from medtest.runner.records.spreadsheets import frame_for_csv

REPORT = "report.html"
_RATE = ("range", "method", "method_words", "counts", "errors", "skipped", "source_failed")


@dataclass(frozen=True, kw_only=True)
class Compared:
    """Files that compare the systems of a suite.

    Attributes:
        page: The page; None for a single system that is not of a series.
        series: Curves over scales.
        tables: ``comparison.csv`` with the paired differences, ``comparison_left_out.csv`` where cases were left out,
            ``comparison_transfer.csv`` where follow-ups were crafted.
    """

    page: Path | None = None
    series: tuple[SeriesResult, ...] = ()
    tables: tuple[Path, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Group:
    """Systems that may share a table (all simulated, or none), on the cases that all of them finished.

    Attributes:
        materials: Material of each system, with tables of the common cases.
        own: Material of each system, with its own tables.
        common: Their common cases; None for a single system.
        differences: Paired differences of every two systems.
    """

    materials: tuple[Material, ...]
    own: tuple[Material, ...]
    common: Common | None
    differences: pd.DataFrame | None


def write_comparison(materials: Sequence[Material], home: Path, view: str = "") -> Compared:
    """Write ``outputs/<suite>/comparison.html`` with its tables and, for series, the files of ``alpha_sigma/``.

    Args:
        materials: Material of each system.
        home: Folder that holds ``outputs/``.
        view: Digest of the view, "" for the folders' own.

    Raises:
        OutputProblem: A file cannot be written.
    """
    if not materials:
        return Compared()
    suite = materials[0].wanted
    if len(materials) < 2 and not suite.series:
        return Compared()
    records = [material.records() for material in materials]
    series = _series(materials, records, home, view) if suite.series else []
    if len(materials) < 2 and not series:
        return Compared()
    folder = home / OUTPUTS / suite.suite
    stem = f"comparison-{view}" if view else "comparison"
    links = {
        material.system: quote(Path(os.path.relpath(material.target / REPORT, folder)).as_posix(), safe="/")
        for material in materials
    }
    groups = grouped(materials, records)
    page = folder / f"{stem}.html"
    with writing_text(page) as file:
        file.write(comparison_html(groups, links, sections_of(series)))
    return Compared(page=page, series=tuple(series), tables=_write_tables(groups, folder, stem))


def grouped(materials: Sequence[Material], records: Sequence[Records]) -> list[Group]:
    """Return the systems that may share a table, on the cases that all of them finished.

    Args:
        materials: Material of each system.
        records: Their records, with hashes.
    """
    groups = []
    for simulated in (False, True):
        chosen = [number for number, material in enumerate(materials) if material.simulated == simulated]
        if chosen:
            groups.append(_group([materials[number] for number in chosen], [records[number] for number in chosen]))
    return groups


def _group(materials: Sequence[Material], records: Sequence[Records]) -> Group:
    own = tuple(materials)
    if len(own) < 2:
        return Group(materials=own, own=own, common=None, differences=None)
    common = common_cases(records)
    suite = own[0].wanted
    shown = own
    if not common.whole and common.cases:
        shown = tuple(
            replace(material, tables=tables_of(judged, replace(material.wanted, exclude=None)))
            for material, judged in zip(own, common.records, strict=True)
        )
    names = [material.system for material in own]
    order = list(suite.relations)
    differences = difference_table(dict(zip(names, common.records, strict=True)), suite.primary, order, suite.task)
    return Group(materials=shown, own=own, common=common, differences=differences)


def _series(materials: Sequence[Material], records: Sequence[Records], home: Path, view: str) -> list[SeriesResult]:
    """Write the curves of all systems over the source cases that all of them finished."""
    shared = common_cases(records).records if len(records) > 1 else records
    names = [material.system for material in materials]
    drawn = "" if materials[0].asked is None else view  # Another oracle's view of all cases has the same pictures.
    return write_series(materials[0].wanted, dict(zip(names, shared, strict=True)), home, view, drawn=drawn)


def _write_tables(groups: Sequence[Group], folder: Path, stem: str) -> tuple[Path, ...]:
    """Write paired differences, left-out cases and transfer tables; stale tables are removed."""
    tables = {
        f"{stem}.csv": [group.differences for group in groups if group.differences is not None],
        f"{stem}_left_out.csv": [
            left_out.table.assign(system=material.system)[["system", *left_out.table.columns]]
            for group in groups
            if group.common is not None
            for material, left_out in zip(group.own, group.common.left_out, strict=True)
            if left_out.cases
        ],
        f"{stem}_transfer.csv": [frame for group in groups if not (frame := transfer(group.own)).empty],
    }
    files = {
        name: frame_for_csv(pd.concat(frames, ignore_index=True)).to_csv(index=False, lineterminator="\n").encode()
        for name, frames in tables.items()
        if frames
    }
    with output_problems(folder / f"{stem}.csv"):
        return tuple(WrittenFiles(folder).write(files, remove=tables))


def comparison_html(groups: Sequence[Group], links: Mapping[str, str], series: Sequence[Mapping[str, Any]] = ()) -> str:
    """Return the HTML page comparing several systems of one run.

    Args:
        groups: Groups from :func:`grouped`.
        links: Address of each system's report by its name, relative to the page.
        series: Sections from :func:`medtest.report.alpha_sigma.section.sections_of`, for suites of series.
    """
    first = groups[0].own[0]
    return render(
        "comparison.html.j2",
        {
            "suite": first.wanted.suite,
            "version": first.wanted.version,
            "description": first.wanted.description,
            "phantom": phantom_banner(first),
            "criterion_words": criterion_words(first),
            "mean_name": _mean_name(sections.curve_score(first)),
            "count": sum(len(group.own) for group in groups),
            "level": f"{LEVEL:g}",
            "groups": [_shown(group, links, BUDGET // len(groups)) for group in groups],
            "series": series,
            "medtest": __version__,
        },
    )


def _mean_name(score: str) -> str:
    """Return the name of a score's mean over source cases."""
    return "accuracy" if score == "agreement" else f"mean {score_words(score)}"


def _shown(group: Group, links: Mapping[str, str], budget: int) -> dict[str, Any]:
    materials, task = group.materials, group.own[0].wanted.task
    clusters = cluster_word(materials[0])
    rests = None if group.common is None else rests_on([material.system for material in group.own], group.common)
    side_by_side = rests is None or not rests["none"]
    lines = [_system_line(material, own, links[own.system]) for material, own in zip(materials, group.own, strict=True)]
    return {
        "simulated": materials[0].simulated,
        "rests": rests,
        "browser": NO_BROWSER if group.common is None else browser_of(group.own, group.common.records, budget=budget),
        "conclusions": []
        if group.differences is None
        else conclusions(group.differences, clusters, task.tables.measures),
        "systems": lines,
        "side_by_side": side_by_side,
        "intervals": legend((line["method"] for line in lines), clusters),
        "heats": [
            *sections.comparison_heats(materials),
            *transfer_heats(group.own),
            *task.report.side_by_side([(material.system, material.tables.own) for material in materials]),
        ]
        if side_by_side
        else [],
        "table_four": table_four(group.own),
        "curves": sections.comparison_curves(materials) if side_by_side else [],
        "curve_legend": [
            (material.system, figures.SERIES[number % len(figures.SERIES)]) for number, material in enumerate(materials)
        ],
    }


def _rate(row: Mapping[str, Any]) -> dict[str, str]:
    return {
        "efr": percent(row["efr_percent"]),
        "range": interval(row),
        "method": str(row["ci_method"]),
        "method_words": short_words(str(row["ci_method"])),
        "counts": f"{row['violations']:,} of {row['cases']:,}",
        **{name: f"{row[name]:,}" for name in ("errors", "skipped", "source_failed")},
    }


def _system_line(material: Material, own: Material, link: str) -> dict[str, Any]:
    row = material.row()
    results = own.tables.gates
    held = sum(result.held for result in results)
    return {
        "name": material.system,
        "model": model_words(material, digits=12),
        "trained_on": ", ".join(material.wanted.trained_on),
        "partial": f"partial: {material.partial}" if material.partial else "",
        **(dict.fromkeys(_RATE, "") | {"efr": "none"} if row is None else _rate(row)),
        "mean": sections.mean_on_sources(material),
        "gates": f"{held} of {len(results)} passed" if results else "none set",
        "link": link,
    }
