"""Walls and landmarks: colon, cecum, ileum, stomach, pylorus, oesophagus with its z-line."""

from __future__ import annotations

import numpy as np

from medtest.phantoms.capsule.lesions import villi
from medtest.phantoms.colon.tissue import make_tissue
from medtest.phantoms.drawing import Canvas, blob, curve, noise, plane, soften, unit
from medtest.phantoms.fields import Field, as_field, direction, ellipse_radius, harmonics, smoothstep
from medtest.phantoms.questions.canvas import SRGB, WORK, PictureDraft, linear
from medtest.phantoms.questions.plan import QuestionScene, middle

WALLS: dict[str, tuple[tuple[int, int, int], ...]] = {
    "colon": ((206, 124, 98), (198, 116, 96), (210, 132, 104)),
    "cecum": ((204, 126, 98), (208, 130, 106)),
    "ileum": ((212, 150, 108), (206, 140, 106)),
    "stomach": ((204, 104, 70), (196, 96, 68)),
    "pylorus": ((208, 112, 78), (202, 104, 76)),
    "oesophagus": ((222, 168, 150), (216, 160, 146)),
}
"""8-bit wall colours of each region."""

_DEEP = (60.0, 18.0, 12.0)
"""Colour deep in a lumen or an opening."""


def make_wall(rng: np.random.Generator, scene: QuestionScene) -> PictureDraft:
    """Return the wall of a scene's region, with its landmark."""
    choices = WALLS[scene.region]
    base = linear(tuple(float(v) for v in choices[int(rng.integers(len(choices)))]))  # type: ignore[arg-type]
    shape = (WORK, WORK)
    tint = as_field(0.05 * noise(rng, shape, 5) + 0.04 * noise(rng, shape, 13) + 0.03 * noise(rng, shape, 40))
    albedo = np.empty((*shape, 3), np.float32)
    for channel, amount in enumerate((0.3, -1.0, -0.9)):
        albedo[..., channel] = base[channel] * (1.0 + np.float32(amount) * tint)
    work = PictureDraft(albedo=as_field(albedo), light=np.ones(shape, np.float32))
    {
        "colon": _colon,
        "cecum": _cecum,
        "ileum": _ileum,
        "stomach": _stomach,
        "pylorus": _pylorus,
        "oesophagus": _oesophagus,
    }[scene.region](rng, work, scene)
    return work


def _tissue_light(rng: np.random.Generator, *, lumen: bool | None = None) -> Field:
    """Return the light on the colon's folds, with median 1 and nowhere over-exposed."""
    grid = plane(WORK)
    for _ in range(12):
        tissue = make_tissue(rng, grid)
        if lumen is None or (tissue.view == "lumen") == lumen:
            break
    light = as_field(tissue.light * np.float32(1.0 / max(1e-3, float(np.median(tissue.light)))))
    light = as_field(0.1 * light + 0.9 * light * np.sqrt(np.maximum(light, 0.0)))
    return as_field(np.clip(light, 0.04, 1.6))


def _falloff(work: PictureDraft, x: float, y: float, amount: float) -> Field:
    square = (work.where.x - np.float32(x)) ** 2 + (work.where.y - np.float32(y)) ** 2
    return as_field(1.0 / (1.0 + np.float32(amount) * square))


def _colon(rng: np.random.Generator, work: PictureDraft, scene: QuestionScene) -> None:
    work.light[...] = _tissue_light(rng)
    if scene.disease == "hemorrhoids":
        work.light[...] = as_field(0.6 + 0.4 * work.light)


