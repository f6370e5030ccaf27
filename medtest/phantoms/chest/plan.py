"""Findings of a radiograph, and their effects on the patient's build."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from medtest.phantoms.chest.anatomy import Build, raise_dome


@dataclass(frozen=True, kw_only=True)
class Planned:
    """Planned finding.

    Attributes:
        name: The finding.
        side: -1 or 1 if it has a side.
        both: Whether it is on both sides, for findings that can be.
        strength: Visibility, 0 (hardly visible) to 1.
    """

    name: str
    side: int
    both: bool
    strength: float


def plan_findings(rng: np.random.Generator, prevalence: dict[str, float]) -> dict[str, Planned]:
    """Draw the findings; each takes four numbers from the stream whether present or not."""
    findings: dict[str, Planned] = {}
    for name, share in prevalence.items():
        chance, side, both, strength = (float(v) for v in rng.random(4))
        if chance < share:
            findings[name] = Planned(name=name, side=-1 if side < 0.5 else 1, both=both < 0.3, strength=strength)
    return findings


def apply_plan(rng: np.random.Generator, build: Build, plan: dict[str, Planned]) -> Build:
    """Return the patient's build changed by the findings."""
    ratio, lift = (float(v) for v in rng.random(2))
    if "emphysema" in plan:
        much = 0.35 + 0.65 * plan["emphysema"].strength
        right, left = build.dome
        build = replace(
            build,
            dome=(right + 0.09 * much, left + 0.08 * much),
            flat=min(1.0, build.flat + 0.9 * much),
            heart=build.heart - 0.06 * much,
            lucency=build.lucency + 0.07 * much,
            markings=build.markings * (1.0 - 0.55 * much),
        )
    if "fibrosis" in plan:
        by = 0.02 + 0.03 * plan["fibrosis"].strength
        build = replace(build, dome=(build.dome[0] - by, build.dome[1] - by))
    if "atelectasis" in plan:
        planned = plan["atelectasis"]
        build = raise_dome(build, planned.side, 0.03 + 0.06 * planned.strength * (0.5 + 0.5 * lift))
        build = replace(build, lean=build.lean + planned.side * (0.012 + 0.03 * planned.strength))
    if "edema" in plan:
        build = replace(build, markings=build.markings * 1.12)
    if "cardiomegaly" in plan:
        build = replace(build, heart=0.505 + 0.12 * ratio)
    return build
