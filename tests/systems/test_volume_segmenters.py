"""Segmenters of livers in volumes: accuracy on phantoms, messages about missing inputs, and memory."""

from __future__ import annotations

import pickle
import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest

from medtest.core.cases import ImageSpec
from medtest.core.errors import BadOutput
from medtest.phantoms.abdomen.cohort import MEASURE, draw_liver, shape_mask, training_coefficients
from medtest.phantoms.abdomen.generator import AbdomenPhantom, abdomen_rng, make_abdomen
from medtest.systems.segmentation.volumes.region_growing import RegionGrowing, RegionGrowingSettings, grow
from medtest.systems.segmentation.volumes.regions import bounding_box, largest_part, with_rim
from medtest.systems.segmentation.volumes.shape_fit import _minimise, shape_of, shrink
from medtest.systems.segmentation.volumes.shape_model import ShapeModel, learn_shape_model, sample
from medtest.systems.segmentation.volumes.shape_prior import ShapePrior, ShapePriorSettings


def dice(first: np.ndarray, second: np.ndarray) -> float:
    return float(2 * np.count_nonzero(first & second) / (np.count_nonzero(first) + np.count_nonzero(second)))


def balls(radii: list[float]) -> list[tuple[np.ndarray, tuple[float, float, float]]]:
    z, y, x = np.indices((40, 40, 40)) - 19.5
    return [(z**2 + y**2 + x**2 < r**2, (2.0, 2.0, 2.0)) for r in radii]


@pytest.fixture(scope="module")
def phantom() -> AbdomenPhantom:
    coefficients, shift = draw_liver(0, "livers", 4, 2.0)
    return make_abdomen(abdomen_rng(0, "livers", 4), coefficients, shift=shift, noise=abdomen_rng(0, "livers", 4, 0))


@pytest.fixture(scope="module")
def prior() -> Iterator[ShapePrior]:
    system = ShapePrior("shape_prior", ShapePriorSettings())
    system.open(device="cpu", threads=1)
    yield system
    system.close()


def spec_of(phantom_: AbdomenPhantom, **changes: object) -> ImageSpec:
    fields = {"dtype": "float32", "low": -200.0, "high": 300.0, "spacing": phantom_.spacing, "axes": "zyx"}
    return ImageSpec(**{**fields, "marks": phantom_.marks, **changes})


