"""Traces of thirteen findings; the fourteenth, cardiomegaly, is the heart's width in the patient's build.

Each trace follows the glossary of the Fleischner Society (D. M. Hansell et al., Radiology 2008;246:697–722),
simplified.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from medtest.core.cases import Json
from medtest.phantoms.chest.anatomy import CM, WALL, Chest
from medtest.phantoms.chest.plan import Planned
from medtest.phantoms.drawing import Canvas, blob, curve, noise, ripples, soften, unit
from medtest.phantoms.fields import Field, Point, as_field, smoothstep


@dataclass(kw_only=True, eq=False)
class Drawn:
    """Additions of the findings to a healthy chest.

    Attributes:
        added: float32 h×w, attenuation to add.
        air: float32 h×w, remaining fraction of the lung's air.
        markings: float32 h×w, remaining fraction of the lung's vessels.
        round_opacities: Nodules and masses as listed in ``facts``.
        traces: Other traces by finding, as listed in ``facts``.
    """

    added: Field
    air: Field
    markings: Field
    round_opacities: list[Json] = field(default_factory=list)
    traces: dict[str, Json] = field(default_factory=dict)


def nothing_drawn(chest: Chest) -> Drawn:
    """Return the additions to a healthy chest: none."""
    shape = chest.where.shape
    return Drawn(added=np.zeros(shape, np.float32), air=np.ones(shape, np.float32), markings=np.ones(shape, np.float32))


def draw_findings(
    part: Callable[[str], np.random.Generator], chest: Chest, plan: dict[str, Planned], drawn: Drawn | None = None
) -> Drawn:
    """Draw every planned finding, each from its own random stream, beside those that are drawn already."""
    drawn = nothing_drawn(chest) if drawn is None else drawn
    for name, planned in plan.items():
        if name in _DRAW:
            trace = _DRAW[name](part(name), chest, planned, drawn)
            if trace is not None:
                drawn.traces[name] = {"strength": round(planned.strength, 3), **trace}
    return drawn


def _side(planned: Planned, *, paired: bool = False) -> str:
    """Return the patient's side; ``paired`` findings may be on both."""
    if paired and planned.both:
        return "both"
    return "right" if planned.side < 0 else "left"


def _clear(chest: Chest, side: int) -> Field:
    """Return a lung without the part behind the heart."""
    return as_field(chest.lung[side] * (1.0 - 0.75 * chest.heart))


def _sides(planned: Planned) -> tuple[int, ...]:
    return (-1, 1) if planned.both else (planned.side,)


def _atelectasis(rng: np.random.Generator, chest: Chest, planned: Planned, drawn: Drawn) -> dict[str, Json]:
    """Draw plates: bands of collapsed lung above a raised diaphragm."""
    canvas = Canvas.over(chest.where)
    count = int(rng.integers(1, 4))
    dome = chest.build.dome[0 if planned.side < 0 else 1]
    for k in range(count):
        y = dome - 0.05 - 0.09 * k - float(rng.uniform(0.0, 0.05))
        x = planned.side * float(rng.uniform(0.2, 0.34))
        length = float(rng.uniform(0.2, 0.36))
        rise = float(rng.uniform(-0.06, 0.06))
        line = curve(
            [(x, y), (x + 0.5 * planned.side * length, y + rise - 0.012), (x + planned.side * length, y + rise)]
        )
        canvas.line(line, float(rng.uniform(0.022, 0.04)))
    plate = soften(canvas.field(), 0.008, chest.where.size)
    drawn.added += plate * _clear(chest, planned.side) * np.float32(0.12 + 0.14 * planned.strength)
    return {"side": _side(planned), "plates": count}


