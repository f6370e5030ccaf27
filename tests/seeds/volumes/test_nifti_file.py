"""NIfTI volumes as seeds: slices, windows, labels, and what is refused."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from layout_files import source
from volume_parts import volume, write_nifti

from medtest.core.errors import UserMistakes

pydicom = pytest.importorskip("pydicom")
nibabel = pytest.importorskip("nibabel")


ORIENTATIONS = ["RAS", "LPS", "LAS", "PIR", "SLA"]


@pytest.mark.parametrize("codes", ORIENTATIONS)
@pytest.mark.parametrize("axis", ["axial", "coronal", "sagittal"])
@pytest.mark.parametrize("suffix", [".nii", ".nii.gz"])
def test_slices_are_equal_for_any_storage_of_the_volume(tmp_path, codes, axis, suffix):
    canonical = nibabel.Nifti1Image(volume(), np.diag([2.0, 3.0, 4.0, 1.0]))
    target = nibabel.orientations.axcodes2ornt(codes)
    turned = canonical.as_reoriented(
        nibabel.orientations.ornt_transform(nibabel.io_orientation(canonical.affine), target)
    )
    (tmp_path / "images").mkdir()
    nibabel.save(turned, tmp_path / "images" / f"v{suffix}")
    seeds = source(tmp_path / "images", labels="none", axis=axis)
    x, y, z = {"axial": (None, None, 2), "coronal": (None, 4, None), "sagittal": (5, None, None)}[axis]
    ras = volume()
    # As a radiologist sees it: right on the left side, front or head up; sagittal with the front on the left.
    expected = {
        "axial": lambda: ras[::-1, ::-1, z].T,
        "coronal": lambda: ras[::-1, y, ::-1].T,
        "sagittal": lambda: ras[x, ::-1, ::-1].T,
    }[axis]()
    letter, number = {"axial": ("z", 2), "coronal": ("y", 4), "sagittal": ("x", 5)}[axis]
    (ref,) = [ref for ref in seeds.refs() if ref.seed_id == f"v_{letter}{number:03d}"]
    assert np.array_equal(seeds.load(ref).image[..., 0], expected)


def test_pairs_of_volumes_and_their_labels(tmp_path):
    labels = np.zeros((8, 10, 6), np.int16)
    labels[2, 3, 1], labels[2:5, 3, 4] = 1, 2
    write_nifti(tmp_path / "images" / "case_0000.nii.gz", volume())  # nnU-Net's names
    write_nifti(tmp_path / "labels" / "case.nii.gz", labels)
    seeds = source(tmp_path, masks="labels", images="images")
    assert [(r.seed_id, r.cluster) for r in seeds.refs()] == [
        ("case_0000_z001", "case_0000"),
        ("case_0000_z004", "case_0000"),
    ]
    assert int(seeds.load(seeds.refs()[1]).expected.sum()) == 3
    only = source(tmp_path, masks="labels", images="images", label_values=[2])
    assert [r.seed_id for r in only.refs()] == ["case_0000_z004"]
    assert seeds.digest() != only.digest()


def test_one_window_holds_for_a_volume(tmp_path):
    values = np.zeros((4, 4, 3), np.float32)
    values[..., 1], values[..., 2] = 500, 1000
    write_nifti(tmp_path / "v.nii", values)
    seeds = source(tmp_path, labels="none")
    assert [int(seeds.load(r).image.max()) for r in seeds.refs()] == [0, 128, 255]
    seeds = source(tmp_path, labels="none", window=[500.0, 2000.0])
    assert [int(seeds.load(r).image.max()) for r in seeds.refs()] == [64, 128, 191]
    write_nifti(tmp_path / "v.nii", values, cal_min=0, cal_max=2000)
    seeds = source(tmp_path, labels="none")
    assert [int(seeds.load(r).image.max()) for r in seeds.refs()] == [0, 64, 128]


def test_scaled_integers_and_values_that_are_nan(tmp_path):
    image = nibabel.Nifti1Image(np.full((4, 4, 1), 100, np.int16), np.eye(4))
    image.header.set_slope_inter(2.0, 10.0)
    nibabel.save(image, tmp_path / "v.nii")
    seeds = source(tmp_path, labels="none", window=[210.0, 420.0])
    stored = np.asanyarray(nibabel.load(tmp_path / "v.nii").dataobj)[0, 0, 0]
    assert seeds.load(seeds.refs()[0]).image[0, 0, 0] == round(255 * stored / 420)
    values = np.ones((4, 4, 2), np.float32)
    values[0, 0, 0], values[1, 1, 0] = np.nan, 5
    write_nifti(tmp_path / "v.nii", values)
    assert source(tmp_path, labels="none").refs()


def test_mismatching_files_are_mistakes(tmp_path):
    write_nifti(tmp_path / "images" / "a.nii.gz", volume())
    write_nifti(tmp_path / "masks" / "a.nii.gz", volume((8, 10, 5)))
    with pytest.raises(UserMistakes, match="8×10×5 voxels, but its image is 8×10×6"):
        source(tmp_path).refs()
    write_nifti(tmp_path / "masks" / "a.nii.gz", volume(), np.diag([2.0, 3.0, 5.0, 1.0]))
    with pytest.raises(UserMistakes, match="has another position in space"):
        source(tmp_path).refs()
    write_nifti(tmp_path / "masks" / "a.nii.gz", np.zeros((8, 10, 6), np.uint8))
    with pytest.raises(UserMistakes, match="no lesion in any of the 6 images"):
        source(tmp_path).refs()
    write_nifti(tmp_path / "images" / "a.nii.gz", np.zeros((4, 4, 2, 3), np.uint8))
    with pytest.raises(UserMistakes, match="4×4×2×3.*one volume a file"):
        source(tmp_path).refs()


def test_lying_headers_are_refused_before_anything_is_unpacked(tmp_path):
    write_nifti(tmp_path / "v.nii", volume())
    head = bytearray((tmp_path / "v.nii").read_bytes())
    huge = bytearray(head)
    huge[40:48] = np.array([3, 30000, 30000, 30000], "<i2").tobytes()
    long = bytearray(head)
    long[108:112] = np.array([2e9], "<f4").tobytes()
    cut = head[:-100]
    for content, reason in ((huge, "unpacked; the bound"), (long, "too long"), (cut, "truncated"), (b"x" * 900, "no")):
        for name, pack in (("v.nii", bytes), ("v.nii.gz", gzip.compress)):
            for old in tmp_path.glob("v.nii*"):
                old.unlink()
            (tmp_path / name).write_bytes(pack(bytes(content)))
            with pytest.raises(UserMistakes, match=reason) as caught:
                source(tmp_path, labels="none").refs()
            assert "CANARY" not in str(caught.value)


def test_a_volume_that_lost_slices_later_is_one_message(tmp_path):
    write_nifti(tmp_path / "images" / "a.nii", volume())
    seeds = source(tmp_path / "images", labels="none")
    last = seeds.refs()[-1]
    assert seeds.load(last).ref == last
    write_nifti(tmp_path / "images" / "a.nii", volume()[..., :3])
    with pytest.raises(UserMistakes) as caught:
        seeds.load(last)
    (mistake,) = caught.value.mistakes
    assert mistake.where == "a.nii"
    assert "start again" in mistake.fix
