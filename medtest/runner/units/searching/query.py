"""Query of a search: the change that it shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from medtest.core.cases import FollowUp, PreparedSeed
from medtest.relations.base import Relation
from medtest.relations.series import on_any_image


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
