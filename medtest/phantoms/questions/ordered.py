"""Pictures of colonoscopy and gastroscopy with findings that are asked for, for products that draw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from medtest.phantoms.drawing import portable_opencv
from medtest.phantoms.questions.generator import SIZE, QuestionPhantom, render
from medtest.phantoms.questions.plan import (
    CELLS,
    COLOURS,
    DISEASES,
    LANDMARK_COLOURS,
    SIZES,
    TYPES,
    InstrumentPlan,
    PolypPlan,
    QuestionScene,
    beside,
)

MOST_POLYPS, MOST_TOOLS = 4, 2
REGION = {"ulcerative colitis": "colon", "hemorrhoids": "colon", **dict.fromkeys(tuple(DISEASES)[2:], "oesophagus")}
"""Region of each disease."""
_CORNERS = ("upper-left", "lower-right", "upper-right", "lower-left")


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedPolyp:
    """Polyp to draw: diameter (None for a drawn one), colour and Paris type in small letters ("" for drawn ones)."""

    millimetres: float | None = None
    colour: str = ""
    type: str = ""


def draw_endoscopy(
    part: Callable[[str], np.random.Generator],
    *,
    region: str = "colon",
    polyps: Sequence[OrderedPolyp] = (),
    disease: str = "",
    tools: Sequence[str] = (),
    size: int = SIZE,
) -> QuestionPhantom:
    """Draw one picture. It is a drawing for tests and no clinical evidence.

    Args:
        part: Returns the random stream of a part of the picture.
        region: One of :data:`~medtest.phantoms.questions.plan.REGIONS`; a disease decides it otherwise.
        polyps: At most :data:`MOST_POLYPS`; they are not drawn beside a disease.
        disease: One of :data:`~medtest.phantoms.questions.plan.DISEASES`, or "".
        tools: At most :data:`MOST_TOOLS` instruments.
        size: Pixels a side, 128 to 1024.
    """
    rng = part("plan")
    region = REGION.get(disease, region)
    colours = LANDMARK_COLOURS.get(region, ())
    colour = colours[int(rng.integers(len(colours)))] if colours else ""
    if disease and colour:
        colour = "pink"  # lining grown over a z-line is red, so the line is not
    planned = [_planned(rng, polyp) for polyp in polyps[:MOST_POLYPS]] if not disease else []
    cells = [cell for cell in CELLS if not colour or cell != "center"]
    free = [cells[int(at)] for at in rng.permutation(len(cells))]
    placed: list[PolypPlan] = []
    for polyp in sorted(planned, key=lambda polyp: -polyp.millimetres):
        cell = _cell(free, several=len(planned) > 1)
        large = polyp.millimetres > 10.0
        free = [other for other in free if other not in (beside(cell) if large and len(planned) == 1 else {cell})]
        placed.append(replace(polyp, cell=cell))
    free = free or list(_CORNERS)
    instruments = tuple(
        InstrumentPlan(kind=kind, cell=free[number % len(free)]) for number, kind in enumerate(tools[:MOST_TOOLS])
    )
    scene = QuestionScene(
        region=region,
        polyps=tuple(placed),
        disease=disease,
        disease_cell=_cell(free, several=False),
        instruments=instruments,
        landmark_colour=colour,
    )
    with portable_opencv():
        return render(part, size, scene)


def _planned(rng: np.random.Generator, polyp: OrderedPolyp) -> PolypPlan:
    """Return a polyp's plan, drawing what is not asked for; without a size it is small."""
    millimetres = polyp.millimetres or float(rng.uniform(*SIZES["5-10mm"]))
    drawn = (COLOURS[int(rng.integers(len(COLOURS)))], TYPES[int(rng.integers(len(TYPES)))])
    name = next(name for name, (_, high) in SIZES.items() if millimetres <= high + 1.0 or name == ">20mm")
    return PolypPlan(
        size=name,
        colour=polyp.colour or drawn[0],
        type=polyp.type or drawn[1],
        cell="center",
        millimetres=min(millimetres, SIZES[">20mm"][1]),
    )


def _cell(free: Sequence[str], *, several: bool) -> str:
    """Return the first free cell, of several polyps in a corner, where there is most room between them."""
    return next((cell for cell in free if not several or cell in _CORNERS), free[0] if free else "center")
