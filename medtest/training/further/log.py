"""MLflow tracking of a further training: a child of the test suite's parent run, with options, curves and weights."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from medtest.core.errors import NotTracked
from medtest.training.engine.log import TrainingLog, problems

KIND = "further-training"


class FurtherLog(TrainingLog):
    """Two runs in the suite's experiment: the invocation's parent, and the training below it.

    The runs of the suite before and after training become children of the same parent.
    """

    def _create(self, name: str, tags: dict[str, str]) -> tuple[str, str]:
        parents = self._tracker.parent(
            self._experiment, f"{self._experiment}: further training of {name}", {**tags, "medtest.kind": KIND}
        )
        parent = parents.runs[self._experiment]
        experiment = self._tracker.client.get_experiment_by_name(self._experiment)
        if experiment is None:
            raise NotTracked(f"the experiment {self._experiment} cannot be found in MLflow")
        run = self._tracker.client.create_run(
            experiment.experiment_id,
            run_name=f"{name} training",
            tags={**tags, "medtest.kind": "training", "mlflow.parentRunId": parent, "medtest.suite_run": parent},
        )
        return parent, str(run.info.run_id)

    def table(self, name: str, columns: Mapping[str, Sequence[Any]], metrics: Mapping[str, float]) -> None:
        """Log a table and numbers with the parent run; an existing table of that name is replaced.

        Args:
            name: Artifact name, e.g. ``tables/before_after.json``.
            columns: Values by column.
            metrics: Numbers of the parent run.

        Raises:
            NotTracked: The store failed.
        """
        with problems("the table could not be tracked"):
            rows = [list(row) for row in zip(*columns.values(), strict=True)]
            client = self._tracker.client
            logged = json.loads(client.get_run(self.parent_id).data.tags.get("mlflow.loggedArtifacts", "[]"))
            if name in {entry.get("path") for entry in logged}:
                client.log_dict(self.parent_id, {"columns": list(columns), "data": rows}, name)
            else:
                client.log_table(self.parent_id, {key: list(values) for key, values in columns.items()}, name)
            for key, value in metrics.items():
                client.log_metric(self.parent_id, key, float(value))
