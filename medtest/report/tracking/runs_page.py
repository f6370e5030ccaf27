"""Preset view of MLflow's runs page: one row per system, key figures as columns, newest first.

The view is stored in a tag of the experiment, and a link names the tag's key (MLflow's own format of shared views). For
several experiments on one page, MLflow reads the tag of the first one, so all of them have it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Experiment

HEADLINE = ("efr", "efr_low", "efr_high", "floor", "source_score")
"""Metrics of every system's run, if available: rates in percent, a mean score."""
SUITE, DATE = "suite", "date"
"""Params of a system's run; MLflow sorts by params and metrics, but not by tags."""
WEAKEST, GATE, SYSTEM = "weakest_relation", "gate", "system"
"""Tags of a system's run; the last one distinguishes systems from parents."""

KEY = "medtest"
TAG = f"mlflow.sharedViewState.{KEY}"
_NAME, _CREATED, _DURATION = "attributes.`Run Name`", "runDateAndNestInfo", "duration"
"""Columns that MLflow always shows."""
_WIDTHS = {
    _NAME: 182,
    "metrics.`efr`": 60,
    f"tags.`{GATE}`": 74,
    f"tags.`{WEAKEST}`": 132,
    "metrics.`efr_low`": 64,
    "metrics.`efr_high`": 70,
    "metrics.`floor`": 58,
    "metrics.`source_score`": 96,
    f"params.`{SUITE}`": 105,
    f"params.`{DATE}`": 128,
    _CREATED: 78,
    _DURATION: 74,
}
"""Columns in MLflow's format, from left to right, with their widths in pixels.

Beside MLflow's assistant, a screen of 1280 pixels shows about 640 of them, so the most important come first.
"""
_MOST = 60
"""Maximum number of experiments in one link, since addresses are limited in length."""


def state() -> dict[str, Any]:
    """Return the state of the page: its rows, their order and its columns."""
    return {
        "searchFilter": f"tags.{SYSTEM} != ''",
        "orderByKey": f"params.`{DATE}`",
        "orderByAsc": False,
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "datasetsFilter": [],
        "modelVersionFilter": "All Runs",
        "selectedColumns": [name for name in _WIDTHS if name not in (_NAME, _CREATED, _DURATION)],
        "columnOrder": list(_WIDTHS),
        "columnWidths": _WIDTHS,
    }


def tag() -> dict[str, str]:
    """Return the experiment tag with the page's state."""
    return {TAG: json.dumps(state(), separators=(",", ":"))}


def offer(client: MlflowClient, experiment: Experiment) -> None:
    """Set the page's state on an experiment, unless it is up to date."""
    for key, text in tag().items():
        if experiment.tags.get(key) != text:
            client.set_experiment_tag(experiment.experiment_id, key, text)


def link(base: str, numbers: Sequence[str]) -> str:
    """Return the address of the runs page for one or several experiments.

    Args:
        base: Address of the server.
        numbers: Ids of experiments, newest first; those beyond 60 are left out.
    """
    view = f"viewStateShareKey={KEY}&workflowType=machine_learning"
    if len(numbers) == 1:
        return f"{base}/#/experiments/{numbers[0]}/runs?{view}"
    listed = quote(json.dumps(list(numbers[:_MOST]), separators=(",", ":")))
    return f"{base}/#/compare-experiments/s?experiments={listed}&{view}"
