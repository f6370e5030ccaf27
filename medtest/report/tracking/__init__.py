"""MLflow access: runs, metrics, tables and pictures. Only the adapter of registered models imports mlflow beside it."""

from __future__ import annotations

from medtest.core.files.paths import local_uri, store_uri
from medtest.report.tracking.child import Begun, Child, flat_params, metric_name
from medtest.report.tracking.runs import FAILED, FINISHED, Parents, Tracker
from medtest.report.tracking.store import ensure_store, experiments, is_remote, prepare_store, where

__all__ = [
    "FAILED",
    "FINISHED",
    "Begun",
    "Child",
    "Parents",
    "Tracker",
    "ensure_store",
    "experiments",
    "flat_params",
    "is_remote",
    "local_uri",
    "metric_name",
    "prepare_store",
    "store_uri",
    "where",
]
