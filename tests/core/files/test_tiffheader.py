"""TIFFs in forms from practice, written by tifffile: read correctly, or refused with a description."""

from __future__ import annotations

import io

import cv2
import numpy as np
import pytest
import tifffile
from hypothesis import given
from hypothesis import strategies as st

from medtest.core.files.images import BadFileError, check_decodes, decode_rgb, decode_size, read_bytes
from medtest.core.files.tiffheader import declared_rgb
from medtest.seeds.made.films import _grey
from medtest.seeds.volumes.series_images import _decoded
from medtest.systems.adapters.folders.maps import read_map

RNG = np.random.default_rng(3)
PIXELS = cv2.GaussianBlur(RNG.integers(0, 256, (48, 64, 3), dtype=np.uint8), (0, 0), 2)
GREY_SAYING = {"photometric": "minisblack", "planarconfig": "contig"}


def written(array, **options):
    buffer = io.BytesIO()
    tifffile.imwrite(buffer, array, **options)
    return buffer.getvalue()


def without_extra_samples(content):
    """Remove the tag for the second and third sample, as in files of CVC-ClinicDB."""
    with tifffile.TiffFile(io.BytesIO(content)) as file:
        place = file.pages[0].tags["ExtraSamples"].offset
    return content[:place] + (65000).to_bytes(2, "little") + content[place + 2 :]


FORMS = {
    "clinicdb": lambda: without_extra_samples(written(PIXELS, rowsperstrip=8, **GREY_SAYING)),
    "extra samples": lambda: written(PIXELS, **GREY_SAYING),
    "big-endian": lambda: written(PIXELS, byteorder=">", **GREY_SAYING),
    "BigTIFF": lambda: written(PIXELS, bigtiff=True, **GREY_SAYING),
    "tiled": lambda: written(PIXELS, tile=(16, 16), **GREY_SAYING),
    "deflate": lambda: written(PIXELS, compression="zlib", predictor=True, **GREY_SAYING),
    "planar": lambda: written(
        np.ascontiguousarray(PIXELS.transpose(2, 0, 1)), photometric="minisblack", planarconfig="separate"
    ),
    "16 bits": lambda: written(PIXELS.astype(np.uint16) * 257, **GREY_SAYING),
    "fourth sample": lambda: written(np.dstack([PIXELS, PIXELS[..., 0]]), **GREY_SAYING),
    "RGB": lambda: written(PIXELS, photometric="rgb"),
    "RGB planar": lambda: written(
        np.ascontiguousarray(PIXELS.transpose(2, 0, 1)), photometric="rgb", planarconfig="separate"
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_colours_are_read_under_any_name_in_the_header(form):
    content = FORMS[form]()
    assert (decode_rgb(content) == PIXELS).all()
    assert decode_size(content) == check_decodes(content) == (48, 64)


@pytest.mark.parametrize("form", ["clinicdb", "planar"])
def test_every_reader_sees_colours(form, tmp_path):
    path = tmp_path / "a.tif"
    path.write_bytes(FORMS[form]())
    content = read_bytes(path)
    assert (_decoded(content) == PIXELS).all()
    assert np.abs(_grey(content).astype(int) - cv2.cvtColor(PIXELS, cv2.COLOR_RGB2GRAY)).max() <= 1
    assert (read_map(path, max_pixels=10_000, labels=False) == PIXELS.max(axis=2)).all()


def test_other_files_come_back_as_they_are():
    grey = written(PIXELS[..., 0])
    two = written(PIXELS[..., :2], photometric="minisblack", planarconfig="contig")
    for content in (grey, two, FORMS["RGB"](), b"", b"II*\0", b"II*\0\xff\xff\xff\xff", b"\x89PNG\r\n"):
        assert declared_rgb(content) is content


def test_kinds_that_are_not_read_are_named():
    for array, kind in (
        (PIXELS.astype(np.float32), "3 samples of 32 bits a pixel and RGB colours"),
        (PIXELS.astype(np.uint32), "3 samples of 32 bits a pixel and RGB colours"),
    ):
        with pytest.raises(BadFileError, match=f"is a TIFF of {kind}, which is not read; save it as") as error:
            decode_rgb(written(array, photometric="rgb"))
        assert "damaged" not in str(error.value)
    with pytest.raises(BadFileError, match="several pictures"):
        decode_rgb(written(np.stack([PIXELS, PIXELS]), photometric="rgb"))


def test_size_is_bounded_before_decoding():
    with pytest.raises(BadFileError, match="the bound is"):
        decode_rgb(FORMS["clinicdb"](), max_pixels=1000)


@given(st.integers(0, 400), st.binary(min_size=1, max_size=8))
def test_damage_is_a_reason_and_no_crash(place, patch):
    content = FORMS["clinicdb"]()
    damaged = content[:place] + patch + content[place + len(patch) :]
    assert len(declared_rgb(damaged)) == len(damaged)
    try:
        decode_rgb(damaged)
    except BadFileError as error:
        assert str(error)
