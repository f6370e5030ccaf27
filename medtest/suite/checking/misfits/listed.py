"""Mistakes that show once the seeds are listed, in plans and runs, before a system is loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from medtest.core.cases import SeedRef
from medtest.core.errors import Mistake
from medtest.relations.base import Relation
from medtest.seeds.base import SeedSource
from medtest.suite.checking.misfits.altering import altering_mistakes
from medtest.suite.checking.misfits.classes import fitting_mistakes, named_class_mistakes
from medtest.suite.checking.misfits.crafting import missing_mistakes
from medtest.suite.model import Suite
from medtest.systems.base import System


def listed_mistakes(
    suite: Suite,
    sources: Sequence[SeedSource],
    refs: Sequence[SeedRef],
    relations: Mapping[str, Relation],
    systems: Mapping[str, System],
) -> list[Mistake]:
    """Return the mistakes of a suite whose parts do not fit its seeds or one another."""
    classes = {source.dataset: source.classes() for source in sources}
    return [
        *fitting_mistakes(sources, systems),
        *missing_mistakes(suite, relations, systems),
        *named_class_mistakes(relations, classes),
        *altering_mistakes(suite, classes),
        *suite.build_oracle().unknown_items({item for ref in refs for item in ref.items}),
    ]
