"""Points of metrics not yet logged in a run; MLflow draws a point twice if it is logged twice."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from medtest.report.tracking.child import VALUE_LENGTH, metric_name

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Metric

POINTS = "mlflow.medtest_points"
"""A tag hidden by MLflow's pages: the points of a run whose last batch arrived completely, else :data:`UNKNOWN`."""
UNKNOWN = "null"

Points = dict[str, dict[int, float]]
"""Values by the metric's name, then by step."""


def as_points(metrics: Mapping[str, float | Mapping[int, float]]) -> Points:
    """Return metrics as points, a plain number at step 0; NaN is left out."""
    points: Points = {}
    for key, content in metrics.items():
        steps = content if isinstance(content, Mapping) else {0: content}
        points[metric_name(key)] = {step: value for step, value in steps.items() if value == value}
    return {name: steps for name, steps in points.items() if steps}


def held_points(client: MlflowClient, run: Any, points: Points) -> Points:
    """Return the logged points of some metrics, with one request per metric if the run's tag does not list them.

    Args:
        client: Client of the store.
        run: The run as returned by the store.
        points: Points to be logged.
    """
    latest: Mapping[str, float] = run.data.metrics
    noted: Mapping[str, Mapping[str, float]] | None = json.loads(run.data.tags.get(POINTS) or UNKNOWN)
    held: Points = {}
    for name in points.keys() & latest.keys():
        if noted is not None and name in noted:
            held[name] = {int(step): value for step, value in noted[name].items()}
        elif set(points[name]) == {0}:
            held[name] = {0: latest[name]}
        else:
            history = sorted(client.get_metric_history(run.info.run_id, name), key=lambda point: point.timestamp)
            held[name] = {point.step: point.value for point in history}
    return held


def new_metrics(points: Points, held: Points) -> list[Metric]:
    """Return the points that a run does not have yet.

    Args:
        points: Points to be logged.
        held: Points already logged.
    """
    from mlflow.entities import Metric

    now = int(time.time() * 1000)
    return [
        Metric(name, value, now, step)
        for name, steps in points.items()
        for step, value in steps.items()
        if held.get(name, {}).get(step) != value
    ]


def note(points: Points, held: Points) -> str:
    """Return the tag's text once ``points`` are logged; :data:`UNKNOWN` if it is too long for a tag."""
    shown = {name: held.get(name, {}) | steps for name, steps in points.items()}
    text = json.dumps(shown, separators=(",", ":"))
    return text if len(text) <= VALUE_LENGTH else UNKNOWN
