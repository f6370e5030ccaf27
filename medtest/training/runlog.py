"""Keeps a training in MLflow: its options, its curves, the network's card."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from medtest.paths import home


class RunLog:
    """An MLflow run of the experiment ``medtest-training``, or nothing when switched off.

    Args:
        enabled: Whether to log at all.
        name: The run's name.
        run_id: A run to go on with, as a resumed training does.
    """

    def __init__(self, *, enabled: bool, name: str, run_id: str | None = None) -> None:
        self._client: Any = None
        self.run_id: str | None = None
        if not enabled:
            return
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        import mlflow
        from mlflow.exceptions import MlflowException

        if not os.environ.get("MLFLOW_TRACKING_URI"):
            (home() / "mlruns").mkdir(parents=True, exist_ok=True)
            mlflow.set_tracking_uri(f"sqlite:///{home() / 'mlruns' / 'mlflow.db'}")
        self._client = mlflow.MlflowClient()
        if run_id is not None:
            try:
                self._client.get_run(run_id)
                self._client.update_run(run_id, status="RUNNING")
                self.run_id = run_id
            except MlflowException:
                run_id = None  # the store was made anew since
        if run_id is None:
            self.run_id = self._client.create_run(self._experiment(), run_name=name).info.run_id

    def _experiment(self) -> str:
        found = self._client.get_experiment_by_name("medtest-training")
        if found is not None:
            return str(found.experiment_id)
        location = None if os.environ.get("MLFLOW_TRACKING_URI") else str(home() / "mlruns" / "medtest-training")
        return str(self._client.create_experiment("medtest-training", artifact_location=location))

    def params(self, values: Mapping[str, Any]) -> None:
        """Log options once; those already there stay."""
        if self._client is None:
            return
        there = self._client.get_run(self.run_id).data.params
        for key, value in values.items():
            if key not in there:
                self._client.log_param(self.run_id, key, str(value)[:6000])

    def metrics(self, values: Mapping[str, float], step: int) -> None:
        """Log one point of each curve."""
        if self._client is None:
            return
        import time

        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        self._client.log_batch(self.run_id, metrics=[Metric(k, float(v), now, step) for k, v in values.items()])

    def artifact(self, path: Path) -> None:
        """Log a file."""
        if self._client is not None:
            self._client.log_artifact(self.run_id, str(path))

    def end(self, *, failed: bool = False) -> None:
        """Mark the run finished or failed."""
        if self._client is not None:
            self._client.set_terminated(self.run_id, "FAILED" if failed else "FINISHED")
