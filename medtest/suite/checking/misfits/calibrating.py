"""Calibrated relations: what a relation needs so that one parameter can be solved for a similarity."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any, NamedTuple

from medtest.core.cases import Address, PreparedSeed, Seed, SeedRef
from medtest.core.errors import NotApplicable, nearest_name
from medtest.core.tasks.base import task_of
from medtest.phantoms.colon import colon_rng, make_colon
from medtest.preparation import prepare
from medtest.relations.base import CraftedRelation, Relation
from medtest.relations.calibration.curve import SimilarityCurve, generator_at
from medtest.relations.calibration.positions import LEVEL, Positions, parameters
from medtest.suite.draft import Draft
from medtest.suite.model import PartPlan

_PHANTOMS, _SIDE = 3, 128
"""Number and side in pixels of the phantoms on which relations are tried before a run."""


class _Unfit(NamedTuple):
    """Reason why a relation cannot be calibrated: its setting, what was found, what is allowed, nearest name, fix."""

    setting: tuple[str, ...]
    found: str
    allowed: str
    nearest: str | None = None
    fix: str = ""


def check_calibrations(draft: Draft, relations: Sequence[PartPlan], kind: str | None) -> set[str]:
    """Add the mistakes of calibrated relations; return the ids of those that have one.

    Args:
        draft: Collects the mistakes.
        relations: The suite's relations.
        kind: Name of the seeds' task; None if it is unknown.
    """
    refused = set()
    for plan in relations:
        if plan.settings.calibrate is None or (kind is not None and task_of(kind).prompts):
            continue
        unfit = _unfit(plan) or _unfit_curve(plan.info.load()(plan.settings), plan.id)
        if unfit is not None:
            setting, actual, allowed, nearest, fix = unfit
            draft.wrong(("relations", plan.id, *setting), found=actual, allowed=allowed, nearest=nearest, fix=fix)
            refused.add(plan.id)
    return refused


def _unfit(plan: PartPlan) -> _Unfit | None:
    settings, cls = plan.settings, plan.info.load()
    key = ("calibrate",)
    if issubclass(cls, CraftedRelation):
        fix = "an attack searches its own smallest ε: minimal: true" if hasattr(settings, "minimal") else ""
        return _Unfit(key, "a relation that is crafted on a system", "relations of pictures", fix=fix)
    if settings.drawn:
        return _Unfit(("mode",), "published, with calibrate", "levels", fix="a published range is drawn, not solved")
    relation: Relation = cls(settings)
    names = parameters(relation)
    if not names:
        return _Unfit(key, "a relation without a numeric parameter in its levels", "relations with numeric levels")
    if relation.frames() > 1:
        return _Unfit(key, "a relation of sequences", "relations of single pictures")
    parameter = settings.calibrate.parameter
    if parameter is not None and parameter not in (*names, LEVEL):
        allowed = f"{', '.join(names)}, or {LEVEL} (a position between levels)"
        return _Unfit((*key, "parameter"), parameter, allowed, nearest_name(parameter, (*names, LEVEL)))
    return None


def _unfit_curve(relation: Relation, name: str) -> _Unfit | None:
    """Return the reason why the similarity does not measure the strength of a relation, as seen on phantoms."""
    positions = Positions.of(relation, relation.settings.calibrate.parameter)
    curves = []
    for seed in _phantoms():
        address = Address(dataset=seed.ref.dataset, seed_id=seed.ref.seed_id, relation=name)
        state: dict[str, Any] = dict(address.generator(0).bit_generator.state)
        curve = SimilarityCurve(positions=positions, seed=seed, restarted=partial(generator_at, state))
        try:
            if not curve.measure_levels():
                continue
        except NotApplicable:
            continue
        except Exception:  # noqa: BLE001 - a relation that raises is an ERROR of its cases, not a mistake of the suite
            return None
        if curve.last is not None and curve.last[1].effect.moves:
            allowed = "relations that leave pixels in place, whose strength SSIM tells"
            return _Unfit(("calibrate",), "a relation that moves pixels", allowed, fix=_measured(curve))
        curves.append(curve)
    if curves and all(curve.rises() for curve in curves):
        actual = f"{positions.parameter}, with which SSIM does not fall steadily"
        others = ", ".join(other for other in (*parameters(relation), LEVEL) if other != positions.parameter)
        allowed = f"a parameter with which it falls; others: {others}" if others else "relations with which it falls"
        return _Unfit(("calibrate", "parameter"), actual, allowed, fix=_measured(curves[0]))
    return None


def _measured(curve: SimilarityCurve) -> str:
    return f"measured on a phantom: SSIM {curve.words()}"


@cache
def _phantoms() -> tuple[PreparedSeed, ...]:
    """Return colon phantoms with one polyp."""
    seeds = []
    for index in range(_PHANTOMS):
        phantom = make_colon(colon_rng(0, "calibrate", index), size=(_SIDE, _SIDE), polyps=1)
        ref = SeedRef(dataset="calibrate", seed_id=f"phantom-{index}")
        seeds.append(prepare(Seed(ref=ref, image=phantom.image, expected=phantom.mask), size=None))
    return tuple(seeds)
