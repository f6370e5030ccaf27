"""Masks from other people: black and white, labels, palettes, colours, noise; and those refused instead of guessed."""

from __future__ import annotations

import io

import cv2
import matplotlib
import numpy as np
import pytest
from PIL import Image as Pillow

from medtest.core.files import masks as maskfile
from medtest.core.files.images import BadFileError
from medtest.core.files.masks import decode_mask, read_bright

RNG = np.random.default_rng(7)


def encode(picture, kind="PNG", **options):
    buffer = io.BytesIO()
    picture = Pillow.fromarray(picture) if isinstance(picture, np.ndarray) else picture
    picture.save(buffer, kind, **options)
    return buffer.getvalue()


def drawn(*levels, size=(120, 160), border=None):
    """Draw discs of these levels on 0, each with a ring of ``border``."""
    picture = np.zeros((*size, *np.shape(levels[0])), np.uint8)
    for number, level in enumerate(levels):
        centre = (35 + 45 * number, 60)
        if border is not None:
            cv2.circle(picture, centre, 19, border, -1)
        cv2.circle(picture, centre, 16, tuple(map(int, level)) if np.ndim(level) else int(level), -1)
    return picture


def voc(indices):
    """Return a palette image as PASCAL VOC has them: class colours by its own rule, 255 is void."""
    colours = np.zeros((256, 3), np.uint8)
    for n in range(256):
        for bit in range(8):
            for channel in range(3):
                colours[n, channel] |= ((n >> (3 * bit + channel)) & 1) << (7 - bit)
    picture = Pillow.fromarray(indices, "P")
    picture.putpalette(colours.ravel().tolist())
    return picture


def test_jpeg_noise_around_black_and_white():
    mask = drawn(255)
    content = encode(mask, "JPEG", quality=70)
    assert len(np.unique(np.asarray(Pillow.open(io.BytesIO(content))))) > 10, "there must be noise to survive"
    read = decode_mask(content)
    assert (read.mask != (mask > 0)).mean() < 0.002
    assert read.brightest >= 250
    assert not read.revised
    # The same noise in a lossless file, as copies of Kvasir-SEG have it.
    again = decode_mask(encode(np.asarray(Pillow.open(io.BytesIO(content)))))
    assert (again.mask == read.mask).all() and not again.revised


@pytest.mark.parametrize("factor", [2, 7])
def test_soft_edges_are_no_levels(factor):
    mask = drawn(255)
    soft = cv2.resize(cv2.resize(mask, None, fx=1 / factor, fy=1 / factor, interpolation=cv2.INTER_AREA), (160, 120))
    assert len(np.unique(soft)) > 20
    assert (decode_mask(encode(soft)).mask == (soft > 127)).all()


@pytest.mark.parametrize("top", [1, 2, 20, 100, 128, 200])
@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF"])
def test_of_two_levels_the_other_is_lesion(top, kind):
    mask = drawn(top)
    assert (decode_mask(encode(mask, kind)).mask == (mask > 0)).all()
    wide = decode_mask(encode(mask.astype(np.uint16) * (1 if top < 21 else 257)))
    assert (wide.mask == (mask > 0)).all()
    assert wide.revised == (top == 100), "a mask that was read before keeps its digest"


@pytest.mark.parametrize("levels", [(1, 2), (100, 200), (128, 255), (1, 255), (50, 100), (1, 2, 20)])
def test_several_levels_are_refused_until_one_is_named(levels):
    mask = drawn(*levels)
    with pytest.raises(BadFileError, match=rf"several levels \(0: .*{levels[0]}: .*label_values"):
        decode_mask(encode(mask))
    for level in levels:
        assert (decode_mask(encode(mask), values=[level]).mask == (mask == level)).all()
    assert (decode_mask(encode(mask), values=levels).mask == (mask > 0)).all()


