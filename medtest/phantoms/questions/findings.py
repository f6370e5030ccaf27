"""Findings on a wall: polyps, the site of a removed one, and other diseases."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.phantoms.colon.placing import windows
from medtest.phantoms.colon.polyps import Look, Patch, PolypShape, draw_patch, make_shape, relief
from medtest.phantoms.drawing import blob, noise, ripples, unit
from medtest.phantoms.fields import Field, as_field, harmonics, smoothstep
from medtest.phantoms.questions.canvas import SRGB, WORK, PictureDraft, linear
from medtest.phantoms.questions.plan import SIDE_MM, PolypPlan, QuestionScene, middle

_KINDS = {"ip": "pedunculated", "is": "sessile", "iia": "flat"}
_BULGE = {"ip": 0.85, "is": 0.9, "iia": 0.22}
_SOLID = 0.94
"""Least share of its convex hull that a polyp must fill."""
_EDGE = 0.93
"""Largest distance of a finding from the picture's centre, in half sides."""

FAINT = 0.62
"""Share of the wall's colour in a polyp that is hard to detect."""


def draw_findings(rng: np.random.Generator, work: PictureDraft, scene: QuestionScene) -> list[dict[str, float]]:
    """Draw a scene's findings, in place.

    Returns:
        Position (``x``, ``y`` as shares of the picture) and size (``millimetres``) of each polyp.
    """
    draw = {
        "ulcerative colitis": _colitis,
        "hemorrhoids": _hemorrhoids,
        "oesophagitis": _oesophagitis,
        "barretts": _barretts,
        "short-segment barretts": _barretts,
    }.get(scene.disease)
    if draw is not None:
        draw(rng, work, scene)
    if scene.removed:
        _paint_removed_polyp(rng, work, scene)
    placed: list[_Placed] = []
    for plan in scene.polyps:
        placed.append(_place(rng, work, plan, placed, hard=scene.hard))
    for number, polyp in enumerate(placed):
        if polyp.stalk is not None:
            work.things[f"stalk {number}"] = _stalk(rng, work, polyp, polyp.stalk)
    for number, polyp in enumerate(placed):
        _paint_polyp_on_wall(rng, work, polyp, hard=scene.hard)
        work.things[f"polyp {number}"] = polyp.mask()
    return [_facts(polyp.mask()) for polyp in placed]


# ---------------------------------------------------------------------------------------------------------- polyps


def _shape(rng: np.random.Generator, kind: str) -> PolypShape:
    """Return an outline without deep bays, since a lobed one would look like several polyps."""
    while True:
        shape = make_shape(rng, _KINDS[kind])
        inside = (relief(shape, 64)[0] > 0).astype(np.uint8)
        hull = cv2.convexHull(cv2.findNonZero(inside))
        # Pixels compared with the polygon through their centres, which lacks half a pixel all round.
        if float(inside.sum()) > _SOLID * (cv2.contourArea(hull) + 0.5 * cv2.arcLength(hull, True)):
            return shape


@dataclass(frozen=True, kw_only=True, eq=False)
class _Placed:
    """Polyp with its position on the working picture.

    Attributes:
        plan: Its plan.
        patch: Its drawing.
        centre: Column and row of its centre.
        radius: Radius of a circle of its area, in pixels.
        stalk: Unit vector along its stalk, from the head; None without one.
    """

    plan: PolypPlan
    patch: Patch
    centre: tuple[float, float]
    radius: float
    stalk: tuple[float, float] | None

    def mask(self) -> NDArray[np.bool_]:
        """Return the mask of its head, bool h×w."""
        place = np.zeros((WORK, WORK), np.bool_)
        outer, inner = windows(self.patch, place.shape)
        place[outer] = self.patch.height[inner] > 0
        return place

    def room(self) -> NDArray[np.bool_]:
        """Return the area that it needs with its stalk and a margin, bool h×w."""
        room = self.mask().astype(np.uint8)
        if self.stalk is not None:
            reach = 2.5 * self.radius
            end = (self.centre[0] + reach * self.stalk[0], self.centre[1] + reach * self.stalk[1])
            ends = [tuple(round(value) for value in point) for point in (self.centre, end)]
            cv2.line(room, ends[0], ends[1], 1, max(3, round(self.radius)))
        return np.asarray(cv2.dilate(room, np.ones((9, 9), np.uint8)) > 0)


_TRIES = 40


