"""FID, IS and KID equal torch-fidelity 0.4.0's: on the same arrays to 1e-5, on the same files to 1e-3."""

from __future__ import annotations

import json
import runpy
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from medtest.readers.embeddings.choice import embedder_of
from medtest.readers.embeddings.kept import FeatureFile, KeptFeatures, net_key
from medtest.readers.embeddings.work import EmbeddingJob, by_content
from medtest.results.fidelity.embedding import embed
from medtest.results.fidelity.measures.frechet import FrechetReference, frechet
from medtest.results.fidelity.measures.inception_score import inception_score
from medtest.results.fidelity.measures.kernel_distance import kernel_distance
from medtest.results.fidelity.measures.moments import Moments
from tests.results.fidelity.array_features import ArrayFeatures

FOLDER = Path(__file__).parents[2] / "data" / "fidelity"
MAKER = SimpleNamespace(**runpy.run_path(str(FOLDER / "make_reference.py")))
FILES_MAKER = SimpleNamespace(**runpy.run_path(str(FOLDER / "make_file_reference.py")))
KEPT = json.loads((FOLDER / "reference.json").read_text(encoding="utf-8"))
KEPT_OF_FILES = json.loads((FOLDER / "file_reference.json").read_text(encoding="utf-8"))


def own_figures(name: str) -> dict[str, float]:
    pictures, reference = (ArrayFeatures(rows) for rows in MAKER.arrays(name))
    score = inception_score(ArrayFeatures(4 * MAKER.arrays(name)[0]))
    kernel = kernel_distance(pictures, reference, subsets=MAKER.SUBSETS, size=MAKER.CASES[name][3])
    return {
        "frechet_inception_distance": frechet(pictures, FrechetReference(reference)).value,
        "inception_score_mean": score.value,
        "inception_score_std": score.spread,
        "kernel_inception_distance_mean": kernel.value,
        "kernel_inception_distance_std": kernel.spread,
    }


@pytest.mark.parametrize("name", MAKER.CASES)
def test_figures_equal_recorded_ones_of_torch_fidelity(name: str) -> None:
    figures = own_figures(name)
    assert set(figures) == set(KEPT[name])
    assert figures == pytest.approx(KEPT[name], rel=1e-5)


def test_figures_equal_torch_fidelity_where_it_is_installed() -> None:
    pytest.importorskip("torch_fidelity")
    for name, figures in MAKER.references().items():
        assert own_figures(name) == pytest.approx(figures, rel=1e-5)


def figures_of_files(folder: Path) -> dict[str, float]:
    places = FILES_MAKER.write_pictures(folder)
    FILES_MAKER.write_weights(folder / "inception.pth")
    net = {"net": "inception", "place": str(folder / "inception.pth")}
    sets = [by_content(sorted(place.iterdir())) for place in places]
    store = folder / "features.sqlite"
    embedding = embed(EmbeddingJob(store=str(store), nets=[net], pictures=[*sets[0], *sets[1]], cores=2))
    assert (embedding.embedded, dict(embedding.failed)) == (2 * FILES_MAKER.COUNT, {})
    key = net_key(embedder_of(net).fingerprint())
    options = FILES_MAKER.OPTIONS
    with FeatureFile(store) as file:
        names = [[picture.name for picture in pictures] for pictures in sets]
        pictures_, reference = (KeptFeatures(file, key, some) for some in names)
        score = inception_score(KeptFeatures(file, key, names[0], scores=True), splits=options["isc_splits"])
        kernel = kernel_distance(pictures_, reference, subsets=options["kid_subsets"], size=options["kid_subset_size"])
        distance = frechet(pictures_, FrechetReference(reference))
    return {
        "frechet_inception_distance": distance.value,
        "inception_score_mean": score.value,
        "inception_score_std": score.spread,
        "kernel_inception_distance_mean": kernel.value,
        "kernel_inception_distance_std": kernel.spread,
    }


@pytest.mark.slow
def test_figures_of_files_equal_recorded_ones_of_torch_fidelity(tmp_path: Path) -> None:
    figures = figures_of_files(tmp_path)
    assert set(figures) == set(KEPT_OF_FILES)
    assert figures == pytest.approx(KEPT_OF_FILES, rel=1e-3)


@pytest.mark.parametrize("name", MAKER.CASES)
def test_the_distance_is_one_whichever_set_is_the_reference(name: str) -> None:
    first, second = (ArrayFeatures(rows) for rows in MAKER.arrays(name))
    forward, back = frechet(first, FrechetReference(second)), frechet(second, FrechetReference(first))
    assert forward.value == pytest.approx(back.value, rel=1e-6)


def test_a_set_is_at_no_distance_from_itself_also_with_fewer_pictures_than_dimensions() -> None:
    rows, _ = MAKER.arrays("fewer rows than dimensions")
    distance = frechet(ArrayFeatures(rows), FrechetReference(ArrayFeatures(rows)))
    assert isinstance(distance.value, float)
    assert distance.value == pytest.approx(0.0, abs=1e-5)
    assert distance.warning.startswith("40 pictures are fewer than the 128 dimensions")


def test_moments_match_numpy_whatever_the_chunks() -> None:
    rows = np.random.default_rng(3).normal(1e4, 1.0, (2500, 7))
    moments = Moments(7)
    for start, end in ((0, 1), (1, 1200), (1200, 1200), (1200, 2500)):
        moments.add(rows[start:end])
    assert moments.count == 2500
    np.testing.assert_allclose(moments.mean, rows.mean(0), rtol=1e-13)
    np.testing.assert_allclose(moments.covariance, np.cov(rows, rowvar=False), rtol=1e-10)


def test_float32_rows_are_widened_before_they_are_added() -> None:
    rows = np.full((50_000, 2), 0.1, np.float32)
    rows[:, 1] += np.arange(50_000, dtype=np.float32) % 2
    moments = Moments.of(ArrayFeatures(rows))
    np.testing.assert_allclose(moments.mean, rows.astype(np.float64).mean(0), rtol=1e-12)


def test_rows_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ValueError, match="NaN or infinity"):
        Moments(2).add(np.array([[0.0, np.nan]]))


class _Drawn:
    """Features that are drawn again at each call, so that only the figures keep memory."""

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
    first, second = _Drawn(count, 0.0), _Drawn(count, 0.1)
    frechet(first, FrechetReference(second, range(count)), range(count))
    inception_score(first)
    kernel_distance(first, second, subsets=2, size=200)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_memory_does_not_grow_with_features() -> None:
    small, large = _peak(2_000), _peak(20_000)
    features = 18_000 * 64 * 8
    assert large - small < features / 2  # a few numbers a picture: its cluster, its influence, its split
