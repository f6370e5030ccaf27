"""ABCD rule of dermoscopy, and signs drawn to satisfy it.

F. Nachbar et al., "The ABCD rule of dermatoscopy", J Am Acad Dermatol 1994;30:551–559: the total dermatoscopy score is
1.3 A + 0.1 B + 0.5 C + 0.5 D with asymmetry in 0, 1 or 2 axes, 0–8 of 8 segments with an abrupt border, 1–6 of six
colours and 1–5 of five structures. Below 4.75 a melanocytic lesion is benign, from 4.75 to 5.45 suspicious, above 5.45
likely a melanoma. No lesion of the suspicious range is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

COLOURS: tuple[str, ...] = ("light_brown", "dark_brown", "black", "red", "blue_grey", "white")
STRUCTURES: tuple[str, ...] = ("network", "structureless", "streaks", "dots", "globules")
BENIGN_BELOW, MELANOMA_ABOVE = 4.75, 5.45


@dataclass(frozen=True, kw_only=True)
class Signs:
    """Signs counted by the rule.

    Attributes:
        asymmetry: Axes without symmetry, 0 to 2.
        border: Whether each of eight segments has an abrupt border.
        colours: Some of :data:`COLOURS`, in its order, at least one.
        structures: Some of :data:`STRUCTURES`, in its order, at least one.
    """

    asymmetry: int
    border: tuple[bool, ...]
    colours: tuple[str, ...]
    structures: tuple[str, ...]

    @property
    def score(self) -> float:
        """The total dermatoscopy score."""
        return total_score(self.asymmetry, sum(self.border), len(self.colours), len(self.structures))


def total_score(asymmetry: int, border: int, colours: int, structures: int) -> float:
    """Return the total dermatoscopy score, 1.0 to 8.9."""
    return round(1.3 * asymmetry + 0.1 * border + 0.5 * colours + 0.5 * structures, 1)


ASYMMETRY: dict[str, tuple[float, float, float]] = {"benign": (0.64, 0.32, 0.04), "melanoma": (0.0, 0.12, 0.88)}
COLOUR_COUNT: dict[str, tuple[float, ...]] = {
    "benign": (0.38, 0.42, 0.17, 0.03, 0.0, 0.0),
    "melanoma": (0.0, 0.0, 0.16, 0.36, 0.32, 0.16),
}
STRUCTURE_COUNT: dict[str, tuple[float, ...]] = {
    "benign": (0.28, 0.44, 0.24, 0.04, 0.0), "melanoma": (0.0, 0.06, 0.28, 0.4, 0.26),
}  # fmt: skip
ABRUPT: dict[str, float] = {"benign": 0.2, "melanoma": 0.65}
"""Probability of each value, before lesions on the wrong side of the rule are redrawn."""
COLOUR_WEIGHTS = (0.34, 0.3, 0.12, 0.1, 0.08, 0.06)


def draw_signs(rng: np.random.Generator, label: str) -> Signs:
    """Draw signs whose score fits a class."""
    while True:
        asymmetry = int(rng.choice(3, p=ASYMMETRY[label]))
        border = tuple(bool(v) for v in rng.random(8) < ABRUPT[label])
        colours = 1 + int(rng.choice(6, p=COLOUR_COUNT[label]))
        structures = 1 + int(rng.choice(5, p=STRUCTURE_COUNT[label]))
        score = total_score(asymmetry, sum(border), colours, structures)
        if score < BENIGN_BELOW if label == "benign" else score > MELANOMA_ABOVE:
            break
    # Brown comes first, because a lesion of one or two colours is rarely anything else.
    which = rng.choice(6, size=colours, replace=False, p=COLOUR_WEIGHTS)
    shown = rng.choice(5, size=structures, replace=False)
    return Signs(
        asymmetry=asymmetry,
        border=border,
        colours=tuple(COLOURS[i] for i in sorted(int(v) for v in which)),
        structures=tuple(STRUCTURES[i] for i in sorted(int(v) for v in shown)),
    )
