"""The patient's sides of findings in chest phantoms.

Sides are the patient's: image right is the patient's left. Cardiomegaly and hernia are in the midline; edema, emphysema
and fibrosis are drawn in both lungs; patches of infiltration have no recorded side.
"""

from __future__ import annotations

from typing import Any, Final

from medtest.core.cases import Classes
from medtest.phantoms.classes import CHEST

SIDED: Final = (
    "atelectasis",
    "effusion",
    "mass",
    "nodule",
    "pneumonia",
    "pneumothorax",
    "consolidation",
    "pleural_thickening",
)
"""Findings whose side a phantom states, in class order."""
UNSIDED: Final = tuple(name for name in CHEST.names if name not in SIDED)
"""The other findings, in class order."""
SIDES: Final = ("left", "right")
CHEST_SIDES: Final = Classes(names=(*UNSIDED, *(f"{side} {name}" for name in SIDED for side in SIDES)), multi=True)
"""Classes of findings by side: findings without a side, then the others on the patient's left and right."""


def sides_of(facts: dict[str, Any]) -> dict[str, frozenset[str]]:
    """Return the sides on which a phantom shows each of :data:`SIDED`; findings that it does not show are left out.

    Args:
        facts: Facts of a phantom (:func:`medtest.phantoms.chest.make`).
    """
    sides: dict[str, set[str]] = {}
    for opacity in facts["round_opacities"]:
        name = "nodule" if opacity["diameter_mm"] <= 30.0 else "mass"
        sides.setdefault(name, set()).add(opacity["side"])
    for name in SIDED:
        if name in facts["traces"]:
            side = facts["traces"][name]["side"]
            sides[name] = set(SIDES) if side == "both" else {side}
    return {name: frozenset(its) for name, its in sides.items()}
