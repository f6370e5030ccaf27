"""Abdomen phantoms: variability by hand-made boxes, shapes, cohorts, volumes; equal numbers give equal bytes."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medtest.phantoms.abdomen.cohort import (
    MEASURE,
    box_of_training_livers,
    draw_liver,
    shape_mask,
    training_coefficients,
)
from medtest.phantoms.abdomen.generator import abdomen_rng, make_abdomen
from medtest.phantoms.abdomen.shapes import MODES, Grid3, liver_distance, refine
from medtest.phantoms.abdomen.variability import StandardBox, liver_variability, mean_box
from medtest.seeds.made.abdomens import Abdomens, AbdomenSettings

FLAT = (0.0,) * len(MODES)


def block(shape: tuple[int, int, int], low: tuple[int, int, int], high: tuple[int, int, int]) -> np.ndarray:
    mask = np.zeros(shape, np.bool_)
    mask[tuple(slice(a, b) for a, b in zip(low, high, strict=True))] = True
    return mask


def test_variability_of_a_block_is_that_of_a_ruler() -> None:
    """A block of 10 × 10 × 20 voxels against a box two voxels shorter in x: a tenth is outside."""
    mask = block((20, 20, 40), (5, 5, 10), (15, 15, 30))
    box = StandardBox(size=(10.0, 10.0, 18.0))
    assert liver_variability(mask, (1, 1, 1), box, placement="corner") == pytest.approx(10.0)
    assert liver_variability(mask, (1, 1, 1), box) == pytest.approx(10.0)
    # Voxels of 2 mm: the block is 40 mm long in x; the same 18 mm box holds nine voxels of it.
    assert liver_variability(mask, (1, 1, 2), box, placement="corner") == pytest.approx(55.0)


def test_placement_matters_for_an_organ_with_a_tail() -> None:
    """1,000 voxels with a tail of 100: the corner box loses the tail, the centroid's box is drawn towards it."""
    mask = block((20, 20, 40), (5, 5, 5), (15, 15, 15))
    mask[9, 5:15, 15:25] = True
    box = StandardBox(size=(10.0, 10.0, 10.0))
    assert liver_variability(mask, (1, 1, 1), box, placement="corner") == pytest.approx(100 * 100 / 1100)
    centroid = (1000 * 10 + 100 * 20) / 1100
    shift = centroid - 10
    kept_block = 1000 * (10 - np.ceil(shift - 0.5)) / 10
    kept_tail = 10 * np.floor(shift + 0.5)
    expected = 100 * (1100 - kept_block - kept_tail) / 1100
    assert liver_variability(mask, (1, 1, 1), box) == pytest.approx(expected)


def test_a_box_with_an_offset_fits_the_organ_it_was_measured_on() -> None:
    mask = block((20, 20, 40), (5, 5, 5), (15, 15, 15))
    mask[9, 5:15, 15:25] = True
    box = mean_box([(mask, (3.0, 2.0, 2.0))])
    assert box.size == pytest.approx((30.0, 20.0, 40.0))
    assert liver_variability(mask, (3.0, 2.0, 2.0), box) == 0.0


@settings(max_examples=25)
@given(seed=st.integers(0, 9999), grow=st.floats(1.0, 3.0))
def test_a_larger_box_leaves_less_outside(seed: int, grow: float) -> None:
    mask = np.random.default_rng(seed).random((6, 7, 8)) < 0.3
    mask[3, 3, 3] = True
    small = liver_variability(mask, (1, 1, 1), StandardBox(size=(3.0, 3.0, 3.0)))
    large = liver_variability(mask, (1, 1, 1), StandardBox(size=(3.0 * grow,) * 3))
    assert 0 <= large <= small <= 100


def test_bad_masks_and_boxes_are_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        liver_variability(np.zeros((3, 3, 3), np.bool_), (1, 1, 1), StandardBox(size=(1, 1, 1)))
    with pytest.raises(ValueError, match="2 axes"):
        liver_variability(np.ones((3, 3, 3), np.bool_), (1, 1, 1), StandardBox(size=(1, 1)))
    with pytest.raises(ValueError, match="at least one"):
        mean_box([])


def test_the_mean_liver_has_a_livers_size_and_place() -> None:
    mask = shape_mask(FLAT)
    litres = mask.sum() * np.prod(MEASURE.spacing) / 1e6
    assert 1.2 < litres < 2.2  # adults: about 1.5 litres
    z, y, x = MEASURE.axes()
    weights = mask / mask.sum()
    assert (weights * x).sum() < -20  # the patient's right
    assert abs((weights * y).sum()) < 40


def test_shapes_are_smooth_distances() -> None:
    """Slopes near the surface are near 1, and no shape of the population breaks apart or touches the field's end."""
    from scipy import ndimage

    grid = Grid3(shape=(54, 52, 72), spacing=(4.0, 5.0, 5.0))
    for coefficients in training_coefficients()[:8]:
        distance = liver_distance(grid, coefficients)
        slopes = np.sqrt(sum(s**2 for s in np.gradient(distance, *grid.spacing)))
        near = slopes[np.abs(distance) < 4]
        assert 0.6 < np.percentile(near, 5) < np.percentile(near, 95) < 1.6
        assert ndimage.label(distance < 0)[1] == 1


