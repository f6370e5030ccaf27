"""The (α,σ) figure: quality over scales with a dotted line at each σ (PDF or SVG).

The worst step of each curve is drawn heavily. Output is vector graphics with embedded TrueType fonts. Algorithms differ
in colour (Okabe and Ito), marker and line style, so colour alone carries no information. Equal curves give equal bytes.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from medtest.report.charts.figures import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION
from medtest.results.series.robustness import Robustness, resampled
from medtest.results.series.series import Series, SeriesSet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FILE = "fig_rob"
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, "#1c1e22", "#8a6d00")
_MARKERS = "osD^vPX*"
_DOT = 2.0
_STYLES: tuple[Any, ...] = ("-", (0, (6, 1.5)), (0, (4, 1, 1, 1)), (0, (2, 1)))
_TICKS = 8
"""Largest number of common scales that are all labelled on the axis."""
_WIDTH, _HEIGHT = 8.6, 4.6
_LINES = 24
"""Above this many algorithms the figure grows with its legend, which is placed outside the axes."""


def draw_figure(curves: SeriesSet, measured: Sequence[Robustness], *, form: str = "pdf") -> bytes:
    """Return the figure as the bytes of a file.

    Args:
        curves: The curves.
        measured: Robustness measures of the curves, in the same order.
        form: ``pdf`` or ``svg``.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    settings: dict[Any, Any] = {
        "pdf.fonttype": 42,
        "svg.fonttype": "path",
        "svg.hashsalt": "medtest",
        "font.family": "DejaVu Sans",
        "font.size": 9.5,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.linewidth": 0.8,
    }
    with mpl.rc_context(settings):
        height = _HEIGHT * max(1.0, len(curves.series) / _LINES)
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        axes = figure.add_subplot()
        for number, (series, robust) in enumerate(zip(curves.series, measured, strict=True)):
            _draw(axes, series, robust, number)
        _sigma_lines(axes, measured)
        first = curves.series[0]
        if first.scales.size <= _TICKS and all(np.array_equal(curve.scales, first.scales) for curve in curves.series):
            axes.set_xticks(first.scales, [plain(label) for label in first.labels])
        axes.set_xlabel(plain(curves.scale))
        axes.set_ylabel(plain(curves.quality) + (" (lower is better)" if curves.lower_is_better else ""))
        axes.grid(axis="y", color="#d9dde3", linewidth=0.7)
        axes.set_axisbelow(True)
        axes.margins(x=0.03, y=0.06)
        _legend(axes, measured)
        buffer = io.BytesIO()
        dates: dict[str, None] = {"CreationDate": None} if form == "pdf" else {"Date": None}
        figure.savefig(buffer, format=form, metadata=dates)
    return buffer.getvalue()


def plain(text: str) -> str:
    """Return text without control characters, with ``$`` escaped so that matplotlib reads no mathematics."""
    return "".join(sign if sign.isprintable() else " " for sign in text).replace("$", r"\$")


def _draw(axes: Axes, series: Series, robust: Robustness, number: int) -> None:
    colour = COLOURS[number % len(COLOURS)]
    if series.clustered and series.images is not None and series.clusters is not None:
        drawn = resampled(series.images, series.clusters, "images")
        low, high = np.quantile(drawn, (0.025, 0.975), axis=0)
        axes.fill_between(series.scales, low, high, color=colour, alpha=0.13, linewidth=0)
    few = series.scales.size <= 40
    axes.plot(
        series.scales,
        series.qualities,
        color=colour,
        linestyle=_STYLES[number // len(COLOURS) % len(_STYLES)],
        marker=_MARKERS[number % len(_MARKERS)] if few else None,
        markersize=4.5,
        linewidth=1.4,
        label=f"{number}",
    )
    step = slice(robust.step, robust.step + 2)
    if robust.alpha > 0:
        axes.plot(series.scales[step], series.qualities[step], color=colour, linewidth=4.2, alpha=0.55, zorder=1.5)


def _sigma_lines(axes: Axes, measured: Sequence[Robustness]) -> None:
    """Draw a dotted line at each σ of a curve that falls.

    Algorithms that share a σ alternate their dots along the line so that every colour is visible.
    """
    for number, robust in enumerate(measured):
        if robust.alpha <= 0:
            continue
        sharing = [n for n, other in enumerate(measured) if other.sigma == robust.sigma and other.alpha > 0]
        dots = (-_DOT * sharing.index(number), (0.55 * _DOT, _DOT * max(2, len(sharing)) - 0.55 * _DOT))
        axes.axvline(robust.sigma, color=COLOURS[number % len(COLOURS)], linestyle=dots, linewidth=1.4, zorder=1)


def _legend(axes: Axes, measured: Sequence[Robustness]) -> None:
    handles, _ = axes.get_legend_handles_labels()
    words = [f"{plain(algorithm.name)}  ({_numbers(algorithm)})" for algorithm in measured]
    axes.legend(handles, words, frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5))


def _numbers(robust: Robustness) -> str:
    return (
        f"α {robust.alpha:z.3f}, σ {plain(robust.sigma_label)}"
        if robust.alpha > 0
        else f"α {robust.alpha:z.3f}, never falls"
    )
