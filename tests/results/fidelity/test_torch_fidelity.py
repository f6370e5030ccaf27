"""FID, IS and KID equal torch-fidelity 0.4.0's functions on the same arrays, to 1e-5."""

from __future__ import annotations

import importlib.util
import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from medtest.results.fidelity.features import ArrayFeatures
from medtest.results.fidelity.measures.frechet import FrechetReference, frechet
from medtest.results.fidelity.measures.inception_score import inception_score
from medtest.results.fidelity.measures.kernel_distance import kernel_distance
from medtest.results.fidelity.measures.moments import Moments

FOLDER = Path(__file__).parents[2] / "data" / "fidelity"
_SPEC = importlib.util.spec_from_file_location("make_reference", FOLDER / "make_reference.py")
assert _SPEC is not None and _SPEC.loader is not None
MAKER = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(MAKER)
KEPT = json.loads((FOLDER / "reference.json").read_text(encoding="utf-8"))


def ours(name: str) -> dict[str, float]:
    one, two = (ArrayFeatures(rows) for rows in MAKER.arrays(name))
    score = inception_score(ArrayFeatures(4 * MAKER.arrays(name)[0]))
    kernel = kernel_distance(one, two, subsets=MAKER.SUBSETS, size=MAKER.CASES[name][3])
    return {
        "frechet_inception_distance": frechet(one, FrechetReference(two)).value,
        "inception_score_mean": score.value,
        "inception_score_std": score.spread,
        "kernel_inception_distance_mean": kernel.value,
        "kernel_inception_distance_std": kernel.spread,
    }


@pytest.mark.parametrize("name", MAKER.CASES)
def test_figures_equal_those_kept_of_torch_fidelity(name: str) -> None:
    found = ours(name)
    assert set(found) == set(KEPT[name])
    assert found == pytest.approx(KEPT[name], rel=1e-5)


def test_figures_equal_torch_fidelity_where_it_is_installed() -> None:
    pytest.importorskip("torch_fidelity")
    for name, figures in MAKER.references().items():
        assert ours(name) == pytest.approx(figures, rel=1e-5)


@pytest.mark.parametrize("name", MAKER.CASES)
def test_the_distance_is_one_whichever_set_is_the_reference(name: str) -> None:
    one, two = (ArrayFeatures(rows) for rows in MAKER.arrays(name))
    there, back = frechet(one, FrechetReference(two)), frechet(two, FrechetReference(one))
    assert there.value == pytest.approx(back.value, rel=1e-6)


def test_a_set_is_at_no_distance_from_itself_also_with_fewer_pictures_than_dimensions() -> None:
    one, _ = MAKER.arrays("fewer rows than dimensions")
    found = frechet(ArrayFeatures(one), FrechetReference(ArrayFeatures(one)))
    assert isinstance(found.value, float)
    assert found.value == pytest.approx(0.0, abs=1e-5)
    assert found.warning.startswith("40 pictures are fewer than the 128 dimensions")


def test_moments_are_those_of_numpy_whatever_the_chunks() -> None:
    rows = np.random.default_rng(3).normal(1e4, 1.0, (2500, 7))
    found = Moments(7)
    for start, end in ((0, 1), (1, 1200), (1200, 1200), (1200, 2500)):
        found.add(rows[start:end])
    assert found.count == 2500
    np.testing.assert_allclose(found.mean, rows.mean(0), rtol=1e-13)
    np.testing.assert_allclose(found.covariance, np.cov(rows, rowvar=False), rtol=1e-10)


def test_float32_rows_are_widened_before_they_are_added() -> None:
    rows = np.full((50_000, 2), 0.1, np.float32)
    rows[:, 1] += np.arange(50_000, dtype=np.float32) % 2
    found = Moments.of(ArrayFeatures(rows))
    np.testing.assert_allclose(found.mean, rows.astype(np.float64).mean(0), rtol=1e-12)


def test_rows_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ValueError, match="NaN or infinity"):
        Moments(2).add(np.array([[0.0, np.nan]]))


class _Drawn:
    """Features that are drawn again whenever they are asked for: what is held is what figures hold of them."""

    dimension = 64

    def __init__(self, count: int, shift: float) -> None:
        self.count, self._shift = count, shift

    def rows(self, numbers: np.ndarray) -> np.ndarray:
        seed = np.asarray(numbers, np.float64)[:, None]
        return np.abs(np.sin(seed * (np.arange(self.dimension) + 1.7) * 12.9898)) + self._shift

    def chunks(self) -> Iterator[np.ndarray]:
        for start in range(0, self.count, 1024):
            yield self.rows(np.arange(start, min(start + 1024, self.count)))


def _peak(count: int) -> int:
    tracemalloc.start()
    one, two = _Drawn(count, 0.0), _Drawn(count, 0.1)
    frechet(one, FrechetReference(two, range(count)), range(count))
    inception_score(one)
    kernel_distance(one, two, subsets=2, size=200)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_memory_does_not_grow_with_features() -> None:
    small, large = _peak(2_000), _peak(20_000)
    features = 18_000 * 64 * 8
    assert large - small < features / 2  # a few numbers a picture: its cluster, its influence, its split
