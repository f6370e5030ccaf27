"""Sample pictures on few sheets, and points of metrics that are never logged twice."""

from __future__ import annotations

from dataclasses import replace

import pytest
from mlflow import MlflowClient
from PIL import Image
from tracking_parts import client

from medtest.report import tracking
from medtest.report.tracking.points import POINTS, UNKNOWN
from medtest.report.tracking.sheets import sheets


def _pictures(folder, **kinds):
    logged = []
    for kind, number in kinds.items():
        for index in range(number):
            path = folder / f"{kind}{index}.png"
            Image.new("RGB", (40, 10), (index, 0, 0)).save(path)
            logged.append((f"samples/{kind}", path))
    return logged


@pytest.mark.parametrize(
    ("kinds", "heights"),
    [
        ({}, []),
        ({"worst": 1}, [("worst", 0, 1)]),
        ({"worst": 2, "median": 1}, [("worst", 0, 2), ("median", 0, 1)]),
        ({"worst": 14, "median": 6}, [("worst", 0, 7), ("worst", 1, 7), ("median", 0, 6)]),
        ({"worst": 14, "median": 6, "error": 1}, [("worst", 0, 10), ("median", 0, 6), ("error", 0, 1)]),
        ({"worst": 50}, [("worst", 0, 10), ("worst", 1, 10), ("worst", 2, 10)]),
        ({"a": 1, "b": 1, "c": 1, "d": 9}, [("a", 0, 1), ("b", 0, 1), ("c", 0, 1)]),
    ],
)
def test_pictures_are_in_order_on_three_sheets_at_most(tmp_path, kinds, heights):
    drawn_sheets = list(sheets(_pictures(tmp_path, **kinds)))
    assert [(key, step, (image.height + 12) // 22) for key, step, image in drawn_sheets] == [
        (f"samples/{kind}", step, rows) for kind, step, rows in heights
    ]
    for key in {group for group, _, _ in drawn_sheets}:
        own = [image for group, _, image in drawn_sheets if group == key]
        reds = [image.getpixel((0, top))[0] for image in own for top in range(0, image.height, 22)]
        assert reds == list(range(len(reds)))


@pytest.mark.slow
def test_points_are_logged_once_even_where_a_send_broke_off_before_its_last_tag(home, monkeypatch):
    tracker = tracking.Tracker(home)
    parents = tracker.parent("synthetic", "above", {})
    curve = {step: float(step) for step in range(1, 6)}
    child = tracking.Child(name="net", tags={"system": "net"}, metrics={"efr": 1.0, "efr/blur": curve, "cost": 0.5})
    run = tracker.child("synthetic", parents, child)
    asked_keys = []
    history = MlflowClient.get_metric_history
    monkeypatch.setattr(
        MlflowClient, "get_metric_history", lambda *arguments: asked_keys.append(arguments[2]) or history(*arguments)
    )
    changed = replace(child, run_id=run, metrics={**child.metrics, "efr": 2.0, "efr/blur": {**curve, 3: 9.0}})
    assert tracker.child("synthetic", parents, changed) == run
    assert asked_keys == []  # the run itself says which points it shows
    client(home).set_tag(run, POINTS, UNKNOWN)
    assert tracker.child("synthetic", parents, changed) == run
    assert asked_keys == ["efr/blur"]
    points = sorted((point.step, point.value) for point in history(client(home), run, "efr/blur"))
    assert points == [(1, 1.0), (2, 2.0), (3, 3.0), (3, 9.0), (4, 4.0), (5, 5.0)]
    assert [point.value for point in history(client(home), run, "efr")] == [1.0, 2.0]
    assert len(history(client(home), run, "cost")) == 1
    tracker.close(parents)


def test_a_run_with_more_than_one_batch_holds_all_of_it(home):
    tracker = tracking.Tracker(home)
    parents = tracker.parent("synthetic", "above", {})
    tags, params = ({f"{kind}{number}": "x" for number in range(205)} for kind in ("tag", "param"))
    metrics = {"efr": {step: float(step) for step in range(1700)}}
    child = tracking.Child(name="net", tags=tags, params=params, metrics=metrics, sent="ab" * 32)
    run = client(home).get_run(tracker.child("synthetic", parents, child))
    assert tags.items() <= run.data.tags.items() and params.items() <= run.data.params.items()
    assert len(client(home).get_metric_history(run.info.run_id, "efr")) == 1700
    assert run.data.tags[POINTS] == UNKNOWN  # too long for a tag
    assert tracker.sent("synthetic", run.info.run_id) == "ab" * 32
    tracker.close(parents)
