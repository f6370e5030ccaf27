"""``comparison.html``: the page that sets the systems of one run side by side."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import medtest
from medtest.report import figures, sections
from medtest.report.answer_heat import system_heats
from medtest.report.flip_heat import system_heat
from medtest.report.heat import Rates, interval, percent
from medtest.report.material import Material
from medtest.report.page import render
from medtest.report.series import SeriesResult, sections_of, write_series
from medtest.report.words import criterion_keys, criterion_words, phantom_words, score_words
from medtest.results import efr
from medtest.runner.folder import OUTPUTS, writing_text

REPORT = "report.html"


@dataclass(frozen=True, kw_only=True)
class Compared:
    """What sets the systems of a suite side by side.

    Attributes:
        page: The page; None for a single system that is no algorithm of a series.
        series: Curves over scales.
    """

    page: Path | None = None
    series: tuple[SeriesResult, ...] = ()


def write_comparison(materials: Sequence[Material], targets: Sequence[Path], home: Path, view: str = "") -> Compared:
    """Write ``outputs/<suite>/comparison.html`` and, for series, the files of ``alpha_sigma/``.

    Args:
        materials: One for each system.
        targets: Where each system's report lies.
        home: Folder that holds ``outputs/``.
        view: Digest of the oracle where it is not the suite's own.

    Raises:
        OutputProblem: A file cannot be written.
    """
    if not materials:
        return Compared()
    wanted = materials[0].wanted
    series = write_series(materials, home, view) if wanted.series else []
    if len(materials) < 2 and not series:
        return Compared()
    folder = home / OUTPUTS / wanted.suite
    page = folder / (f"comparison-{view}.html" if view else "comparison.html")
    links = [quote(Path(os.path.relpath(target / REPORT, folder)).as_posix(), safe="/") for target in targets]
    with writing_text(page) as file:
        file.write(comparison_html(materials, links, sections_of(series)))
    return Compared(page=page, series=tuple(series))


def comparison_html(
    materials: Sequence[Material], links: Sequence[str], series: Sequence[Mapping[str, Any]] = ()
) -> str:
    """Return the page that sets several systems of one run side by side.

    Args:
        materials: One for each system.
        links: Address of each system's report, relative to the page.
        series: What :func:`medtest.report.series.sections_of` gave, for suites of series.
    """
    first = materials[0]
    groups = [
        [number for number, one in enumerate(materials) if one.simulated == simulated] for simulated in (False, True)
    ]
    return render(
        "comparison.html.j2",
        {
            "suite": first.wanted.suite,
            "version": first.wanted.version,
            "description": first.wanted.description,
            "phantom": phantom_words(first),
            "same": len({_inputs(material) for material in materials}) == 1,
            "criterion_words": criterion_words(first),
            "mean_name": _mean_name(sections.curve_score(first)),
            "count": len(materials),
            "groups": [
                _group([materials[number] for number in group], [links[number] for number in group])
                for group in groups
                if group
            ],
            "series": series,
            "medtest": medtest.__version__,
        },
    )


def _mean_name(score: str) -> str:
    """Return what the mean of a score over source cases is called."""
    return "accuracy" if score == "agreement" else f"mean {score_words(score)}"


def _group(materials: Sequence[Material], links: Sequence[str]) -> dict[str, Any]:
    """Return what is shown of systems that may share a table: all simulated, or none."""
    rates = [Rates(material.tables.efr) for material in materials]
    primary = criterion_keys(materials[0])
    return {
        "simulated": materials[0].simulated,
        "systems": [
            _system_line(material, rate, link) for material, rate, link in zip(materials, rates, links, strict=True)
        ],
        "heats": [
            *sections.comparison_heats(materials, rates, primary),
            *system_heat(materials),
            *system_heats(materials),
        ],
        "curves": sections.comparison_curves(materials),
        "curve_legend": [
            (material.system, figures.SERIES[number % len(figures.SERIES)]) for number, material in enumerate(materials)
        ],
    }


def _inputs(material: Material) -> str:
    """Return what the follow-ups of a run hang on: all that its digest covers but the system."""
    covers = material.run.get("covers")
    kept = {key: value for key, value in covers.items() if key != "system"} if isinstance(covers, dict) else {}
    return json.dumps(kept, sort_keys=True)


def _system_line(material: Material, rates: Rates, link: str) -> dict[str, Any]:
    row = rates.get(relation=efr.OVERALL, **criterion_keys(material))
    results = material.tables.gates
    held = sum(result.held for result in results)
    return {
        "name": material.system,
        "trained_on": ", ".join(material.wanted.trained_on),
        "partial": f"partial: {material.partial}" if material.partial else "",
        "efr": percent(row["efr_percent"]) if row is not None else "none",
        "range": interval(row) if row is not None else "",
        "counts": f"{row['violations']:,} of {row['cases']:,}" if row is not None else "",
        "errors": f"{row['errors']:,}" if row is not None else "",
        "skipped": f"{row['skipped']:,}" if row is not None else "",
        "source_failed": f"{row['source_failed']:,}" if row is not None else "",
        "mean": sections.mean_on_sources(material),
        "gates": f"{held} of {len(results)} held" if results else "none set",
        "link": link,
    }
