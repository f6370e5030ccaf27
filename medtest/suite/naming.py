"""Display names of a call's systems: ``name=``, else the name of the user's file or object, else their own."""

from __future__ import annotations

from dataclasses import replace

from medtest.core.errors import typed_error
from medtest.suite.commandline.overrides import NAME
from medtest.suite.model import Suite
from medtest.suite.reading.safety import short
from medtest.systems.naming import distinct, given_name, refused


def named(suite: Suite, typed: str | None) -> Suite:
    """Return the suite with named systems; an id chosen by the user is already a name.

    Args:
        suite: The suite.
        typed: ``name=``, or None.

    Raises:
        UserMistakes: The name is invalid, or several systems would have it.
    """
    systems = suite.build_systems()
    if typed is not None:
        _check(typed, list(systems))
        return replace(suite, systems=tuple(replace(plan, shown=typed) for plan in suite.systems))
    plain = suite.privacy.seed_ids == "plain"
    names = {
        plan.id: given_name(systems[plan.id], plan.info.defaults, folders=plain) if plan.id == plan.info.name else ""
        for plan in suite.systems
    }
    distinct_names = distinct(names, systems)
    return replace(suite, systems=tuple(replace(plan, shown=distinct_names[plan.id]) for plan in suite.systems))


def _check(name: str, systems: list[str]) -> None:
    allowed = refused(name)
    if allowed:
        raise typed_error(NAME, short(name), allowed)
    if len(systems) > 1:
        raise typed_error(
            NAME,
            f"{len(systems)} systems ({', '.join(systems)})",
            "one system",
            f'choose one with model=NAME, or name each: "+systems.{name}={{use: {systems[0]}}}"',
        )
