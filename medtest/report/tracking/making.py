"""Creation of MLflow runs exactly once, even if the response to an attempt is lost.

A word is recorded in a tag before the attempt, by which the run is found later.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlflow import MlflowClient

    from medtest.report.tracking.child import Begun

BEGUN = "mlflow.medtest_begun"
"""A tag hidden by MLflow's pages: :attr:`medtest.report.tracking.child.Begun.word`."""
_RETRIES = "MLFLOW_HTTP_REQUEST_MAX_RETRIES"
_MOST = 10


def make_run(
    client: MlflowClient, experiment: str, name: str, tags: Mapping[str, str], begun: Begun | None = None
) -> Any:
    """Return a new run, or the one that an earlier attempt created without learning its id.

    Args:
        client: Client of the store.
        experiment: Id of the experiment.
        name: Name of the run.
        tags: Tags of the run.
        begun: The word; None creates a run without looking for an earlier one.
    """
    if begun is None:
        return client.create_run(experiment, run_name=name, tags=dict(tags))
    if begun.before and (run := _run_with_word(client, experiment, begun.word)) is not None:
        return run
    words = {**tags, BEGUN: begun.word}
    try:
        with _without_retries():  # A retried request whose first response was lost would create a second run.
            return client.create_run(experiment, run_name=name, tags=words)
    except Exception:  # noqa: BLE001 - the run may have been created despite any error
        if (run := _run_with_word(client, experiment, begun.word)) is not None:
            return run
    with _without_retries():
        return client.create_run(experiment, run_name=name, tags=words)


def _run_with_word(client: MlflowClient, experiment: str, word: str) -> Any:
    runs = client.search_runs(
        [experiment], f"tags.`{BEGUN}` = '{word}'", max_results=_MOST, order_by=["attributes.start_time ASC"]
    )
    for second in runs[1:]:  # both attempts succeeded
        client.delete_run(second.info.run_id)
    return runs[0] if runs else None


@contextlib.contextmanager
def _without_retries() -> Iterator[None]:
    """Keep MLflow from retrying requests."""
    before = os.environ.get(_RETRIES)
    os.environ[_RETRIES] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_RETRIES]
        else:
            os.environ[_RETRIES] = before
