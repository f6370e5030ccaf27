"""Pictures from other people: every format and mode, every kind of damage."""

from __future__ import annotations

import io
import os
import struct
import zlib

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as Pillow
from PIL import ImageFile

from medtest.core.files.images import (
    BadFileError,
    check_decodes,
    decode_rgb,
    decode_size,
    read_bytes,
    read_rgb,
    read_size,
)
from medtest.core.files.masks import decode_mask, read_mask

RNG = np.random.default_rng(7)
PIXELS = cv2.GaussianBlur(RNG.integers(0, 256, (40, 60, 3), dtype=np.uint8), (0, 0), 2)
COLOURS = Pillow.fromarray(PIXELS)


def encode(picture, kind, **options):
    buffer = io.BytesIO()
    picture.save(buffer, kind, **options)
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF"])
def test_lossless_formats_come_back_exactly(kind):
    assert (decode_rgb(encode(COLOURS, kind)) == PIXELS).all()
    assert (decode_rgb(encode(COLOURS, "WEBP", lossless=True)) == PIXELS).all()


def test_jpeg_agrees_with_opencv():
    content = encode(COLOURS, "JPEG", quality=95, subsampling=0)
    other = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR)[:, :, ::-1]
    assert np.abs(decode_rgb(content).astype(int) - other).max() <= 2


def test_content_decides_and_not_the_suffix(tmp_path):
    path = tmp_path / "picture.png"
    path.write_bytes(encode(COLOURS, "JPEG"))
    assert read_rgb(path).shape == (40, 60, 3)
    assert read_size(path) == (40, 60)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "CMYK", "YCbCr", "I;16", "F"])
def test_every_mode_becomes_contiguous_rgb(mode):
    wide = mode in ("I;16", "F")
    picture = COLOURS.convert("L").convert(mode) if wide else COLOURS.convert(mode)
    image = decode_rgb(encode(picture, "TIFF"))
    assert image.shape == (40, 60, 3)
    assert image.dtype == np.uint8
    assert image.flags.c_contiguous
    grey = np.asarray(COLOURS.convert("L")).astype(int)
    if mode in ("L", "LA", "F", "I;16"):
        assert np.abs(image.astype(int) - grey[..., None]).max() <= 1
    if mode in ("RGBA", "CMYK"):
        assert np.abs(image.astype(int) - PIXELS).max() <= 1


def test_sixteen_bits_are_scaled_and_not_cut():
    wide = RNG.integers(0, 65536, (40, 60)).astype(np.uint16)
    for kind in ("PNG", "TIFF"):
        image = decode_rgb(encode(Pillow.fromarray(wide), kind))
        assert np.abs(image[..., 1] - wide / 257).max() <= 0.51
    colours = RNG.integers(0, 65536, (40, 60, 3)).astype(np.uint16)
    for suffix in (".png", ".tiff"):
        content = cv2.imencode(suffix, colours)[1].tobytes()
        assert np.abs(decode_rgb(content)[..., ::-1] - colours / 257).max() < 1.01


def test_eight_bit_values_in_sixteen_bits_stay():
    narrow = RNG.integers(0, 256, (40, 60)).astype(np.uint16)
    assert (decode_rgb(encode(Pillow.fromarray(narrow), "PNG"))[..., 0] == narrow).all()


def test_transparency_lies_on_black():
    array = np.full((10, 10, 4), 200, np.uint8)
    array[:5, :, 3] = 0
    array[5:, :, 3] = 255
    image = decode_rgb(encode(Pillow.fromarray(array), "PNG"))
    assert (image[:5] == 0).all()
    assert (image[5:] == 200).all()


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF", "WEBP"])
def test_orientation_is_applied_once(orientation, kind):
    marked = np.zeros((40, 64, 3), np.uint8)
    marked[:20, :32] = 255
    exif = Pillow.Exif()
    exif[274] = orientation
    content = encode(Pillow.fromarray(marked), kind, exif=exif)
    # The EXIF standard defines the corner of the stored 0th row and column.
    turned = {
        1: marked,
        2: marked[:, ::-1],
        3: marked[::-1, ::-1],
        4: marked[::-1],
        5: marked.transpose(1, 0, 2),
        6: np.rot90(marked, -1),
        7: np.rot90(marked, 2).transpose(1, 0, 2),
        8: np.rot90(marked, 1),
    }[orientation]
    decoded = decode_rgb(content)
    assert decoded.shape == turned.shape
    assert np.mean(np.abs(decoded.astype(int) - turned)) < 4
    assert decode_size(content) == check_decodes(content) == turned.shape[:2]
    assert (decode_mask(content).mask == (turned[..., 0] > 127)).mean() > 0.97


