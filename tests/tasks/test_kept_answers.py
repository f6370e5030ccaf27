"""Stored answers of each task: their scores equal those of the answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from medtest.core.cases import (
    Address,
    AnswerOutput,
    Classes,
    Effect,
    ImageOutput,
    ImageSpec,
    LabelOutput,
    Output,
    PreparedSeed,
    RegionOutput,
    Seed,
    SeedRef,
)
from medtest.core.errors import MedtestError
from medtest.core.files.arrays import DamagedArrays, packed, unpacked
from medtest.core.oracles.base import Oracle
from medtest.core.tasks.base import SystemInput, task_of
from medtest.core.tasks.border import check_mask
from medtest.preparation import prepare
from medtest.suite.model import Criterion
from medtest.tasks.classify.oracle import Labels, LabelsSettings
from medtest.tasks.region.oracle import Regions
from medtest.tasks.restore.oracle import Quality, SeriesSettings
from medtest.tasks.restore.task import MOST_BYTES
from medtest.tasks.segment.oracle import Masks

RNG = np.random.default_rng(20261127)
CLASSES = Classes(names=("benign", "malignant", "other"))


def seed_of(kind: str = "mask", *, side: int = 96, original: int = 150, **more: Any) -> PreparedSeed:
    """Return a prepared picture with a lesion at another size than it is prepared at."""
    image = RNG.integers(0, 255, (original, original, 3), np.uint8)
    mask = np.zeros((original, original), np.bool_)
    mask[30:90, 40:120] = True
    ref = SeedRef(dataset="made", seed_id="one", locator="one")
    prepared = prepare(Seed(ref=ref, image=image, expected=mask, kind="mask"), size=side)
    return replace(prepared, kind=kind, **more)


def score_of(oracle: Oracle, answer: Output, seed: PreparedSeed) -> dict[str, float | None]:
    return oracle.score(answer=answer, source=answer, seed=seed, effect=Effect())


def again(answer: Output, seed: PreparedSeed, *, maps: bool = False) -> Output:
    """Store an answer by its task, and return what the task restores."""
    task = task_of(seed.kind)
    content = task.storage.keep(answer, seed, maps=maps)
    assert content is not None
    return task.storage.restore(content, seed, SystemInput(image=seed.image, spec=seed.spec, classes=seed.classes))


@pytest.mark.parametrize("size", [96, 150, 44])
@pytest.mark.parametrize("labelled", [True, False])
def test_masks_with_maps_keep_all_scores(size: int, labelled: bool) -> None:
    seed = seed_of()
    seed = seed if labelled else replace(seed, mask=None, original_mask=None)
    answer = check_mask(RNG.random((size, size)).astype(np.float32) ** 2, (96, 96))
    oracle = Masks(Masks.Settings(), primary=Criterion())
    assert score_of(oracle, again(answer, seed, maps=True), seed) == score_of(oracle, answer, seed)


def test_compact_masks_keep_all_scores_that_need_no_map() -> None:
    seed = seed_of()
    answer = check_mask(RNG.random((96, 96)).astype(np.float32), (96, 96))
    restored = again(answer, seed)
    oracle = Masks(Masks.Settings(), primary=Criterion())
    oracle.recorded = tuple(name for name in Masks.scores if name not in Masks.needs)
    assert score_of(oracle, restored, seed) == score_of(oracle, answer, seed)
    contents = [task_of("mask").storage.keep(answer, seed, maps=maps) for maps in (False, True)]
    assert contents[0] is not None and contents[1] is not None and len(contents[0]) < len(contents[1])


@pytest.mark.parametrize("multi", [True, False])
@pytest.mark.parametrize("probable", [True, False])
@pytest.mark.parametrize("outlined", [True, False])
def test_labels_keep_probabilities_to_the_last_digit(multi: bool, probable: bool, outlined: bool) -> None:
    classes = replace(CLASSES, multi=multi)
    seed = seed_of("label", classes=classes, labels=("malignant",))
    shares = RNG.random(3).astype(np.float32)
    answer = LabelOutput(
        classes=classes,
        labels=("benign", "other") if multi else ("other",),
        probabilities=shares / shares.sum() if probable else None,
        mask=check_mask(RNG.random((96, 96)).astype(np.float32), (96, 96)) if outlined else None,
    )
    oracle = Labels(LabelsSettings(), primary=Criterion(score="label"))
    restored = again(answer, seed)
    assert isinstance(restored, LabelOutput) and restored.labels == answer.labels
    assert score_of(oracle, restored, seed) == score_of(oracle, answer, seed)
    for output in (restored, answer):
        described = oracle.describe(answer=output, source=output, seed=seed, effect=Effect())
        assert described == oracle.describe(answer=answer, source=answer, seed=seed, effect=Effect())


def test_a_label_of_other_classes_is_not_an_answer() -> None:
    seed = seed_of("label", classes=CLASSES)
    content = task_of("label").storage.keep(LabelOutput(classes=CLASSES, labels=("other",)), seed, maps=False)
    assert content is not None
    fewer = Classes(names=("benign", "malignant"))
    with pytest.raises(MedtestError, match="none of the seeds' classes"):
        task_of("label").storage.restore(content, seed, SystemInput(image=seed.image, classes=fewer))


def test_regions_keep_every_voxel() -> None:
    spec = ImageSpec(axes="zyx", low=0.0, high=1.0)
    seed = replace(seed_of("region"), image=RNG.random((5, 17, 23)).astype(np.float32), spec=spec)
    seed = replace(seed, mask=RNG.random((5, 17, 23)) > 0.4)
    answer = RegionOutput(region=RNG.random((5, 17, 23)) > 0.5)
    oracle = Regions(SeriesSettings(), primary=Criterion())
    assert score_of(oracle, again(answer, seed), seed) == score_of(oracle, answer, seed)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_images_keep_every_bit(dtype: Any) -> None:
    low, high = 0.0, (1.0 if dtype is np.float32 else float(np.iinfo(dtype).max))
    image = (RNG.random((40, 48)) * high).astype(dtype)
    seed = replace(
        seed_of("image"), image=image, spec=ImageSpec(axes="yx", low=low, high=high), clean=image[::-1].copy()
    )
    answer = ImageOutput(image=image.T[:40, :40].repeat(2, axis=1)[:, :48].copy(), given=image)
    restored = again(answer, seed)
    assert isinstance(restored, ImageOutput) and restored.image.tobytes() == answer.image.tobytes()
    oracle = Quality(SeriesSettings(), primary=Criterion(score="ssim", threshold=0.0, against="input"))
    assert score_of(oracle, restored, seed) == score_of(oracle, answer, seed)


def test_large_images_are_kept_only_with_maps() -> None:
    image = np.zeros((MOST_BYTES // 4096 + 1, 1024), np.float32)
    seed = replace(seed_of("image"), image=image)
    answer = ImageOutput(image=image, given=image)
    assert task_of("image").storage.keep(answer, seed, maps=False) is None
    assert task_of("image").storage.keep(answer, seed, maps=True) is not None


def test_words_are_in_records_and_are_not_stored_twice() -> None:
    seed = seed_of("answer")
    answer = AnswerOutput(address=Address(dataset="made", seed_id="one"), text="one polyp")
    assert task_of("answer").storage.keep(answer, seed, maps=True) is None
    assert task_of("depiction").storage.keep(answer, seed, maps=True) is None


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((0, 4), np.bool_),
        RNG.random((3, 5, 7)) > 0.5,
        RNG.integers(-300, 300, (9, 4), np.int16),
        RNG.integers(0, 255, (6, 5, 3), np.uint8),
        np.array(2.5),
        RNG.random((4, 3)).astype(">f4"),
        RNG.integers(0, 9, (5, 5))[::2, ::-1],
    ],
)
def test_arrays_are_read_back_unchanged(array: np.ndarray) -> None:
    arrays, words = unpacked(packed({"it": array}, {"said": ["ä", 1]}))
    assert words == {"said": ["ä", 1]}
    assert arrays["it"].dtype == array.dtype and arrays["it"].shape == array.shape
    np.testing.assert_array_equal(arrays["it"], array)


@pytest.mark.parametrize("data", [b"", b"{", b"[[], {}, 3]\n", packed({"it": np.arange(99)})[:-3], b"\xff" * 40])
def test_foreign_bytes_are_not_arrays(data: bytes) -> None:
    with pytest.raises(DamagedArrays):
        unpacked(data)


def test_a_mask_of_512_pixels_takes_a_kilobyte() -> None:
    rows, columns = np.mgrid[:512, :512]
    answer = check_mask(((rows - 250) ** 2 / 90**2 + (columns - 240) ** 2 / 130**2 < 1), (512, 512))
    content = task_of("mask").storage.keep(answer, seed_of(), maps=False)
    assert content is not None and len(content) < 1200