def _effusion(rng: np.random.Generator, chest: Chest, planned: Planned, drawn: Drawn) -> dict[str, Json]:
    """Draw fluid: a blunted angle whose upper edge climbs along the wall."""
    where = chest.where
    heights: list[Json] = []
    for side in _sides(planned):
        height = 0.08 + 0.28 * (0.3 + 0.7 * float(rng.random())) * planned.strength + 0.03 * float(rng.random())
        out = np.clip(where.x * np.float32(side / (WALL * chest.build.girth)), 0.0, 1.0)
        edge = np.float32(0.44) - np.float32(height) * (0.25 + 0.75 * out * out)
        fluid = smoothstep(as_field(where.y - edge), -0.03, 0.03)
        # Split by halves and not by the lung's soft outline, which would leave a dark seam around the fluid.
        half = np.clip(where.x * np.float32(20.0 * side), 0.0, 1.0)
        drawn.air *= 1.0 - fluid * half
        drawn.markings *= 1.0 - fluid * half
        heights.append(round(10.0 * height / CM, 1))
    return {"side": _side(planned, paired=True), "height_mm": heights}


def _infiltration(rng: np.random.Generator, chest: Chest, planned: Planned, drawn: Drawn) -> dict[str, Json]:
    """Draw several faint, streaky, ill-defined patches."""
    count = int(rng.integers(2, 5))
    for _ in range(count):
        side = planned.side if rng.random() < 0.6 else -planned.side
        x, y = side * float(rng.uniform(0.25, 0.52)), float(rng.uniform(-0.4, 0.25))
        shape = blob(chest.where, x, y, float(rng.uniform(0.15, 0.26)), stretch=float(rng.uniform(0.8, 1.3)))
        patch = smoothstep(as_field(shape + 0.35 * noise(rng, shape.shape, 9)), -0.3, 0.7)
        streaks = np.clip(0.75 + 0.55 * noise(rng, shape.shape, 30), 0.0, 2.0)
        drawn.added += patch * streaks * _clear(chest, side) * np.float32(0.09 + 0.1 * planned.strength)
    return {"patches": count}


def _spot(rng: np.random.Generator, side: int, radius: float) -> Point:
    """Return a position inside a lung."""
    y = float(rng.uniform(-0.52, 0.2 - radius))
    wall = 0.42 + 0.26 * min(1.0, (y + 0.6) / 0.5)
    x = float(rng.uniform(0.2 + radius, max(0.24 + radius, wall - radius)))
    return side * x, y


def _mass(rng: np.random.Generator, chest: Chest, planned: Planned, drawn: Drawn) -> None:
    _opacity(rng, chest, planned.side, float(rng.uniform(1.7, 3.4)), 0.13 + 0.17 * planned.strength, drawn)


def _nodule(rng: np.random.Generator, chest: Chest, planned: Planned, drawn: Drawn) -> None:
    for _ in range(2 if planned.both else 1):
        side = planned.side if rng.random() < 0.7 else -planned.side
        _opacity(rng, chest, side, float(rng.uniform(0.8, 1.42)), 0.16 + 0.16 * planned.strength, drawn)


def _opacity(rng: np.random.Generator, chest: Chest, side: int, radius_cm: float, dense: float, drawn: Drawn) -> None:
    """Draw a round opacity of a radius in centimetres at a random position and add it to the list."""
    paint_opacity(rng, chest, side, radius_cm, dense, drawn, _spot(rng, side, radius_cm * CM))


def add_opacity(rng: np.random.Generator, chest: Chest, side: int, millimetres: float, drawn: Drawn) -> None:
    """Draw a round opacity of a diameter, apart from those that are drawn already if there is room."""
    radius = 0.05 * millimetres * CM
    spots = [_spot(rng, side, radius) for _ in range(40)]
    centres: list[Any] = [opacity["centre"] for opacity in drawn.round_opacities]  # type: ignore[index, call-overload]

    def room(spot: Point) -> float:
        return min((float(np.hypot(spot[0] - x, spot[1] - y)) for x, y in centres), default=1.0)

    dense = 0.24 + 0.06 * float(rng.random())
    paint_opacity(rng, chest, side, 0.05 * millimetres, dense, drawn, max(spots, key=room))