def _place(
    rng: np.random.Generator, work: PictureDraft, plan: PolypPlan, others: list[_Placed], *, hard: bool
) -> _Placed:
    """Return a polyp in its cell that touches no other and no landmark, or else the one with least overlap."""
    blocked = np.zeros((WORK, WORK), np.bool_)
    for other in others:
        blocked |= other.room()
    landmark = work.things.get("landmark")
    if landmark is not None and float(landmark.mean()) < 0.5:
        blocked |= landmark
    tried: list[tuple[float, _Placed]] = []
    while len(tried) < _TRIES and not any(overlap == 0 for overlap, _ in tried):
        draft = _draft(rng, plan, hard=hard)
        tried.append((float((draft.room() & blocked).sum()), draft))
    return min(tried, key=lambda pair: pair[0])[1]


def _draft(rng: np.random.Generator, plan: PolypPlan, *, hard: bool) -> _Placed:
    shape = _shape(rng, plan.type)
    half = plan.millimetres / SIDE_MM  # in the picture's half sides: the radius of a circle of the polyp's area
    scale = half * 0.5 * WORK / (shape.area / 3.14159) ** 0.5
    reach = shape.radius * scale * 2.0 / WORK
    x, y = (value + float(rng.uniform(-0.1, 0.1)) for value in middle(plan.cell, 0.12))
    x, y = (min(max(value, reach - _EDGE), _EDGE - reach) for value in (x, y))
    centre = ((x + 1.0) * 0.5 * WORK, (y + 1.0) * 0.5 * WORK)
    turn, lean = unit(float(rng.random())), float(rng.uniform(0.15, 0.35))
    look = Look(
        kind=_KINDS[plan.type], colour=plan.colour, gain=as_field([1.0, 1.0, 1.0]), surface="smooth",
        bulge=_BULGE[plan.type] * (0.4 if hard else 1.0), brightness=1.0, low_contrast=hard,
    )  # fmt: skip
    patch = draw_patch(shape, look, centre=centre, scale=scale, light=(turn[0] * lean, turn[1] * lean))
    stalk = None
    if plan.type == "ip":
        # Towards the picture's centre, where there is room, or in any direction from there.
        far = (x * x + y * y) ** 0.5
        stalk = (-x / far, -y / far) if far > 0.24 else unit(float(rng.random()))
    return _Placed(plan=plan, patch=patch, centre=centre, radius=half * 0.5 * WORK, stalk=stalk)


def _facts(place: NDArray[np.bool_]) -> dict[str, float]:
    rows, columns = np.nonzero(place)
    area = float(place.sum()) * (SIDE_MM / WORK) ** 2
    return {
        "x": round(float(columns.mean() + 0.5) / WORK, 4),
        "y": round(float(rows.mean() + 0.5) / WORK, 4),
        "millimetres": round(2.0 * (area / 3.14159) ** 0.5, 2),
    }


