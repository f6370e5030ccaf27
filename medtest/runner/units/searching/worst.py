"""Search for the worst follow-up: Optuna's TPE over strength and draws, and random search with the same budget."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from medtest.core.cases import Address, PreparedSeed, Verdict
from medtest.core.errors import NotApplicable
from medtest.relations.base import Relation
from medtest.relations.calibration.searching.queries import RANDOM, query_at
from medtest.relations.calibration.searching.steered import SteeredGenerator
from medtest.relations.calibration.searching.strengths import Strengths
from medtest.runner.units.searching.outcomes import QueryOutcome
from medtest.runner.units.searching.query import ShownQuery

if TYPE_CHECKING:
    import optuna

_FAILS = 1e6
"""Weight of a violation: any failing answer is worse than any passing one."""


class WorstSearch:
    """Search for the worst follow-up of one seed.

    TPE: J. Bergstra et al., "Algorithms for hyper-parameter optimization", NeurIPS 2011, as in Optuna. It chooses the
    strength and each single draw of the relation; the seeds of noise are drawn separately for each query.

    Args:
        relation: The relation.
        seed: The source case, for which the draws of earlier queries are made again when a search continues.
    """

    def __init__(self, relation: Relation, seed: PreparedSeed) -> None:
        self._relation, self._seed = relation, seed
        self._strengths = Strengths(relation)
        self._study: optuna.Study | None = None
        self._trials: list[optuna.Trial] = []
        self._told = 0

    def query(self, number: int, earlier: Sequence[QueryOutcome], address: Address, suite_seed: int) -> ShownQuery:
        """Return the change that a query shows; a search is never over before its budget."""
        query = query_at(self._relation, address)
        if query is not None and query.name == RANDOM:
            rng = self._relation.generator(address, suite_seed)
            position = float(rng.uniform(0.0, self._strengths.top))
            relation, severity = self._strengths.relation_at(position)
            return ShownQuery(relation, severity, rng)
        study = self._opened(address, suite_seed)
        while self._told < number:
            if len(self._trials) == self._told:  # a search that continues: the draws of this query, without its answer
                shown = self._asked(study, replace(address, frame=self._told), suite_seed)
                with suppress(NotApplicable):
                    shown.relation.sample(self._seed, shown.severity, shown.rng)
            self._record(study, earlier[self._told])
        return self._asked(study, address, suite_seed)

    def again(self, number: int) -> int:
        """Return 0: no picture is shown twice."""
        return 0

    def _opened(self, address: Address, suite_seed: int) -> optuna.Study:
        if self._study is None:
            import optuna

            optuna.logging.set_verbosity(optuna.logging.WARNING)
            seed = int(self._relation.generator(replace(address, frame=-2), suite_seed).integers(2**32))
            self._study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
        return self._study

    def _asked(self, study: optuna.Study, address: Address, suite_seed: int) -> ShownQuery:
        trial = study.ask()
        self._trials.append(trial)
        position = trial.suggest_float("strength", 0.0, self._strengths.top)
        bits: Any = self._relation.generator(address, suite_seed).bit_generator
        rng: np.random.Generator = SteeredGenerator(bits, lambda name: trial.suggest_float(name, 0.0, 1.0))
        relation, severity = self._strengths.relation_at(position)
        return ShownQuery(relation, severity, rng)

    def _record(self, study: optuna.Study, outcome: QueryOutcome) -> None:
        from optuna.trial import TrialState

        trial, self._told = self._trials[self._told], self._told + 1
        if outcome.fails is None:
            study.tell(trial, state=TrialState.FAIL)
            return
        score = 0.0 if outcome.score is None else outcome.score
        study.tell(trial, score - (_FAILS if outcome.verdict is Verdict.FAIL else 0.0))
