"""Curves of all systems of a run over each relation's scales: files, and a section of the page that compares them."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from medtest.oracles import criteria
from medtest.report.alpha_sigma_figure import FILE as FIGURE
from medtest.report.alpha_sigma_figure import draw_figure
from medtest.report.alpha_sigma_table import FILE as TABLE
from medtest.report.alpha_sigma_table import latex_table
from medtest.report.material import Material
from medtest.results.paired import paired_table
from medtest.results.records_io import Records
from medtest.results.robustness import Robustness, agreement, ranked, robustness_of, robustness_table
from medtest.results.series import SeriesSet
from medtest.results.series_records import Shape, series_sets
from medtest.runner.folder import MONTAGE, output_problems, series_folder

_MOST_BYTES = 12_000_000


@dataclass(frozen=True, kw_only=True, eq=False)
class SeriesResult:
    """One relation's curves of all systems.

    Attributes:
        found: The curves.
        measured: Their measures, in the same order.
        folder: Where its files lie.
    """

    found: SeriesSet
    measured: tuple[Robustness, ...]
    folder: Path


def write_series(materials: Sequence[Material], home: Path, suite: str) -> list[SeriesResult]:
    """Write ``outputs/<suite>/alpha_sigma/<relation>/``: figure, LaTeX and tables of every relation.

    Args:
        materials: One for each system of the run.
        home: Folder that holds ``outputs/``.
        suite: Name of the suite.

    Raises:
        OutputProblem: A file cannot be written.
    """
    wanted = materials[0].wanted
    score = criteria.components(wanted.primary.score)[0]
    records = {material.system: Records.read(material.folder, _columns(score)) for material in materials}
    shape = Shape(include_source=wanted.include_source, min_step=wanted.min_step)
    results = []
    for found in series_sets(records, score, shape=shape):
        measured = tuple(robustness_of(one) for one in found.series)
        result = SeriesResult(found=found, measured=measured, folder=series_folder(home, suite) / found.scale)
        _write(result)
        results.append(result)
    return results


def _columns(score: str) -> list[str]:
    fixed = ("suite", "system", "dataset", "seed_id", "cluster", "relation", "group", "severity", "scale", "item")
    return [*fixed, score, f"source_{score}"]


def _write(result: SeriesResult) -> None:
    tables = {
        "alpha_sigma.csv": robustness_table(result.found),
        "agreement.csv": agreement(result.measured),
        "paired.csv": paired_table(result.found),
    }
    contents: dict[str, bytes] = {
        TABLE: latex_table(result.measured).encode(),
        f"{FIGURE}.pdf": draw_figure(result.found, result.measured),
        f"{FIGURE}.svg": draw_figure(result.found, result.measured, form="svg"),
        **{name: table.to_csv(index=False, lineterminator="\n").encode() for name, table in tables.items()},
    }
    with output_problems(result.folder / TABLE):
        result.folder.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            draft = result.folder / f".{name}.tmp"
            draft.write_bytes(content)
            draft.replace(result.folder / name)


def sections_of(results: Sequence[SeriesResult]) -> list[dict[str, Any]]:
    """Return what the page shows of each relation."""
    return [_section(result) for result in results]


def _section(result: SeriesResult) -> dict[str, Any]:
    uncertain = any(one.intervals for one in result.measured)
    return {
        "title": f"(α,σ) over {result.found.scale.replace('_', ' ')}",
        "score": result.found.quality,
        "figure": _inline(draw_figure(result.found, result.measured, form="svg"), result.found),
        "last": "95 % interval of α" if uncertain else "permutation p of α",
        "rows": [_row(one) for one in ranked(result.measured)],
        "paired": _pairs(result.found),
        "montage": _picture(result.folder / MONTAGE),
    }


def _row(one: Robustness) -> dict[str, str]:
    low, high = one.intervals.get("alpha", (0.0, 0.0))
    last = f"{low:.3g} to {high:.3g}" if one.intervals else "" if one.p is None else f"{one.p:.2g}"
    share = "" if one.sigma_share is None else f" ({100 * one.sigma_share:.0f} %)"
    return {
        "name": one.name,
        "alpha": f"{one.alpha:.4f}",
        "sigma": one.sigma_label + share,
        "mean": f"{one.mean_quality:.4f}",
        "area": f"{one.area:.4f}",
        "falls": f"{one.sum_of_falls:.4f}",
        "worst": f"{one.worst_loss:.4f}",
        "last": last,
        "note": one.note,
    }


def _pairs(found: SeriesSet) -> list[dict[str, str]]:
    """Return the pairs whose α cannot be told apart, by corrected p; most pairs of many systems can."""
    table = paired_table(found)
    rows: Sequence[Mapping[Any, Any]] = table.to_dict("records")
    return [
        {
            "pair": f"{row['first']} and {row['second']}",
            "difference": f"{row['alpha_difference']:+.2g}",
            "p": f"{row['p_holm']:.2g}",
        }
        for row in rows
        if row["p_holm"] >= 0.05
    ][:40]


def _inline(svg: bytes, found: SeriesSet) -> Markup:
    """Return a figure to be shown as a picture; as such it can hold no script and share no name with another."""
    words = f"{found.quality} over {found.scale}"
    data = base64.b64encode(svg).decode("ascii")
    return Markup('<img alt="{}" src="data:image/svg+xml;base64,{}">').format(words, data)


def _picture(path: Path) -> str:
    """Return a montage as a ``data:`` address, "" where there is none."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size > _MOST_BYTES:
        return ""
    return "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode("ascii")
