"""Files and report section of the (α,σ) curves of all systems over the scales of each relation."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from markupsafe import Markup

from medtest.core.oracles import criteria
from medtest.report.alpha_sigma.figure import FILE as FIGURE
from medtest.report.alpha_sigma.figure import draw_figure
from medtest.report.alpha_sigma.latex import FILE as TABLE
from medtest.report.alpha_sigma.latex import latex_table
from medtest.report.pages.words import scale_words, score_words
from medtest.results.records.records_io import Records
from medtest.results.records.wanted import Wanted
from medtest.results.series.paired import paired_table
from medtest.results.series.robustness import Robustness, agreement, ranked, robustness_of, robustness_table
from medtest.results.series.series import SeriesSet
from medtest.results.series.series_records import series_sets
from medtest.runner.folder import output_problems, series_folder
from medtest.runner.pictures.montage import MONTAGE
from medtest.runner.pictures.volume_figures import VOLUME_PICTURES

TABLES = ("alpha_sigma.csv", "agreement.csv", "paired.csv")
_MOST_BYTES = 12_000_000
_MOST_PAIRS = 40
_LEVEL = 0.05


@dataclass(frozen=True, kw_only=True, eq=False)
class SeriesResult:
    """Curves of all systems for one relation.

    Attributes:
        found: The curves.
        shown: The same curves with readable names of quality and scale, for figures.
        measured: Robustness measures of the curves, in the same order.
        folder: Folder of the written files.
        pictures: Folder of the pictures drawn by the runner; None where the suite shows none.
    """

    found: SeriesSet
    shown: SeriesSet
    measured: tuple[Robustness, ...]
    folder: Path
    pictures: Path | None


def write_series(
    wanted: Wanted, records: Mapping[str, Records], home: Path, view: str = "", *, drawn: str = ""
) -> list[SeriesResult]:
    """Write ``outputs/<suite>/alpha_sigma/<relation>/``: figure, LaTeX and tables of every relation.

    Args:
        wanted: Selected parts of the suite.
        records: Records of each system of the run.
        home: Folder that holds ``outputs/``.
        view: Digest of the oracle where it differs from the suite's own; files then go to ``alpha_sigma-<view>/``.
        drawn: Digest of the view whose pictures the runner drew; "" for those of all cases.

    Raises:
        OutputProblem: A file cannot be written.
    """
    score = criteria.components(wanted.primary.score)[0]
    results = []
    for curves in series_sets(records, score, include_source=wanted.include_source, min_step=wanted.min_step):
        measured = tuple(robustness_of(series) for series in curves.series)
        axis = scale_words(curves.scale, wanted.relations.get(curves.scale, ""))
        result = SeriesResult(
            found=curves,
            shown=replace(curves, quality=score_words(curves.quality), scale=axis),
            measured=measured,
            folder=series_folder(home, wanted.suite, view) / curves.scale,
            pictures=None if wanted.images == "none" else series_folder(home, wanted.suite, drawn) / curves.scale,
        )
        _write(result)
        results.append(result)
    return results


def _write(result: SeriesResult) -> None:
    frames = (robustness_table(result.found), agreement(result.measured), paired_table(result.found))
    tables = dict(zip(TABLES, frames, strict=True))
    contents: dict[str, bytes] = {
        TABLE: latex_table(result.measured).encode(),
        f"{FIGURE}.pdf": draw_figure(result.shown, result.measured),
        f"{FIGURE}.svg": draw_figure(result.shown, result.measured, form="svg"),
        **{name: table.to_csv(index=False, lineterminator="\n").encode() for name, table in tables.items()},
    }
    with output_problems(result.folder / TABLE):
        result.folder.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            draft = result.folder / f".{name}.tmp"
            draft.write_bytes(content)
            draft.replace(result.folder / name)


def sections_of(results: Sequence[SeriesResult]) -> list[dict[str, Any]]:
    """Return the template's data for each relation."""
    return [_section(result) for result in results]


def files_of(result: SeriesResult) -> list[Path]:
    """Return the existing files of one relation: figures, tables, pictures."""
    named = [result.folder / name for name in (TABLE, f"{FIGURE}.pdf", f"{FIGURE}.svg", *TABLES)]
    if result.pictures is not None:
        named += [result.pictures / name for name in (MONTAGE, *VOLUME_PICTURES)]
    return [path for path in named if path.is_file() and not path.is_symlink()]


def _section(result: SeriesResult) -> dict[str, Any]:
    uncertain = any(robust.intervals for robust in result.measured)
    return {
        "title": f"(α,σ) over {result.found.scale.replace('_', ' ')}",
        "score": result.shown.quality,
        "figure": _inline(draw_figure(result.shown, result.measured, form="svg"), result.shown),
        "last": "95 % interval of α" if uncertain else "permutation p of α",
        "rows": [_row(robust) for robust in ranked(result.measured)],
        "paired": _pairs(result.found),
        "montage": next(iter(_pictures(result, [MONTAGE])), ""),
        "volumes": _pictures(result, VOLUME_PICTURES),
    }


def _row(robust: Robustness) -> dict[str, str]:
    low, high = robust.intervals.get("alpha", (0.0, 0.0))
    last = f"{low:.3g} to {high:.3g}" if robust.intervals else "" if robust.p is None else f"{robust.p:.2g}"
    share = "" if robust.sigma_share is None else f" ({100 * robust.sigma_share:.0f} %)"
    return {
        "name": robust.name,
        "alpha": f"{robust.alpha:.4f}",
        "sigma": robust.sigma_label + share if robust.alpha > 0 else "–",
        "mean": f"{robust.mean_quality:.4f}",
        "area": f"{robust.area:.4f}",
        "falls": f"{robust.sum_of_falls:.4f}",
        "worst": f"{robust.worst_loss:.4f}",
        "last": last,
        "note": robust.note,
    }


def _pairs(curves: SeriesSet) -> dict[str, Any]:
    """Return the pairs whose α does not differ significantly, by corrected p value, with the number of all pairs."""
    table = paired_table(curves)
    rows: Sequence[Mapping[Any, Any]] = table.to_dict("records")
    alike = [
        {
            "pair": f"{row['first']} and {row['second']}",
            "difference": f"{row['alpha_difference']:+.2g}",
            "p": f"{row['p_holm']:.2g}",
        }
        for row in rows
        if row["p_holm"] >= _LEVEL
    ]
    # The smallest possible p is 2 / 2**clusters, times the number of pairs after correction.
    few = bool(rows) and 2.0 ** (1 - min(row["clusters"] for row in rows)) * len(rows) >= _LEVEL
    return {"all": len(rows), "alike": alike[:_MOST_PAIRS], "more": max(0, len(alike) - _MOST_PAIRS), "few": few}


def _inline(svg: bytes, curves: SeriesSet) -> Markup:
    """Return a figure as an ``<img>``, which can hold no script and shares no element ids with other figures."""
    words = f"{curves.quality} over {curves.scale}"
    data = base64.b64encode(svg).decode("ascii")
    return Markup('<img style="width:100%;max-width:62rem" alt="{}" src="data:image/svg+xml;base64,{}">').format(
        words, data
    )


def _pictures(result: SeriesResult, names: Sequence[str]) -> list[str]:
    """Return the existing pictures as ``data:`` addresses."""
    if result.pictures is None:
        return []
    paths = [result.pictures / name for name in names]
    return [
        "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode("ascii")
        for path in paths
        if path.is_file() and not path.is_symlink() and path.stat().st_size <= _MOST_BYTES
    ]
