"""Curves of all systems of a run over each relation's scales: files, and a section of the page that compares them."""

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
from medtest.results.series.series_records import CurveSettings, series_sets
from medtest.runner.folder import MONTAGE, VOLUME_PICTURES, output_problems, series_folder

TABLES = ("alpha_sigma.csv", "agreement.csv", "paired.csv")
_MOST_BYTES = 12_000_000
_MOST_PAIRS = 40
_LEVEL = 0.05


@dataclass(frozen=True, kw_only=True, eq=False)
class SeriesResult:
    """One relation's curves of all systems.

    Attributes:
        found: The curves.
        shown: The same with quality and scale in words, as figures show them.
        measured: Their measures, in the same order.
        folder: Where its files lie.
        pictures: Where the runner put pictures of it; None where the suite shows none.
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
        wanted: What is wanted of the suite.
        records: Of each system of the run, its records.
        home: Folder that holds ``outputs/``.
        view: Digest of the oracle where it is not the suite's own; files then go to ``alpha_sigma-<view>/``.
        drawn: Digest of the view whose pictures the runner drew; "" for those of all cases.

    Raises:
        OutputProblem: A file cannot be written.
    """
    score = criteria.components(wanted.primary.score)[0]
    shape = CurveSettings(include_source=wanted.include_source, min_step=wanted.min_step)
    results = []
    for found in series_sets(records, score, shape=shape):
        measured = tuple(robustness_of(one) for one in found.series)
        axis = scale_words(found.scale, wanted.relations.get(found.scale, ""))
        result = SeriesResult(
            found=found,
            shown=replace(found, quality=score_words(found.quality), scale=axis),
            measured=measured,
            folder=series_folder(home, wanted.suite, view) / found.scale,
            pictures=None if wanted.images == "none" else series_folder(home, wanted.suite, drawn) / found.scale,
        )
        _write(result)
        results.append(result)
    return results


def _write(result: SeriesResult) -> None:
    made = (robustness_table(result.found), agreement(result.measured), paired_table(result.found))
    tables = dict(zip(TABLES, made, strict=True))
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
    """Return what the page shows of each relation."""
    return [_section(result) for result in results]


def files_of(result: SeriesResult) -> list[Path]:
    """Return the files of one relation: figures, tables, pictures."""
    named = [result.folder / name for name in (TABLE, f"{FIGURE}.pdf", f"{FIGURE}.svg", *TABLES)]
    if result.pictures is not None:
        named += [result.pictures / name for name in (MONTAGE, *VOLUME_PICTURES)]
    return [path for path in named if path.is_file() and not path.is_symlink()]


def _section(result: SeriesResult) -> dict[str, Any]:
    uncertain = any(one.intervals for one in result.measured)
    return {
        "title": f"(α,σ) over {result.found.scale.replace('_', ' ')}",
        "score": result.shown.quality,
        "figure": _inline(draw_figure(result.shown, result.measured, form="svg"), result.shown),
        "last": "95 % interval of α" if uncertain else "permutation p of α",
        "rows": [_row(one) for one in ranked(result.measured)],
        "paired": _pairs(result.found),
        "montage": next(iter(_pictures(result, [MONTAGE])), ""),
        "volumes": _pictures(result, VOLUME_PICTURES),
    }


def _row(one: Robustness) -> dict[str, str]:
    low, high = one.intervals.get("alpha", (0.0, 0.0))
    last = f"{low:.3g} to {high:.3g}" if one.intervals else "" if one.p is None else f"{one.p:.2g}"
    share = "" if one.sigma_share is None else f" ({100 * one.sigma_share:.0f} %)"
    return {
        "name": one.name,
        "alpha": f"{one.alpha:.4f}",
        "sigma": one.sigma_label + share if one.alpha > 0 else "–",
        "mean": f"{one.mean_quality:.4f}",
        "area": f"{one.area:.4f}",
        "falls": f"{one.sum_of_falls:.4f}",
        "worst": f"{one.worst_loss:.4f}",
        "last": last,
        "note": one.note,
    }


def _pairs(found: SeriesSet) -> dict[str, Any]:
    """Return the pairs whose α cannot be told apart, by corrected p; most pairs of many systems can."""
    table = paired_table(found)
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
    # Two of the 2 ** clusters exchanges are as extreme as can be: no p lies below that, times the number of pairs.
    few = bool(rows) and 2.0 ** (1 - min(row["clusters"] for row in rows)) * len(rows) >= _LEVEL
    return {"all": len(rows), "alike": alike[:_MOST_PAIRS], "more": max(0, len(alike) - _MOST_PAIRS), "few": few}


def _inline(svg: bytes, found: SeriesSet) -> Markup:
    """Return a figure to be shown as a picture; as such it can hold no script and share no name with another."""
    words = f"{found.quality} over {found.scale}"
    data = base64.b64encode(svg).decode("ascii")
    return Markup('<img style="width:100%;max-width:62rem" alt="{}" src="data:image/svg+xml;base64,{}">').format(
        words, data
    )


def _pictures(result: SeriesResult, names: Sequence[str]) -> list[str]:
    """Return pictures as ``data:`` addresses, those that there are."""
    if result.pictures is None:
        return []
    paths = [result.pictures / name for name in names]
    return [
        "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode("ascii")
        for path in paths
        if path.is_file() and not path.is_symlink() and path.stat().st_size <= _MOST_BYTES
    ]
