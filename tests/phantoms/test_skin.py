"""Dermoscopy phantoms: the published rule, and lesions that fit their signs."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtest.phantoms.labelled import LabelledPhantom
from medtest.phantoms.skin import abcd, judge, make


@pytest.mark.parametrize(
    ("signs", "score"),
    [
        # Worked by hand from the weights of Nachbar et al. 1994: 1.3 A + 0.1 B + 0.5 C + 0.5 D.
        ((0, 0, 1, 1), 1.0),
        ((2, 8, 6, 5), 8.9),
        ((1, 3, 2, 3), 4.1),
        ((2, 4, 4, 4), 7.0),
        ((1, 6, 3, 3), 4.9),
    ],
)
def test_score_is_the_published_sum(signs: tuple[int, int, int, int], score: float) -> None:
    assert abcd.total_score(*signs) == pytest.approx(score, abs=1e-12)


def test_judge_has_the_published_limits() -> None:
    def facts(asymmetry: int, border: int, colours: int, structures: int) -> dict[str, object]:
        return {
            "asymmetry": asymmetry,
            "border": border,
            "colours": list(abcd.COLOURS[:colours]),
            "structures": list(abcd.STRUCTURES[:structures]),
        }

    assert judge(facts(2, 1, 2, 2)) == "benign"  # 4.7
    assert judge(facts(2, 4, 3, 2)) == "melanoma"  # 5.5
    with pytest.raises(ValueError, match="neither"):
        judge(facts(2, 2, 2, 2))  # 4.8
    with pytest.raises(ValueError, match="neither"):
        judge(facts(2, 3, 3, 2))  # 5.4


@given(seed=st.integers(0, 2**40), label=st.sampled_from(["benign", "melanoma"]))
def test_drawn_signs_belong_to_the_class(seed: int, label: str) -> None:
    signs = abcd.draw_signs(np.random.default_rng(seed), label)
    assert (signs.score < 4.75) == (label == "benign")
    assert (signs.score > 5.45) == (label == "melanoma")
    assert len(set(signs.colours)) == len(signs.colours) >= 1
    assert len(set(signs.structures)) == len(signs.structures) >= 1
    assert len(signs.border) == 8


def mirrored_overlap(mask: np.ndarray) -> float:
    """Return the Dice of a mask with its best mirror image through the centroid, over 18 axes."""
    rows, columns = np.nonzero(mask)
    size = mask.shape[0]
    best = 0.0
    for degrees in range(0, 180, 10):
        turn = cv2.getRotationMatrix2D((columns.mean(), rows.mean()), degrees, 1.0)
        turn[:, 2] += np.array([(size - 1) / 2 - columns.mean(), (size - 1) / 2 - rows.mean()])
        turned = cv2.warpAffine(mask.astype(np.uint8), turn, (size, size)) > 0
        best = max(best, 2.0 * (turned & turned[:, ::-1]).sum() / (2.0 * turned.sum()))
    return best


def test_outlines_are_as_asymmetric_as_stated() -> None:
    by_axes: dict[int, list[float]] = {0: [], 1: [], 2: []}
    for index in range(120):
        phantom = make(index, 3, size=128)
        assert phantom.mask is not None
        axes = phantom.facts["asymmetry"]
        if phantom.mask.sum() > 500:
            by_axes[int(str(axes))].append(mirrored_overlap(phantom.mask))
    assert min(len(values) for values in by_axes.values()) >= 10
    none, single, double = (float(np.mean(by_axes[axes])) for axes in (0, 1, 2))
    assert none > double + 0.01
    assert single > double + 0.01
    assert none > 0.93


def variegation(phantom: LabelledPhantom) -> float:
    """Return the spread of colour inside the lesion."""
    assert phantom.mask is not None
    smooth = cv2.blur(phantom.image, (5, 5)).astype(np.float64)
    return float(smooth[phantom.mask].std(axis=0).sum())


def test_more_colours_are_more_variegated() -> None:
    few, many = [], []
    for index in range(120):
        phantom = make(index, 4, size=128)
        colours = phantom.facts["colours"]
        assert isinstance(colours, list)
        if phantom.mask is not None and phantom.mask.sum() > 500:
            (few if len(colours) <= 2 else many if len(colours) >= 4 else []).append(variegation(phantom))
    assert np.mean(many) > 1.2 * np.mean(few)


def test_classes_overlap() -> None:
    """Neither a single sign nor size separates the classes."""
    benign = [make(index, 2, size=128) for index in range(100)]
    for key in ("asymmetry", "border"):
        values = {label: {m.facts[key] for m in benign if m.labels == (label,)} for label in ("benign", "melanoma")}
        assert values["benign"] & values["melanoma"]
    radius = {
        label: np.mean([float(str(m.facts["radius"])) for m in benign if m.labels == (label,)])
        for label in ("benign", "melanoma")
    }
    assert abs(radius["benign"] - radius["melanoma"]) < 0.08
