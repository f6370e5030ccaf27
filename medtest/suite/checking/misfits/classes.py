"""Systems and relations whose classes differ from the seeds', detected before loading, in plans and runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from medtest.core.cases import Classes
from medtest.core.errors import Mistake, nearest_name
from medtest.relations.base import Relation
from medtest.seeds.base import SeedSource
from medtest.systems.base import System


def fitting_mistakes(sources: Sequence[SeedSource], systems: Mapping[str, System]) -> list[Mistake]:
    """Return the mistakes of systems whose classes do not fit the seeds', if both are known before a system is loaded.

    Args:
        sources: Seeds, already listed.
        systems: Systems by id.
    """
    return [
        Mistake(
            where="suite",
            key=f"systems.{name}",
            found=f"a system that {misfit}",
            allowed=f"the classes of {source.dataset}, in any order",
            fix="choose a system for these classes, or map the classes of the seeds (their setting classes)",
        )
        for name, system in systems.items()
        for source in sources
        if (misfit := _misfit(source, system))
    ]


def named_class_mistakes(relations: Mapping[str, Relation], classes: Mapping[str, Classes | None]) -> list[Mistake]:
    """Return mistakes for classes named by relations that no data set has, if all data sets name their classes.

    Args:
        relations: The suite's relations.
        classes: Classes by data set; None if the seeds do not name them.
    """
    known = [classes_of_set.names for classes_of_set in classes.values() if classes_of_set is not None]
    if len(known) < len(classes):
        return []
    names = list(dict.fromkeys(name for names_of_set in known for name in names_of_set))
    return [
        Mistake(
            where="suite",
            key=f"relations.{relation_id}.{setting}",
            found=name,
            allowed=", ".join(names),
            nearest=nearest_name(name, names),
        )
        for relation_id, relation in relations.items()
        for setting, name in relation.named_classes()
        if name not in names
    ]


def other_classes(system: System, count: int, expected: Classes) -> Mistake:
    """Return the mistake for a classifier whose number of scores differs from the seeds' number of classes.

    Args:
        system: The classifier.
        count: Its number of scores.
        expected: The seeds' classes.
    """
    names, key = ", ".join(expected.names[:20]), f"systems.{system.name}"
    stated = system.classes
    actual = f"scores for {count} classes" + ("" if stated is None else f", of which {len(stated.names)} are named")
    fix = f"name its classes in the order of its scores: {key}.classes=[…]"
    if hasattr(system.settings, "labels"):
        fix += f", and map them to the seeds' classes: {key}.labels={{…: {expected.names[0]}}}"
    return Mistake(
        where="suite",
        key=key,
        found=actual,
        allowed=f"{len(expected.names)} classes: {names}",
        fix=fix,
    )


def _misfit(source: SeedSource, system: System) -> str:
    classes = source.classes()
    return "" if classes is None else system.task.border.misfit(system.classes, classes)