def test_balls_of_different_size_have_one_mode() -> None:
    """The signed distance to a ball is |x| - r: its only component is a constant, one spread of the radii."""
    radii = [8.0, 10.0, 12.0, 14.0]
    model = learn_shape_model(balls(radii))
    middle = tuple(n // 2 for n in model.shape)
    assert model.mean[middle] == pytest.approx(-22.0, abs=3.0)
    near = np.abs(model.mean) < 8
    first = model.modes[0][near]
    # Radii are in voxels of 2 mm; components are standard deviations (n - 1).
    assert abs(float(first.mean())) == pytest.approx(2 * np.std(radii, ddof=1), rel=0.1)
    assert float(first.std()) < 0.25 * abs(float(first.mean()))
    assert max(model.shape) <= 64


def test_components_are_orthogonal_and_fall() -> None:
    masks = [(shape_mask(coefficients), MEASURE.spacing) for coefficients in training_coefficients(12)]
    model = learn_shape_model(masks, modes=6)
    flat = model.modes.reshape(6, -1).astype(np.float64)
    product = flat @ flat.T
    sizes = np.diag(product)
    assert (np.diff(sizes) <= 1e-6).all()
    assert np.abs(product - np.diag(sizes)).max() < 1e-3 * sizes[0]
    assert max(model.shape) <= 64


def test_the_mean_shape_is_a_liver_again() -> None:
    masks = [(shape_mask(coefficients), MEASURE.spacing) for coefficients in training_coefficients(12)]
    model = learn_shape_model(masks)
    litres = float((shape_of(model, np.zeros(len(model.modes))) < 0).sum() * np.prod(model.spacing)) / 1e6
    own = np.mean([mask.sum() * np.prod(spacing) for mask, spacing in masks]) / 1e6
    assert litres == pytest.approx(own, rel=0.1)


def test_a_model_needs_shapes() -> None:
    with pytest.raises(ValueError, match="at least two"):
        learn_shape_model(balls([8.0]))
    with pytest.raises(ValueError, match="empty"):
        learn_shape_model([*balls([8.0]), (np.zeros((4, 4, 4), np.bool_), (1.0, 1.0, 1.0))])


def test_sampling_and_shrinking_keep_a_plane() -> None:
    z, y, x = np.indices((12, 16, 20)).astype(np.float32)
    plane = z + 2 * y - x
    sampled = sample(plane, [np.array([1.5, 4.0]), np.array([3.25]), np.array([0.0, 10.5])])
    assert np.allclose(sampled[:, 0, :], [[8.0, -2.5], [10.5, 0.0]])
    assert sample(plane, [np.array([-3.0]), np.array([0.0]), np.array([0.0])], outside=7.0).item() == 7.0
    small = shrink(plane, (1, 1, 1), (2, 2, 2))
    assert small.shape == (6, 8, 10)
    assert np.allclose(small, sample(plane, [np.arange(n) * 2 + 0.5 for n in small.shape]), atol=1e-4)


@pytest.mark.slow
def test_both_find_a_liver(phantom: AbdomenPhantom, prior: ShapePrior) -> None:
    growing = RegionGrowing("region_growing", RegionGrowingSettings())
    for system in (prior, growing):
        [liver] = system.process([phantom.volume], [spec_of(phantom)], [None])  # type: ignore[list-item]
        assert liver.dtype == np.bool_
        assert dice(liver, phantom.liver) > 0.9, system.name


@pytest.mark.slow
def test_the_prior_ignores_clicks(phantom: AbdomenPhantom, prior: ShapePrior) -> None:
    assert np.array_equal(
        prior.segment(phantom.volume, spec_of(phantom)), prior.segment(phantom.volume, spec_of(phantom, marks=()))
    )


def test_spacing_is_respected(phantom: AbdomenPhantom, prior: ShapePrior) -> None:
    """Every second slice of a volume, with twice the spacing, holds the same liver."""
    thick = phantom.volume[::2]
    liver = prior.segment(thick, spec_of(phantom, spacing=(6.0, 2.5, 2.5)))
    assert dice(liver, phantom.liver[::2]) > 0.88


def test_missing_inputs_are_messages(phantom: AbdomenPhantom, prior: ShapePrior) -> None:
    growing = RegionGrowing("region_growing", RegionGrowingSettings())
    with pytest.raises(BadOutput, match="points to grow from"):
        growing.segment(phantom.volume, spec_of(phantom, marks=()))
    for system in (growing, prior):
        with pytest.raises(BadOutput, match="three axes"):
            system.segment(phantom.volume[0], spec_of(phantom))
        with pytest.raises(BadOutput, match="three axes"):
            system.segment(phantom.volume, spec_of(phantom, spacing=()))


def test_a_prior_pickles_without_its_model(prior: ShapePrior) -> None:
    assert len(pickle.dumps(prior)) < 10_000


def test_growing_stops_at_a_bridge_and_at_its_reach() -> None:
    """Two balls of one value joined by a thin tube: only the one with the click is taken."""
    z, y, x = np.indices((30, 30, 70))
    volume = np.zeros((30, 30, 70), np.float32)
    for middle in (17, 52):
        volume[(z - 15) ** 2 + (y - 15) ** 2 + (x - middle) ** 2 < 12**2] = 100.0
    both = volume > 50
    volume[14:17, 14:17, 17:52] = 100.0
    options = {"smooth": 0.0, "close": 0.0, "rim": 0.0, "reach": 1000.0}
    liver = grow(volume, (1, 1, 1), [(15, 15, 17)], bridge=3.0, **options)
    first = both & (x < 35)
    assert dice(liver, first) > 0.95
    leaky = grow(volume, (1, 1, 1), [(15, 15, 17)], bridge=0.0, **options)
    assert np.count_nonzero(leaky & (x > 40)) > 5000
    near = grow(volume, (1, 1, 1), [(15, 15, 17)], bridge=0.0, **{**options, "reach": 20.0})
    assert not near[(x - 17) > 20].any()


def test_gaps_are_closed_and_holes_filled() -> None:
    z, y, x = np.indices((30, 30, 30)) - 15
    volume = np.where(z**2 + y**2 + x**2 < 144, 100.0, 0.0).astype(np.float32)
    volume[14:17, 14:17, :20] = 200.0  # a vessel
    volume[20:22, 20:22, 20:22] = 30.0  # a small tumour
    liver = grow(volume, (1, 1, 1), [(10, 10, 15)], smooth=0.0, bridge=0.0, close=3.0, rim=0.0)
    inner = z**2 + y**2 + x**2 < 100
    assert liver[inner].mean() > 0.97


def test_regions() -> None:
    mask = np.zeros((8, 8, 8), np.bool_)
    mask[1:6, 1:6, 1:6] = True
    mask[3, 3, 3] = False
    mask[7, 7, 7] = True
    assert largest_part(mask).sum() == 124
    assert largest_part(mask, fill=True).sum() == 125
    assert largest_part(np.zeros_like(mask)).sum() == 0
    assert bounding_box(np.zeros_like(mask)) == (slice(0, 0),) * 3
    values = np.zeros(mask.shape)
    values[1:7, 1:6, 1:6] = 100.0
    assert with_rim(mask, values, 100.0, 30.0)[6, 2, 2]
    assert not with_rim(mask, values, 100.0, 30.0)[0, 2, 2]


@pytest.mark.slow
@pytest.mark.parametrize("which", ["prior", "growing"])
def test_memory_stays_below_six_volumes(which: str, prior: ShapePrior) -> None:
    """Peak of what NumPy allocates beside the volume itself, in float32 volumes of its size."""
    coefficients, shift = draw_liver(0, "livers", 4, 2.0)
    large = make_abdomen(
        abdomen_rng(0, "livers", 4),
        coefficients,
        shift=shift,
        shape=(144, 208, 288),
        spacing=(1.5, 1.25, 1.25),
    )
    system = prior if which == "prior" else RegionGrowing("region_growing", RegionGrowingSettings())
    tracemalloc.start()
    system.segment(large.volume, spec_of(large))
    peak = tracemalloc.get_traced_memory()[1] / large.volume.nbytes
    tracemalloc.stop()
    assert peak < 6, f"{peak:.1f} volumes"


def test_shape_models_are_small() -> None:
    model = learn_shape_model(
        [(shape_mask(coefficients), MEASURE.spacing) for coefficients in training_coefficients(6)]
    )
    assert isinstance(model, ShapeModel)
    assert model.modes.nbytes < 64**3 * 4 * 13


def test_without_evidence_the_fit_is_the_mean_shape_where_it_was() -> None:
    """Only the prior is left then, a quadratic function with its minimum at zero."""
    model = learn_shape_model(balls([8.0, 10.0, 12.0, 14.0]))
    weights, shift = _minimise(np.zeros_like(model.mean), model, np.full(len(model.modes), 2.0), 3.0)
    assert weights == pytest.approx(np.zeros(len(model.modes)), abs=1e-4)
    assert shift == pytest.approx(np.zeros(3), abs=1e-4)
