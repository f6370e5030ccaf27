"""Attack settings of records: a relation at a severity, its role and its cases.

The role follows from the records. ``crafted_on`` names the system on which follow-ups were crafted: the system under
test (white box if gradients were used, black box if not) or another one (transfer). Follow-ups that were not crafted on
a system are uniform noise, the baseline of every attack, or natural.
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
"""Column of records that is present if any relation needs a system."""
WHITE, BLACK, GENERATOR, TRANSFER = "white box", "black box", "generator", "transfer"
NOISE, NATURAL, FLOOR = "uniform noise", "natural", "unchanged"
CRAFTED = (WHITE, BLACK, GENERATOR, TRANSFER)
STRONGEST = "strongest"
_OF_PARTS = {"uniform_noise": NOISE, "gap": GENERATOR, STRONGEST: WHITE}
"""Roles of parts that cannot be derived from columns alone."""
L_INF = "linf"
_FAMILY = {"norm": L_INF, "where": "field", "loss": None, "best": False, "restarts": 1, "variant": "paper"}
"""Parameters held equal when ε or steps are compared, each with its default."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Setting:
    """One relation at one severity.

    Attributes:
        relation: Id of the relation in the suite.
        severity: Severity.
        part: Name of the relation's part.
        role: One of this module's roles.
        crafted_on: System on which the follow-ups were crafted; "" if none.
        epsilon: ε, the ``scale`` of the records; NaN for natural relations.
        params: Parameters drawn for the first case.
        rows: Indices of its follow-ups.
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
        """True if the follow-ups were crafted on a system."""
        return self.role in CRAFTED

    @property
    def steps(self) -> int | None:
        """Number of gradient steps; None if there are none."""
        steps = self.params.get("steps", 1 if self.part == "fgsm" else None)
        return int(steps) if isinstance(steps, int | float) else None

    @property
    def step(self) -> float | None:
        """Length of a step, in levels of 255; None if there is none."""
        step = self.params.get("step")
        return float(step) if isinstance(step, int | float) else None

    @property
    def norm(self) -> str:
        """``linf`` or ``l2``; "" for natural relations."""
        return str(self.params.get("norm") or L_INF) if self.crafted or self.role == NOISE else ""

    @property
    def targeted(self) -> bool:
        """True if the attack aims at a target answer."""
        return bool(self.params.get("target"))

    @property
    def family(self) -> tuple[Any, ...]:
        """Parameters held equal when ε or steps are compared."""
        options = tuple(json.dumps(self.params.get(name, usual), default=str) for name, usual in _FAMILY.items())
        part = "pgd" if self.part == "fgsm" else self.part
        return (part, self.role, self.crafted_on, self.targeted, *options)

    @property
    def words(self) -> str:
        """Relation, ε and steps as text."""
        unit = " (L2)" if self.norm == "l2" else ""
        steps = "" if self.steps is None else f", {self.steps} step{'' if self.steps == 1 else 's'}"
        return f"{self.relation} at ε = {self.epsilon:g}/255{unit}{steps}"

    def inside(self, place: Axes, dataset: int) -> Integers:
        """Return the indices of the setting's follow-ups in a data set."""
        return np.asarray(self.rows[place.dataset[self.rows] == dataset], np.int64)


def has_attacks(records: Records) -> bool:
    """Return True if the suite of these records has relations that need a system."""
    columns = records.followups.columns
    return CRAFTED_ON in columns and ("search" not in columns or "attack_reference" in columns)


def settings_of(records: Records, place: Axes, relations: Mapping[str, str]) -> tuple[Setting, ...]:
    """Return the settings of records, in the order of their axes.

    Args:
        records: Records of one system, with follow-ups.
        place: Axes of the records.
        relations: Relation ids, each with the name of its part.
    """
    system = str(records.followups["system"].iloc[0])
    crafters = records.texts(CRAFTED_ON) if has_attacks(records) else np.full(len(records.followups), "", object)
    gradients, scale = ~np.isnan(records.floats("zero_gradient")), records.floats("scale")
    params = records.texts("params") if "params" in records.followups.columns else None
    settings = []
    for number, name in enumerate(place.relations):
        inside = np.flatnonzero(place.relation == number)
        crafter = next((str(crafted_on) for crafted_on in crafters[inside] if crafted_on), "")
        part = relations.get(name, name)
        role = _role(name, part, crafter, system, gradients=bool(gradients[inside].any()))
        for level, severity in enumerate(place.severities):
            rows = inside[place.severity[inside] == level]
            if rows.size:
                scales = scale[rows][~np.isnan(scale[rows])]
                settings.append(
                    Setting(
                        relation=name,
                        severity=severity,
                        part=part,
                        role=role,
                        crafted_on=crafter,
                        epsilon=float(np.median(scales)) if scales.size and role != NATURAL else float("nan"),
                        params=_first(params, rows),
                        rows=rows.astype(np.int64),
                    )
                )
    return tuple(settings)


def _role(name: str, part: str, crafter: str, system: str, *, gradients: bool) -> str:
    if name == UNCHANGED:
        return FLOOR
    if not crafter:
        return _OF_PARTS[part] if _OF_PARTS.get(part) == NOISE else NATURAL
    if crafter != system:
        return TRANSFER
    return _OF_PARTS.get(part, WHITE if gradients else BLACK)


def _first(params: NDArray[np.object_] | None, rows: Sequence[int] | Integers) -> Mapping[str, Any]:
    """Return the parameters of the first case that has any."""
    for row in rows if params is not None else ():
        try:
            values = json.loads(params[row] or "{}") if params is not None else {}
        except ValueError:
            continue
        if isinstance(values, dict) and values:
            return values
    return {}