def paint_opacity(
    rng: np.random.Generator, chest: Chest, side: int, radius_cm: float, dense: float, drawn: Drawn, spot: Point
) -> None:
    """Draw a round opacity of a radius in centimetres at a position and add it to the list."""
    radius = radius_cm * CM
    x, y = spot
    near = chest.where.around(x, y, radius * 2.0)
    shape = blob(near, x, y, radius, stretch=float(rng.uniform(0.9, 1.1)), weights=ripples(rng, 5, 0.03))
    alpha = smoothstep(shape, -0.12, 0.35)
    drawn.added[near.window] += alpha * chest.lung[side][near.window] * np.float32(dense)
    drawn.markings[near.window] *= 1.0 - 0.7 * alpha
    drawn.round_opacities.append(
        {
            "diameter_mm": round(20.0 * radius_cm, 1),
            "side": "right" if side < 0 else "left",
            "centre": [round(x, 4), round(y, 4)],
        }
    )


def _bronchogram(rng: np.random.Generator, chest: Chest, side: int, towards: Point) -> Field:
    """Return air-filled bronchi from the hilum to a point."""
    canvas = Canvas.over(chest.where)
    hilum = (side * 0.17, -0.05)
    for _ in range(4):
        x, y = towards[0] + float(rng.normal(0.0, 0.08)), towards[1] + float(rng.normal(0.0, 0.08))
        bend = (0.5 * (hilum[0] + x) + float(rng.normal(0.0, 0.03)), 0.5 * (hilum[1] + y))
        canvas.line(curve([hilum, bend, (x, y)]), 0.014)
        fork = (x + side * 0.07, y + float(rng.uniform(-0.1, 0.1)))
        canvas.line([bend, fork], 0.01)
    return canvas.field()


def _pneumonia(rng: np.random.Generator, chest: Chest, planned: Planned, drawn: Drawn) -> dict[str, Json]:
    """Draw one fluffy focus, denser than an infiltrate and without a straight edge."""
    x, y = planned.side * float(rng.uniform(0.28, 0.5)), float(rng.uniform(-0.15, 0.2))
    radius = float(rng.uniform(0.14, 0.22))
    shape = blob(chest.where, x, y, radius, stretch=float(rng.uniform(0.9, 1.3)), turn=unit(float(rng.random())))
    ragged = as_field(shape + 0.4 * noise(rng, shape.shape, 11) + 0.15 * noise(rng, shape.shape, 24))
    patch = smoothstep(ragged, -0.15, 0.75)
    dense = 0.16 + 0.16 * planned.strength
    drawn.added += patch * _clear(chest, planned.side) * np.float32(dense)
    drawn.added -= patch * _bronchogram(rng, chest, planned.side, (x, y)) * np.float32(0.4 * dense)
    return {"side": _side(planned), "radius_mm": round(10.0 * radius / CM, 1)}


def _consolidation(rng: np.random.Generator, chest: Chest, planned: Planned, drawn: Drawn) -> dict[str, Json]:
    """Draw a homogeneous lobe: one straight edge at the fissure, air-filled bronchi inside."""
    where = chest.where
    upper = bool(rng.random() < 0.5)
    fissure = float(rng.uniform(-0.2, -0.05)) if upper else float(rng.uniform(-0.08, 0.1))
    slope = float(rng.uniform(-0.25, 0.25))
    reach = float(rng.uniform(0.2, 0.4))
    level = as_field(where.y - np.float32(fissure) - np.float32(slope) * (np.abs(where.x) - 0.35))
    if upper:
        level = as_field(-level)
    wavy = 0.06 * noise(rng, level.shape, 7)
    lobe = as_field(
        smoothstep(level, -0.008, 0.012) * (1.0 - smoothstep(as_field(level + wavy), 0.6 * reach, 1.3 * reach))
    )
    dense = 0.14 + 0.18 * planned.strength
    drawn.added += lobe * _clear(chest, planned.side) * np.float32(dense)
    towards = (planned.side * 0.38, fissure + (-0.5 if upper else 0.5) * reach)
    bronchi = _bronchogram(rng, chest, planned.side, towards)
    drawn.added -= lobe * bronchi * chest.lung[planned.side] * np.float32(0.55 * dense)
    drawn.markings *= 1.0 - 0.8 * lobe * chest.lung[planned.side]
    return {
        "side": _side(planned),
        "lobe": "upper" if upper else "lower",
        "reach_mm": round(10.0 * reach / CM, 1),
    }


