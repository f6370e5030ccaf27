"""Responsibility for a worker's death: the batch it was running, unless its machine was lost."""

from __future__ import annotations

from medtest.core.cases import Reason, ReasonCode
from medtest.runner.pool.messages import Place, PoolTask
from medtest.runner.pool.worker import Worker

_CRASHES = 2
"""Number of crashes after which a batch's cases become ERROR."""
_LOSSES = 10
"""Number of losses of a worker's machine after which the batch is blamed for them."""


class Blame:
    """Counter of the workers lost with each batch.

    Args:
        batch_seconds: Time limit of a batch, for the message about one that exceeded it.
    """

    def __init__(self, batch_seconds: float) -> None:
        self._batch_seconds = batch_seconds
        self._crashes: dict[tuple[int, Place], int] = {}
        self._losses: dict[tuple[int, Place], int] = {}

    def given_up(self, worker: Worker, task: PoolTask) -> dict[Place, Reason]:
        """Return the places of a task to give up after its worker died, with the reasons for their cases.

        A batch is retried once after a crash; after a hang, or a second crash, its cases are ERROR. A batch whose
        worker was lost with its machine is retried.
        """
        place, given_up = worker.place, dict(task.given_up)
        key = (task.index, place)
        if worker.doomed:
            given_up[place] = Reason(ReasonCode.TIMEOUT, f"no answer within {self._batch_seconds:g} s")
        elif worker.vanished and self._losses.get(key, 0) < _LOSSES:
            self._losses[key] = self._losses.get(key, 0) + 1
        else:
            self._crashes[key] = self._crashes.get(key, 0) + 1
            if self._crashes[key] >= _CRASHES:
                given_up[place] = Reason(ReasonCode.CRASH, f"the worker process {worker.death()}")
        return given_up

    def forget(self, index: int) -> None:
        """Reset the counters of a finished task."""
        for counted in (self._crashes, self._losses):
            for key in [key for key in counted if key[0] == index]:
                del counted[key]