def _cecum(rng: np.random.Generator, work: PictureDraft, scene: QuestionScene) -> None:
    """Draw three converging folds and, beside them, the crescent of the appendix' opening."""
    slow = noise(rng, (WORK, WORK), 4)
    work.light[...] = as_field((1.08 + 0.10 * slow) * _falloff(work, *middle(scene.landmark_cell), 0.25))
    x, y = middle(scene.landmark_cell, 0.28)
    x, y = x + float(rng.uniform(-0.04, 0.04)), y + float(rng.uniform(-0.04, 0.04))
    start = float(rng.random())
    folds = Canvas(WORK)
    for k in range(3):
        dx, dy = unit(start + k / 3.0 + float(rng.uniform(-0.03, 0.03)))
        bend = float(rng.uniform(-0.25, 0.25))
        points = [(x + t * dx - bend * t * t * dy, y + t * dy + bend * t * t * dx) for t in (0.16, 0.5, 0.9, 1.5)]
        folds.line(curve(points), 0.13)
    ridge = soften(folds.field(), 0.10, WORK)
    shadow = np.roll(ridge, (5, 4), (0, 1))
    work.light *= as_field((1.0 + 0.45 * ridge) * (1.0 - 0.40 * np.clip(shadow - ridge, 0.0, 1.0)))
    rim = smoothstep(blob(work.where, x, y, 0.29, stretch=1.15, turn=unit(start)), 0.0, 0.35)
    work.paint(as_field(0.92 * rim), SRGB[scene.landmark_colour])
    turn = unit(start + 0.1)
    hole = blob(work.where, x, y, 0.135, stretch=1.5, turn=turn)
    lid = blob(work.where, x - 0.075 * turn[1], y + 0.075 * turn[0], 0.12, stretch=1.5, turn=turn)
    slit = as_field(smoothstep(hole, -0.06, 0.12) * (1.0 - smoothstep(lid, -0.06, 0.12)))
    ring = as_field(smoothstep(hole, -0.55, -0.2) * (1.0 - smoothstep(hole, -0.1, 0.1)))
    work.light *= as_field(1.0 + 0.25 * ring)
    work.paint(slit, _DEEP)
    work.lift(slit, 0.12)
    work.things["landmark"] = rim > 0.4


def _ileum(rng: np.random.Generator, work: PictureDraft, scene: QuestionScene) -> None:
    """Draw the velvet of villi and a few lymph follicles; the ileum fills the picture and has no haustra."""
    velvet, relief = villi(rng, (WORK, WORK), WORK / 320.0)
    slow = noise(rng, (WORK, WORK), 5)
    lx, ly = direction(rng)
    patchy = as_field(np.clip(0.34 + 0.10 * slow, 0.2, 0.5))
    work.paint(patchy, SRGB[scene.landmark_colour])
    work.wet[...] = 1.0
    light = _tissue_light(rng, lumen=False)
    work.light[...] = as_field((0.45 + 0.6 * light) * (1.0 + 0.08 * slow) * _falloff(work, 0.3 * lx, 0.3 * ly, 0.35))
    for _ in range(int(rng.integers(14, 26))):
        x, y = (float(v) for v in rng.uniform(-0.95, 0.95, 2))
        size = float(rng.uniform(0.03, 0.055))
        dome = np.sqrt(np.clip(blob(work.where, x, y, size), 0.0, 1.0))
        side = np.clip(blob(work.where, x + 0.6 * size, y + 0.6 * size, size), 0.0, 1.0)
        work.light *= as_field(1.0 + 0.30 * dome - 0.22 * side * (dome < 0.05))
    work.light *= as_field(1.0 + 0.10 * velvet + 0.13 * relief)
    work.things["landmark"] = np.ones((WORK, WORK), np.bool_)


def _stomach(rng: np.random.Generator, work: PictureDraft, scene: QuestionScene) -> None:
    """Draw the winding folds of the body."""
    cosine, sine = direction(rng)
    across = as_field(work.where.x * np.float32(cosine) + work.where.y * np.float32(sine))
    lane = as_field(across * float(rng.uniform(2.6, 3.4)) + 0.55 * noise(rng, (WORK, WORK), 5) + 0.12 * across**2)
    part = as_field(lane - np.floor(lane))
    crest = as_field(1.0 - np.abs(2.0 * part - 1.0))
    ridge = smoothstep(crest, 0.05, 0.75)
    valley = 1.0 - smoothstep(crest, 0.0, 0.25)
    lx, ly = direction(rng)
    light = (0.72 + 0.42 * ridge) * (1.0 - 0.5 * valley) * _falloff(work, 0.3 * lx, 0.3 * ly, 0.3)
    work.light[...] = as_field(np.clip(1.12 * light, 0.1, 1.5))


