"""Writing of results as MLflow runs.

Each suite has an experiment, each invocation a parent run (a sweep has one per suite), each system and view a child
run. Runs are written through a client by id, so that nothing of this process (user, script, paths, git) is attached.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from medtest.core.errors import NotTracked
from medtest.core.files.paths import STORE, store_uri
from medtest.report.tracking import runs_page
from medtest.report.tracking.artifacts import file_tags, log_inputs, send_files, staged
from medtest.report.tracking.child import VALUE_LENGTH, Begun, Child, clean_params, metric_name
from medtest.report.tracking.making import make_run
from medtest.report.tracking.points import POINTS, UNKNOWN, as_points, held_points, new_metrics, note
from medtest.report.tracking.store import configure, ensure_store, is_remote, named, quiet, without_credentials
from medtest.runner.reporting import signals

if TYPE_CHECKING:
    from mlflow.entities import Metric

T = TypeVar("T")

FINISHED, FAILED = "FINISHED", "FAILED"
SENT = "sent"
"""The tag that is set last and identifies the complete content of a run."""
_PARENT = "mlflow.parentRunId"
_MOST_PARAMS, _MOST_TAGS, _MOST_METRICS = 90, 90, 800
"""Limits of one batch; MLflow accepts 100, 100 and 1,000, and 1,000 in total."""


@dataclass
class Parents:
    """Parent runs of an invocation, or of all jobs of a sweep, one per suite.

    Attributes:
        uri: Address of the store.
        runs: Run ids by suite.
        failed: Suites with a failed job.
        rows: Rows kept for each child from job to job, by suite, then by the child's name and view.
    """

    uri: str
    runs: dict[str, str] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)
    rows: dict[str, dict[tuple[str, str], Any]] = field(default_factory=dict)


class Tracker:
    """Writer of runs to one store.

    Args:
        home: Folder that holds ``mlruns/``.
        uri: Address of the store; None for the choice of :func:`store_uri`.

    Attributes:
        client: Client of the store, for direct logging during training.

    Raises:
        NotTracked: The store cannot be created, upgraded or reached.
    """

    def __init__(self, home: Path, uri: str | None = None) -> None:
        self.home = home
        self.uri = store_uri(home, uri)
        self._experiments: dict[str, str] = {}
        self._empty: dict[str, Any] = {}
        configure()
        ensure_store(self.uri, home)
        with self._problems(), quiet():
            from mlflow import MlflowClient

            self.client = MlflowClient(tracking_uri=self.uri)
            self.client.search_experiments(max_results=1)

    def parent(
        self,
        suite: str,
        name: str,
        tags: Mapping[str, str],
        parents: Parents | None = None,
        begun: Begun | None = None,
    ) -> Parents:
        """Return the parents including a parent run of this suite, created if needed.

        Args:
            suite: The suite; its experiment is created if needed.
            name: Name of the run.
            tags: Tags of the run.
            parents: Parents from an earlier job of the sweep.
            begun: Word recorded for the run.

        Raises:
            NotTracked: The store failed.
        """
        all_parents = parents if parents is not None and parents.uri == self.uri else Parents(uri=self.uri)
        if suite not in all_parents.runs:
            with self._problems(), quiet():
                all_parents.runs[suite] = str(self._make_run(self._experiment(suite), name, tags, begun).info.run_id)
        return all_parents

    def child(
        self, suite: str, parents: Parents, child: Child, on_created: Callable[[str], None] = lambda run_id: None
    ) -> str:
        """Write one child run, continuing the earlier one if the store still holds it; return its id.

        Args:
            suite: The suite.
            parents: The parent runs.
            child: The child run.
            on_created: Called with the run's id before anything is written to it.

        Raises:
            NotTracked: The store failed; the run is marked FAILED if possible.
        """
        with self._problems(), quiet():
            run = None
            try:
                with signals.held():  # A run created but not recorded would stay RUNNING.
                    run = self._run_of(suite, child, parents.runs[suite])
                    on_created(str(run.info.run_id))
                self._write(run, child)
            except BaseException:
                with contextlib.suppress(Exception):
                    if run is not None:
                        self.client.set_terminated(run.info.run_id, status=FAILED)
                raise
            with signals.held():  # As above.
                self.client.set_terminated(run.info.run_id, status=FINISHED if child.ended_well else FAILED)
            if not child.ended_well:
                parents.failed.add(suite)
            return str(run.info.run_id)

    def headline(self, parents: Parents, suite: str, metrics: Mapping[str, float], tags: Mapping[str, str]) -> None:
        """Write the summary of the children to a suite's parent run.

        Raises:
            NotTracked: The store failed.
        """
        with self._problems(), quiet():
            run_id = parents.runs[suite]
            run = self._empty.pop(run_id, None) or self.client.get_run(run_id)
            points = as_points(metrics)
            self._log(run_id, metrics=new_metrics(points, held_points(self.client, run, points)), tags=tags)

    def attach(self, run_id: str, files: Sequence[tuple[Path, str]]) -> None:
        """Add files to a run.

        Raises:
            NotTracked: The store failed.
        """
        with self._problems(), quiet():
            for path, place in files:
                if path.is_file():
                    self.client.log_artifact(run_id, str(path), place or None)

    def tag_model(self, name: str, version: str, tags: Mapping[str, str]) -> None:
        """Set tags of a registered model version.

        Raises:
            NotTracked: The registry failed, or denies access.
        """
        with self._problems(), quiet():
            for key, value in tags.items():
                self.client.set_model_version_tag(name, version, key, value)

    def point_alias(self, name: str, alias: str, version: str) -> None:
        """Point an alias of a registered model to a version.

        Raises:
            NotTracked: The registry failed, or denies access.
        """
        with self._problems(), quiet():
            self.client.set_registered_model_alias(name, alias, version)

    def sent(self, suite: str, run_id: str) -> str:
        """Return :attr:`Child.sent` of a run; "" if the store holds no such run or an incomplete one.

        Raises:
            NotTracked: The store failed.
        """
        with self._problems(), quiet():
            run = self._alive(run_id, self._experiment(suite))
            return "" if run is None or run.info.status == "RUNNING" else str(run.data.tags.get(SENT, ""))

    def go_on(self, suite: str, run_id: str) -> Parents | None:
        """Return the parents with the unfinished parent of an interrupted run; None if it ended well.

        Raises:
            NotTracked: The store failed.
        """
        with self._problems(), quiet():
            run = self._alive(run_id, self._experiment(suite)) if run_id else None
            if run is None or run.info.status == FINISHED:
                return None
            return Parents(uri=self.uri, runs={suite: run_id})

    def close(self, parents: Parents, *, failed: bool = False) -> None:
        """End the parent runs.

        Raises:
            NotTracked: The store failed.
        """
        with self._problems(), quiet(), signals.held():  # A run cut off here would stay RUNNING.
            for suite, run_id in parents.runs.items():
                bad = failed or suite in parents.failed
                self.client.set_terminated(run_id, status=FAILED if bad else FINISHED)

    def _experiment(self, suite: str) -> str:
        if suite not in self._experiments:
            self._experiments[suite] = self._find_experiment(suite)
        return self._experiments[suite]

    def _find_experiment(self, suite: str) -> str:
        from mlflow.exceptions import MlflowException

        experiment = self.client.get_experiment_by_name(suite)
        if experiment is not None and experiment.lifecycle_stage == "deleted":
            self.client.restore_experiment(experiment.experiment_id)
        if experiment is not None:
            runs_page.offer(self.client, experiment)
            return str(experiment.experiment_id)
        # A database store would put artifacts into the working directory unless it is given a folder.
        location = None if is_remote(self.uri) else (self.home / STORE / suite).resolve().as_uri()
        try:
            kind = {"mlflow.experimentKind": "custom_model_development"}  # otherwise the UI assumes a chat application
            tags = {**kind, **runs_page.tag()}
            return str(self.client.create_experiment(suite, artifact_location=location, tags=tags))
        except MlflowException:
            again = self.client.get_experiment_by_name(suite)  # another process created it meanwhile
            if again is None:
                raise
            return str(again.experiment_id)

    def _make_run(self, experiment: str, name: str, tags: Mapping[str, str], begun: Begun | None) -> Any:
        run = make_run(self.client, experiment, name, tags, begun)
        if not run.data.metrics:
            self._empty[str(run.info.run_id)] = run  # a new run is known to be empty
        return run

    def _run_of(self, suite: str, child: Child, parent: str) -> Any:
        experiment = self._experiment(suite)
        earlier = self._alive(child.run_id, experiment) if child.run_id is not None else None
        if earlier is not None and _can_continue(earlier, child):
            self.client.update_run(earlier.info.run_id, status="RUNNING", name=child.name)
            # Until the last batch arrives, the logged points are unknown.
            self._log(earlier.info.run_id, tags={_PARENT: parent, POINTS: UNKNOWN})
            return earlier
        run = self._make_run(experiment, child.name, {_PARENT: parent}, child.begun)
        if run.data.tags.get(_PARENT) != parent:  # an earlier attempt created it below another parent
            self.client.set_tag(run.info.run_id, _PARENT, parent)
        if (
            earlier is not None and runs_page.SYSTEM in earlier.data.tags
        ):  # it is kept, but loses its row on the runs page
            self.client.set_tag(earlier.info.run_id, "replaced_by", run.info.run_id)
            self.client.delete_tag(earlier.info.run_id, runs_page.SYSTEM)
        return run

    def _alive(self, run_id: str, experiment: str) -> Any:
        """Return the run, or None if it is not active in this experiment."""
        from mlflow.exceptions import MlflowException, RestException

        try:
            run = self.client.get_run(run_id)
        except RestException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            return None
        except MlflowException as error:
            if error.error_code not in {"RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"}:
                raise
            return None
        return run if run.info.lifecycle_stage == "active" and str(run.info.experiment_id) == experiment else None

    def _write(self, run: Any, child: Child) -> None:
        """Upload files first, then log everything else in one batch, whose last tag marks the run as complete."""
        run_id, existing = run.info.run_id, run.data.params
        log_inputs(self.client, run, child)
        with staged(child, run) as files:
            send_files(self.client, run, files)
        date = time.strftime("%Y-%m-%d %H:%M", time.gmtime(run.info.start_time / 1000))
        params = {key: value for key, value in clean_params(child.params).items() if key not in existing}
        points = as_points(child.metrics)
        held = held_points(self.client, run, points)
        tags = {**child.tags, **file_tags(child, run.data.tags), POINTS: note(points, held)}
        self._log(
            run_id,
            metrics=new_metrics(points, held),
            params=params if runs_page.DATE in existing else {**params, runs_page.DATE: date},
            tags={**tags, SENT: child.sent} if child.sent else tags,
        )

    def _log(
        self,
        run_id: str,
        *,
        metrics: Sequence[Metric] = (),
        params: Mapping[str, str] | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """Log everything in one batch or, if it is too long, in several with the last tags in the last one."""
        from mlflow.entities import Param, RunTag

        rest = list(metrics)
        options = [Param(key, value) for key, value in (params or {}).items()]
        labels = [RunTag(key, value[:VALUE_LENGTH]) for key, value in (tags or {}).items()]
        while len(rest) > _MOST_METRICS or len(options) > _MOST_PARAMS or len(labels) > _MOST_TAGS:
            batch = _first(rest, _MOST_METRICS), _first(options, _MOST_PARAMS), _first(labels, _MOST_TAGS)
            self.client.log_batch(run_id, *batch)
            rest, options, labels = rest[len(batch[0]) :], options[len(batch[1]) :], labels[len(batch[2]) :]
        self.client.log_batch(run_id, rest, options, labels)

    @contextlib.contextmanager
    def _problems(self) -> Iterator[None]:
        """Convert any error of the store or the network to :class:`NotTracked`."""
        try:
            yield
        except NotTracked:
            raise
        except Exception as error:
            place = named(self.home, self.uri)
            text = " ".join(without_credentials(str(error).replace(self.uri, place)).split())
            text = text.replace(str(self.home), "HOME")[:300]
            raise NotTracked(
                f"The results are complete on disk, but MLflow at {place} did not accept them: "
                f"{type(error).__name__}: {text}. "
                "The same command, or medtest track, sends them later; no case is run again."
            ) from error


def _first(items: list[T], most: int) -> list[T]:
    """Return the first items that do not fit into the last batch, at most one batch of them."""
    return items[: min(most, max(0, len(items) - most))]


def _can_continue(run: Any, child: Child) -> bool:
    """Return True if a run can hold a child's content: params cannot be changed, and metrics cannot be removed."""
    existing: Mapping[str, str] = run.data.params
    names: Set[str] = {metric_name(key) for key in child.metrics}
    return set(run.data.metrics) <= names and all(
        existing.get(key, value) == value for key, value in clean_params(child.params).items()
    )
