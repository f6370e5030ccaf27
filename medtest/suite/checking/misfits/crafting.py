"""Relations that need a system: choice of the crafting system, and check that it offers the required access.

A relation says ``crafted_on: each`` (every system under test gets follow-ups made on itself), a system's name, or
``{use: NAME, ...}`` with settings as under ``systems``. All checks are made before anything is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from medtest.core.errors import MedtestError, Mistake, nearest_name
from medtest.core.plugins import PartInfo, parts
from medtest.core.probes import Need
from medtest.relations.base import CraftedRelation, Relation
from medtest.suite.digest import system_digest
from medtest.suite.draft import Draft, settings_of
from medtest.suite.model import EACH, PartPlan, Suite
from medtest.suite.reading.safety import Key
from medtest.systems.base import System

_NAMED = 8
"""Maximum number of systems named in a message."""


def crafters_of(
    draft: Draft, relations: Sequence[PartPlan], systems: Sequence[PartPlan], kind: str | None
) -> dict[str, PartPlan]:
    """Return the crafting system of each relation that names one, by relation id; report incompatible ones.

    Args:
        draft: Collects the mistakes.
        relations: The suite's relations.
        systems: The systems under test.
        kind: Name of the seeds' task; None if unknown, which skips the compatibility checks.
    """
    crafters: dict[str, PartPlan] = {}
    for plan in relations:
        if not issubclass(plan.info.load(), CraftedRelation):
            continue
        key: Key = ("relations", plan.id, "crafted_on")
        if plan.settings.crafted_on == EACH:
            _check_offers(draft, ("relations", plan.id), plan, systems, kind)
            continue
        crafter = _crafter(draft, key, plan.settings.crafted_on, systems)
        if crafter is not None:
            crafter = next((existing for existing in crafters.values() if existing == crafter), crafter)  # loaded once
            crafters[plan.id] = crafter
            _check_kind(draft, key, crafter, kind)
            _check_offers(draft, key, plan, [crafter], kind)
    return crafters


def _crafter(
    draft: Draft, key: Key, crafted_on: str | Mapping[str, Any], systems: Sequence[PartPlan]
) -> PartPlan | None:
    """Return the system of ``crafted_on``: one under test, another of the suite, or any installed one."""
    settings = (
        {} if isinstance(crafted_on, str) else {name: value for name, value in crafted_on.items() if name != "use"}
    )
    name = crafted_on if isinstance(crafted_on, str) else crafted_on.get("use")
    if isinstance(crafted_on, str):
        tested = next((plan for plan in systems if plan.id == crafted_on), None)
        if tested is not None:
            return tested
        declared = _declared(draft, crafted_on)
        settings = {key: value for key, value in declared.items() if key != "use"}
        name = declared.get("use", crafted_on)
    info = draft.systems.get(name) if isinstance(name, str) else None
    if info is None:
        names = [EACH, *draft.systems]
        draft.wrong(key, found=name, allowed=", ".join(names), nearest=nearest_name(str(name), names))
        return None
    checked = settings_of(draft, key, info, settings)
    return None if checked is None else PartPlan(id=info.name, info=info, settings=checked)


def _declared(draft: Draft, name: str) -> Mapping[str, Any]:
    """Return the settings of a system in suite or command line, even if ``model=`` excludes it from the test."""
    for values in (draft.values, draft.own):
        block = values.get("systems")
        settings = block.get(name) if isinstance(block, Mapping) else None
        if isinstance(settings, Mapping):
            return settings
    return {}


def _check_kind(draft: Draft, key: Key, crafter: PartPlan, kind: str | None) -> None:
    tasks = crafter.info.load().tasks_of(crafter.settings)
    if kind is not None and kind not in tasks:
        draft.wrong(key, found=f"a system for the task {' or '.join(tasks)}", allowed=f"one for the task {kind}")


def _check_offers(draft: Draft, key: Key, plan: PartPlan, systems: Sequence[PartPlan], kind: str | None) -> None:
    needs: Need = plan.info.load()(plan.settings).needs
    for system in systems:
        offered = _system(system, kind).offers()
        if offered.rank >= needs.rank:
            continue
        offer = "provides neither scores nor gradients" if offered is Need.NOTHING else f"provides only {offered.value}"
        names = _offering(draft.systems, needs, kind)
        listed = ", ".join(names[:_NAMED]) + (" …" if len(names) > _NAMED else "")
        draft.wrong(
            key,
            found=f"{system.id}, which {offer}",
            allowed=f"systems that provide {needs.value}: {listed or 'none is installed'}",
            fix=_instead(plan, system, offered),
        )


def _instead(plan: PartPlan, system: PartPlan, offered: Need) -> str:
    craft = f"or craft it on a system that provides them and show it to {system.id}: crafted_on: NAME"
    alternatives = [name for name, needs in _crafted_relations() if needs.rank <= offered.rank]
    if alternatives:
        return f"relations that {system.id} supports: {', '.join(alternatives)}; {craft}"
    return f"remove {plan.id}, {craft}"


def _crafted_relations() -> Iterator[tuple[str, Need]]:
    for name, info in parts("relations").items():
        try:
            relation = info.load()
            if issubclass(relation, CraftedRelation):
                yield name, relation(relation.Settings(**info.defaults)).needs
        except (MedtestError, ValueError):
            continue  # a part of another package that fails to load or needs settings


def _offering(infos: Mapping[str, PartInfo], needs: Need, kind: str | None) -> list[str]:
    """Return the names of systems that offer the required access without further settings."""
    names = []
    for name, info in infos.items():
        try:
            cls = info.load()
            if kind is not None and kind not in cls.tasks:
                continue
            plan = PartPlan(id=name, info=info, settings=cls.Settings.model_construct(**info.defaults))
            if _system(plan, kind).offers().rank >= needs.rank:
                names.append(name)
        except Exception:  # noqa: BLE001, S112 - a system that needs settings is not named
            continue
    return names


def _system(plan: PartPlan, kind: str | None) -> System:
    system: System = plan.info.load()(plan.id, plan.settings)
    if kind is not None:
        system.kind = kind
    return system


def missing_mistakes(suite: Suite, relations: Mapping[str, Relation], systems: Mapping[str, System]) -> list[Mistake]:
    """Return missing requirements of relations for crafting on their systems, e.g. generators that were not trained.

    Args:
        suite: The suite.
        relations: Its relations by id.
        systems: The systems under test by id, not opened.
    """
    mistakes: list[Mistake] = []
    crafters = suite.build_crafters()
    for name, relation in relations.items():
        if isinstance(relation, CraftedRelation):
            crafted_on = [crafters[name]] if name in crafters else list(systems.values())
            plans = {plan.id: plan for plan in (*suite.systems, *suite.crafters.values())}
            for system in crafted_on:
                plan = plans[system.name]
                mistakes += relation.missing_on(
                    system_digest(plan, system, suite.task),
                    system.record_name,
                    size=suite.prepare.size,
                    typed=_typed(suite, plan),
                )
                mistakes += system.check() if name in crafters else ()
    return list(dict.fromkeys(mistakes))


def _typed(suite: Suite, plan: PartPlan) -> str:
    """Return the arguments that specify a suite, one of its systems and training images on a command line."""
    synthetic = bool(getattr(suite.seeds[0].info.load(), "phantom", False))
    system_name = plan.id if plan in suite.systems else plan.info.name
    return f"suite={suite.name} model={system_name} {'phantoms=800' if synthetic else 'data=FOLDER'}"
