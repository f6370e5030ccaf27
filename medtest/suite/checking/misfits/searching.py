"""Searches of relations: what relations, systems and the installation need for them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from medtest.core.errors import MedtestError, Mistake
from medtest.core.plugins import parts
from medtest.relations.base import CraftedRelation
from medtest.relations.calibration.relation import calibrated
from medtest.relations.calibration.searching.queries import QUERIES, WORST, unfit
from medtest.suite.draft import Draft
from medtest.suite.model import PartPlan, Suite
from medtest.systems.answering.asking import draws_calls

if TYPE_CHECKING:
    from medtest.suite.schema import BudgetBlock


def check_searches(draft: Draft, relations: Sequence[PartPlan], systems: Sequence[PartPlan]) -> None:
    """Add the mistakes of searches: unfit relations, systems of finished answers, a missing package.

    Args:
        draft: Collects the mistakes.
        relations: The suite's relations.
        systems: The systems under test.
    """
    searched = [plan for plan in relations if plan.search]
    for plan in searched:
        key = ("relations", plan.id)
        reason = unfit(calibrated(plan.info.load()(plan.settings)))
        if reason is not None:
            allowed = reason.allowed
            if allowed == "relations whose severities nest":
                allowed = f"{allowed}: {', '.join(_nesting())}"
            draft.wrong((*key, *reason.setting.split(".")), found=reason.found, allowed=allowed, fix=reason.fix)
        if plan.search == WORST and find_spec("optuna") is None:
            fix = "pip install 'medtest[search]'"
            draft.wrong((*key, "search"), found="worst, which needs optuna", allowed="mildest", fix=fix)
    for system in systems if searched else ():
        if system.info.load().finished:
            draft.wrong(
                ("systems", system.id),
                found=f"finished answers with a search ({', '.join(plan.id for plan in searched)})",
                allowed="systems that answer new pictures",
                fix="a search makes pictures that depend on earlier answers: remove search",
                misfit=True,
            )


def _nesting() -> list[str]:
    names = []
    for name, info in parts("relations").items():
        try:
            cls = info.load()
            if not issubclass(cls, CraftedRelation) and unfit(cls(cls.Settings(**info.defaults))) is None:
                names.append(name)
        except (MedtestError, ValueError):
            continue  # a part of another package that fails to load or needs settings
    return names


def budget_mistakes(suite: Suite, budget: BudgetBlock) -> list[Mistake]:
    """Return the mistakes of searches that ask an API without a budget."""
    searched = {plan.id: plan.search for plan in suite.relations if plan.search}
    if not searched or budget.max_usd is not None or budget.max_calls is not None:
        return []
    calls = sum(len(QUERIES[search]) for search in searched.values())
    return [
        Mistake(
            where=name,
            key="budget",
            found=f"none, with a search of up to {calls} calls for each image and question",
            allowed="budget.max_usd=NUMBER or budget.max_calls=NUMBER",
            fix="type one of them",
            needed="a budget (budget.max_usd or budget.max_calls)",
        )
        for name, system in suite.build_systems().items()
        if draws_calls(system) and system.own_limits
    ]
