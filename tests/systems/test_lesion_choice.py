from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtest.core.errors import BadOutput, MedtestError
from medtest.systems.adapters.libraries.lesion import (
    at_half,
    checked_scores,
    lesion_classes,
    lesion_map,
    resolved_activation,
)

SCENE = ("wall", "Polyp", "instrument", "polyp", "stool")


@pytest.mark.parametrize(
    ("choice", "names", "classes"),
    [
        (None, ("anything",), (0,)),
        (None, ("background", "polyp"), (1,)),
        (None, ("LABEL_0", "LABEL_1"), (1,)),
        (None, ("polyp", "Background"), (0,)),
        (2, SCENE, (2,)),
        ("INSTRUMENT ", SCENE, (2,)),
        ([1, 3, "stool", 1], SCENE, (1, 3, 4)),
    ],
)
def test_the_lesions_classes(choice: object, names: tuple[str, ...], classes: tuple[int, ...]) -> None:
    assert lesion_classes(choice, names, system="net") == classes


@pytest.mark.parametrize(
    ("choice", "names", "reason"),
    [
        (None, SCENE, r"5 classes.*systems\.net\.lesion=.*0 'wall', 1 'Polyp', 2 'instrument'"),
        (5, SCENE, r"no class 5.*0 'wall'"),
        (-1, SCENE, "no class -1"),
        ("instrumnt", SCENE, "did you mean instrument"),
        ("polyp", SCENE, "several classes are called 'polyp'"),
        ([], SCENE, "empty list"),
        ([0, 1], ("a", "b"), "every class"),
    ],
)
def test_what_cannot_be_chosen_is_refused_with_the_list(choice: object, names: tuple[str, ...], reason: str) -> None:
    with pytest.raises(MedtestError, match=reason):
        lesion_classes(choice, names, system="net")


def test_activations() -> None:
    import torch

    assert [resolved_activation("auto", count, system="n") for count in (1, 2, 3)] == ["sigmoid", "softmax", "winner"]
    for activation in ("softmax", "winner"):
        with pytest.raises(MedtestError, match="compares classes"):
            resolved_activation(activation, 1, system="n")
    scores = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 5, 8, 9)).astype(np.float32))
    shares = np.exp(scores.numpy()) / np.exp(scores.numpy()).sum(axis=1, keepdims=True)
    assert lesion_map(scores, (1, 3), "softmax").numpy() == pytest.approx(shares[:, [1, 3]].sum(axis=1), abs=1e-6)
    best = scores.numpy()[:, [1, 3]].max(axis=1)
    assert lesion_map(scores, (1, 3), "sigmoid").numpy() == pytest.approx(1 / (1 + np.exp(-best)), abs=1e-6)
    assert np.array_equal(lesion_map(scores, (1, 3), "none").numpy(), best)
    wins = np.isin(scores.numpy().argmax(axis=1), (1, 3))
    assert np.array_equal(lesion_map(scores, (1, 3), "winner").numpy() > 0.5, wins)
    two = scores[:, :2]
    assert lesion_map(two, (1,), "winner").numpy() == pytest.approx(lesion_map(two, (1,), "softmax").numpy(), abs=1e-6)


def test_invalid_scores_are_the_systems_fault() -> None:
    import torch

    for given_, reason in (
        ([1], "list where a tensor"),
        (torch.zeros(2, 3, 4), "shape"),
        (torch.zeros(1, 2, 4, 4), "shape"),
        (torch.zeros(2, 3, 4, 4), "3 classes where its files promise 2"),
    ):
        with pytest.raises(BadOutput, match=reason):
            checked_scores(given_, 2, 2)


@given(
    st.lists(st.floats(0, 1, width=32), min_size=1, max_size=40),
    st.floats(0.001, 0.999),
    st.integers(0, 39),
)
def test_a_moved_threshold_keeps_the_mask_and_the_order(values: list[float], threshold: float, tie: int) -> None:
    probability = np.array([*values, np.float32(threshold)], np.float32)
    moved = at_half(probability, threshold)
    assert np.array_equal(moved > 0.5, probability.astype(np.float64) > threshold)
    assert moved.min() >= 0
    assert moved.max() <= 1
    order = np.argsort(probability, kind="stable")
    assert (np.diff(moved[order]) >= 0).all()
    assert np.isnan(at_half(np.array([np.nan], np.float32), 0.3)).all()
