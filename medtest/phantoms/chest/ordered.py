"""Radiographs with findings that are asked for, for products that draw; every other part is drawn at random."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from medtest.phantoms.chest.anatomy import Build, Chest, draw_build
from medtest.phantoms.chest.findings import Drawn, add_opacity, draw_findings, nothing_drawn
from medtest.phantoms.chest.generator import SIZE, render
from medtest.phantoms.chest.plan import Planned, apply_plan
from medtest.phantoms.drawing import portable_opencv
from medtest.phantoms.labelled import LabelledPhantom

ROUND = {"nodule": 22.0, "mass": 45.0}
"""Round opacities, with the diameter in millimetres if none is asked for."""
LARGEST = 180.0
"""Largest diameter in millimetres that fits into a lung."""
_SIDES = {"left": 1, "right": -1}
_STRENGTH = (0.6, 0.95)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilmFinding:
    """Finding to draw.

    Attributes:
        name: One of the fourteen findings.
        side: The patient's ``left`` or ``right``, ``bilateral``, or "" for a drawn one.
        millimetres: Diameter of a round opacity, at most :data:`LARGEST`; None for the default.
    """

    name: str
    side: str = ""
    millimetres: float | None = None


def draw_film(
    part: Callable[[str], np.random.Generator],
    findings: Sequence[FilmFinding],
    *,
    size: int = SIZE,
    portable: bool | None = None,
) -> LabelledPhantom:
    """Draw one radiograph. It is a drawing for tests and no clinical evidence.

    Args:
        part: Returns the random stream of a part of the picture.
        findings: What it shows; several round opacities of one name are several findings.
        size: Pixels a side, 128 to 1024.
        portable: Whether it looks like a film taken in bed; None draws it.
    """
    sides = part("sides")
    sided = [
        finding if finding.side else replace(finding, side="left" if sides.random() < 0.5 else "right")
        for finding in findings
    ]
    plans = [_plan(part("strengths"), sided, side) for side in ("right", "left")]
    build = draw_build(part("patient"))
    for number, plan in enumerate(plans):
        build = apply_plan(part(f"build {number}" if number else "build"), build, plan)
    if portable is not None:
        build = replace(build, portable=portable)
    with portable_opencv():
        return render(part, size, _without_cardiomegaly(build, sided), lambda chest: _draw(part, chest, plans, sided))


def _plan(rng: np.random.Generator, findings: Sequence[FilmFinding], side: str) -> dict[str, Planned]:
    """Return the plan of the findings on one side; those without a side of their own are on the first."""
    planned: dict[str, Planned] = {}
    for finding in findings:
        strength = float(rng.uniform(*_STRENGTH))
        is_on_side = finding.side == side or (
            finding.side == "bilateral" and (side == "right" or finding.name in _DOUBLED)
        )
        if finding.name in ROUND or not is_on_side:
            continue
        both = finding.side == "bilateral" and finding.name not in _DOUBLED
        planned[finding.name] = Planned(name=finding.name, side=_SIDES[side], both=both, strength=strength)
    return planned


_DOUBLED = ("atelectasis", "pneumonia", "pneumothorax", "consolidation")
"""Findings on one side that are drawn twice to be on both."""


def _without_cardiomegaly(build: Build, findings: Sequence[FilmFinding]) -> Build:
    """Return the build with a heart below half the thorax unless cardiomegaly is asked for."""
    if any(finding.name == "cardiomegaly" for finding in findings):
        return replace(build, heart=max(build.heart, 0.53))
    return replace(build, heart=min(build.heart, 0.49))


def _draw(
    part: Callable[[str], np.random.Generator],
    chest: Chest,
    plans: Sequence[dict[str, Planned]],
    findings: Sequence[FilmFinding],
) -> Drawn:
    drawn = nothing_drawn(chest)
    for plan, side in zip(plans, ("right", "left"), strict=True):
        before = dict(drawn.traces)
        draw_findings(lambda name, side=side: part(f"{name} {side}"), chest, plan, drawn)  # type: ignore[misc]
        for name in plan.keys() & before.keys():
            drawn.traces[name] = {**drawn.traces[name], "side": "both"}  # type: ignore[dict-item]
    for number, finding in enumerate(findings):
        if finding.name in ROUND:
            millimetres = min(finding.millimetres or ROUND[finding.name], LARGEST)
            for half in (-1, 1) if finding.side == "bilateral" else (_SIDES[finding.side],):
                add_opacity(part(f"opacity {number} {half}"), chest, half, millimetres, drawn)
    return drawn
