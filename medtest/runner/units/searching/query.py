"""Query of a search: the change that it shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from medtest.core.cases import Address, FollowUp, PreparedSeed
from medtest.relations.base import Relation
from medtest.relations.series import on_any_image
from medtest.runner.units.searching.outcomes import QueryOutcome


class Over(Exception):
    """Raised if a search has nothing left to show; the text says why."""


@dataclass(frozen=True, slots=True)
class ShownQuery:
    """Follow-up that a query shows.

    Attributes:
        relation: The relation, with the level of the query among its own.
        severity: That level.
        rng: Generator of the draws.
    """

    relation: Relation
    severity: int
    rng: np.random.Generator

    def follow_up(self, seed: PreparedSeed) -> FollowUp:
        """Make the follow-up.

        Raises:
            NotApplicable: The relation does not apply at this strength.
        """
        return on_any_image(
            self.relation, seed, lambda coloured: self.relation.follow_up(coloured, self.severity, self.rng)
        )


class Search(Protocol):
    """Search of one seed and relation."""

    def query(self, number: int, earlier: Sequence[QueryOutcome], address: Address, suite_seed: int) -> ShownQuery:
        """Return the change that a query shows; see :meth:`medtest.runner.units.searching.mildest.Mildest.query`.

        Raises:
            Over: There is nothing left to show.
        """

    def again(self, number: int) -> int:
        """Count earlier showings of the same picture; 0 for a new one."""
