"""What a run found, in MLflow.

One experiment a suite, one parent run an invocation (a sweep has one parent for each of its suites), a child run for
each system and view. Runs are written through a client with their ids, so nothing of this process (user, script, paths,
git) is attached to them.
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
from medtest.report.tracking.child import Begun, Child
from medtest.report.tracking.making import make_run
from medtest.report.tracking.params import VALUE_LENGTH, clean_params, metric_name
from medtest.report.tracking.points import POINTS, UNKNOWN, Points, as_points, held_points, new_metrics, note
from medtest.report.tracking.store import (
    configure,
    ensure_store,
    is_remote,
    named,
    quiet,
    without_credentials,
)
from medtest.runner.reporting import signals

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Metric

T = TypeVar("T")

FINISHED, FAILED = "FINISHED", "FAILED"
SENT = "sent"
"""The tag that is set last: what a run holds whole."""
_PARENT = "mlflow.parentRunId"
_MOST_PARAMS, _MOST_TAGS, _MOST_METRICS = 90, 90, 800
"""Of one batch; MLflow takes 100, 100 and 1,000, and 1,000 of all together."""


@dataclass
class Parents:
    """The parent runs of an invocation, or of all jobs of a sweep: one for each suite.

    Attributes:
        uri: The store they lie in.
        runs: Run ids by suite.
        failed: Suites of which a job ended badly.
        rows: What whoever tracks keeps of each child from job to job, by suite, then by the child's name and
            view.
    """

    uri: str
    runs: dict[str, str] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)
    rows: dict[str, dict[tuple[str, str], Any]] = field(default_factory=dict)


class Tracker:
    """Writes runs to one store.

    Args:
        home: Folder that holds ``mlruns/``.
        uri: The store; None for :func:`store_uri`'s choice.

    Raises:
        NotTracked: The store cannot be made, upgraded or reached.
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

            self._client = MlflowClient(tracking_uri=self.uri)
            self._client.search_experiments(max_results=1)

    @property
    def client(self) -> MlflowClient:
        """The store's client, for what writes its runs point by point (training)."""
        return self._client

    def parent(
        self,
        suite: str,
        name: str,
        tags: Mapping[str, str],
        parents: Parents | None = None,
        begun: Begun | None = None,
    ) -> Parents:
        """Return the parents with a parent run of this suite among them, made if there is none yet.

        Args:
            suite: The suite; its experiment is made if need be.
            name: Name of the run.
            tags: Its tags.
            parents: What an earlier job of the sweep got.
            begun: The word that the run is made under.

        Raises:
            NotTracked: The store failed.
        """
        known = parents if parents is not None and parents.uri == self.uri else Parents(uri=self.uri)
        if suite not in known.runs:
            with self._problems(), quiet():
                known.runs[suite] = str(self._made(self._experiment(suite), name, tags, begun).info.run_id)
        return known

    def child(
        self, suite: str, parents: Parents, child: Child, known: Callable[[str], None] = lambda run_id: None
    ) -> str:
        """Write one child run, going on with the one it had where the store still holds it; return its id.

        Args:
            suite: The suite.
            parents: The parent runs.
            child: What is written.
            known: Is told the run's id before anything is written to it.

        Raises:
            NotTracked: The store failed; the run is marked FAILED where that can still be done.
        """
        with self._problems(), quiet():
            run = None
            try:
                with signals.held():  # a run that is made and not known would stay RUNNING
                    run = self._run_of(suite, child, parents.runs[suite])
                    known(str(run.info.run_id))
                self._write(run, child)
            except BaseException:
                with contextlib.suppress(Exception):
                    if run is not None:
                        self._client.set_terminated(run.info.run_id, status=FAILED)
                raise
            self._client.set_terminated(run.info.run_id, status=FINISHED if child.ended_well else FAILED)
            if not child.ended_well:
                parents.failed.add(suite)
            return str(run.info.run_id)

    def headline(self, parents: Parents, suite: str, metrics: Mapping[str, float], tags: Mapping[str, str]) -> None:
        """Let a suite's parent run say what its children found.

        Raises:
            NotTracked: The store failed.
        """
        with self._problems(), quiet():
            run_id = parents.runs[suite]
            run = self._empty.pop(run_id, None) or self._client.get_run(run_id)
            points = as_points(metrics)
            self._log(run_id, metrics=self._new(points, held_points(self._client, run, points)), tags=tags)

    def attach(self, run_id: str, files: Sequence[tuple[Path, str]]) -> None:
        """Add files to a run.

        Raises:
            NotTracked: The store failed.
        """
        with self._problems(), quiet():
            for path, place in files:
                if path.is_file():
                    self._client.log_artifact(run_id, str(path), place or None)

    def tag_model(self, name: str, version: str, tags: Mapping[str, str]) -> None:
        """Set tags of a version of the registry.

        Raises:
            NotTracked: The registry failed, or does not let this user.
        """
        with self._problems(), quiet():
            for key, value in tags.items():
                self._client.set_model_version_tag(name, version, key, value)

    def point_alias(self, name: str, alias: str, version: str) -> None:
        """Let an alias of a registered model name a version, whichever it named before.

        Raises:
            NotTracked: The registry failed, or does not let this user.
        """
        with self._problems(), quiet():
            self._client.set_registered_model_alias(name, alias, version)

    def sent(self, suite: str, run_id: str) -> str:
        """Return :attr:`Child.sent` of a run; "" where the store holds no such run, or half of one.

        Raises:
            NotTracked: The store failed.
        """
        with self._problems(), quiet():
            run = self._alive(run_id, self._experiment(suite))
            return "" if run is None or run.info.status == "RUNNING" else str(run.data.tags.get(SENT, ""))

    def go_on(self, suite: str, run_id: str) -> Parents | None:
        """Return the parents with the run that was to stand above a run which was broken off; None where it ended well.

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
        with self._problems(), quiet():
            for suite, run_id in parents.runs.items():
                bad = failed or suite in parents.failed
                self._client.set_terminated(run_id, status=FAILED if bad else FINISHED)

    def _experiment(self, suite: str) -> str:
        if suite not in self._experiments:
            self._experiments[suite] = self._find_experiment(suite)
        return self._experiments[suite]

    def _find_experiment(self, suite: str) -> str:
        from mlflow.exceptions import MlflowException

        found = self._client.get_experiment_by_name(suite)
        if found is not None and found.lifecycle_stage == "deleted":
            self._client.restore_experiment(found.experiment_id)
        if found is not None:
            runs_page.offer(self._client, found)
            return str(found.experiment_id)
        # a store that is no server takes the working directory for artifacts, unless it is told a folder
        location = None if is_remote(self.uri) else (self.home / STORE / suite).resolve().as_uri()
        try:
            kind = {"mlflow.experimentKind": "custom_model_development"}  # else the UI takes it for a chat application
            tags = {**kind, **runs_page.tag()}
            return str(self._client.create_experiment(suite, artifact_location=location, tags=tags))
        except MlflowException:
            again = self._client.get_experiment_by_name(suite)  # another process made it meanwhile
            if again is None:
                raise
            return str(again.experiment_id)

    def _made(self, experiment: str, name: str, tags: Mapping[str, str], begun: Begun | None) -> Any:
        run = make_run(self._client, experiment, name, tags, begun)
        if not run.data.metrics:
            self._empty[str(run.info.run_id)] = run  # what it holds is known without asking
        return run

    def _run_of(self, suite: str, child: Child, parent: str) -> Any:
        experiment = self._experiment(suite)
        earlier = self._alive(child.run_id, experiment) if child.run_id is not None else None
        if earlier is not None and _goes_on(earlier, child):
            self._client.update_run(earlier.info.run_id, status="RUNNING", name=child.name)
            # until the last batch arrived nobody can say which points the run shows
            self._log(earlier.info.run_id, tags={_PARENT: parent, POINTS: UNKNOWN})
            return earlier
        run = self._made(experiment, child.name, {_PARENT: parent}, child.begun)
        if run.data.tags.get(_PARENT) != parent:  # an earlier attempt made it, below a parent of its own
            self._client.set_tag(run.info.run_id, _PARENT, parent)
        if earlier is not None and runs_page.SYSTEM in earlier.data.tags:  # it is kept, and no row of its own any more
            self._client.set_tag(earlier.info.run_id, "replaced_by", run.info.run_id)
            self._client.delete_tag(earlier.info.run_id, runs_page.SYSTEM)
        return run

    def _alive(self, run_id: str, experiment: str) -> Any:
        """Return the run, or None where the store does not hold it alive in this experiment."""
        from mlflow.exceptions import MlflowException, RestException

        try:
            run = self._client.get_run(run_id)
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
        """Send files first, then all that is said of them in one batch, whose last tag says that it is whole."""
        run_id, kept = run.info.run_id, run.data.params
        log_inputs(self._client, run, child)
        with staged(child, run) as files:
            send_files(self._client, run, files)
        date = time.strftime("%Y-%m-%d %H:%M", time.gmtime(run.info.start_time / 1000))
        params = {key: value for key, value in clean_params(child.params).items() if key not in kept}
        points = as_points(child.metrics)
        held = held_points(self._client, run, points)
        tags = {**child.tags, **file_tags(child, run.data.tags), POINTS: note(points, held)}
        self._log(
            run_id,
            metrics=self._new(points, held),
            params=params if runs_page.DATE in kept else {**params, runs_page.DATE: date},
            tags={**tags, SENT: child.sent} if child.sent else tags,
        )

    def _new(self, points: Points, held: Points) -> list[Metric]:
        return new_metrics(points, held, int(time.time() * 1000))

    def _log(
        self,
        run_id: str,
        *,
        metrics: Sequence[Metric] = (),
        params: Mapping[str, str] | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """Log all of it in one batch, or where it is too long for one the last tags in the last."""
        from mlflow.entities import Param, RunTag

        rest = list(metrics)
        options = [Param(key, value) for key, value in (params or {}).items()]
        labels = [RunTag(key, value[:VALUE_LENGTH]) for key, value in (tags or {}).items()]
        while len(rest) > _MOST_METRICS or len(options) > _MOST_PARAMS or len(labels) > _MOST_TAGS:
            batch = _first(rest, _MOST_METRICS), _first(options, _MOST_PARAMS), _first(labels, _MOST_TAGS)
            self._client.log_batch(run_id, *batch)
            rest, options, labels = rest[len(batch[0]) :], options[len(batch[1]) :], labels[len(batch[2]) :]
        self._client.log_batch(run_id, rest, options, labels)

    @contextlib.contextmanager
    def _problems(self) -> Iterator[None]:
        """Put whatever the store or the network raises in words."""
        try:
            yield
        except NotTracked:
            raise
        except Exception as error:
            place = named(self.home, self.uri)
            text = " ".join(without_credentials(str(error).replace(self.uri, place)).split())
            text = text.replace(str(self.home), "HOME")[:300]
            raise NotTracked(
                f"Results are whole on disk, but MLflow at {place} could not take them: "
                f"{type(error).__name__}: {text}. "
                "The same command, or medtest track, sends them later; no case is run again."
            ) from error


def _first(items: list[T], most: int) -> list[T]:
    """Return the first items of those that the last batch has no room for, a batch of them at most."""
    return items[: min(most, max(0, len(items) - most))]


def _goes_on(run: Any, child: Child) -> bool:
    """Whether a run can hold what a child holds: params can never be changed, and metrics never be taken back."""
    kept: Mapping[str, str] = run.data.params
    names: Set[str] = {metric_name(key) for key in child.metrics}
    return set(run.data.metrics) <= names and all(
        kept.get(key, value) == value for key, value in clean_params(child.params).items()
    )
