"""Folders that were begun while a setting had another default: the same command goes on with them as they were."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from medtest.core.cases import Json
from medtest.suite.model import Suite
from medtest.systems.base import System

Where = Callable[[Suite, Mapping[str, System]], Sequence[Path]]
"""Gives the folder of every system of a suite."""


def as_begun(suite: Suite, where: Where) -> tuple[Suite, list[str]]:
    """Return a suite with settings as the folders that lie there were begun with, and lines for the user.

    Args:
        suite: The suite as this version reads it.
        where: Where its folders lie.

    Returns:
        The suite itself and no line where every system has its folder, or none of an earlier version's.
    """
    systems = suite.build_systems()
    before = {name: type(system).settings_before(system.settings) for name, system in systems.items()}
    if not any(before.values()):
        return suite, []
    then = _with(suite, before)
    kept, notices = {}, []
    there = zip(systems, where(suite, systems), where(then, then.build_systems()), strict=True)
    for name, now, earlier in there:
        if before[name] and not now.exists() and earlier.exists():
            kept[name] = before[name]
            shown = ", ".join(f"{key}: {value}" for key, value in before[name].items())
            notices.append(
                f"{systems[name].record_name} goes on with its folder, which was begun with {shown}, the default then;"
                " fresh=true begins another."
            )
    return (_with(suite, kept), notices) if kept else (suite, [])


def _with(suite: Suite, settings: Mapping[str, Mapping[str, Json]]) -> Suite:
    plans = tuple(
        replace(plan, settings=plan.settings.model_copy(update=dict(settings.get(plan.id, {}))))
        for plan in suite.systems
    )
    return replace(suite, systems=plans)