# ------------------------------------------------------------------------------------------------------- damage


def _png_header(width, height):
    """Return a PNG whose header has a size, without pixels."""

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"not a picture at all\n" * 20, "is text"),
        (b"\0" * 400, "only zeros"),
        (encode(COLOURS, "PNG")[:700], "truncated"),
        (encode(COLOURS, "JPEG")[:600], "truncated"),
        (encode(COLOURS, "TIFF")[:4000], "truncated"),
        (encode(COLOURS, "BMP")[:900], "truncated"),
        (encode(COLOURS, "WEBP")[:200], "is "),
        (encode(COLOURS, "GIF"), "is a GIF"),
        (b"%PDF-1.7 ...", "is a PDF"),
        (encode(COLOURS, "TIFF", save_all=True, append_images=[COLOURS]), "several pictures"),
        (encode(COLOURS, "WEBP", save_all=True, append_images=[COLOURS.rotate(90)]), "several pictures"),
        (encode(COLOURS, "PNG", save_all=True, append_images=[COLOURS.rotate(90)]), "several pictures"),
        (_png_header(60_000, 60_000), "Mpixel"),
        (_png_header(9_000, 9_000), "81.0 Mpixel"),
        (os.urandom(3000), "is not one of"),
        (encode(Pillow.fromarray(np.array([[1.0, np.nan]], np.float32)), "TIFF"), "not numbers"),
        (encode(Pillow.fromarray(np.array([[1.0, -900.0]], np.float32)), "TIFF"), "-900"),
        (encode(Pillow.fromarray(np.array([[1, 2**20]], np.int32)), "TIFF"), "16 bits"),
    ],
)
@pytest.mark.parametrize("decode", [decode_rgb, check_decodes, decode_mask])
def test_bad_files_have_one_reason(content, reason, decode):
    with pytest.raises(BadFileError) as caught:
        decode(content)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_truncated_files_are_refused_after_another_library_allowed_them(monkeypatch):
    # WeasyPrint, which writes PDF reports, allows them for the whole process.
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    for kind in ("PNG", "JPEG"):
        with pytest.raises(BadFileError, match="truncated"):
            decode_rgb(encode(COLOURS, kind)[:600])
    assert ImageFile.LOAD_TRUNCATED_IMAGES


def test_size_is_read_without_decoding():
    assert decode_size(_png_header(5_000, 4_000)) == (4_000, 5_000)
    with pytest.raises(BadFileError, match=r"20.0 Mpixel; the bound is 10 Mpixel"):
        decode_size(_png_header(5_000, 4_000), max_pixels=10_000_000)


@given(
    kind=st.sampled_from(["PNG", "JPEG", "TIFF", "BMP", "WEBP"]),
    flips=st.lists(st.tuples(st.integers(0, 10_000), st.integers(1, 255)), min_size=1, max_size=12),
    cut=st.integers(0, 10_000),
)
def test_no_damage_escapes(kind, flips, cut):
    """Any changed bytes give a picture or one reason."""
    content = bytearray(encode(COLOURS, kind))
    for place, change in flips:
        content[place % len(content)] ^= change
    content = bytes(content[: len(content) - cut % 200])
    for decode in (decode_rgb, decode_mask, check_decodes):
        try:
            decode(content, max_pixels=1_000_000)
        except BadFileError as error:
            assert str(error)


def test_files_that_are_no_files(tmp_path):
    (tmp_path / "empty.png").touch()
    with pytest.raises(BadFileError, match="empty"):
        read_bytes(tmp_path / "empty.png")
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(BadFileError, match="cannot be read|not a regular file"):
        read_rgb(tmp_path / "folder.png")
    with pytest.raises(BadFileError, match="No such file"):
        read_mask(tmp_path / "missing.png")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
@pytest.mark.timeout(10)
def test_a_pipe_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(BadFileError, match="regular file"):
        read_rgb(tmp_path / "pipe.png")


def test_files_larger_than_any_allowed_picture_are_not_read(tmp_path):
    path = tmp_path / "huge.png"
    with path.open("wb") as file:
        file.truncate(10**11)
    with pytest.raises(BadFileError, match="100000 MB"):
        read_rgb(path)
