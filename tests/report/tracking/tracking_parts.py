"""Queries of a store for tests of tracking."""

from __future__ import annotations

from medtest.report import tracking


def client(home):
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=tracking.store_uri(home))


def runs(home):
    """Return (parents, children by system) of the suite's experiment."""
    store = client(home)
    experiment = store.get_experiment_by_name("synthetic")
    all_runs = store.search_runs([experiment.experiment_id], max_results=100)
    children = [run for run in all_runs if "mlflow.parentRunId" in run.data.tags]
    return [run for run in all_runs if run not in children], children
