"""Cutting objects out of images and masks: cut-outs, their facts, and refused files."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from object_layout_files import FRAME, SIDE, blob, ead2020, kvasir_instrument, paint, save, scene, shaft

from medtest.core.errors import OutputProblem, UserMistakes
from medtest.core.files.images import BadFileError
from medtest.core.plugins import parts
from medtest.relations.objects.build import BuildOptions, BuildReport, build_library
from medtest.relations.objects.layouts import read_mask
from medtest.relations.objects.library import ObjectInfo, ObjectLibrary, load_library
from medtest.relations.objects.matter.estimate import estimate_swatch
from medtest.relations.objects.scene import tint_of
from medtest.testing import synthetic_seed

OPTIONS = BuildOptions(licence="CC-BY-4.0", source="test")


def build(layout: str, root: Path, out: Path, kind: str | None = None) -> tuple[BuildReport, ObjectLibrary]:
    options = BuildOptions(licence="CC-BY-4.0", source="test", kind=kind)
    report = build_library(layout, root, out, options)
    return report, load_library("any", str(out))


def only(library: ObjectLibrary, kind: str, stem: str) -> ObjectInfo:
    (info,) = [info for info in library.kind(kind) if info.name.startswith(stem)]
    return info


def test_kvasir_instrument_records_how_the_instrument_lay(tmp_path: Path) -> None:
    report, library = build("kvasir-instrument", kvasir_instrument(tmp_path / "data"), tmp_path / "lib")
    assert report.written == {"instrument": 2}
    assert report.partial == 1
    assert report.skipped == [("images/c3.jpg", "no mask")]

    info = only(library, "instrument", "a1")
    assert not info.partial
    width, height = SIDE[1] - 2 * FRAME, SIDE[0] - 2 * FRAME
    # The bar covers x 150–299 and y 118–141 of a field that begins at (20, 20).
    assert info.centre[0] == pytest.approx(((150 + 300) / 2 - FRAME) / width, abs=0.02)
    assert info.centre[1] == pytest.approx((130 - FRAME) / height, abs=0.02)
    assert info.area == pytest.approx(150 * 24 / (width * height), rel=0.02)
    assert info.angle == pytest.approx(0.0, abs=5.0)  # from the tip to the right border
    assert info.licence == "CC-BY-4.0"
    assert info.source == "test"
    assert info.mean_brightness == pytest.approx(0.886, abs=0.02)  # luma of (225, 225, 232)
    assert info.field_brightness == pytest.approx(0.46, abs=0.06)  # luma of the tissue without the bar
    assert sum(info.field_colour) == pytest.approx(1.0, abs=1e-3)
    picture = library.picture("instrument", info.name)
    assert info.tip[0] * picture.shape[1] < 8  # the tip is at the left end
    assert all(point[0] * picture.shape[1] > picture.shape[1] - 8 for point in info.cut)
    steps = np.diff([point[1] * picture.shape[0] for point in info.cut])  # along the 24 rows of the bar, in order
    assert (np.abs(steps) > 1).all() and abs(steps.sum()) == np.abs(steps).sum() == pytest.approx(23, abs=0.1)


def test_an_object_in_the_corner_is_partial_and_left_out_by_default(tmp_path: Path) -> None:
    _, library = build("kvasir-instrument", kvasir_instrument(tmp_path / "data"), tmp_path / "lib")
    assert only(library, "instrument", "b2").partial
    entry = parts("relations")["instrument"]
    relation_class = entry.load()
    plain = relation_class(
        relation_class.Settings(**{**entry.defaults, "library_folder": str(tmp_path / "lib"), "kind": "cutout"})
    )
    assert [info.name for info in plain.infos] == ["a1-1"]
    both = {**entry.defaults, "library_folder": str(tmp_path / "lib"), "partial_views": True, "kind": "cutout"}
    assert len(relation_class(relation_class.Settings(**both)).infos) == 2


def test_a_built_library_is_used_by_the_relation(tmp_path: Path) -> None:
    build("kvasir-instrument", kvasir_instrument(tmp_path / "data"), tmp_path / "lib")
    entry = parts("relations")["instrument"]
    relation_class = entry.load()
    changed = {
        **entry.defaults,
        "library_folder": str(tmp_path / "lib"),
        "reach": 0.5,
        "levels": {1: {"area": 3.0}},
        "kind": "cutout",
    }
    relation = relation_class(relation_class.Settings(**{**changed, "severities": [1]}))
    seed = synthetic_seed(2, height=288, width=320)
    result = relation.follow_up(seed, 1, np.random.default_rng(3))
    assert result.params["objects"][0]["name"] == "a1-1"
    new = (result.image != seed.image).any(axis=2)
    assert new.any()
    # White plastic has come into a red field, beside the lesion.
    assert result.image[new].mean() > seed.image[new].mean() + 30
    assert seed.mask is not None
    assert not (new & seed.mask).any()


def test_ead2020_reads_pages_single_masks_and_boxes(tmp_path: Path) -> None:
    report, library = build("ead2020", ead2020(tmp_path / "data"), tmp_path / "lib")
    assert report.written == {"instrument": 1, "blood": 2}
    assert ("originalImages/n1.png", "no instrument or blood marked") in report.skipped
    drawn = only(library, "blood", "b1")
    assert drawn.area == pytest.approx(np.pi * 26**2 / (280 * 200), rel=0.03)
    boxed = only(library, "blood", "b2")  # found by GrabCut within the box
    assert boxed.area == pytest.approx(np.pi * 30**2 / (280 * 200), rel=0.15)
    assert np.allclose(boxed.mean_colour, (112, 8, 12), atol=16)
    assert drawn.cut == []
    assert not drawn.partial


def test_ead2020_of_one_kind_only(tmp_path: Path) -> None:
    report, _ = build("ead2020", ead2020(tmp_path / "data"), tmp_path / "lib", kind="blood")
    assert set(report.written) == {"blood"}


def test_masks_need_a_kind_or_folders_that_say_it(tmp_path: Path) -> None:
    root = tmp_path / "data"
    save(root / "images" / "x.png", paint(scene(), blob(150, 120, 20), (160, 120, 40)))
    save(root / "masks" / "x.jpg", blob(150, 120, 20))
    with pytest.raises(UserMistakes, match=r"--kind[\s\S]*instrument, feces, blood"):
        build_library("masks", root, tmp_path / "lib", OPTIONS)
    report, library = build("masks", root, tmp_path / "lib", kind="feces")
    assert report.written == {"feces": 1}
    (info,) = library.kind("feces")
    picture = library.picture("feces", info.name)
    solid = picture[..., 3] > 250
    assert np.allclose(picture[..., :3][solid].mean(axis=0), (160, 120, 40), atol=1)
    assert (picture[picture[..., 3] == 0] == 0).all()  # no background is kept

    sorted_root = tmp_path / "sorted"
    save(sorted_root / "images" / "x.png", paint(scene(), blob(150, 120, 20), (160, 120, 40)))
    save(sorted_root / "masks" / "feces" / "x.png", blob(150, 120, 20))
    save(sorted_root / "masks" / "blood" / "x.png", blob(80, 90, 14))
    report, _ = build("masks", sorted_root, tmp_path / "lib2")
    assert report.written == {"feces": 1, "blood": 1}


def test_every_part_of_a_mask_is_one_object_and_specks_are_left(tmp_path: Path) -> None:
    root = tmp_path / "data"
    marks = np.maximum(np.maximum(blob(80, 80, 18), blob(220, 150, 22)), blob(150, 60, 2))
    save(root / "images" / "x.png", paint(scene(), marks, (150, 110, 40)))
    save(root / "masks" / "x.png", marks)
    report, _ = build("masks", root, tmp_path / "lib", kind="feces")
    assert report.written == {"feces": 2}


def test_bad_files_are_listed_and_the_rest_is_built(tmp_path: Path) -> None:
    root = kvasir_instrument(tmp_path / "data")
    (root / "images" / "t.png").write_text("no picture")
    save(root / "masks" / "t.png", shaft())
    save(root / "images" / "s.png", scene())
    save(root / "masks" / "s.png", shaft()[:100])
    save(root / "images" / "e.png", scene())
    save(root / "masks" / "e.png", np.zeros(SIDE, np.uint8))
    (tmp_path / "elsewhere.png").write_bytes((root / "masks" / "a1.png").read_bytes())
    (root / "images" / "link.png").symlink_to(tmp_path / "elsewhere.png")
    report, _ = build("kvasir-instrument", root, tmp_path / "lib")
    assert report.written == {"instrument": 2}
    reasons = dict(report.skipped)
    assert "is text, not one of" in reasons["images/t.png"]
    assert "mask is 320×100, image 320×240" in reasons["images/s.png"]
    assert reasons["images/e.png"] == "empty mask"
    assert "leads out of the folder" in reasons["images/link.png"]


def test_nothing_to_cut_is_a_mistake_with_reasons(tmp_path: Path) -> None:
    root = tmp_path / "data"
    save(root / "images" / "x.png", scene())
    save(root / "masks" / "x.png", np.zeros(SIDE, np.uint8))
    with pytest.raises(UserMistakes, match=r"no object to cut[\s\S]*empty mask"):
        build_library("kvasir-instrument", root, tmp_path / "lib", OPTIONS)


@pytest.mark.parametrize(
    ("layout", "make", "message"),
    [
        ("kvasir-instrument", lambda root: None, "no such folder"),
        ("kvasir-instrument", lambda root: root.mkdir(), "no folder of images"),
        ("ead2020", lambda root: (root / "images").mkdir(parents=True), "neither masks nor boxes"),
    ],
)
def test_wrong_layouts_are_refused(tmp_path: Path, layout: str, make: object, message: str) -> None:
    root = tmp_path / "data"
    make(root)  # type: ignore[operator]
    with pytest.raises(UserMistakes, match=message):
        build_library(layout, root, tmp_path / "lib", OPTIONS)


def test_a_library_is_never_overwritten(tmp_path: Path) -> None:
    root = kvasir_instrument(tmp_path / "data")
    build_library("kvasir-instrument", root, tmp_path / "lib", OPTIONS)
    before = sorted(path.read_bytes() for path in (tmp_path / "lib").rglob("*.png"))
    with pytest.raises(UserMistakes, match="not empty"):
        build_library("kvasir-instrument", root, tmp_path / "lib", OPTIONS)
    assert sorted(path.read_bytes() for path in (tmp_path / "lib").rglob("*.png")) == before


def test_a_place_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    root = kvasir_instrument(tmp_path / "data")
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputProblem, match="cannot be written"):
        build_library("kvasir-instrument", root, tmp_path / "file", OPTIONS)


def test_large_cutouts_are_shrunk_without_dark_edges(tmp_path: Path) -> None:
    root = tmp_path / "data"
    big = cv2.resize(paint(scene(), blob(160, 120, 50), (200, 160, 60)), (1280, 960))
    save(root / "images" / "x.png", big)
    save(root / "masks" / "x.png", cv2.resize(blob(160, 120, 50), (1280, 960), interpolation=cv2.INTER_NEAREST))
    options = BuildOptions(licence="x", kind="feces", longest=100)
    build_library("masks", root, tmp_path / "lib", options)
    library = load_library("any", str(tmp_path / "lib"))
    (info,) = library.kind("feces")
    picture = library.picture("feces", info.name)
    assert max(picture.shape[:2]) == 100
    half = (picture[..., 3] > 60) & (picture[..., 3] < 200)
    assert half.any()
    assert picture[half][:, 0].min() > 150


def test_pictures_with_too_many_pixels_are_refused_before_decoding(tmp_path: Path) -> None:
    path = tmp_path / "bomb.png"
    # A PNG header with 100,000 × 100,000 pixels.
    import struct
    import zlib

    header = struct.pack(">IIBBBBB", 100_000, 100_000, 8, 0, 0, 0, 0)
    chunk = b"IHDR" + header
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + struct.pack(">I", 13)
        + chunk
        + struct.pack(">I", zlib.crc32(chunk))
        + struct.pack(">I", 0)
        + b"IEND"
        + struct.pack(">I", zlib.crc32(b"IEND"))
    )
    with pytest.raises(BadFileError, match="more pixels than the bound"):
        read_mask(path)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array([[0, 1]], np.uint8), [False, True]),
        (np.array([[100, 200]], np.uint8), [False, True]),
        (np.array([[20000, 60000]], np.uint16), [False, True]),
    ],
)
def test_masks_of_any_depth(tmp_path: Path, values: np.ndarray, expected: list[bool]) -> None:  # type: ignore[type-arg]
    path = tmp_path / "m.png"
    cv2.imwrite(str(path), np.repeat(values, 4, axis=0))
    assert read_mask(path)[0].tolist() == expected


def test_written_facts_are_plain_json(tmp_path: Path) -> None:
    build("kvasir-instrument", kvasir_instrument(tmp_path / "data"), tmp_path / "lib")
    for path in (tmp_path / "lib").rglob("*.json"):
        text = path.read_text(encoding="utf-8")
        assert str(tmp_path) not in text
        ObjectInfo.model_validate(json.loads(text))


def test_reflections_of_the_lamp_do_not_whiten_a_swatch() -> None:
    """Matter of the colour of tissue keeps it on a picture that the lamp has whitened in places."""
    tissue = np.full((240, 320, 3), (170, 96, 80), np.uint8)
    tissue[:, 240:] = 250
    part = blob(120, 120, 40) > 0
    albedo, _ = estimate_swatch(tissue, part, ~part)
    field = tissue[~part].astype(float)
    luma = field @ (0.299, 0.587, 0.114)
    shown = albedo.mean(axis=(0, 1)) * tint_of(field.mean(axis=0).tolist(), float(np.median(luma)))
    assert shown == pytest.approx(np.array([170, 96, 80]), abs=2)
