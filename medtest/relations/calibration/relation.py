"""Relation whose levels are targets of similarity: one parameter is solved for each seed."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from medtest.core.cases import FollowUp, Json, Params, PreparedSeed
from medtest.core.errors import NotApplicable
from medtest.relations.base import Relation
from medtest.relations.calibration.curve import SimilarityCurve, generator_at
from medtest.relations.calibration.positions import Positions
from medtest.relations.calibration.searching.steered import SteeredGenerator
from medtest.relations.calibration.settings import REVISION, Calibration

CALIBRATED = "calibrated"
"""Parameter of a calibrated follow-up: name and value of what was solved, target and similarity."""
_SEARCHED_NEAR = 1e-4
"""Distance from the target of a search within which the solver stops, so that neighbouring targets differ."""
_LIKE_INNER = (
    *("group", "takes", "touches_frame", "any_image", "effects", "alters", "alters_why", "beside_attacks"),
    *("revision", "tells_places"),
)
_MEMO = "medtest.relations.calibration.relation:"


class Calibrated(Relation):
    """Another relation at targets of structural similarity to the source over the field.

    Severity ``n`` is the ``n``-th target, and ``scale`` is 1 less the target. All targets of a seed share their random
    draws, so that only the solved parameter differs.

    Args:
        inner: The relation; its settings have ``calibrate``.
    """

    scale_unit: ClassVar[str] = "1 − SSIM"
    nested: ClassVar[bool] = True

    def __init__(self, inner: Relation) -> None:
        super().__init__(inner.settings)
        self.inner = inner
        for name in _LIKE_INNER:
            if hasattr(inner, name):
                setattr(self, name, getattr(inner, name))
        self.calibration: Calibration = inner.settings.calibrate
        self._near: float | None = None
        self._positions = Positions.of(inner, self.calibration.parameter)

    def severities(self) -> tuple[int, ...]:
        """Return the numbers of the targets, from 1."""
        return tuple(range(1, len(self.calibration.ssim) + 1))

    def unfit_for(self, task: str) -> tuple[str, str] | None:
        """Return the setting that does not fit a suite's task, as the relation itself does."""
        return self.inner.unfit_for(task)

    def fingerprint(self) -> dict[str, Any]:
        """Return the values of the relation, and the revision of the solver."""
        return {**self.inner.fingerprint(), "calibration": REVISION}

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Draw the parameters and solve the one that is calibrated.

        Raises:
            TargetUnreachable: No value meets the target.
            NotApplicable: As the relation itself, or its similarity does not fall steadily.
        """
        return dict(self._solved(seed, severity, rng).params)

    def levels(self) -> Mapping[int, Any]:
        """Return the targets by severity."""
        return dict(enumerate(self.calibration.ssim, start=1))

    def with_levels(self, levels: Mapping[int, Any]) -> Self:
        """Return the relation with other targets, which a search tries: each is met as closely as possible."""
        changed = copy.copy(self)
        changed.calibration = self.calibration.model_copy(update={"ssim": [levels[place] for place in sorted(levels)]})
        changed._near = _SEARCHED_NEAR
        return changed

    def scale_of(self, level: Any) -> float:
        """Return the scale of a target."""
        return scale_of(level)

    def follow_up(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> FollowUp:
        """Solve the parameter, and return the follow-up that the solver has made.

        Raises:
            NotApplicable: As in :meth:`sample`.
        """
        return self._solved(seed, severity, rng)

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        """Make the follow-up from solved parameters, without solving again."""
        own = {name: value for name, value in params.items() if name != CALIBRATED}
        follow = self.inner.apply(seed, own)
        return replace(follow, params=params, scale=scale_of(target_of(params) or 0.0))

    def _solved(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> FollowUp:
        target = self.calibration.ssim[severity - 1]
        curve = self._curve(seed, rng)
        tolerance = self.calibration.tolerance(target)
        position = curve.solve(target, tolerance, tolerance / 2 if self._near is None else self._near)
        follow = curve.follow_up(position)
        if follow.effect.moves:
            raise NotApplicable(f"it moves pixels, so that SSIM does not tell its strength: {curve.words()}")
        solved: dict[str, Json] = {
            "parameter": self._positions.parameter,
            "value": list(shown) if isinstance(shown := self._positions.shown(position), list) else shown,
            "target": target,
            "ssim": curve.similarity(position),
        }
        return replace(follow, params={**follow.params, CALIBRATED: solved}, scale=scale_of(target))

    def _curve(self, seed: PreparedSeed, rng: np.random.Generator) -> SimilarityCurve:
        """Return the curve of a seed and its draws, which all targets share."""
        if isinstance(rng, SteeredGenerator):  # its draws are not in its state
            return SimilarityCurve(positions=self._positions, seed=seed, restarted=rng.restarted)
        state: dict[str, Any] = dict(rng.bit_generator.state)
        key = json.dumps([state["state"], self.settings.model_dump(mode="json")], sort_keys=True, default=str)
        return seed.memo(
            f"{_MEMO}{type(self.inner).__qualname__}:{key}",
            lambda: SimilarityCurve(positions=self._positions, seed=seed, restarted=partial(generator_at, state)),
        )


def calibrated(relation: Relation) -> Relation:
    """Return a relation, at targets of similarity if its settings have ``calibrate``."""
    return relation if getattr(relation.settings, "calibrate", None) is None else Calibrated(relation)


def scale_of(target: float) -> float:
    """Return the scale of a target: 1 less the similarity."""
    return round(1.0 - target, 6)


def target_of(params: Mapping[str, Any]) -> float | None:
    """Return the target of calibrated parameters; None for others."""
    solved = params.get(CALIBRATED)
    target = solved.get("target") if isinstance(solved, Mapping) else None
    return float(target) if isinstance(target, int | float) else None
