"""Systems whose classes are not those of the seeds: found before anything is loaded, in a plan as in a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from medtest.errors import Mistake
from medtest.seeds.base import SeedSource
from medtest.systems.base import System
from medtest.systems.label_border import classes_misfit


def fitting_mistakes(sources: Sequence[SeedSource], systems: Mapping[str, System]) -> list[Mistake]:
    """Return the systems whose classes are not those of the seeds, where both are known before a system is loaded.

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


def _misfit(source: SeedSource, system: System) -> str:
    asked = source.classes()
    return "" if asked is None or system.kind != "label" else classes_misfit(system.classes, asked)
