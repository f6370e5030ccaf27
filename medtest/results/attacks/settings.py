"""Attack settings of records: a relation at a severity, what it is by its role, and its cases.

Records tell the role. ``crafted_on`` names the system on which follow-ups were crafted: the system under test itself
(white box, where gradients were looked at; black box, where none were), or another one (transfer). Follow-ups that
were crafted on nothing are uniform noise, which is every attack's floor, or natural.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import UNCHANGED
from medtest.results.cube.axes import Axes
from medtest.results.records.records_io import Records

Integers: TypeAlias = NDArray[np.int64]

CRAFTED_ON = "crafted_on"
"""The column that records have where any relation needs a system."""
WHITE, BLACK, GENERATOR, TRANSFER = "white box", "black box", "generator", "transfer"
NOISE, NATURAL, FLOOR = "uniform noise", "natural", "unchanged"
CRAFTED = (WHITE, BLACK, GENERATOR, TRANSFER)
STRONGEST = "strongest"
_OF_PARTS = {"uniform_noise": NOISE, "gap": GENERATOR, STRONGEST: WHITE}
"""Relations whose columns alone do not tell the role."""
L_INF = "linf"
_FAMILY = {"norm": L_INF, "where": "field", "loss": None, "best": False, "restarts": 1, "variant": "paper"}
"""Parameters that comparisons over ε and steps hold equal, each with what it is where a case does not say."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Setting:
    """One relation at one severity.

    Attributes:
        relation: Its id in the suite.
        severity: The severity.
        part: Name of the relation's part.
        role: One of this module's roles.
        crafted_on: On which system it was crafted; "" on none.
        epsilon: ε, the records' ``scale``; NaN of natural relations.
        params: What was drawn for its first case.
        rows: Places of its follow-ups among all.
    """

    relation: str
    severity: int
    part: str
    role: str
    crafted_on: str
    epsilon: float
    params: Mapping[str, Any]
    rows: Integers

    @property
    def crafted(self) -> bool:
        """Whether its follow-ups were crafted on a system."""
        return self.role in CRAFTED

    @property
    def steps(self) -> int | None:
        """Steps of gradient descent; None where it has none."""
        found = self.params.get("steps", 1 if self.part == "fgsm" else None)
        return int(found) if isinstance(found, int | float) else None

    @property
    def step(self) -> float | None:
        """Length of a step, in levels of 255; None where it has none."""
        found = self.params.get("step")
        return float(found) if isinstance(found, int | float) else None

    @property
    def norm(self) -> str:
        """``linf`` or ``l2``; "" of natural relations."""
        return str(self.params.get("norm") or L_INF) if self.crafted or self.role == NOISE else ""

    @property
    def targeted(self) -> bool:
        """Whether it leads towards an answer."""
        return bool(self.params.get("target"))

    @property
    def family(self) -> tuple[Any, ...]:
        """What comparisons over ε and steps hold equal."""
        told = tuple(json.dumps(self.params.get(name, usual), default=str) for name, usual in _FAMILY.items())
        part = "pgd" if self.part == "fgsm" else self.part
        return (part, self.role, self.crafted_on, self.targeted, *told)

    @property
    def words(self) -> str:
        """Relation, ε and steps, in words."""
        unit = " (L2)" if self.norm == "l2" else ""
        steps = "" if self.steps is None else f", {self.steps} step{'' if self.steps == 1 else 's'}"
        return f"{self.relation} at ε = {self.epsilon:g}/255{unit}{steps}"

    def inside(self, place: Axes, dataset: int) -> Integers:
        """Return the places of its follow-ups on a data set."""
        return np.asarray(self.rows[place.dataset[self.rows] == dataset], np.int64)


def has_attacks(records: Records) -> bool:
    """Say whether these are records of a suite with relations that need a system."""
    return CRAFTED_ON in records.followups.columns


def settings_of(records: Records, place: Axes, relations: Mapping[str, str]) -> tuple[Setting, ...]:
    """Return the settings of records, in the order of their axes.

    Args:
        records: Records of one system, with follow-ups.
        place: Their axes.
        relations: Relation ids with the name of their part.
    """
    system = str(records.followups["system"].iloc[0])
    crafters = records.texts(CRAFTED_ON) if has_attacks(records) else np.full(len(records.followups), "", object)
    gradients, scale = ~np.isnan(records.floats("zero_gradient")), records.floats("scale")
    params = records.texts("params") if "params" in records.followups.columns else None
    found = []
    for number, name in enumerate(place.relations):
        own = np.flatnonzero(place.relation == number)
        crafter = next((str(one) for one in crafters[own] if one), "")
        part = relations.get(name, name)
        role = _role(name, part, crafter, system, gradients=bool(gradients[own].any()))
        for level, severity in enumerate(place.severities):
            rows = own[place.severity[own] == level]
            if rows.size:
                known = scale[rows][~np.isnan(scale[rows])]
                found.append(
                    Setting(
                        relation=name,
                        severity=severity,
                        part=part,
                        role=role,
                        crafted_on=crafter,
                        epsilon=float(np.median(known)) if known.size and role != NATURAL else float("nan"),
                        params=_first(params, rows),
                        rows=rows.astype(np.int64),
                    )
                )
    return tuple(found)


def _role(name: str, part: str, crafter: str, system: str, *, gradients: bool) -> str:
    if name == UNCHANGED:
        return FLOOR
    if not crafter:
        return _OF_PARTS[part] if _OF_PARTS.get(part) == NOISE else NATURAL
    if crafter != system:
        return TRANSFER
    return _OF_PARTS.get(part, WHITE if gradients else BLACK)


def _first(params: NDArray[np.object_] | None, rows: Sequence[int] | Integers) -> Mapping[str, Any]:
    """Return the parameters of the first case that has some."""
    for row in rows if params is not None else ():
        try:
            found = json.loads(params[row] or "{}") if params is not None else {}
        except ValueError:
            continue
        if isinstance(found, dict) and found:
            return found
    return {}
