"""A further training in MLflow: a child of the test suite's parent run, with options, curves and weights."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtest.errors import NotTracked
from medtest.jsonfile import read_object

if TYPE_CHECKING:
    from medtest.tracking import Parents, Tracker

FILE = "mlflow.json"
KIND = "further-training"


class FurtherLog:
    """Two runs in the suite's experiment: the invocation's parent, and under it the training.

    The runs of the suite before and after training become children of the same parent. A resumed training goes on in
    its runs; where the store lacks them, new ones are made.

    Args:
        home: Folder that holds ``mlruns/``.
        uri: The store; None for the usual one.
        folder: The training's folder, which remembers the runs.
        experiment: The suite's name.
        name: What is trained, for the runs' names.
        tags: Tags of both runs.

    Raises:
        NotTracked: The store cannot be made or reached.
    """

    def __init__(
        self, home: Path, uri: str | None, folder: Path, *, experiment: str, name: str, tags: Mapping[str, str]
    ) -> None:
        from medtest.tracking import Parents, Tracker

        self._tracker: Tracker = Tracker(home, uri)
        self._experiment = experiment
        kept = self._kept(folder / FILE)
        parent, run_id = kept.get("parent", ""), kept.get("run", "")
        if not (parent and run_id and self._reopen(parent) and self._reopen(run_id)):
            made = self._tracker.parent(
                experiment, f"{experiment}: further training of {name}", {**tags, "medtest.kind": KIND}
            )
            parent = made.runs[experiment]
            run_id = self._child(parent, name, tags)
            text = json.dumps({"uri": self._tracker.uri, "parent": parent, "run": run_id}, indent=1)
            (folder / FILE).write_text(text, encoding="utf-8")
        self.parents: Parents = Parents(uri=self._tracker.uri, runs={experiment: parent})
        self.parent_id = parent
        self.run_id = run_id

    def _kept(self, path: Path) -> dict[str, str]:
        content = read_object(path)
        same = content.get("uri") == self._tracker.uri
        return {str(key): str(value) for key, value in content.items()} if same else {}

    def _reopen(self, run_id: str) -> bool:
        try:
            self._tracker.client.update_run(run_id, status="RUNNING")
        except Exception:  # noqa: BLE001 - stores raise classes of their own for a run that is not there
            return False
        return True

    def _child(self, parent: str, name: str, tags: Mapping[str, str]) -> str:
        experiment = self._tracker.client.get_experiment_by_name(self._experiment)
        if experiment is None:
            raise NotTracked(f"the experiment {self._experiment} cannot be found in MLflow")
        run = self._tracker.client.create_run(
            experiment.experiment_id,
            run_name=f"{name} training",
            tags={**tags, "medtest.kind": "training", "mlflow.parentRunId": parent, "medtest.suite_run": parent},
        )
        return str(run.info.run_id)

    def params(self, values: Mapping[str, Any]) -> None:
        """Log options once; those already there stay.

        Raises:
            NotTracked: The store failed.
        """
        with _problems("the options of this training could not be tracked"):
            there = self._tracker.client.get_run(self.run_id).data.params
            for key, value in values.items():
                if key not in there:
                    self._tracker.client.log_param(self.run_id, key, str(value)[:5900])

    def metrics(self, values: Mapping[str, float], step: int) -> None:
        """Log one point of each curve.

        Raises:
            NotTracked: The store failed; what is trained so far is kept.
        """
        with _problems("this training could not be tracked any more (the same command goes on)"):
            for key, value in values.items():
                self._tracker.client.log_metric(self.run_id, key, float(value), step=step)

    def attach(self, files: Sequence[Path], *, parent: bool = False) -> None:
        """Log files with the training's run, or with the parent.

        Raises:
            NotTracked: The store failed.
        """
        self._tracker.attach(self.parent_id if parent else self.run_id, [(path, "") for path in files])

    def table(self, name: str, columns: Mapping[str, Sequence[Any]], metrics: Mapping[str, float]) -> None:
        """Log a table and numbers with the parent run; a table of that name is replaced.

        Args:
            name: Artifact name, e.g. ``tables/before_after.json``.
            columns: Values by column.
            metrics: Numbers of the parent run.

        Raises:
            NotTracked: The store failed.
        """
        with _problems("the table could not be tracked"):
            rows = [list(row) for row in zip(*columns.values(), strict=True)]
            client = self._tracker.client
            logged = json.loads(client.get_run(self.parent_id).data.tags.get("mlflow.loggedArtifacts", "[]"))
            if name in {entry.get("path") for entry in logged}:
                client.log_dict(self.parent_id, {"columns": list(columns), "data": rows}, name)
            else:
                client.log_table(self.parent_id, {key: list(values) for key, values in columns.items()}, name)
            for key, value in metrics.items():
                client.log_metric(self.parent_id, key, float(value))

    def end_training(self, *, failed: bool) -> None:
        """Mark the training's run.

        Raises:
            NotTracked: The store failed.
        """
        with _problems("the end of this training could not be tracked"):
            self._tracker.client.set_terminated(self.run_id, status="FAILED" if failed else "FINISHED")

    def close(self, *, failed: bool = False) -> None:
        """Mark the parent.

        Raises:
            NotTracked: The store failed.
        """
        self._tracker.close(self.parents, failed=failed)


class _problems:  # noqa: N801 - a context manager that reads as a phrase
    """Puts whatever the store raises in words."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, NotTracked):
            raise NotTracked(f"{self._what}: {type(error).__name__}: {' '.join(str(error).split())[:200]}") from error
