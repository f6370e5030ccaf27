"""Answers of classifiers: accepted forms, and refusals with their reasons."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.special import expit, softmax

from medtest.core.cases import Classes
from medtest.core.errors import BadOutput
from medtest.phantoms.classes import CAPSULE, CHEST, DERMOSCOPY, FUNDUS
from medtest.systems.base import LabelAnswer
from medtest.systems.classification.answers import check_label, classes_misfit

THREE = Classes(names=("normal", "vascular", "inflammatory"))
TURNED = Classes(names=("inflammatory", "normal", "vascular"))
MANY = Classes(names=("mass", "nodule", "edema"), multi=True)


def check(raw, form="probabilities", classes=THREE, own=None, shape=(8, 9)):
    return check_label(raw, expected=classes, own=own, form=form, shape=shape)


def test_bundled_classes():
    assert CAPSULE == THREE
    assert DERMOSCOPY.names == ("benign", "melanoma")
    assert FUNDUS.names == ("grade0", "grade1", "grade2", "grade3")
    assert len(CHEST.names) == len(set(CHEST.names)) == 14
    assert CHEST.multi and not CAPSULE.multi
    assert THREE.ordered(["vascular", "normal", "vascular"]) == ("normal", "vascular")


@pytest.mark.parametrize("shape", [(3,), (1, 3), (3, 1), (1, 3, 1, 1)])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_probabilities_of_any_float_and_shape(shape, dtype):
    answer = check(np.array([0.25, 0.5, 0.25], dtype).reshape(shape))
    assert answer.labels == ("vascular",)
    assert answer.probabilities.dtype == np.float32
    assert answer.probabilities == pytest.approx([0.25, 0.5, 0.25])
    assert answer.mask is None and answer.classes is THREE


def test_lists_are_taken_too():
    assert check([0.1, 0.2, 0.7]).labels == ("inflammatory",)
    assert check([0.1, 0.9, 0.6], classes=MANY).labels == ("nodule", "edema")
    assert check([0.1, 0.5, 0.2], classes=MANY).labels == (), "0.5 is not above 0.5"


def test_own_order_is_mapped_by_name():
    answer = check(np.array([0.7, 0.2, 0.1]), own=TURNED)
    assert answer.labels == ("inflammatory",)
    assert answer.probabilities == pytest.approx([0.2, 0.1, 0.7])
    assert check(2, form="labels", own=TURNED).labels == ("vascular",)


def test_findings_beyond_the_requested_ones_are_left_out():
    own = Classes(names=("hernia", "edema", "mass", "nodule"), multi=True)
    answer = check([0.9, 0.8, 0.1, 0.7], classes=MANY, own=own)
    assert answer.labels == ("nodule", "edema")
    assert answer.probabilities == pytest.approx([0.1, 0.7, 0.8])


@pytest.mark.parametrize(
    ("own", "message"),
    [
        (Classes(names=("normal", "vascular")), "does not know inflammatory"),
        (Classes(names=(*THREE.names, "polyp")), "knows polyp"),
        (Classes(names=THREE.names, multi=True), "several may be true"),
    ],
)
def test_classes_that_do_not_fit_are_refused(own, message):
    assert message in classes_misfit(own, THREE)
    with pytest.raises(BadOutput, match=message):
        check([0.2, 0.3, 0.5], own=own)
    assert classes_misfit(TURNED, THREE) == classes_misfit(None, THREE) == ""


@given(hnp.arrays(np.float64, 3, elements=st.floats(-500, 500), unique=True))
def test_logits_agree_with_scipy(logits):
    answer = check(logits, form="logits")
    assert answer.probabilities == pytest.approx(softmax(logits), abs=1e-6)
    assert answer.labels == (THREE.names[int(np.argmax(logits))],)
    several = check(logits, form="logits", classes=MANY)
    assert several.probabilities == pytest.approx(expit(logits), abs=1e-6)
    assert several.labels == tuple(name for name, value in zip(MANY.names, logits, strict=True) if value > 0)


def test_a_near_tie_of_logits_is_a_decision():
    assert check([900.0, 900.0 + 1e-9, 0.0], form="logits").labels == ("vascular",)


@pytest.mark.parametrize(
    ("raw", "form", "classes", "message"),
    [
        (None, "probabilities", THREE, "None"),
        ("normal", "probabilities", THREE, "str"),
        ([0.5, 0.5], "probabilities", THREE, "shape"),
        (np.full((2, 3), 1 / 3), "probabilities", THREE, "shape"),
        ([0.4, 0.4, 0.2], "probabilities", THREE, "same largest score"),
        ([1.0, 1.0, 0.0], "logits", THREE, "same largest score"),
        ([0.3, 0.3, 0.5], "probabilities", THREE, "sum to 1.1"),
        ([1.5, -0.25, -0.25], "probabilities", THREE, "logits are another form"),
        ([np.nan, 0.5, 0.5], "probabilities", THREE, "NaN"),
        ([np.inf, 0.5, 0.5], "logits", THREE, "infinite"),
        ([1, 0, 0], "probabilities", THREE, "dtype"),
        ([0.1, 2.0, 0.3], "probabilities", MANY, "probabilities"),
        (3, "labels", THREE, "index 3"),
        (-1, "labels", THREE, "index -1"),
        (1.0, "labels", THREE, "float"),
        (True, "labels", THREE, "bool"),
        ("vascullar", "labels", THREE, "did it mean vascular"),
        (["normal", "vascular"], "labels", THREE, "2 labels"),
        ([], "labels", THREE, "0 labels"),
        ([True, False], "labels", MANY, "2 booleans"),
        (None, "labels", THREE, "None"),
    ],
)
def test_refusals_and_their_reasons(raw, form, classes, message):
    with pytest.raises(BadOutput, match=message):
        check(raw, form=form, classes=classes)


@pytest.mark.parametrize(
    ("raw", "classes", "labels"),
    [
        (1, THREE, ("vascular",)),
        (np.int64(1), THREE, ("vascular",)),
        (np.array([[2]]), THREE, ("inflammatory",)),
        ("normal", THREE, ("normal",)),
        (np.array("normal"), THREE, ("normal",)),
        (["edema", "mass", "mass"], MANY, ("mass", "edema")),
        ([2, 0], MANY, ("mass", "edema")),
        (np.array([True, False, True]), MANY, ("mass", "edema")),
        ([], MANY, ()),
    ],
)
def test_labels(raw, classes, labels):
    answer = check(raw, form="labels", classes=classes)
    assert answer.labels == labels
    assert answer.probabilities is None


def test_a_mask_comes_along_and_is_checked():
    answer = check(LabelAnswer(scores=[0.1, 0.2, 0.7], mask=np.ones((4, 3), np.float32)))
    assert answer.mask.mask.shape == (8, 9) and answer.mask.mask.all()
    assert answer.labels == ("inflammatory",)
    with pytest.raises(BadOutput, match="NaN"):
        check(LabelAnswer(scores=[0.1, 0.2, 0.7], mask=np.full((4, 3), np.nan, np.float32)))