def _pylorus(rng: np.random.Generator, work: PictureDraft, scene: QuestionScene) -> None:
    """Draw the smooth antrum around a round dark opening with its ring."""
    x, y = middle(scene.landmark_cell, 0.22)
    radius = float(rng.uniform(0.115, 0.145))
    turn = unit(float(rng.random()))
    stretch = float(rng.uniform(1.0, 1.12))
    distance, c, s = ellipse_radius(work.where.x, work.where.y, (x, y), turn=turn, stretch=stretch)
    distance = as_field(distance * (1.0 + harmonics(c, s, rng.normal(0.0, 0.025, (4, 2)))))
    wide = as_field(distance / np.float32(radius))
    slow = noise(rng, (WORK, WORK), 5)
    work.light[...] = as_field(0.86 + 0.07 * slow + 0.16 * smoothstep(distance, 0.3, 1.3))
    spokes = harmonics(c, s, [(0.0, 0.0)] * 4 + [(0.08, 0.05)])
    work.light *= as_field(1.0 + spokes * smoothstep(distance, 0.3, 0.8))
    ring = as_field(smoothstep(wide, 0.9, 1.25) * (1.0 - smoothstep(wide, 1.6, 2.4)))
    work.light *= as_field(1.0 + 0.4 * ring - 0.3 * smoothstep(wide, 2.1, 2.4) * (1.0 - smoothstep(wide, 2.4, 3.1)))
    body = 1.0 - smoothstep(wide, 1.9, 2.5)
    work.paint(as_field(0.85 * body), SRGB[scene.landmark_colour])
    hole = 1.0 - smoothstep(wide, 0.85, 1.05)
    work.paint(as_field(hole), _DEEP)
    work.lift(as_field(hole), as_field(0.06 + 0.25 * np.clip(wide, 0.0, 1.0) ** 2))
    work.things["landmark"] = body > 0.5


def tube(rng: np.random.Generator, work: PictureDraft) -> tuple[Field, Field, Field]:
    """Return distance from the oesophagus' lumen and its unit direction, and light the wall, in place."""
    x, y = (float(v) for v in rng.uniform(-0.07, 0.07, 2))
    turn = unit(float(rng.random()))
    stretch = float(rng.uniform(1.0, 1.1))
    distance, c, s = ellipse_radius(work.where.x, work.where.y, (x, y), turn=turn, stretch=stretch)
    slow = noise(rng, (WORK, WORK), 5)
    light = (0.42 + 0.62 * smoothstep(distance, 0.1, 0.75) + 0.06 * slow) * (1.0 - 0.2 * smoothstep(distance, 0.9, 1.5))
    folds = harmonics(c, s, [(0.0, 0.0)] * 3 + [(0.05, 0.03), (0.0, 0.0), (0.03, 0.04)])
    work.light[...] = as_field(np.clip(light * (1.0 + folds), 0.08, 1.4))
    return distance, c, s


def _oesophagus(rng: np.random.Generator, work: PictureDraft, scene: QuestionScene) -> None:
    """Draw a pale tube whose lining changes at a jagged line around the lumen."""
    distance, c, s = tube(rng, work)
    jags = harmonics(c, s, rng.normal(0.0, 0.03, (10, 2)))
    line = as_field(np.float32(float(rng.uniform(0.46, 0.52))) * (1.0 + jags))
    line = as_field(line + 0.02 * noise(rng, (WORK, WORK), 22))
    inner = 1.0 - smoothstep(as_field(distance - line), -0.012, 0.012)
    work.paint(as_field(inner * 0.95), SRGB[scene.landmark_colour])
    edge = as_field(np.clip(1.0 - np.abs(distance - line) * 28.0, 0.0, 1.0))
    work.light *= as_field(1.0 + 0.16 * edge)
    work.polar = (distance, c, s, line)
    work.things["landmark"] = (inner > 0.5) & (distance > 0.2)
    lumen = 1.0 - smoothstep(distance, 0.12, 0.24)
    work.paint(as_field(lumen), _DEEP)
    work.lift(as_field(lumen), 0.10)