def _paint_polyp_on_wall(rng: np.random.Generator, work: PictureDraft, polyp: _Placed, *, hard: bool) -> None:
    """Draw a polyp on the wall: contact shadow, its colour, its own light."""
    patch, plan = polyp.patch, polyp.plan
    outer, inner = windows(patch, (WORK, WORK))
    height = as_field(patch.height[inner])
    pixel = 2.2 * 2.0 / patch.height.shape[0]
    alpha = smoothstep(height, -0.8 * pixel, 0.9 * pixel)
    near = work.light[outer]
    # A polyp is lit like the wall around it, within bounds, because its colour answers a question.
    level = min(1.12, max(0.92, float(np.median(near[alpha > 0.5]))))
    near *= 1.0 - (1.0 - patch.shade[inner]) * (1.0 - alpha)
    own = as_field(level * np.clip(patch.light[inner] / np.float32(0.9), 0.0, 1.25))
    near += alpha * (own - near)
    if plan.type == "iia":
        rim = as_field(np.clip(1.0 - np.abs(height - 0.12) * 7.0, 0.0, 1.0))
        near *= as_field(1.0 + (0.05 if hard else 0.14) * rim * alpha)
    side = patch.height.shape[0]
    grain = noise(rng, (side, side), max(4, side // 6))[inner]
    colour = linear(SRGB[plan.colour])
    albedo = work.albedo[outer]
    target = colour * (1.0 + 0.07 * grain[..., None])
    if hard:
        target = FAINT * albedo + (1.0 - FAINT) * target
    albedo += alpha[..., None] * (target - albedo)
    work.wet[outer] *= 1.0 - (0.5 if hard else 1.0) * alpha


def _stalk(rng: np.random.Generator, work: PictureDraft, polyp: _Placed, way: tuple[float, float]) -> NDArray[np.bool_]:
    """Draw the stalk from a head along a unit vector to the wall, as normal mucosa, and return its mask."""
    centre, radius, (dx, dy) = polyp.centre, polyp.radius, way
    length = radius * float(rng.uniform(2.0, 2.4))
    thick = max(3.0, radius * float(rng.uniform(0.30, 0.38)))
    px = np.arange(WORK, dtype=np.float32)[None, :] + np.float32(0.5 - centre[0])
    py = np.arange(WORK, dtype=np.float32)[:, None] + np.float32(0.5 - centre[1])
    along = as_field(px * np.float32(dx) + py * np.float32(dy))
    bend = np.float32(float(rng.uniform(-0.12, 0.12)) / length)
    across = as_field(py * np.float32(dx) - px * np.float32(dy) + bend * along * along)
    flare = thick * (1.0 + 0.5 * smoothstep(along, 0.7 * length, 1.2 * length))
    q = across / flare
    inside = np.clip(1.0 - q * q, 0.0, 1.0)
    part = as_field((1.0 - smoothstep(along, 0.9 * length, 1.15 * length)) * (along > 0))
    alpha = as_field(smoothstep(as_field(inside), 0.0, 0.25) * part)
    shade = as_field(part * np.clip(1.7 - np.abs(q), 0.0, 1.0) * (1.0 - alpha))
    work.light *= 1.0 - 0.6 * shade
    work.paint(as_field(0.9 * alpha), (240.0, 178.0, 160.0))
    work.lift(alpha, as_field(0.45 + 0.63 * np.sqrt(inside)))
    return np.asarray(alpha > 0.5)


def _paint_removed_polyp(rng: np.random.Generator, work: PictureDraft, scene: QuestionScene) -> None:
    """Draw the site of a removed polyp: a pale floor with a burnt rim in a ring of blue dye."""
    x, y = (value + float(rng.uniform(-0.05, 0.05)) for value in middle(scene.removed_cell, 0.2))
    turn, stretch = unit(float(rng.random())), float(rng.uniform(1.0, 1.3))
    weights = ripples(rng, 5, 0.05)
    radius = float(rng.uniform(0.17, 0.22))
    floor = blob(work.where, x, y, radius, stretch=stretch, turn=turn, weights=weights)
    ragged = as_field(floor + 0.10 * noise(rng, (WORK, WORK), 26))
    dye = as_field(smoothstep(ragged, -0.75, -0.35) * (1.0 - smoothstep(ragged, -0.12, 0.02)))
    work.paint(as_field(0.8 * dye), (70.0, 110.0, 170.0))
    rim = as_field(np.clip(1.0 - np.abs(ragged - 0.04) * 9.0, 0.0, 1.0))
    work.paint(as_field(0.75 * rim), (150.0, 52.0, 40.0))
    pale = smoothstep(ragged, 0.08, 0.2)
    work.paint(as_field(0.9 * pale), (236.0, 222.0, 186.0))
    work.lift(as_field(0.8 * pale), as_field(0.85 + 0.08 * noise(rng, (WORK, WORK), 18)))
    work.things["removed"] = ragged > -0.6


# -------------------------------------------------------------------------------------------------------- diseases


def _colitis(rng: np.random.Generator, work: PictureDraft, scene: QuestionScene) -> None:
    """Draw colitis: the wall is red, swollen, granular and without vessels, with spots of yellow pus."""
    shape = (WORK, WORK)
    velvet = noise(rng, shape, 70)
    patchy = as_field(0.78 + 0.12 * noise(rng, shape, 9))
    work.paint(as_field(np.clip(patchy, 0.5, 0.95)), (186.0, 44.0, 42.0))
    work.light[...] = as_field(np.clip(0.35 + 0.6 * work.light, 0.35, 1.15) * (1.0 + 0.13 * velvet))
    for _ in range(int(rng.integers(16, 26))):
        x, y = (float(v) for v in rng.uniform(-0.9, 0.9, 2))
        size = float(rng.uniform(0.04, 0.095))
        spot = blob(work.where, x, y, size, stretch=float(rng.uniform(1.0, 1.8)), turn=unit(float(rng.random())))
        alpha = smoothstep(as_field(spot + 0.25 * noise(rng, shape, 40)), 0.05, 0.4)
        work.paint(as_field(0.9 * alpha), (236.0, 206.0, 104.0))
        work.lift(as_field(0.7 * alpha), 1.0)
    work.wet[...] = 0.0
    work.things["disease"] = np.ones(shape, np.bool_)


def _hemorrhoids(rng: np.random.Generator, work: PictureDraft, scene: QuestionScene) -> None:
    """Draw a group of touching bluish cushions, which count as one finding."""
    x, y = middle(scene.disease_cell, 0.15)
    start = float(rng.random())
    place = np.zeros((WORK, WORK), np.bool_)
    for k in range(3):
        dx, dy = unit(start + k / 3.0 + float(rng.uniform(-0.03, 0.03)))
        size = float(rng.uniform(0.19, 0.23))
        cushion = blob(
            work.where, x + 0.16 * dx, y + 0.16 * dy, size, stretch=1.15, turn=(dx, dy), weights=ripples(rng, 3, 0.03)
        )
        alpha = smoothstep(cushion, -0.03, 0.06)
        shadow = smoothstep(cushion, -0.5, 0.0) * (1.0 - alpha)
        work.light *= as_field(1.0 - 0.4 * shadow)
        work.paint(alpha, linear(SRGB["purple"]) * np.float32(float(rng.uniform(0.95, 1.1))))
        work.lift(alpha, as_field(0.5 + 0.62 * np.sqrt(np.clip(cushion, 0.0, 1.0))))
        place |= alpha > 0.5
    work.things["disease"] = place


def _oesophagitis(rng: np.random.Generator, work: PictureDraft, scene: QuestionScene) -> None:
    """Draw erosions: red streaks upwards from the z-line, with white slough along the middle."""
    distance, c, s, line = work.polar
    start = float(rng.random())
    count = int(rng.integers(4, 6))
    place = np.zeros((WORK, WORK), np.bool_)
    ragged = noise(rng, (WORK, WORK), 30)
    for k in range(count):
        dx, dy = unit(start + (k + float(rng.uniform(-0.15, 0.15))) / count)
        along = as_field(c * np.float32(dx) + s * np.float32(dy))
        across = as_field(np.abs(s * np.float32(dx) - c * np.float32(dy)) * distance)
        run = as_field(distance - line)
        length = float(rng.uniform(0.34, 0.5))
        ends = as_field(smoothstep(run, -0.08, 0.0) * (1.0 - smoothstep(run, length - 0.12, length)) * (along > 0))
        wide = float(rng.uniform(0.062, 0.085))
        red = as_field(ends * (1.0 - smoothstep(as_field(across + 0.014 * ragged), wide * 0.75, wide)))
        white = as_field(ends * (1.0 - smoothstep(as_field(across + 0.008 * ragged), 0.016, 0.028)))
        white = as_field(white * smoothstep(run, 0.03, 0.08))
        work.paint(as_field(0.95 * red), SRGB["red"])
        work.paint(as_field(0.95 * white), (244.0, 238.0, 226.0))
        work.lift(as_field(0.6 * red), 0.95)
        place |= red > 0.5
    work.things["disease"] = place


def _barretts(rng: np.random.Generator, work: PictureDraft, scene: QuestionScene) -> None:
    """Draw red lining grown upwards from the z-line: far and all round, or in short tongues."""
    distance, c, s, line = work.polar
    long = scene.disease == "barretts"
    jags = [(0.0, 0.0), *rng.normal(0.0, 0.09 if long else 0.1, (6, 2))]
    tongues = as_field(harmonics(c, s, jags) + 0.05 * noise(rng, (WORK, WORK), 16))
    upper = as_field(line + ((0.34 if long else 0.115) + (0.6 if long else 0.35) * tongues).clip(0.0, 0.6))
    grown = smoothstep(as_field(distance - line), 0.0, 0.02) * (
        1.0 - smoothstep(as_field(distance - upper), -0.01, 0.012)
    )
    velvet = noise(rng, (WORK, WORK), 60)
    work.paint(as_field((0.55 if scene.hard else 0.95) * grown), SRGB["red"])
    work.lift(as_field(0.5 * grown), as_field(0.9 + 0.08 * velvet))
    work.things["disease"] = as_field(grown) > 0.5


def lesion_of(work: PictureDraft) -> Field:
    """Return the area of findings and of the site of a removed polyp, float32 h×w, 0 or 1."""
    names = [name for name in work.things if name.startswith("polyp ") or name in ("disease", "removed")]
    total = np.zeros((WORK, WORK), np.bool_)
    for name in names:
        total |= work.things[name]
    return as_field(total)