def beside(mask, levels, *, width=3, inside=False):
    """Return a mask with a ring of further levels around its lesion, or inside of it."""
    kernel = np.ones((2 * width + 1, 2 * width + 1), np.uint8)
    ring = (mask > 0) & (cv2.erode(mask, kernel) == 0) if inside else (mask == 0) & (cv2.dilate(mask, kernel) > 0)
    result = mask.copy()
    runs = np.array(levels, np.uint8)[(np.arange(mask.shape[1]) // 12) % len(levels)]
    result[ring] = np.broadcast_to(runs, mask.shape)[ring]
    return result


def clinicdb(levels=(11, 12, 13), **options):
    """Return a mask like some of CVC-ClinicDB: black, white, and 0.1 to 1.4 % of the pixels at levels 11 to 13."""
    mask = np.zeros((288, 384), np.uint8)
    cv2.ellipse(mask, (200, 140), (70, 50), 20, 0, 360, 255, -1)
    noisy_mask = beside(mask, levels, **options)
    assert 0.001 <= np.isin(noisy_mask, levels).mean() <= 0.015
    return mask > 0, noisy_mask


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF", "16 bit", "RGB", "RGBA", "LA", "palette"])
def test_levels_beside_black_and_white_are_read_with_them(kind):
    mask, noisy_mask = clinicdb()
    form = {
        "16 bit": lambda: Pillow.fromarray(noisy_mask.astype(np.uint16) * 257),
        "RGB": lambda: Pillow.fromarray(noisy_mask).convert("RGB"),
        "RGBA": lambda: Pillow.fromarray(noisy_mask).convert("RGBA"),
        "LA": lambda: Pillow.fromarray(noisy_mask).convert("LA"),
        "palette": lambda: Pillow.fromarray(noisy_mask).convert("P"),
    }.get(kind, lambda: noisy_mask)
    read = decode_mask(encode(form(), kind if kind in ("BMP", "TIFF") else "PNG"))
    assert (read.mask == mask).all()
    assert read.near == pytest.approx(np.isin(noisy_mask, (11, 12, 13)).mean())
    assert not read.revised


@pytest.mark.parametrize("levels", [(12,), (9, 32), (30,), (20, 21, 22)])
def test_noise_on_black_lies_along_white_or_the_border_or_among_other_levels(levels):
    mask, noisy_mask = clinicdb(levels)
    framed = np.where(mask, np.uint8(255), np.uint8(0))
    framed[:3] = levels[0]
    mixed = np.where(mask, np.uint8(255), np.uint8(0))
    mixed[20:32:4, 20:80], mixed[21:32:4, 20:80] = 11, 11
    mixed[22:32:4, 20:80], mixed[23:32:4, 20:80] = 13, 13
    for picture in (noisy_mask, framed, mixed):
        read = decode_mask(encode(picture))
        assert (read.mask == mask).all() and read.near > 0


@pytest.mark.parametrize("levels", [(223, 230), (235,)])
def test_noise_on_white_is_white(levels):
    mask, noisy_mask = clinicdb(levels, inside=True)
    read = decode_mask(encode(noisy_mask))
    assert (read.mask == mask).all() and read.near > 0


@pytest.mark.parametrize("level", [1, 2, 8, 9, 12, 20, 32, 33, 100, 222])
def test_a_region_of_one_level_is_a_class_however_near_to_black(level):
    mask, _ = clinicdb()
    levels = np.where(mask, np.uint8(255), np.uint8(0))
    levels[20:45, 20:60] = level
    with pytest.raises(BadFileError, match=rf"several levels .*\b{level}: .*label_values"):
        decode_mask(encode(levels))
    assert (decode_mask(encode(levels), values=[255]).mask == mask).all()
    levels = np.where(mask, np.uint8(0), np.uint8(0))
    levels[20:45, 20:60] = level
    assert (decode_mask(encode(levels)).mask == (levels > 0)).all()


@pytest.mark.parametrize("level", [1, 8])
def test_numbers_of_classes_are_no_noise_beside_white(level):
    _, noisy_mask = clinicdb((level,))
    with pytest.raises(BadFileError, match="several levels"):
        decode_mask(encode(noisy_mask))


def test_neighbouring_classes_are_no_noise():
    mask, _ = clinicdb()
    levels = np.where(mask, np.uint8(255), np.uint8(0))
    levels[20:40, 20:40], levels[20:40, 40:60] = 11, 12
    with pytest.raises(BadFileError, match="several levels"):
        decode_mask(encode(levels))


def test_where_black_and_white_are_not_nearly_all_nothing_is_noise():
    mask, noisy_mask = clinicdb()
    noisy_mask[100:110, 20:100] = 128
    noisy_mask[150:250, 20:80] = 12
    assert ((noisy_mask == 0) | (noisy_mask == 255)).mean() < 0.95
    with pytest.raises(BadFileError, match="several levels"):
        decode_mask(encode(noisy_mask))


@pytest.mark.parametrize("quality", [30, 60, 75, 90, 95, 100])
def test_noise_survives_jpeg_of_any_quality(quality):
    mask, noisy_mask = clinicdb()
    content = encode(noisy_mask, "JPEG", quality=quality)
    for again in (content, encode(np.asarray(Pillow.open(io.BytesIO(content))))):
        assert (decode_mask(again).mask != mask).mean() < 0.002


@pytest.mark.parametrize("interpolation", [cv2.INTER_NEAREST, cv2.INTER_LINEAR, cv2.INTER_CUBIC, cv2.INTER_AREA])
@pytest.mark.parametrize("factor", [0.4, 0.9, 2.3])
def test_noise_survives_another_size(interpolation, factor):
    _, noisy_mask = clinicdb()
    resized = cv2.resize(noisy_mask, None, fx=factor, fy=factor, interpolation=interpolation)
    assert (decode_mask(encode(resized)).mask == (resized > 127)).all()


def test_one_bit_has_no_levels():
    mask, _ = clinicdb()
    read = decode_mask(encode(Pillow.fromarray(mask)))
    assert (read.mask == mask).all() and read.near == 0


def test_levels_with_jpeg_noise():
    mask = drawn(100, 200)
    for content in (
        encode(mask, "JPEG", quality=80),
        encode(np.asarray(Pillow.open(io.BytesIO(encode(mask, "JPEG", quality=80))))),
    ):
        with pytest.raises(BadFileError, match=r"several levels .*100: .*200: "):
            decode_mask(content)
        assert (decode_mask(content, values=[100]).mask != (mask == 100)).mean() < 0.03
        assert (decode_mask(content, values=[200]).mask != (mask == 200)).mean() < 0.01


@pytest.mark.parametrize("share", [0.002, 0.02, 0.75])
def test_specks_are_noise(share):
    noise = (RNG.random((300, 400)) < share) * RNG.integers(1, 4, (300, 400))
    read = decode_mask(encode(noise.astype(np.uint8)))
    assert not read.mask.any()
    assert read.specks and read.revised


@pytest.mark.parametrize("corner", [(0, 0), (0, slice(0, 2)), (slice(0, 2), 0)])
def test_specks_on_the_border_are_noise_too(corner):
    noise = (RNG.random((120, 160)) < 0.01) * RNG.integers(1, 3, (120, 160))
    noise[:2, :2] = 0
    noise[corner] = 3
    read = decode_mask(encode(noise.astype(np.uint8)))
    assert not read.mask.any()
    assert read.specks


@pytest.mark.parametrize("top", [0.02, 0.4, 30_000])
def test_a_dark_picture_of_thousands_of_levels_is_refused_without_a_look_at_each(monkeypatch, top):
    looked = []
    monkeypatch.setattr(maskfile, "_holds_together", lambda part, area: looked.append(area))
    depths = RNG.random((64, 64)) * top
    with pytest.raises(BadFileError, match=r"holds nothing above 127"):
        decode_mask(encode(depths.astype(np.float32 if top < 1 else np.uint16), "TIFF"))
    assert not looked


def test_a_black_jpeg_with_noise_is_empty_and_one_of_labels_is_refused():
    noise = RNG.integers(0, 6, (64, 64)).astype(np.uint8)
    read = decode_mask(encode(noise, "JPEG", quality=95))
    assert not read.mask.any()
    assert read.brightest < 20
    with pytest.raises(BadFileError, match=r"nothing above 127 \(brightest value [12]\)"):
        decode_mask(encode(drawn(1), "JPEG", quality=95))


def test_grey_without_anything_light_is_refused():
    soft = cv2.GaussianBlur(drawn(100), (0, 0), 2)
    with pytest.raises(BadFileError, match="nothing above 127"):
        decode_mask(encode(soft))


def test_a_class_of_voc_is_lesion_and_void_is_not():
    indices = drawn(1, border=255)
    read = decode_mask(encode(voc(indices)))
    assert (read.mask == (indices == 1)).all()
    assert read.revised
    assert not decode_mask(encode(voc(drawn(1)))).revised
    with pytest.raises(BadFileError, match="index 255 alone"):
        decode_mask(encode(voc(drawn(255))))
    assert decode_mask(encode(voc(drawn(255))), values=[255]).mask.any()


def test_several_classes_of_a_palette_are_refused_until_one_is_named():
    indices = drawn(1, 15, border=255)
    with pytest.raises(BadFileError, match=r"several classes \(1: #800000, 15: #c08080\); label_values"):
        decode_mask(encode(voc(indices)))
    for named in (15, (192, 128, 128)):
        assert (decode_mask(encode(voc(indices)), values=[named]).mask == (indices == 15)).all()


def test_palettes_of_grey_are_grey_pictures():
    indices = (drawn(1) > 0).astype(np.uint8)
    picture = Pillow.fromarray(indices, "P")
    picture.putpalette([255, 255, 255, 0, 0, 0])
    assert (decode_mask(encode(picture)).mask == (indices == 0)).all()
    ramp = Pillow.fromarray(drawn(255)).convert("P")
    assert (decode_mask(encode(ramp)).mask == (drawn(255) > 0)).all()


@pytest.mark.parametrize("colour", [(255, 0, 0), (0, 0, 255), (128, 0, 0), (0, 255, 0), (255, 255, 0)])
def test_one_colour_on_black_is_lesion(colour):
    mask = drawn(colour)
    read = decode_mask(encode(mask))
    assert (read.mask == mask.any(axis=2)).all()
    assert (decode_mask(encode(mask, "JPEG", quality=90)).mask != mask.any(axis=2)).mean() < 0.02


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_red_and_green_classes_are_refused_until_one_is_named(kind):
    mask = drawn((255, 0, 0), (0, 255, 0))  # neoplastic and other polyps, as in NeoPolyp
    content = encode(mask, kind, **({"quality": 90} if kind == "JPEG" else {}))
    with pytest.raises(BadFileError, match=r"several colours \(.*label_values"):
        decode_mask(content)
    for colour, channel in (((255, 0, 0), 0), ((0, 255, 0), 1)):
        decoded = decode_mask(content, values=[colour]).mask
        assert (decoded != (mask[..., channel] > 0)).mean() < (0.02 if kind == "JPEG" else 1e-9)
    assert (decode_mask(content, values=[(255, 0, 0), (0, 255, 0)]).mask != mask.any(axis=2)).mean() < 0.02


def test_matplotlibs_colours_are_refused():
    coloured = matplotlib.colormaps["viridis"](drawn(1, 2) / 2, bytes=True)[..., :3]
    with pytest.raises(BadFileError, match="several colours"):
        decode_mask(encode(np.ascontiguousarray(coloured)))


def test_black_is_lesion_where_masks_are_inverted_and_0_is_named():
    mask = 255 - drawn(255)
    assert (decode_mask(encode(mask), values=[0]).mask == (mask == 0)).all()
    assert (decode_mask(encode(mask, "JPEG", quality=70), values=[0]).mask != (mask == 0)).mean() < 0.002
    assert (decode_mask(encode(Pillow.fromarray(mask).convert("1")), values=[0]).mask == (mask == 0)).all()


def test_one_bit_masks():
    mask = RNG.random((30, 31)) > 0.5
    for kind in ("PNG", "BMP", "TIFF"):
        assert (decode_mask(encode(Pillow.fromarray(mask), kind)).mask == mask).all()


def test_truths_of_films_keep_their_levels(tmp_path):
    levels = drawn(50, 170)
    (tmp_path / "gt.png").write_bytes(encode(levels))  # changedetection.net: 50 is shadow, 170 unknown
    assert (read_bright(tmp_path / "gt.png") == (levels == 170)).all()
