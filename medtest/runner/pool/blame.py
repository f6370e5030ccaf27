"""Who is to blame when a worker dies: what it was at, unless what it lived on went."""

from __future__ import annotations

from medtest.runner.pool.messages import Place, PoolTask
from medtest.runner.pool.worker import Worker

_CRASHES = 2
"""How often a batch may take its worker down before its cases become ERROR."""
_LOSSES = 10
"""How often what a batch's worker lives on may go before the batch counts as what takes it down."""


class Blame:
    """Counts how often a batch took its worker down.

    Args:
        batch_seconds: Time limit of a batch, for what is said of one that exceeded it.
    """

    def __init__(self, batch_seconds: float) -> None:
        self._batch_seconds = batch_seconds
        self._crashes: dict[tuple[int, Place], int] = {}
        self._losses: dict[tuple[int, Place], int] = {}

    def given_up(self, worker: Worker, task: PoolTask) -> dict[Place, str]:
        """Return what is given up of a task whose worker died at it, with the reasons its cases get.

        A batch is tried once more after a crash; after a hang, or a second crash, its cases are ERROR. One whose worker
        went with its machine is tried again.
        """
        place, given_up = worker.place, dict(task.given_up)
        key = (task.index, place)
        if worker.doomed:
            given_up[place] = f"no answer within {self._batch_seconds:g} s"
        elif worker.vanished and self._losses.get(key, 0) < _LOSSES:
            self._losses[key] = self._losses.get(key, 0) + 1
        else:
            self._crashes[key] = self._crashes.get(key, 0) + 1
            if self._crashes[key] >= _CRASHES:
                given_up[place] = f"its process {worker.death()}"
        return given_up

    def forget(self, index: int) -> None:
        """A task is done: what it took down before no longer counts."""
        for counted in (self._crashes, self._losses):
            for key in [key for key in counted if key[0] == index]:
                del counted[key]
