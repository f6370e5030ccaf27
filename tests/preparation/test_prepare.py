"""Resizing, grey mask and factors compared with other libraries and hand computation."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image as Pillow

from medtest.core.cases import PreparedSeed, Seed, SeedRef
from medtest.core.records import SEED_FACTORS
from medtest.phantoms.classes import CAPSULE
from medtest.phantoms.colon import colon_rng, make_colon
from medtest.preparation import grey_mask, prepare, resize_image, resize_mask, seed_factors
from medtest.preparation.prepare import shorter_side

REF = SeedRef(dataset="d", seed_id="s")


def seed_of(image, mask=None, avoid=None):
    return Seed(ref=REF, image=image, expected=mask, avoid=avoid)


def bare(image, mask, frame):
    """Return a prepared seed that is put together by hand."""
    return PreparedSeed(
        ref=REF, image=image, mask=mask, original_mask=mask, frame=frame, grey=np.ones(frame.shape, np.float32)
    )


@pytest.fixture(scope="module")
def phantom():
    return make_colon(colon_rng(3, "prepare", 1), size=(432, 487), polyps=1, frame="octagonal")


# ---------------------------------------------------------------------------------------------------- resizing


@pytest.mark.parametrize("size", [(531, 622), (1072, 1920), (600, 512), (513, 900)])
def test_shrinking_agrees_with_pillows_box_filter(size):
    image = np.random.default_rng(4).integers(0, 256, (*size, 3), dtype=np.uint8)
    expected = np.asarray(Pillow.fromarray(image).resize((512, 512), Pillow.Resampling.BOX))
    resized = resize_image(image, 512)
    # Pillow's box takes whole pixels and OpenCV's weighs cut ones, so smooth images agree, and noise only on
    # average.
    assert abs(float(resized.mean()) - float(expected.mean())) < 0.6
    smooth = cv2.GaussianBlur(image, (0, 0), 6)
    expected = np.asarray(Pillow.fromarray(smooth).resize((512, 512), Pillow.Resampling.BOX)).astype(int)
    assert np.abs(resize_image(smooth, 512).astype(int) - expected).max() <= 2


def test_shrinking_does_not_alias():
    """Stripes finer than the new grid must vanish; without antialiasing they come back as coarse ones."""
    stripes = np.where(np.arange(1536) % 3 == 0, 255, 0).astype(np.uint8)
    image = np.broadcast_to(stripes[None, :, None], (1024, 1536, 3)).copy()
    assert np.abs(resize_image(image, 512).astype(int) - 85).max() <= 1
    naive = cv2.resize(image, (512, 512), interpolation=cv2.INTER_NEAREST)
    assert np.abs(naive.astype(int) - 85).max() > 80


def test_shrinking_one_axis_and_enlarging_the_other():
    image = np.zeros((300, 800, 3), np.uint8)
    image[:, 400:] = 200
    small = resize_image(image, 512)
    assert small.shape == (512, 512, 3)
    assert small[:, :255].max() == 0
    assert small[:, 257:].min() == 200


def test_mask_is_nearest():
    rng = np.random.default_rng(1)
    mask = rng.random((300, 470)) > 0.5
    rows = ((np.arange(512) + 0.5) * 300 / 512).astype(int)
    columns = ((np.arange(512) + 0.5) * 470 / 512).astype(int)
    agreement = (resize_mask(mask, 512) == mask[rows][:, columns]).mean()
    assert agreement > 0.999, "pixel centres; OpenCV's fixed-point steps may differ at ties"


def test_native_size_keeps_every_value(phantom):
    prepared = prepare(seed_of(phantom.image, phantom.mask), size=None)
    assert (prepared.image == phantom.image).all()
    assert (prepared.mask == phantom.mask).all()
    assert prepared.frame.shape == prepared.grey.shape == phantom.mask.shape


def test_prepared_seed_is_whole(phantom):
    avoid = np.zeros(phantom.mask.shape, np.bool_)
    avoid[100:200, 50:90] = True
    prepared = prepare(seed_of(phantom.image, phantom.mask, avoid), size=512)
    assert prepared.image.shape == (512, 512, 3)
    assert prepared.image.dtype == np.uint8
    assert prepared.mask.dtype == prepared.frame.dtype == prepared.avoid.dtype == np.bool_
    assert prepared.grey.dtype == np.float32
    assert prepared.original_mask.shape == phantom.mask.shape
    assert prepared.avoid.mean() == pytest.approx(avoid.mean(), rel=0.05)
    for array in (prepared.image, prepared.mask, prepared.original_mask, prepared.frame, prepared.grey, prepared.avoid):
        assert array.flags.c_contiguous
        assert not array.flags.writeable


def test_unlabelled_seed_has_no_masks(phantom):
    prepared = prepare(seed_of(phantom.image), size=128)
    assert prepared.mask is None
    assert prepared.original_mask is None
    assert prepared.avoid is None


def test_the_seeds_own_arrays_stay_writable_and_apart(phantom):
    image, mask = phantom.image.copy(), phantom.mask.copy()
    prepared = prepare(seed_of(image, mask), size=None)
    image[:] = 0
    mask[:] = False
    assert prepared.image.any()
    assert prepared.original_mask.any()


def test_frame_of_a_stretched_seed_fits(phantom):
    prepared = prepare(seed_of(phantom.image, phantom.mask), size=512)
    truth = resize_mask(phantom.frame, 512)
    overlap = np.count_nonzero(~prepared.frame & ~truth) / np.count_nonzero(~prepared.frame | ~truth)
    assert overlap > 0.97


# ----------------------------------------------------------------------------------------------- crops and labels


@pytest.mark.parametrize(
    ("shape", "wide"), [((500, 700), (256, 358)), ((700, 500), (358, 256)), ((90, 120), (256, 341))]
)
def test_the_middle_is_cut_out_of_a_wider_picture(shape, wide):
    """As torchvision's Resize and CenterCrop: the longer side rounded down, the middle rounded to whole pixels."""
    image = cv2.GaussianBlur(np.random.default_rng(1).integers(0, 256, (*shape, 3), dtype=np.uint8), (0, 0), 9)
    mask = np.zeros(shape, np.bool_)
    mask[shape[0] // 2 :, shape[1] // 2 :] = True
    avoid = ~mask
    seed = replace(seed_of(image, mask, avoid), kind="label", classes=CAPSULE, labels=("vascular",))
    prepared = prepare(seed, size=224, resize=256)
    assert prepared.wide.shape == (*wide, 3)
    y_min, x_min = round((wide[0] - 224) / 2), round((wide[1] - 224) / 2)
    assert (prepared.wide[y_min : y_min + 224, x_min : x_min + 224] == prepared.image).all()
    other = Pillow.fromarray(image).resize(wide[::-1], Pillow.Resampling.BILINEAR)  # antialiased in Pillow
    other = np.asarray(other.crop((x_min, y_min, x_min + 224, y_min + 224))).astype(int)
    assert np.abs(prepared.image.astype(int) - other).max() <= 3
    assert prepared.mask.shape == prepared.avoid.shape == (224, 224)
    assert (prepared.mask == ~prepared.avoid).all()
    assert prepared.mask[112:, 112:].mean() > 0.97 and prepared.mask[:111, :111].sum() == 0
    assert prepared.original_mask is None
    assert (prepared.kind, prepared.labels, prepared.classes) == ("label", ("vascular",), CAPSULE)
    for array in (prepared.image, prepared.wide, prepared.mask, prepared.avoid, prepared.frame, prepared.grey):
        assert array.flags.c_contiguous and not array.flags.writeable


def test_a_crop_of_the_whole_has_nothing_around_it():
    image = np.random.default_rng(1).integers(0, 256, (300, 300, 3), dtype=np.uint8)
    prepared = prepare(seed_of(image), size=224, resize=224)
    assert prepared.wide is None
    assert (prepared.image == resize_image(image, 224)).all()
    assert prepare(seed_of(image), size=224).wide is None


@settings(max_examples=25)
@given(st.integers(3, 900), st.integers(3, 900), st.integers(64, 300))
def test_the_shorter_side_gets_its_length(height, width, length):
    size = shorter_side((height, width), length)
    assert min(size) == length
    assert max(size) == int(length * max(height, width) / min(height, width))


def test_same_seed_same_bytes(phantom):
    first, second = (prepare(seed_of(phantom.image.copy(), phantom.mask.copy()), size=512) for _ in range(2))
    assert first.sha256 == second.sha256
    assert (first.frame == second.frame).all()
    assert (first.grey == second.grey).all()


# --------------------------------------------------------------------------------------------------- grey mask


def test_grey_mask_is_dark_in_the_lumen_and_zero_on_the_frame():
    image = np.full((400, 400, 3), 160, np.uint8)
    cv2.circle(image, (200, 200), 70, (12, 8, 8), -1)
    frame = np.zeros((400, 400), np.bool_)
    frame[:, :60] = True
    image[frame] = 0
    grey = grey_mask(image, frame)
    assert (grey[frame] == 0).all()
    assert grey[200, 200] < 0.1
    assert grey[350, 350] > 0.75
    assert grey[200, 64] > 0.75, "the frame does not darken what lies beside it"


def test_even_light_gives_an_even_mask_at_any_exposure():
    frame = np.zeros((300, 300), np.bool_)
    for level in (40, 120, 220):
        grey = grey_mask(np.full((300, 300, 3), level, np.uint8), frame)
        assert np.allclose(grey, 1 / (1 + np.exp(-1.4)), atol=0.002)


@settings(max_examples=25)
@given(
    height=st.integers(1, 90),
    width=st.integers(1, 90),
    seed=st.integers(0, 2**31),
    covered=st.sampled_from([0, 0.3, 1]),
)
def test_grey_mask_is_always_a_mask(height, width, seed, covered):
    rng = np.random.default_rng(seed)
    image = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
    frame = rng.random((height, width)) < covered
    grey = grey_mask(image, frame)
    assert grey.shape == (height, width)
    assert grey.dtype == np.float32
    assert np.isfinite(grey).all()
    assert 0 <= grey.min() <= grey.max() <= 1
    assert not grey[frame].any()


# ------------------------------------------------------------------------------------------------------ factors


def test_factors_by_hand():
    image = np.full((100, 200, 3), 100, np.uint8)
    image[:, 100:] = 200
    frame = np.zeros((100, 200), np.bool_)
    frame[:, :40] = frame[:, 160:] = True
    mask = np.zeros((100, 200), np.bool_)
    mask[40:60, 140:160] = True
    mask[10:20, 60:70] = True
    mask[0, 50] = True
    factors = seed_factors(bare(image, mask, frame))
    assert set(factors) == set(SEED_FACTORS)
    assert factors["factor_visible_area"] == pytest.approx(0.6)
    assert factors["factor_brightness"] == pytest.approx(150)
    assert factors["factor_contrast"] == pytest.approx(50)
    assert factors["factor_polyp_area"] == pytest.approx(501 / 12000)
    assert factors["factor_polyp_count"] == 2, "one pixel is noise of the mask"
    y, x = np.nonzero(mask)
    expected = np.hypot(x.mean() - 99.5, y.mean() - 49.5) / np.sqrt(12000 / np.pi)
    assert factors["factor_polyp_distance"] == pytest.approx(expected)


def test_factors_without_mask_and_without_field():
    image = np.full((50, 50, 3), 90, np.uint8)
    clear = np.zeros((50, 50), np.bool_)
    unlabelled = seed_factors(bare(image, None, clear))
    assert unlabelled["factor_polyp_count"] is None
    assert unlabelled["factor_brightness"] == pytest.approx(90)
    negative = seed_factors(bare(image, clear, clear))
    assert negative["factor_polyp_count"] == 0
    assert negative["factor_polyp_area"] == 0
    assert negative["factor_polyp_distance"] is None
    nothing = seed_factors(bare(image, None, ~clear))
    assert nothing == {**dict.fromkeys(SEED_FACTORS), "factor_visible_area": 0.0}
