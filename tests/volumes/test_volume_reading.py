"""Volumes as people have them: one orientation for any file's, spacing kept, hostile files refused."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from volume_files import SHAPE, SPACING, stored, truth, write_series

from medtest.core.files.images import BadFileError
from medtest.volumes import read_labels, read_volume, volume_info
from medtest.volumes.orientation import turn_of

WAYS = list(itertools.product(itertools.permutations(range(3)), [(False,) * 3, (True, False, True), (True,) * 3]))


@pytest.mark.parametrize(("order", "flips"), WAYS)
def test_nifti_of_any_orientation_comes_out_the_same(
    tmp_path: Path, order: tuple[int, ...], flips: tuple[bool, ...]
) -> None:
    nibabel = pytest.importorskip("nibabel")
    array, matrix, origin = stored(order, flips)
    affine = np.eye(4)
    affine[:3, :3], affine[:3, 3] = matrix, origin
    affine = np.diag([-1.0, -1.0, 1.0, 1.0]) @ affine  # NIfTI's axes point right and front
    path = tmp_path / "a.nii.gz"
    nibabel.save(nibabel.Nifti1Image(array, affine), path)
    values, info = read_volume(path)
    assert np.array_equal(values, truth())
    assert values.dtype == np.float32
    assert info.spacing == pytest.approx(SPACING)
    assert info.origin == pytest.approx((40, -30, -20))
    assert volume_info(path) == info


@pytest.mark.parametrize(("order", "flips"), WAYS[::4])
def test_metaimage_of_any_orientation_comes_out_the_same(
    tmp_path: Path, order: tuple[int, ...], flips: tuple[bool, ...]
) -> None:
    sitk = pytest.importorskip("SimpleITK", reason="the extra medtest[volumes] is not installed")
    array, matrix, origin = stored(order, flips)
    steps = np.sqrt((matrix**2).sum(axis=0))
    image = sitk.GetImageFromArray(array.transpose(2, 1, 0))
    image.SetSpacing([float(s) for s in steps])
    image.SetDirection([float(d) for d in (matrix / steps).ravel()])
    image.SetOrigin([float(o) for o in origin])
    for name in ("a.mhd", "a.mha"):
        sitk.WriteImage(image, str(tmp_path / name))
        values, info = read_volume(tmp_path / name)
        assert np.array_equal(values, truth())
        assert info.spacing == pytest.approx(SPACING)
        assert info.origin == pytest.approx((40, -30, -20))


def test_a_dicom_series_is_put_in_order_and_rescaled(tmp_path: Path) -> None:
    write_series(tmp_path / "s")
    (tmp_path / "s" / "notes.txt").write_text("not a slice")
    values, info = read_volume(tmp_path / "s")
    assert np.array_equal(values, truth() // 2 * 2)
    assert info.spacing == pytest.approx(SPACING)
    assert info.origin == pytest.approx((40, -30, -20))


def test_dicom_and_nifti_of_one_volume_agree(tmp_path: Path) -> None:
    nibabel = pytest.importorskip("nibabel")
    write_series(tmp_path / "s")
    array, matrix, origin = stored((0, 1, 2), (False, False, False))
    affine = np.eye(4)
    affine[:3, :3], affine[:3, 3] = matrix, origin
    labels = (array > 200).astype(np.uint8)
    nibabel.save(nibabel.Nifti1Image(labels, np.diag([-1.0, -1.0, 1.0, 1.0]) @ affine), tmp_path / "l.nii")
    organ, info = read_labels(tmp_path / "l.nii")
    assert info.differs(volume_info(tmp_path / "s")) == ""
    assert np.array_equal(organ, truth() > 200)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"skip": (2,)}, "mm apart"),
        ({"series": {3: "9.9"}}, "2 series"),
        ({"tags": {"ImagePositionPatient": [0, 0, 5]}}, "one place"),
        ({"tags": {"PhotometricInterpretation": "RGB", "SamplesPerPixel": 3}}, "colours"),
        ({"tags": {"PixelSpacing": [0, 0]}}, "no sense"),
    ],
)
def test_broken_series_are_refused_with_a_reason(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    write_series(tmp_path / "s", **changes)
    with pytest.raises(BadFileError, match=reason) as caught:
        read_volume(tmp_path / "s")
    assert "Secret" not in str(caught.value)


def test_a_slice_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    write_series(tmp_path / "s")
    path = sorted((tmp_path / "s").iterdir())[1]
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(BadFileError):
        read_volume(tmp_path / "s")


@pytest.mark.parametrize("where", ["/etc/passwd", "../a.raw", "b%03d.raw", "LIST", "missing.raw", "C:\\a.raw"])
def test_a_metaimage_may_only_name_a_file_beside_it(tmp_path: Path, where: str) -> None:
    (tmp_path / "a.raw").write_bytes(bytes(8))
    inner = tmp_path / "in"
    inner.mkdir()
    path = inner / "a.mhd"
    path.write_text(
        f"ObjectType = Image\nNDims = 3\nDimSize = 2 2 2\nElementType = MET_UCHAR\nElementDataFile = {where}\n"
    )
    with pytest.raises(BadFileError, match="not in its folder"):
        volume_info(path)


def test_files_that_are_no_volumes_are_refused(tmp_path: Path) -> None:
    nibabel = pytest.importorskip("nibabel")
    for name, content in (
        ("a.nii", b""),
        ("b.nii", b"x" * 400),
        ("c.nii.gz", b"\x1f\x8b" + b"x" * 50),
        ("d.mhd", b"x"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(BadFileError):
            volume_info(tmp_path / name)
    with pytest.raises(BadFileError, match="is not a volume"):
        volume_info(tmp_path / "a.png")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadFileError, match="no DICOM slice"):
        volume_info(tmp_path / "empty")
    nibabel.save(nibabel.Nifti1Image(np.full(SHAPE, np.nan, np.float32), np.eye(4)), tmp_path / "n.nii")
    with pytest.raises(BadFileError, match="not numbers"):
        read_volume(tmp_path / "n.nii")
    nibabel.save(nibabel.Nifti1Image(np.zeros((2, 2, 2, 2), np.float32), np.eye(4)), tmp_path / "t.nii")
    with pytest.raises(BadFileError, match="4 axes"):
        volume_info(tmp_path / "t.nii")


def test_a_header_that_promises_too_much_is_refused(tmp_path: Path) -> None:
    nibabel = pytest.importorskip("nibabel")
    header = nibabel.Nifti1Header()
    header.set_data_dtype(np.uint8)
    header.set_data_shape((30000, 30000, 30000))
    header["magic"], header["vox_offset"] = b"n+1", 352
    (tmp_path / "big.nii").write_bytes(header.binaryblock + bytes(4))
    with pytest.raises(BadFileError, match="the bound is"):
        volume_info(tmp_path / "big.nii")


def test_an_oblique_volume_turns_to_the_nearest_axes() -> None:
    angle = 0.3
    matrix = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 2.0]])
    turn = turn_of(matrix, np.zeros(3), (4, 5, 6))
    assert turn.order == (2, 1, 0)
    assert turn.info.spacing == pytest.approx((2.0, 1.0, 1.0))
    with pytest.raises(BadFileError):
        turn_of(np.zeros((3, 3)), np.zeros(3), (4, 5, 6))