def _pneumothorax(rng: np.random.Generator, chest: Chest, planned: Planned, drawn: Drawn) -> dict[str, Json]:
    """Draw the visceral pleura away from the wall, without vessels or lung beyond it."""
    depth = 0.06 + 0.13 * planned.strength + 0.03 * float(rng.random())
    hilum = np.array([planned.side * 0.12, 0.15])
    line = hilum + (chest.outlines[planned.side] - hilum) * np.array([1.0 - depth * 1.6, 1.0 - depth * 1.25])
    canvas, edge = Canvas.over(chest.where), Canvas.over(chest.where)
    canvas.polygon(line)
    edge.line(np.concatenate([line, line[:1]]), 0.011)
    inner = canvas.field()
    # Air rises, so the lung falls away from the apex and the upper wall, less at the base.
    base = smoothstep(as_field(chest.where.y * np.ones_like(inner)), 0.05, 0.42)
    beyond = as_field((1.0 - np.maximum(inner, base)) * chest.lung[planned.side])
    lateral = smoothstep(as_field(chest.where.x * np.float32(planned.side) * np.ones_like(inner)), 0.14, 0.24)
    beyond = as_field(beyond * lateral)
    drawn.markings *= 1.0 - beyond
    drawn.added -= np.float32(0.05 + 0.03 * planned.strength) * beyond
    pleura = as_field(edge.field() * (1.0 - base) * lateral * chest.lung[planned.side])
    drawn.added += np.float32(0.10 + 0.06 * planned.strength) * pleura
    return {"side": _side(planned), "depth_mm": round(10.0 * depth * 0.6 / CM, 1)}


def _edema(rng: np.random.Generator, chest: Chest, planned: Planned, drawn: Drawn) -> dict[str, Json]:
    """Draw a bat's wings of haze around both hila, and Kerley's B lines at the lateral bases."""
    lines = Canvas.over(chest.where)
    count = 0
    for side in (-1, 1):
        x, y = side * float(rng.uniform(0.24, 0.3)), float(rng.uniform(-0.08, 0.04))
        shape = blob(chest.where, x, y, float(rng.uniform(0.26, 0.34)), stretch=0.8)
        ragged = as_field(shape + 0.25 * noise(rng, shape.shape, 9) + 0.1 * noise(rng, shape.shape, 22))
        wing = smoothstep(ragged, -0.25, 0.8)
        drawn.added += wing * _clear(chest, side) * np.float32(0.06 + 0.13 * planned.strength)
        for _ in range(int(rng.integers(4, 9))):
            out = side * chest.build.girth * float(rng.uniform(0.655, 0.685))
            level = float(rng.uniform(0.08, 0.38))
            lines.line([(out, level), (out - side * float(rng.uniform(0.05, 0.09)), level + 0.005)], 0.009)
            count += 1
    drawn.added += lines.field() * chest.lungs * np.float32(0.06 + 0.08 * planned.strength)
    return {"kerley_lines": count}


def _emphysema(rng: np.random.Generator, chest: Chest, planned: Planned, drawn: Drawn) -> dict[str, Json]:
    """Draw bullae; dark lungs, flat diaphragm and narrow heart are part of the build."""
    count = int(rng.integers(0, 4))
    for _ in range(count):
        side = planned.side if rng.random() < 0.5 else -planned.side
        radius = float(rng.uniform(0.07, 0.14))
        x, y = _spot(rng, side, radius)
        shape = blob(chest.where, x, y, radius)
        inside = smoothstep(shape, -0.05, 0.1)
        wall = as_field(smoothstep(shape, -0.08, 0.0) * (1.0 - smoothstep(shape, 0.0, 0.12)))
        drawn.added += (0.07 * wall - 0.05 * inside) * chest.lung[side]
        drawn.markings *= 1.0 - 0.7 * inside
    return {"bullae": count}


