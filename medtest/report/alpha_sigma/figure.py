"""The (α,σ) figure: quality over scales, a dotted line at each σ, the worst step drawn heavily (PDF or SVG).

Vector graphics with embedded TrueType fonts; Okabe and Ito's colours, and a marker and a line style for each algorithm
besides, so that nothing is said by colour alone. The same curves give the same bytes.
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
"""Up to so many common scales stand on the axis as they are."""
_WIDTH, _HEIGHT = 8.6, 4.6
_LINES = 24
"""Above this many algorithms the figure grows with its legend, which stands beside it and hides no curve."""


def draw_figure(found: SeriesSet, measured: Sequence[Robustness], *, form: str = "pdf") -> bytes:
    """Return the figure as a file's bytes.

    Args:
        found: The curves.
        measured: Their measures, in the same order.
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
        height = _HEIGHT * max(1.0, len(found.series) / _LINES)
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        axes = figure.add_subplot()
        for number, (one, robust) in enumerate(zip(found.series, measured, strict=True)):
            _draw(axes, one, robust, number)
        _sigma_lines(axes, measured)
        first = found.series[0]
        if first.scales.size <= _TICKS and all(np.array_equal(one.scales, first.scales) for one in found.series):
            axes.set_xticks(first.scales, [plain(label) for label in first.labels])
        axes.set_xlabel(plain(found.scale))
        axes.set_ylabel(plain(found.quality) + (" (lower is better)" if found.lower_is_better else ""))
        axes.grid(axis="y", color="#d9dde3", linewidth=0.7)
        axes.set_axisbelow(True)
        axes.margins(x=0.03, y=0.06)
        _legend(axes, measured)
        buffer = io.BytesIO()
        dates: dict[str, None] = {"CreationDate": None} if form == "pdf" else {"Date": None}
        figure.savefig(buffer, format=form, metadata=dates)
    return buffer.getvalue()


def plain(text: str) -> str:
    """Return text that matplotlib does not read as mathematics, without control characters."""
    return "".join(sign if sign.isprintable() else " " for sign in text).replace("$", r"\$")


def _draw(axes: Axes, one: Series, robust: Robustness, number: int) -> None:
    colour = COLOURS[number % len(COLOURS)]
    if one.clustered and one.images is not None and one.clusters is not None:
        drawn = resampled(one.images, one.clusters, "images")
        low, high = np.quantile(drawn, (0.025, 0.975), axis=0)
        axes.fill_between(one.scales, low, high, color=colour, alpha=0.13, linewidth=0)
    few = one.scales.size <= 40
    axes.plot(
        one.scales,
        one.qualities,
        color=colour,
        linestyle=_STYLES[number // len(COLOURS) % len(_STYLES)],
        marker=_MARKERS[number % len(_MARKERS)] if few else None,
        markersize=4.5,
        linewidth=1.4,
        label=f"{number}",
    )
    step = slice(robust.step, robust.step + 2)
    if robust.alpha > 0:
        axes.plot(one.scales[step], one.qualities[step], color=colour, linewidth=4.2, alpha=0.55, zorder=1.5)


def _sigma_lines(axes: Axes, measured: Sequence[Robustness]) -> None:
    """Draw a dotted line at each σ; algorithms that share one take turns along it, so that all colours show.

    Where nothing falls there is no step to point at.
    """
    for number, robust in enumerate(measured):
        if robust.alpha <= 0:
            continue
        sharing = [n for n, other in enumerate(measured) if other.sigma == robust.sigma and other.alpha > 0]
        dots = (-_DOT * sharing.index(number), (0.55 * _DOT, _DOT * max(2, len(sharing)) - 0.55 * _DOT))
        axes.axvline(robust.sigma, color=COLOURS[number % len(COLOURS)], linestyle=dots, linewidth=1.4, zorder=1)


def _legend(axes: Axes, measured: Sequence[Robustness]) -> None:
    handles, _ = axes.get_legend_handles_labels()
    words = [f"{plain(one.name)}  ({_numbers(one)})" for one in measured]
    axes.legend(handles, words, frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5))


def _numbers(one: Robustness) -> str:
    return f"α {one.alpha:z.3f}, σ {plain(one.sigma_label)}" if one.alpha > 0 else f"α {one.alpha:z.3f}, never falls"
