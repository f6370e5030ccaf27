from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from medtest.core.errors import BadOutput
from medtest.core.tasks.border import as_array, check_mask

SHAPE = (8, 12)


@pytest.mark.parametrize(
    ("raw", "mask"),
    [
        (np.ones(SHAPE, bool), True),
        (np.full(SHAPE, 200, np.uint8), True),
        (np.full(SHAPE, 127, np.uint8), False),
        (np.full(SHAPE, 0.5, np.float32), False),
        (np.full(SHAPE, 0.51, np.float64), True),
        (np.full(SHAPE, 1.0, np.float16), True),
        (np.ones((1, *SHAPE)), True),
        (np.ones((1, 1, *SHAPE)), True),
        (np.ones((*SHAPE, 1)), True),
        (np.ones(SHAPE).tolist(), True),
    ],
)
def test_answers_in_the_documented_forms_are_taken(raw: Any, mask: bool) -> None:
    output = check_mask(raw, SHAPE)
    assert output.mask.shape == SHAPE
    assert output.mask.dtype == np.bool_
    assert output.probability is not None
    assert output.probability.dtype == np.float32
    assert output.native is None
    assert bool(output.mask.all()) is mask
    assert bool(output.mask.any()) is mask


def test_a_tensor_is_taken() -> None:
    torch = pytest.importorskip("torch")
    assert check_mask(torch.ones(1, 1, *SHAPE, requires_grad=True), SHAPE).mask.all()


def test_an_answer_of_another_size_is_resized_and_kept() -> None:
    small = np.zeros((4, 6), np.float32)
    small[:, 3:] = 1.0
    output = check_mask(small, SHAPE)
    assert output.native is not None
    assert np.array_equal(output.native, small)
    assert np.array_equal(output.mask, np.tile(np.arange(12) >= 6, (8, 1)))
    # half-pixel centres: the border column lies a quarter of a pixel from its neighbour's centre
    assert output.probability is not None
    assert output.probability[0].tolist() == pytest.approx([0, 0, 0, 0, 0, 0.25, 0.75, 1, 1, 1, 1, 1])


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (np.full(SHAPE, np.nan), "NaN"),
        (np.where(np.arange(96).reshape(SHAPE) == 50, np.nan, 0.3), "NaN"),
        (np.full(SHAPE, np.inf), "infinite"),
        (np.full(SHAPE, 1.5), "values from 1.5 to 1.5"),
        (np.full(SHAPE, -0.2), "values from -0.2"),
        (np.full(SHAPE, 7.3), "probabilities"),
        (np.ones(SHAPE, np.int64), "int64"),
        (np.ones(SHAPE, np.complex64), "complex64"),
        (np.ones((2, *SHAPE)), r"shape \(2, 8, 12\)"),
        (np.ones((*SHAPE, 3)), r"shape \(8, 12, 3\)"),
        (np.ones(8), r"shape \(8,\)"),
        (np.float32(1), "shape"),
        (np.zeros((0, 12)), "empty"),
        (None, "None"),
        ("mask.png", "str"),
        ({"mask": 1}, "dict"),
        ([[1.0, 2.0], [1.0]], "list"),
        (object(), "object"),
    ],
)
def test_invalid_answers_are_refused_with_the_reason(raw: Any, reason: str) -> None:
    with pytest.raises(BadOutput, match=reason):
        check_mask(raw, SHAPE)


def test_rounding_of_half_precision_is_forgiven() -> None:
    output = check_mask(np.array([[1.0004, -0.0004]], np.float32), (1, 2))
    assert output.probability is not None
    assert output.probability.tolist() == [[1.0, 0.0]]


@given(
    raw=hnp.arrays(
        st.sampled_from([np.float32, np.float64, np.uint8, np.bool_, np.int32]),
        hnp.array_shapes(min_dims=1, max_dims=4, max_side=9),
    )
)
def test_any_answer_is_a_segmentation_of_the_image_or_is_refused(raw: Any) -> None:
    try:
        output = check_mask(raw, SHAPE)
    except BadOutput:
        return
    assert output.probability is not None
    assert output.mask.shape == output.probability.shape == SHAPE
    assert float(output.probability.min()) >= 0
    assert float(output.probability.max()) <= 1
    assert np.array_equal(output.mask, output.probability > 0.5)


@pytest.mark.parametrize("features", [np.zeros((3, 8, 8)), np.zeros((16, 24))])
@pytest.mark.parametrize("kind", [tuple, list])
def test_a_map_with_further_values_is_refused(kind: type, features: NDArray[np.float64]) -> None:
    with pytest.raises(BadOutput, match=f"gave a {kind.__name__} of 2; return the map alone"):
        check_mask(kind([np.zeros((16, 24)), features]), (16, 24))
    with pytest.raises(BadOutput, match=f"gave a {kind.__name__} of 2; return an image alone"):
        as_array(kind([np.zeros((16, 24)), np.zeros((3, 8, 8))]), "an image")
    slices = [np.zeros((4, 5)), np.ones((4, 5))]
    assert as_array(slices, "a region").shape == (2, 4, 5)
