"""MLflow's page of runs as medtest opens it: one row a system, the figures that matter as columns, newest first.

The state of that page lies in a tag of the experiment, and a link names the tag's key. MLflow's own format of a shared
view; of several experiments on one page it reads the first one's tag, so that all of them have it.
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
"""Metrics that every system's run has, as far as it has any such figure: rates in percent, a mean score."""
SUITE, DATE = "suite", "date"
"""Params of a system's run: MLflow sorts by params and metrics, not by tags."""
WEAKEST, GATE, SYSTEM = "weakest_relation", "gate", "system"
"""Tags of a system's run; parents lack the last one, by which systems are told from them."""

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
"""Columns as MLflow writes them, from left to right, with their widths in pixels. A screen of 1280 pixels on which
MLflow's assistant stands open shows some 640 of them: what decides comes first."""
_MOST = 60
"""Experiments in one link: an address has an end."""


def state() -> dict[str, Any]:
    """Return what the page shows: its rows, their order and its columns."""
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
    """Return the tag of an experiment that holds the page's state."""
    return {TAG: json.dumps(state(), separators=(",", ":"))}


def offer(client: MlflowClient, experiment: Experiment) -> None:
    """Give an experiment the page's state, where it has none or that of another version."""
    for key, text in tag().items():
        if experiment.tags.get(key) != text:
            client.set_experiment_tag(experiment.experiment_id, key, text)


def link(base: str, numbers: Sequence[str]) -> str:
    """Return the address of the page that shows the runs of one experiment or of several.

    Args:
        base: Address of the server.
        numbers: Ids of experiments, the newest first; what is beyond 60 is left out.
    """
    view = f"viewStateShareKey={KEY}&workflowType=machine_learning"
    if len(numbers) == 1:
        return f"{base}/#/experiments/{numbers[0]}/runs?{view}"
    listed = quote(json.dumps(list(numbers[:_MOST]), separators=(",", ":")))
    return f"{base}/#/compare-experiments/s?experiments={listed}&{view}"
