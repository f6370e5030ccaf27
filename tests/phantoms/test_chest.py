"""Chest phantoms: each finding is as frequent as stated, independent, and leaves a trace in its place."""

from __future__ import annotations

from functools import cache

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from medtest.phantoms.chest import NAMES, judge, make, plan
from medtest.phantoms.chest import generator as generator_module
from medtest.phantoms.classes import CHEST_PREVALENCE
from medtest.phantoms.labelled import LabelledPhantom, stream

COUNT = 4000


@cache
def planned() -> NDArray[np.bool_]:
    """Return the findings of 4,000 phantoms, COUNT×14."""
    table = np.zeros((COUNT, len(NAMES)), np.bool_)
    for index in range(COUNT):
        for name in plan.plan_findings(stream(4, "chest", index, "findings"), CHEST_PREVALENCE):
            table[index, NAMES.index(name)] = True
    return table


def test_every_finding_is_as_frequent_as_stated() -> None:
    for k, name in enumerate(NAMES):
        share = CHEST_PREVALENCE[name]
        assert 0.08 <= share <= 0.15
        # Four standard errors of a binomial share.
        assert abs(planned()[:, k].mean() - share) < 4.0 * (share * (1 - share) / COUNT) ** 0.5


def test_findings_are_independent() -> None:
    correlation = np.corrcoef(planned().T.astype(np.float64)) - np.eye(len(NAMES))
    assert np.abs(correlation).max() < 4.5 / COUNT**0.5


def test_plan_is_what_is_labelled() -> None:
    for index in range(60):
        phantom = make(index, 4, size=128)
        expected = tuple(name for k, name in enumerate(NAMES) if planned()[index, k])
        assert phantom.labels == expected == judge(phantom.facts)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"cardiothoracic_ratio": 0.5, "round_opacities": [], "traces": {}}, ()),
        ({"cardiothoracic_ratio": 0.51, "round_opacities": [], "traces": {}}, ("cardiomegaly",)),
        ({"cardiothoracic_ratio": 0.4, "round_opacities": [{"diameter_mm": 30.0}], "traces": {}}, ("nodule",)),
        ({"cardiothoracic_ratio": 0.4, "round_opacities": [{"diameter_mm": 30.1}], "traces": {}}, ("mass",)),
        (
            {
                "cardiothoracic_ratio": 0.4,
                "round_opacities": [{"diameter_mm": 60.0}, {"diameter_mm": 9.0}],
                "traces": {"hernia": {}, "effusion": {}},
            },
            ("effusion", "mass", "nodule", "hernia"),
        ),
    ],
)
def test_labels_follow_from_facts(facts: dict[str, object], expected: tuple[str, ...]) -> None:
    assert judge(facts) == expected


def with_only(monkeypatch: pytest.MonkeyPatch, name: str | None, index: int) -> LabelledPhantom:
    """Return the same patient with one finding, or with none."""
    only = {key: 1.0 if key == name else 0.0 for key in CHEST_PREVALENCE}
    monkeypatch.setattr(generator_module, "CHEST_PREVALENCE", only)
    return make(index, 12, size=192)


def change(monkeypatch: pytest.MonkeyPatch, name: str, index: int) -> NDArray[np.float64]:
    """Return the change by a finding in a patient's picture, in grey levels, smoothed."""
    sick, healthy = (with_only(monkeypatch, only, index).image[..., 0].astype(np.float64) for only in (name, None))
    return cv2.blur(sick - healthy, (5, 5))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_finding_leaves_its_own_trace(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for index in range(6):
        phantom = with_only(monkeypatch, name, index)
        assert phantom.labels == (name,)
        difference = np.abs(change(monkeypatch, name, index))
        # Plain somewhere, and not all over the picture.
        assert difference.max() > 8
        assert np.mean(difference > 4) < 0.5


def halves(difference: NDArray[np.float64]) -> tuple[float, float]:
    """Return the amount of change in the picture's left and right half."""
    middle = difference.shape[1] // 2
    return float(np.abs(difference[:, :middle]).sum()), float(np.abs(difference[:, middle:]).sum())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["effusion", "pneumonia", "consolidation", "pneumothorax", "pleural_thickening"])
def test_side_is_the_stated_one(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The patient's right is the picture's left."""
    checked = 0
    for index in range(10):
        traces = with_only(monkeypatch, name, index).facts["traces"]
        assert isinstance(traces, dict)
        trace = traces[name]
        assert isinstance(trace, dict)
        if trace["side"] == "both":
            continue
        first, second = halves(change(monkeypatch, name, index))
        checked += 1
        assert (first > second) == (trace["side"] == "right")
    assert checked >= 4


@pytest.mark.slow
def test_air_is_dark_and_fluid_is_bright(monkeypatch: pytest.MonkeyPatch) -> None:
    """The effect of a finding on most of the pixels that it changes."""
    brighter = {name: [] for name in ("effusion", "consolidation", "mass", "edema", "pneumothorax", "emphysema")}
    for name, signs in brighter.items():
        for index in range(8):
            difference = change(monkeypatch, name, index)
            signs.append(float(difference[np.abs(difference) > 4].sum()) > 0)
    for name in ("effusion", "consolidation", "mass", "edema"):
        assert np.mean(brighter[name]) >= 0.85, name
    for name in ("pneumothorax", "emphysema"):
        assert np.mean(brighter[name]) <= 0.3, name


def test_heart_is_as_wide_as_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cardiomegaly makes the heart's shadow wider: changes are at the sides of the heart."""
    for index in range(6):
        difference = change(monkeypatch, "cardiomegaly", index)
        rows, columns = np.nonzero(np.abs(difference) > 6)
        assert 0.3 * 192 < rows.mean() < 0.75 * 192
        assert 0.3 * 192 < columns.mean() < 0.75 * 192