def _fibrosis(rng: np.random.Generator, chest: Chest, planned: Planned, drawn: Drawn) -> dict[str, Json]:
    """Draw a net of lines, densest at the bases and along the wall."""
    where = chest.where
    cells = int(rng.integers(34, 52))
    net = 1.0 - np.clip(np.abs(noise(rng, where.shape, cells)) * 2.2, 0.0, 1.0)
    out = np.abs(where.x) * np.float32(1.0 / (WALL * chest.build.girth))
    place = as_field(0.75 * np.clip(where.y + 0.25, 0.0, 0.7) + 0.65 * np.clip(out - 0.35, 0.0, 0.65))
    patch = smoothstep(as_field(place + 0.08 * noise(rng, where.shape, 7)), 0.25, 0.6)
    lungs = as_field(_clear(chest, -1) + _clear(chest, 1))
    drawn.added += (net - 0.25) * patch * lungs * np.float32(0.08 + 0.14 * planned.strength)
    return {"cells": cells}


def _pleural_thickening(rng: np.random.Generator, chest: Chest, planned: Planned, drawn: Drawn) -> dict[str, Json]:
    """Draw a smooth dense band along the wall or over the apex, with a wavy inner edge."""
    thick = 0.028 + 0.032 * planned.strength
    apical = bool(rng.random() < 0.4)
    for side in _sides(planned):
        line = chest.outlines[side]
        # Points of the outline between the apex and the costophrenic angle, six per piece.
        first, last = (18, 40) if apical else (38, 62)
        trim = int(rng.integers(0, 6))
        pieces = line[first + trim : last - int(rng.integers(0, 6))]
        canvas = Canvas.over(chest.where)
        wavy = rng.normal(0.0, 0.15, len(pieces))
        for k in range(len(pieces) - 1):
            canvas.line(pieces[k : k + 2], 2.0 * thick * (1.0 + float(wavy[k])))
        band = soften(canvas.field(), 0.008, chest.where.size)
        drawn.added += band * chest.lung[side] * np.float32(0.2 + 0.14 * planned.strength)
    return {
        "side": _side(planned, paired=True),
        "thickness_mm": round(10.0 * thick / CM, 1),
        "place": "apical" if apical else "lateral",
    }


def _hernia(rng: np.random.Generator, chest: Chest, planned: Planned, drawn: Drawn) -> dict[str, Json]:
    """Draw a hiatal hernia: a bubble of gas behind the heart with a level of fluid."""
    # Radiographs show hernias from about four centimetres; smaller ones are only visible with swallowed contrast.
    radius = 0.1 + 0.075 * planned.strength
    x, y = float(rng.uniform(0.0, 0.14)), chest.build.dome[1] - radius * float(rng.uniform(0.2, 0.9))
    near = chest.where.around(x, y, radius * 1.6)
    shape = blob(near, x, y, radius, stretch=float(rng.uniform(0.85, 1.15)), weights=ripples(rng, 3, 0.04))
    inside = smoothstep(shape, -0.05, 0.1)
    wall = as_field(smoothstep(shape, -0.16, -0.02) * (1.0 - smoothstep(shape, 0.02, 0.2)))
    level = y + radius * float(rng.uniform(0.0, 0.5))
    gas = as_field(inside * (1.0 - smoothstep(as_field(near.y - np.float32(level)), -0.008, 0.008)))
    much = 0.55 + 0.45 * planned.strength
    drawn.added[near.window] += np.float32(much) * (0.06 * wall + 0.06 * (inside - gas) - 0.17 * gas)
    return {"radius_mm": round(10.0 * radius / CM, 1)}


_DRAW: dict[str, Callable[[np.random.Generator, Chest, Planned, Drawn], dict[str, Json] | None]] = {
    "atelectasis": _atelectasis,
    "effusion": _effusion,
    "infiltration": _infiltration,
    "mass": _mass,
    "nodule": _nodule,
    "pneumonia": _pneumonia,
    "pneumothorax": _pneumothorax,
    "consolidation": _consolidation,
    "edema": _edema,
    "emphysema": _emphysema,
    "fibrosis": _fibrosis,
    "pleural_thickening": _pleural_thickening,
    "hernia": _hernia,
}
