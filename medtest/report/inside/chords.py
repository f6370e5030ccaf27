"""Chord diagrams: labels on a circle, with bands between labels that occur together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from medtest.runner.folder import writing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GAP = 0.035
"""Gap between two labels, in radians."""
_PALETTE = (
    *("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c6d31", "#7570b3"),
    *("#66a61e", "#a6761d", "#1b9e77", "#e7298a", "#4d4d4d", "#b3a000"),
)


def draw_chords(
    groups: Sequence[tuple[str, NDArray[np.int64], int]], names: Sequence[str], file: Path, *, threshold: float
) -> None:
    """Draw diagrams side by side into a PNG.

    Args:
        groups: Title, symmetric counts of shape C×C, and number of answers of each diagram.
        names: The labels.
        file: Target file.
        threshold: Least share of the answers at which a pair is drawn, in [0, 1].

    Raises:
        OutputProblem: It cannot be written.
    """
    from matplotlib.figure import Figure

    columns = min(3, len(groups))
    rows = -(-len(groups) // columns)
    figure = Figure(figsize=(5.2 * columns, 5.8 * rows), dpi=120)
    panels = np.atleast_1d(figure.subplots(rows, columns)).ravel()
    figure.subplots_adjust(left=0.01, right=0.99, bottom=0.01, top=1 - 0.55 / (5.8 * rows), wspace=0.02, hspace=0.13)
    for panel in panels[len(groups) :]:
        panel.axis("off")
    for panel, (title, counts, number) in zip(panels, groups, strict=False):
        shown = kept_pairs(counts, number, threshold)
        _chord(panel, shown, names)
        pairs = int((np.triu(shown, 1) > 0).sum())
        word = "pair" if pairs == 1 else "pairs"
        panel.set_title(f"{title}\n{pairs} {word} in at least {threshold:.1%} of {number:,} answers", fontsize=10)
    file.parent.mkdir(parents=True, exist_ok=True)
    with writing(file) as opened:
        figure.savefig(opened, format="png")


def kept_pairs(counts: NDArray[np.int64], number: int, threshold: float) -> NDArray[np.int64]:
    """Return counts with a zero diagonal and without pairs below a share of the answers."""
    pairs = np.where(counts >= max(threshold * number, 1), counts, 0)
    np.fill_diagonal(pairs, 0)
    return np.asarray(pairs, np.int64)


def _chord(panel: Axes, counts: NDArray[np.int64], names: Sequence[str]) -> None:
    panel.set(xlim=(-1.95, 1.95), ylim=(-1.95, 1.95), aspect="equal")
    panel.axis("off")
    weight = counts.sum(axis=1).astype(float)
    least = max(float(weight.sum()), 1.0) * 0.012  # labels without pairs keep a minimum width
    wide = np.maximum(weight, least)
    spans = wide / wide.sum() * (2 * np.pi - _GAP * len(names))
    starts = np.pi / 2 - np.concatenate([[0.0], np.cumsum(spans[:-1] + _GAP)])
    colours = [_PALETTE[number % len(_PALETTE)] for number in range(len(names))]
    from matplotlib.patches import Wedge

    for number, name in enumerate(names):
        begin, end = starts[number], starts[number] - spans[number]
        panel.add_patch(
            Wedge((0, 0), 1.06, np.degrees(end), np.degrees(begin), width=0.06, color=colours[number], lw=0)
        )
        _name(panel, (begin + end) / 2, name, faint=not weight[number])
    used = starts.copy()
    for first in range(len(names)):
        for second in range(first + 1, len(names)):
            if counts[first, second]:
                parts = []
                for end in (first, second):
                    width = spans[end] * counts[first, second] / max(wide[end], 1e-9)
                    parts.append((used[end], used[end] - width))
                    used[end] -= width
                _ribbon(panel, parts[0], parts[1], colours[first if weight[first] >= weight[second] else second])


def _name(panel: Axes, angle: float, name: str, *, faint: bool) -> None:
    right = np.cos(angle) >= 0
    turn = np.degrees(angle) % 360
    panel.text(
        *(1.12 * np.cos(angle), 1.12 * np.sin(angle)),
        name.replace("_", " "),
        rotation=turn if right else turn - 180,
        rotation_mode="anchor",
        ha="left" if right else "right",
        va="center",
        fontsize=8.5,
        color="#9aa1ab" if faint else "#1c1e22",
    )


def _ribbon(panel: Axes, begin: tuple[float, float], end: tuple[float, float], colour: str) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Line

    first, second = _arc(*begin), _arc(*end)
    centre = np.zeros((1, 2))
    points = np.concatenate([first, centre, second, centre, first[:1]])
    codes: list[Any] = [Line.MOVETO, *[Line.LINETO] * (len(first) - 1), Line.CURVE3, Line.CURVE3]
    codes += [*[Line.LINETO] * (len(second) - 1), Line.CURVE3, Line.CURVE3]
    panel.add_patch(PathPatch(Line(points, codes), facecolor=colour, alpha=0.55, lw=0.3, edgecolor="white"))


def _arc(begin: float, end: float) -> NDArray[np.float64]:
    angles = np.linspace(begin, end, 24)
    return np.stack([0.99 * np.cos(angles), 0.99 * np.sin(angles)], axis=1)
