"""MLflow tracking of a training: options, curves, weights."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtest.core.errors import NotTracked
from medtest.core.files import read_object
from medtest.core.files.paths import home as results_home

if TYPE_CHECKING:
    from medtest.report.tracking import Parents, Tracker

EXPERIMENT = "medtest-training"
FILE = "mlflow.json"


class TrainingLog:
    """MLflow run of a training, in the same store as the suites' runs.

    A resumed training continues in its run; if the store lacks it, a new one is created.

    Args:
        folder: The training's folder, which stores the run's id.
        name: Name of the training, for the run's name.
        home: Folder that holds ``mlruns/``; None for the default.
        uri: The store; None for the default.
        experiment: Experiment of the run.
        tags: Its tags.
        resume: Whether to continue in the run stored in the folder.

    Attributes:
        run_id: The training's run.
        parents: The run above it, or itself if there is none.

    Raises:
        NotTracked: The store cannot be created or reached.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        *,
        home: Path | None = None,
        uri: str | None = None,
        experiment: str = EXPERIMENT,
        tags: Mapping[str, str] | None = None,
        resume: bool = True,
    ) -> None:
        from medtest.report.tracking import Parents, Tracker

        self._tracker: Tracker = Tracker(home or results_home(), uri)
        self._experiment = experiment
        stored = read_object(folder / FILE) if resume else {}
        ids = [str(stored.get(key, "")) for key in ("parent", "run")]
        if stored.get("uri") != self._tracker.uri or not all(
            run_id and self._reopen(run_id) for run_id in dict.fromkeys(ids)
        ):
            ids = list(self._create(name, dict(tags or {})))
            text = json.dumps({"uri": self._tracker.uri, "parent": ids[0], "run": ids[1]}, indent=1)
            (folder / FILE).write_text(text, encoding="utf-8")
        self.parent_id, self.run_id = ids
        self.parents: Parents = Parents(uri=self._tracker.uri, runs={experiment: self.parent_id})

    def _create(self, name: str, tags: dict[str, str]) -> tuple[str, str]:
        """Create the runs, and return the ids of the parent and the training's run."""
        parents = self._tracker.parent(self._experiment, name, {**tags, "medtest.kind": "training"})
        return parents.runs[self._experiment], parents.runs[self._experiment]

    def _reopen(self, run_id: str) -> bool:
        try:
            self._tracker.client.update_run(run_id, status="RUNNING")
        except Exception:  # noqa: BLE001 - stores raise their own classes for a missing run
            return False
        return True

    def params(self, values: Mapping[str, Any]) -> None:
        """Log options once; existing ones stay.

        Raises:
            NotTracked: The store failed.
        """
        with problems("the options of this training could not be tracked"):
            logged = self._tracker.client.get_run(self.run_id).data.params
            for key, value in values.items():
                if key not in logged:
                    self._tracker.client.log_param(self.run_id, key, str(value)[:5900])

    def metrics(self, values: Mapping[str, float], step: int) -> None:
        """Log one point of each curve.

        Raises:
            NotTracked: The store failed; the progress so far is in the training's folder.
        """
        with problems("this training could not be tracked any more (the same command continues it)"):
            for key, value in values.items():
                self._tracker.client.log_metric(self.run_id, key, float(value), step=step)

    def attach(self, files: Sequence[Path], *, parent: bool = False) -> None:
        """Log files with the training's run, or with the parent.

        Raises:
            NotTracked: The store failed.
        """
        self._tracker.attach(self.parent_id if parent else self.run_id, [(path, "") for path in files])

    def end_training(self, *, failed: bool = False) -> None:
        """Mark the training's run as ended.

        Raises:
            NotTracked: The store failed.
        """
        with problems("the end of this training could not be tracked"):
            self._tracker.client.set_terminated(self.run_id, status="FAILED" if failed else "FINISHED")

    def close(self, *, failed: bool = False) -> None:
        """Mark the parent as ended.

        Raises:
            NotTracked: The store failed.
        """
        self._tracker.close(self.parents, failed=failed)


@contextmanager
def problems(failure: str) -> Iterator[None]:
    """Convert any error of the store to a message.

    Raises:
        NotTracked: The store failed.
    """
    try:
        yield
    except NotTracked:
        raise
    except Exception as error:
        text = " ".join(str(error).split())[:200]
        raise NotTracked(f"{failure}: {type(error).__name__}: {text}") from error
