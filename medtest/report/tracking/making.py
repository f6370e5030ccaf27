"""Runs of MLflow, made once: a run whose making was never answered is found by the word that it was made under."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlflow import MlflowClient

    from medtest.report.tracking.child import Begun

BEGUN = "mlflow.medtest_begun"
"""A tag that MLflow's pages hide: :attr:`medtest.report.tracking.child.Begun.word`."""
_RETRIES = "MLFLOW_HTTP_REQUEST_MAX_RETRIES"
_MOST = 10


def make_run(
    client: MlflowClient, experiment: str, name: str, tags: Mapping[str, str], begun: Begun | None = None
) -> Any:
    """Return a run that was made, or that an earlier attempt made without learning its id.

    Args:
        client: The store's.
        experiment: Id of the experiment.
        name: Name of the run.
        tags: Its tags.
        begun: The word; None makes a run that is not looked for.
    """
    if begun is None:
        return client.create_run(experiment, run_name=name, tags=dict(tags))
    if begun.before and (run := _made_under(client, experiment, begun.word)) is not None:
        return run
    words = {**tags, BEGUN: begun.word}
    try:
        with _asked_once():  # a request that is sent again after its answer was lost makes a second run
            return client.create_run(experiment, run_name=name, tags=words)
    except Exception:  # noqa: BLE001 - whatever went wrong, the run may have been made
        if (run := _made_under(client, experiment, begun.word)) is not None:
            return run
    with _asked_once():
        return client.create_run(experiment, run_name=name, tags=words)


def _made_under(client: MlflowClient, experiment: str, word: str) -> Any:
    found = client.search_runs(
        [experiment], f"tags.`{BEGUN}` = '{word}'", max_results=_MOST, order_by=["attributes.start_time ASC"]
    )
    for second in found[1:]:  # both of two attempts arrived after all
        client.delete_run(second.info.run_id)
    return found[0] if found else None


@contextlib.contextmanager
def _asked_once() -> Iterator[None]:
    """Let MLflow send no request a second time."""
    before = os.environ.get(_RETRIES)
    os.environ[_RETRIES] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_RETRIES]
        else:
            os.environ[_RETRIES] = before
