"""Keeps a training in MLflow: its options, its curves, the weights."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from medtest.errors import NotTracked
from medtest.paths import home

if TYPE_CHECKING:
    from medtest.tracking import Tracker

EXPERIMENT = "medtest-training"


class Logs(Protocol):
    """Something that takes the numbers of a training."""

    def metrics(self, values: Mapping[str, float], step: int) -> None:
        """Take one point of each curve."""


class RunLog:
    """A run of the experiment ``medtest-training`` in the same store as the suites' runs, or nothing when switched off.

    Args:
        enabled: Whether to log at all.
        name: The run's name.
        run_id: A run to go on with, as a resumed training does; a new one is made where the store lacks it.

    Raises:
        NotTracked: The store cannot be made or reached.
    """

    def __init__(self, *, enabled: bool, name: str, run_id: str | None = None) -> None:
        self._tracker: Tracker | None = None
        self.run_id: str | None = None
        if not enabled:
            return
        from medtest.tracking import Tracker

        self._tracker = Tracker(home())
        if run_id is not None and self._reopen(run_id):
            self.run_id = run_id
        else:
            parents = self._tracker.parent(EXPERIMENT, name, {"medtest.kind": "training"})
            self.run_id = parents.runs[EXPERIMENT]

    def _reopen(self, run_id: str) -> bool:
        if self._tracker is None:
            return False
        try:
            self._tracker.client.update_run(run_id, status="RUNNING")
        except Exception:  # noqa: BLE001 - stores raise classes of their own for a run that is not there
            return False
        return True

    def params(self, values: Mapping[str, Any]) -> None:
        """Log options once; those already there stay.

        Raises:
            NotTracked: The store failed.
        """
        if self._tracker is None or self.run_id is None:
            return
        try:
            there = self._tracker.client.get_run(self.run_id).data.params
            for key, value in values.items():
                if key not in there:
                    self._tracker.client.log_param(self.run_id, key, str(value)[:5900])
        except Exception as error:
            raise NotTracked(f"the options of this training could not be tracked: {error}") from error

    def metrics(self, values: Mapping[str, float], step: int) -> None:
        """Log one point of each curve.

        Raises:
            NotTracked: The store failed; what is trained so far is kept in the training's folder.
        """
        if self._tracker is None or self.run_id is None:
            return
        try:
            for key, value in values.items():
                self._tracker.client.log_metric(self.run_id, key, float(value), step=step)
        except Exception as error:
            raise NotTracked(f"this training could not be tracked any more (it can be resumed): {error}") from error

    def artifact(self, path: Path) -> None:
        """Log a file.

        Raises:
            NotTracked: The store failed.
        """
        if self._tracker is not None and self.run_id is not None:
            self._tracker.attach(self.run_id, [(path, "")])

    def end(self, *, failed: bool = False) -> None:
        """Mark the run finished or failed.

        Raises:
            NotTracked: The store failed.
        """
        if self._tracker is not None and self.run_id is not None:
            from medtest.tracking import Parents

            self._tracker.close(Parents(uri=self._tracker.uri, runs={EXPERIMENT: self.run_id}), failed=failed)