def test_modes_do_what_they_are_called() -> None:
    def extent(mode: int, amount: float) -> np.ndarray:
        coefficients = list(FLAT)
        coefficients[mode] = amount
        mask = shape_mask(coefficients)
        return np.array([np.ptp(np.flatnonzero(mask.any(axis=axes))) for axes in ((1, 2), (0, 2), (0, 1))])

    mean = extent(0, 0.0)
    assert (extent(MODES.index("size"), 2.0) >= mean).all()
    assert extent(MODES.index("left lobe, length"), 2.0)[2] > mean[2]
    assert extent(MODES.index("lower right lobe (Riedel)"), 2.0)[0] > mean[0]


def test_training_livers_do_not_depend_on_a_suite() -> None:
    assert training_coefficients(5) == training_coefficients(30)[:5]
    box = box_of_training_livers()
    assert all(100 < mm < 260 for mm in box.size)
    assert liver_variability(shape_mask(FLAT), MEASURE.spacing, box) < 1.0


@pytest.mark.parametrize("variability", [0.25, 3.0, 9.5])
def test_a_wanted_variability_is_reached(variability: float) -> None:
    coefficients, shift = draw_liver(1, "livers", 3, variability)
    mask = shape_mask(coefficients, shift=shift)
    measured = liver_variability(mask, MEASURE.spacing, box_of_training_livers())
    assert measured == pytest.approx(variability, abs=1.6)
    assert draw_liver(1, "livers", 3, variability) == (coefficients, shift)


def test_refining_keeps_a_plane() -> None:
    coarse = Grid3(shape=(6, 8, 10), spacing=(4.0, 4.0, 4.0))
    z, y, x = coarse.axes()
    fine = Grid3(shape=(12, 16, 20), spacing=(2.0, 2.0, 2.0))
    refined = refine((2 * x + 3 * y - z).astype(np.float32), fine.shape)
    fz, fy, fx = fine.axes()
    inner = (slice(1, -1),) * 3
    assert np.allclose(refined[inner], (2 * fx + 3 * fy - fz)[inner], atol=1e-3)


def test_a_phantom_fits_its_facts() -> None:
    coefficients, shift = draw_liver(0, "livers", 2, 4.0)
    phantom = make_abdomen(abdomen_rng(0, "livers", 2), coefficients, shift=shift)
    again = make_abdomen(abdomen_rng(0, "livers", 2), coefficients, shift=shift, noise=abdomen_rng(0, "livers", 2, 1))
    assert phantom.volume.shape == phantom.liver.shape == (72, 104, 144)
    assert phantom.volume.dtype == np.float32
    assert phantom.volume.min() >= -1001
    assert np.array_equal(phantom.liver, again.liver)
    levels = phantom.info["levels"]
    assert isinstance(levels, dict)
    assert np.median(phantom.volume[phantom.liver]) == pytest.approx(levels["liver"], abs=4)
    assert not (phantom.tumours & ~phantom.liver).any()
    assert len(phantom.marks) == 3
    for z, y, x in phantom.marks:
        assert phantom.liver[int(z), int(y), int(x)]
        assert not phantom.tumours[int(z), int(y), int(x)]
    noise = again.volume - phantom.volume
    assert noise.std() == pytest.approx(20.0, rel=0.02)
    assert abs(noise.mean()) < 0.1
    # The grain of CT: neighbours within a slice are correlated, slices are not.
    assert np.corrcoef(noise[:, :, 1:].ravel(), noise[:, :, :-1].ravel())[0, 1] == pytest.approx(2 / 3, abs=0.02)
    assert abs(np.corrcoef(noise[1:].ravel(), noise[:-1].ravel())[0, 1]) < 0.01


def test_bad_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 16"):
        make_abdomen(abdomen_rng(0, "a", 0), FLAT, shape=(8, 40, 40))
    with pytest.raises(ValueError, match="positive"):
        make_abdomen(abdomen_rng(0, "a", 0), FLAT, spacing=(0, 1, 1))
    with pytest.raises(ValueError, match="coefficients"):
        make_abdomen(abdomen_rng(0, "a", 0), (0.0,))


def source(**settings: object) -> Abdomens:
    return Abdomens(dataset="livers", settings=AbdomenSettings(**settings), root=None, suite_seed=7)


def test_the_source_gives_repeats_of_one_liver_a_cluster() -> None:
    livers = source(count=3, repeats=2, shape=[36, 52, 72], spacing=[6.0, 5.0, 5.0])
    refs = livers.refs()
    assert [r.seed_id for r in refs] == [f"liver-{i:02d}-n{n}" for i in range(3) for n in range(2)]
    assert len({r.cluster for r in refs}) == 3
    first, second = livers.load(refs[2]), livers.load(refs[3])
    assert first.kind == "region"
    assert first.spec.axes == "zyx"
    assert first.spec.spacing == (6.0, 5.0, 5.0)
    assert np.array_equal(first.expected, second.expected)
    assert not np.array_equal(first.image, second.image)
    assert first.properties == second.properties
    assert first.properties["liver_variability"] == pytest.approx(4.875, abs=1.6)  # voxels of 5 and 6 mm


def test_the_digest_covers_what_changes_volumes() -> None:
    assert source().digest() == source().digest()
    assert len({source().digest(), source(noise=10.0).digest(), source(count=21).digest()}) == 3


def test_bytes_stay() -> None:
    """Raise REVISION if this fails for a good reason."""
    abdomens = source(count=2, repeats=1, shape=[36, 52, 72], spacing=[6.0, 5.0, 5.0])
    seed = abdomens.load(abdomens.refs()[1])
    digests = [hashlib.sha256(array.tobytes()).hexdigest()[:16] for array in (seed.image, seed.expected)]
    assert digests == GOLDEN


GOLDEN = ["549277be3dbf6746", "7b57f4b3f8e76e21"]
