"""Figures of features in the plane, one panel per layer: training images behind clean ones or follow-ups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medtest.inside.space import CLEAN, FOLLOW_UP, TRAINING, Features
from medtest.report.charts.figures import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION
from medtest.runner.folder import writing

_COLOURS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY)
_MARKS = {CLEAN: "x", FOLLOW_UP: "+"}


def draw_planes(
    features: Features,
    points: Mapping[str, NDArray[Any]],
    groups: Sequence[tuple[str, str, Sequence[int]]],
    file: Path,
    *,
    reference: str,
    method: str,
) -> None:
    """Draw points by layer (across) and group (down) into a PNG.

    Args:
        features: Features of the points.
        points: N×2 by layer.
        groups: Name, role and indices of each row's images.
        file: Target file.
        reference: Name of the background images.
        method: Name of the embedding.

    Raises:
        OutputProblem: It cannot be written.
    """
    from matplotlib.figure import Figure

    layers = list(points)
    labels = sorted({label for label in features.label if label}) or [""]
    colours = {label: _COLOURS[number % len(_COLOURS)] for number, label in enumerate(labels)}
    behind = [at for at, role in enumerate(features.role) if role == TRAINING]
    figure = Figure(figsize=(3.2 * len(layers) + 0.4, 3.1 * len(groups) + 0.9), dpi=130, layout="constrained")
    panels = figure.subplots(len(groups), len(layers), squeeze=False)
    for down, (name, role, places) in enumerate(groups):
        for across, layer in enumerate(layers):
            at, panel = points[layer], panels[down][across]
            for label, colour in colours.items():
                own = [n for n in behind if features.label[n] == label]
                panel.scatter(at[own, 0], at[own, 1], s=12, color=colour, alpha=0.3, linewidths=0)
                shown = [n for n in places if features.label[n] == label]
                panel.scatter(at[shown, 0], at[shown, 1], s=34, color=colour, marker=_MARKS[role], linewidths=1.4)
            panel.set(xticks=[], yticks=[])
            for side in panel.spines.values():
                side.set_color("#d9dde3")
            if not down:
                panel.set_title(layer, fontsize=10)
            if not across:
                panel.set_ylabel(name, fontsize=10)
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], marker="o", ls="", color=colour, label=label or "image") for label, colour in colours.items()
    ]
    handles += [Line2D([], [], marker="o", ls="", color="#9aa1ab", alpha=0.5, label=reference)] if behind else []
    handles += [Line2D([], [], marker=mark, ls="", color="#1c1e22", label=role) for role, mark in _MARKS.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(6, len(handles)), fontsize=9, frameon=False)
    figure.suptitle(f"Pooled features by layer, {method}", fontsize=11)
    file.parent.mkdir(parents=True, exist_ok=True)
    with writing(file) as opened:
        figure.savefig(opened, format="png")


def plane_rows(features: Features, points: Mapping[str, NDArray[Any]]) -> list[dict[str, Any]]:
    """Return every point as a row of a table."""
    return [
        {
            "layer": layer,
            "role": features.role[at],
            "relation": features.relation[at],
            "severity": features.severity[at],
            "label": features.label[at],
            "case": features.name[at],
            "x": float(np.round(place[0], 4)),
            "y": float(np.round(place[1], 4)),
        }
        for layer, coordinates in points.items()
        for at, place in enumerate(coordinates)
    ]
