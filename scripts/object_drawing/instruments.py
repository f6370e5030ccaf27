"""Fifteen endoscopic instruments, drawn from what they are made of: tubes, wires, cups, rings.

Each is drawn with its tip at the origin and its shaft along +y, then turned into the pose it has in the field.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from object_drawing.materials import banded, clear, coil, metal_part, plastic, steel
from object_drawing.shading import SUPER, Array, Canvas, Material, curve, grid, noise, polygon, smoothstep, tube

WHITE = plastic((246, 246, 250), (150, 148, 178))
BLUE = plastic((96, 178, 228), (24, 74, 128), bright=0.2)
ORANGE = plastic((232, 138, 64), (122, 52, 20), gloss=0.4, bright=0.15)
GREEN = plastic((120, 190, 150), (34, 84, 66), gloss=0.4, bright=0.2)
YELLOW = plastic((236, 208, 120), (132, 96, 36), gloss=0.4, bright=0.2)


@dataclass(frozen=True)
class Pose:
    """Turns drawing coordinates (tip at the origin, shaft along +y) into canvas coordinates.

    Attributes:
        angle: Direction from tip to base in the field, degrees clockwise from +x (image coordinates).
        tip: Where the tip lies on the canvas, stored pixels.
    """

    angle: float
    tip: tuple[float, float]

    def at(self, points: object) -> Array:
        """Return the points (N×2) on the canvas."""
        p = np.asarray(points, np.float32).reshape(-1, 2)
        turn = np.deg2rad(self.angle - 90)
        c, s = np.cos(turn), np.sin(turn)
        x = p[:, 0] * c - p[:, 1] * s + self.tip[0]
        y = p[:, 0] * s + p[:, 1] * c + self.tip[1]
        return np.stack([x, y], 1).astype(np.float32)


def _line(canvas: Canvas, pose: Pose, points: object, radii: object, material: Material, *, flat: bool = True) -> None:
    place = pose.at(points)
    widths = np.asarray(radii, np.float32)
    if widths.size == 2 and len(place) > 2:
        widths = np.linspace(widths[0], widths[1], len(place)).astype(np.float32)
    tube(canvas, place, widths, material, flat_ends=flat)


def _part(canvas: Canvas, pose: Pose, points: object, radius: float, **look: object) -> None:
    metal_part(canvas, polygon(canvas, pose.at(points)), radius=radius, **look)  # type: ignore[arg-type]


def _wire(canvas: Canvas, pose: Pose, points: object, radius: float, count: int = 60) -> None:
    path = curve(np.asarray(points, np.float32), count)
    _line(canvas, pose, path, np.full(len(path), radius), steel(0.95), flat=False)


def _cup(side: float, spread: float, length: float, width: float) -> list[tuple[float, float]]:
    """Return the outline of one cup of a forceps, its hinge at the origin, opened by ``spread`` degrees."""
    outline = [(0, 2), (0.55 * width, -0.18 * length), (0.95 * width, -0.55 * length), (0.85 * width, -0.86 * length)]
    outline += [(0.45 * width, -length), (0.05 * width, -0.93 * length), (0.02 * width, -0.70 * length)]
    for tooth in range(5):
        y = -(0.70 - 0.13 * tooth) * length
        outline += [(0.16 * width, y + 0.02 * length), (0.02 * width, y + 0.10 * length)]
    turn = np.deg2rad(spread)
    c, s = np.cos(turn), np.sin(turn)
    return [(side * (x * c - y * s), x * s + y * c) for x, y in outline]


def _lift(points: list[tuple[float, float]], y: float) -> list[tuple[float, float]]:
    return [(px, py + y) for px, py in points]


def forceps_open(canvas: Canvas, pose: Pose) -> None:
    """Biopsy forceps with open cups and a coiled shaft."""
    _line(canvas, pose, [(0, 58), (1, 180), (-4, 330)], [8.5, 13, 18], coil(4.2, 0.0022))
    _line(canvas, pose, [(0, 34), (0, 62)], [7.5, 8.5], steel())
    for side in (-1.0, 1.0):
        _part(canvas, pose, _lift(_cup(side, 26, 40, 15), 38), 5.5)
    _part(canvas, pose, [(-1.6, 4), (1.6, 4), (1.8, 40), (-1.8, 40)], 1.5)
    _line(canvas, pose, [(-5, 39), (5, 39)], [4, 4], steel(1.1), flat=False)


def forceps_closed(canvas: Canvas, pose: Pose) -> None:
    """Biopsy forceps with closed cups and an orange sheath."""
    _line(canvas, pose, curve(np.array([(0, 56), (4, 140), (1, 230), (-6, 330)]), 30), [9, 20], ORANGE)
    _line(canvas, pose, [(0, 26), (0, 60)], [7.5, 8.5], coil(3.4))
    for side in (-1.0, 1.0):
        _part(canvas, pose, _lift(_cup(side, 1, 32, 11), 32), 4.5)
    _line(canvas, pose, [(-4, 32), (4, 32)], [3.4, 3.4], steel(1.1), flat=False)


def hot_forceps(canvas: Canvas, pose: Pose) -> None:
    """Half-open coagulation forceps, steel head and blue sheath."""
    _line(canvas, pose, curve(np.array([(0, 62), (-3, 150), (2, 240), (10, 330)]), 30), [10, 21], BLUE)
    _line(canvas, pose, [(0, 32), (0, 66)], [8.5, 9.5], steel())
    for side in (-1.0, 1.0):
        _part(canvas, pose, _lift(_cup(side, 12, 36, 11), 36), 4.5)
    _line(canvas, pose, [(-4, 37), (4, 37)], [4, 4], steel(1.1), flat=False)


def snare_open(canvas: Canvas, pose: Pose) -> None:
    """Open oval polypectomy snare with its white sheath."""
    loop = [(0, 150), (-30, 112), (-44, 62), (-30, 16), (0, 0), (31, 15), (46, 60), (31, 112), (0, 150)]
    _wire(canvas, pose, loop, 2.6, 90)
    _line(canvas, pose, [(0, 138), (0, 178)], [4.2, 4.6], coil(2.6))
    _line(canvas, pose, curve(np.array([(0, 168), (3, 230), (-3, 345)]), 26), [10.5, 20], WHITE)


def snare_hexagonal(canvas: Canvas, pose: Pose) -> None:
    """Smaller hexagonal snare with a translucent sheath."""
    loop = [(0, 118), (-8, 100), (-30, 78), (-31, 36), (-9, 6), (0, 0), (10, 6), (32, 36), (31, 78), (8, 100), (0, 118)]
    _wire(canvas, pose, loop, 2.4, 100)
    _line(canvas, pose, [(0, 108), (0, 330)], [3.4, 4.6], coil(3.0))
    _line(canvas, pose, curve(np.array([(0, 136), (-3, 220), (5, 335)]), 26), [10, 19], clear((196, 204, 224)))


def snare_closed(canvas: Canvas, pose: Pose) -> None:
    """Closed snare: the end of the wire in front of a wide white sheath."""
    _wire(canvas, pose, [(-2, 36), (-4, 16), (0, 0), (4.5, 15), (2.5, 36)], 2.2, 30)
    _line(canvas, pose, curve(np.array([(0, 26), (2, 120), (-2, 220), (-8, 320)]), 30), [11, 30], WHITE)


def injection_needle(canvas: Canvas, pose: Pose) -> None:
    """Injection needle: bevelled steel point, blue hub and clear catheter."""
    _line(canvas, pose, [(0, 8), (0, 66)], [3.0, 3.4], steel(1.05))
    _part(canvas, pose, [(-3.0, 12), (2.8, 0), (3.1, 12)], 1.6)
    _line(canvas, pose, [(0, 52), (0, 84)], [8.5, 9.5], plastic((70, 150, 222), (18, 56, 120)))
    _line(canvas, pose, [(0, 84), (0, 335)], [3.8, 6.0], steel(0.7))
    sheath = curve(np.array([(0, 80), (4, 170), (0, 250), (-7, 340)]), 30)
    _line(canvas, pose, sheath, [9.5, 18], clear((184, 206, 232)))


def spray_catheter(canvas: Canvas, pose: Pose) -> None:
    """Spray catheter: a white tube with a round mouth."""
    _line(canvas, pose, curve(np.array([(0, 6), (-2, 110), (3, 220), (12, 325)]), 30), [12, 34], WHITE, flat=False)
    rim = plastic((120, 112, 118), (60, 50, 54), gloss=0.1)
    _line(canvas, pose, [(-3.2, 3), (3.2, 3)], [6.0, 6.0], rim, flat=False)
    _line(canvas, pose, [(-1.6, 2), (1.6, 2)], [3.2, 3.2], plastic((30, 24, 26), (14, 10, 12), gloss=0.0), flat=False)


def drain_tube(canvas: Canvas, pose: Pose) -> None:
    """Yellow drainage tube with side holes and markings."""
    body = banded(YELLOW, [(70, 78), (150, 160), (240, 252)], (70, 60, 50), 0.7)
    _line(canvas, pose, curve(np.array([(0, 10), (-6, 110), (-2, 210), (14, 330)]), 34), [11, 22], body, flat=False)
    for x, y, size in ((3, 34, 4.0), (-4, 58, 4.4), (3, 104, 5.0)):
        hole = plastic((58, 34, 26), (30, 14, 10), gloss=0.05)
        _line(canvas, pose, [(x, y - size), (x, y + size)], [size * 0.8, size * 0.8], hole, flat=False)


def brush(canvas: Canvas, pose: Pose) -> None:
    """Cytology brush: bristles on a twisted wire in front of a clear sheath."""
    rng = np.random.default_rng(11)
    _line(canvas, pose, [(0, 3), (0, 10)], [3.2, 3.2], steel(1.1), flat=False)
    for y in np.arange(12, 92, 1.15):
        reach = 15 * np.sin(np.pi * (y - 6) / 98) ** 0.6
        for side in (-1, 1):
            lean = rng.normal(0, 2.2)
            tint = plastic((236, 236, 230), (150, 148, 140), gloss=0.2)
            end = (side * reach * rng.uniform(0.8, 1.05), y + lean - 2)
            _line(canvas, pose, [(0, y), end], [0.75, 0.5], tint, flat=False)
    _line(canvas, pose, [(0, 8), (0, 130)], [2.2, 3.0], coil(3.2))
    _line(canvas, pose, curve(np.array([(0, 118), (3, 200), (-4, 330)]), 26), [9.5, 18], GREEN)


def basket(canvas: Canvas, pose: Pose) -> None:
    """Four-wire retrieval basket, opened, with a clear sheath."""
    for bulge in (-40.0, -15.0, 17.0, 42.0):
        path = [(0, 4), (bulge * 0.72, 28), (bulge, 70), (bulge * 0.66, 116), (0, 148)]
        _wire(canvas, pose, path, 2.1, 60)
    _line(canvas, pose, [(0, 0), (0, 11)], [3.4, 3.4], steel(1.1), flat=False)
    _line(canvas, pose, [(0, 142), (0, 158)], [3.8, 4.2], steel(1.0))
    _line(canvas, pose, curve(np.array([(0, 152), (-4, 230), (4, 340)]), 26), [9, 18], BLUE)


def argon_probe(canvas: Canvas, pose: Pose) -> None:
    """Argon plasma probe: ceramic tip, black rings along a pale blue tube."""
    rings = [(26, 31), (62, 68), (104, 111), (152, 160), (206, 216), (268, 280)]
    tint = banded(plastic((170, 212, 236), (66, 112, 150), bright=0.22), rings, (26, 30, 40))
    _line(canvas, pose, curve(np.array([(0, 12), (3, 110), (0, 210), (-10, 325)]), 30), [10.5, 27], tint)
    _line(canvas, pose, [(0, 5), (0, 22)], [8.5, 10.5], plastic((238, 232, 222), (150, 140, 130)), flat=False)
    _line(canvas, pose, [(-1.5, 2.5), (1.5, 2.5)], [3.6, 3.6], plastic((46, 40, 40), (16, 12, 12), gloss=0), flat=False)


def dual_knife(canvas: Canvas, pose: Pose) -> None:
    """Endoscopic dissection knife: short wire with a knob on a white ceramic tip."""
    _line(canvas, pose, [(0, 4), (0, 32)], [2.6, 2.8], steel(1.1))
    _line(canvas, pose, [(-1.6, 4), (1.6, 4)], [4.2, 4.2], steel(1.2), flat=False)
    _line(canvas, pose, curve(np.array([(0, 40), (-2, 130), (2, 230), (8, 325)]), 30), [11, 25], GREEN)
    _line(canvas, pose, [(0, 28), (0, 50)], [10, 11.4], plastic((248, 246, 240), (170, 160, 150)), flat=False)


def hook_knife(canvas: Canvas, pose: Pose) -> None:
    """Endoscopic hook knife with a translucent sheath."""
    _wire(canvas, pose, [(14, 2), (9, 0), (2, 1), (0, 7), (0, 40)], 2.6, 40)
    _line(canvas, pose, [(0, 40), (0, 330)], [3.0, 4.6], steel(0.75))
    sheath = curve(np.array([(0, 36), (3, 130), (-2, 230), (-12, 330)]), 30)
    _line(canvas, pose, sheath, [10, 24], clear((214, 206, 196)))


def clip_on_catheter(canvas: Canvas, pose: Pose) -> None:
    """Open haemostatic clip on its delivery catheter."""
    for side in (-1.0, 1.0):
        arm = [(0, 74), (side * 15, 40), (side * 23, 12), (side * 17, 0), (side * 14, 3)]
        arm += [(side * 18, 13), (side * 10.5, 40), (0, 62)]
        _part(canvas, pose, arm, 2.2)
    _line(canvas, pose, [(0, 60), (0, 92)], [6.5, 7.5], steel())
    _line(canvas, pose, curve(np.array([(0, 90), (-3, 180), (6, 335)]), 28), [10, 20], coil(5.0, 0.0020))


def clip_deployed(canvas: Canvas, pose: Pose) -> None:
    """Closed clip left on the wall, without a catheter."""
    for side in (-1.0, 1.0):
        arm = [(side * 1, 70), (side * 13, 38), (side * 9, 8), (side * 3, 0), (side * 0.5, 4)]
        arm += [(side * 4.5, 12), (side * 6.5, 38), (0, 58)]
        _part(canvas, pose, arm, 2.2)
    _line(canvas, pose, [(0, 52), (0, 104)], [7.5, 8.5], steel())
    _line(canvas, pose, [(0, 98), (0, 112)], [6.0, 5.0], steel(0.8))
    _line(canvas, pose, [(-3, 66), (3, 66)], [5.0, 5.0], steel(1.15), flat=False)


def cap_edge(canvas: Canvas, pose: Pose) -> None:
    """Part of a transparent distal cap at the rim of the field; its circle's centre is the drawing's origin."""
    x, y = grid(canvas)
    origin = pose.at([(0, 0)])[0]
    dx, dy = x - origin[0], y - origin[1]
    radius = np.hypot(dx, dy)
    bearing = (np.rad2deg(np.arctan2(dy, dx)) - pose.angle + 180) % 360 - 180
    band = smoothstep(213, 215, radius) * (1 - smoothstep(262, 264, radius)) * (np.abs(bearing) < 37)
    inner = np.exp(-(((radius - 216.5) / 2.4) ** 2))
    step = np.exp(-(((radius - 231) / 1.8) ** 2))
    streak = np.exp(-(((radius - 246) / 7) ** 2)) * np.exp(-(((bearing + 12) / 9) ** 2))
    streak += 0.8 * np.exp(-(((radius - 223) / 3.2) ** 2)) * np.exp(-(((bearing - 17) / 6) ** 2))
    wave = noise(canvas.alpha.shape, 60 * SUPER, np.random.default_rng(5), 2)
    opacity = np.clip(0.34 + 0.04 * wave + 0.45 * inner + 0.25 * step + 0.9 * streak, 0, 0.96) * band
    light = np.clip(0.62 + 0.5 * inner + 0.3 * step + 0.9 * streak, 0, 1)
    tint = np.array([0.93, 0.93, 0.97], np.float32)
    canvas.over(np.asarray(light[..., None] * tint, np.float32), np.asarray(opacity, np.float32))


@dataclass(frozen=True)
class Instrument:
    """How one instrument lies in the field it was drawn for.

    Attributes:
        draw: Draws it.
        centre: Middle of its bounding box as a fraction of the field's bounding box.
        angle: Direction from tip to base, degrees clockwise from +x.
        base: Middle of the cut end in drawing coordinates; None when nothing is cut by the rim.
        base_width: Half the width of the cut end, stored pixels.
    """

    draw: Callable[[Canvas, Pose], None]
    centre: tuple[float, float]
    angle: float
    base: tuple[float, float] | None
    base_width: float = 0.0


INSTRUMENTS: dict[str, Instrument] = {
    "biopsy_forceps_open": Instrument(forceps_open, (0.70, 0.72), 52, (-4, 330), 18),
    "biopsy_forceps_closed": Instrument(forceps_closed, (0.66, 0.76), 68, (-6, 330), 20),
    "coagulation_forceps": Instrument(hot_forceps, (0.38, 0.76), 108, (10, 330), 21),
    "snare_open": Instrument(snare_open, (0.66, 0.70), 58, (-3, 345), 20),
    "snare_hexagonal": Instrument(snare_hexagonal, (0.40, 0.72), 118, (5, 335), 19),
    "snare_closed": Instrument(snare_closed, (0.72, 0.74), 48, (-8, 320), 30),
    "injection_needle": Instrument(injection_needle, (0.72, 0.64), 32, (-7, 340), 18),
    "spray_catheter": Instrument(spray_catheter, (0.64, 0.78), 74, (12, 325), 34),
    "drain_tube": Instrument(drain_tube, (0.30, 0.66), 146, (14, 330), 22),
    "cytology_brush": Instrument(brush, (0.74, 0.60), 24, (-4, 330), 18),
    "retrieval_basket": Instrument(basket, (0.60, 0.74), 82, (4, 340), 18),
    "argon_probe": Instrument(argon_probe, (0.68, 0.74), 60, (-10, 325), 27),
    "dissection_knife": Instrument(dual_knife, (0.36, 0.74), 124, (8, 325), 25),
    "hook_knife": Instrument(hook_knife, (0.76, 0.66), 40, (-12, 330), 24),
    "clip_on_catheter": Instrument(clip_on_catheter, (0.62, 0.76), 70, (6, 335), 20),
    "clip_deployed": Instrument(clip_deployed, (0.58, 0.56), 100, None),
    "cap_edge": Instrument(cap_edge, (0.66, 0.90), 62, (264, 0), 0),
}
