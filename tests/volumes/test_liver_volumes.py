"""Users' volumes: known layouts are recognised, mismatches are named, variability is measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from volume_files import write_series

from medtest.core.errors import UserMistakes
from medtest.seeds.volumes.layouts import find_pairs
from medtest.seeds.volumes.liver_volumes import LiverVolumes, LiverVolumeSettings, deepest_points

nibabel = pytest.importorskip("nibabel")

LAYOUTS: dict[str, list[tuple[str, str]]] = {
    "SLIVER": [(f"scan/liver-orig{n:03d}.nii", f"label/liver-seg{n:03d}.nii") for n in (1, 2, 10)],
    "LiTS": [(f"volume-{n}.nii", f"segmentation-{n}.nii.gz") for n in (0, 2, 10)],
    "imagesTr/ and labelsTr/": [(f"imagesTr/liver_{n}_0000.nii.gz", f"labelsTr/liver_{n}.nii.gz") for n in (0, 2, 10)],
    "images/ and masks/": [(f"images/p{n}.nii.gz", f"masks/p{n}.nii") for n in (0, 2, 10)],
}


def write(root: Path, pairs: list[tuple[str, str]]) -> None:
    """Write volumes whose organ is a block that gets longer from volume to volume."""
    for number, names in enumerate(pairs):
        organ = np.zeros((20, 16, 12), np.uint8)  # x, y, z
        organ[2 : 10 + 3 * number, 4:12, 3:9] = 1
        for name, array in zip(names, (organ * 100.0 - 50, organ), strict=True):
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            nibabel.save(nibabel.Nifti1Image(array, np.diag([-2.0, -2.0, 3.0, 1.0])), path)


def source(root: Path, **settings: object) -> LiverVolumes:
    return LiverVolumes(dataset="ct", settings=LiverVolumeSettings(**settings), root=root, suite_seed=0)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_are_recognised(tmp_path: Path, layout: str) -> None:
    write(tmp_path, LAYOUTS[layout])
    pairs = find_pairs(tmp_path)
    assert [pair.layout for pair in pairs] == [layout] * 3
    assert pairs[-1].name.endswith("10")  # natural order
    assert len(source(tmp_path).refs()) == 3


def test_ircad_folders_of_dicom_are_recognised(tmp_path: Path) -> None:
    for patient in ("3Dircadb1.1", "3Dircadb1.2"):
        write_series(tmp_path / patient / "PATIENT_DICOM" / "PATIENT_DICOM")
        write_series(tmp_path / patient / "MASKS_DICOM" / "liver", tags={"RescaleIntercept": -512 * 2})
        write_series(tmp_path / patient / "MASKS_DICOM" / "bone")
    pairs = find_pairs(tmp_path)
    assert [(pair.name, pair.layout) for pair in pairs] == [("3dircadb1-1", "3D-IRCADb"), ("3dircadb1-2", "3D-IRCADb")]
    assert pairs[0].labels.name == "liver"
    assert find_pairs(tmp_path, "bone")[0].labels.name == "bone"
    assert len(source(tmp_path).refs()) == 2


def test_a_volume_is_loaded_with_truth_clicks_and_variability(tmp_path: Path) -> None:
    write(tmp_path, LAYOUTS["images/ and masks/"])
    livers = source(tmp_path, box=[18.0, 16.0, 16.0], placement="corner")
    seeds = [livers.load(ref) for ref in livers.refs()]
    assert [seed.properties["liver_variability"] for seed in seeds] == pytest.approx([0.0, 100 * 3 / 11, 100 * 6 / 14])
    second = seeds[1]
    assert second.kind == "region"
    assert second.image.shape == second.expected.shape == (12, 16, 20)
    assert second.spec.spacing == pytest.approx((3.0, 2.0, 2.0))
    assert np.array_equal(second.expected, second.image > 0)
    assert len(second.spec.marks) == 3
    assert all(second.expected[tuple(int(n) for n in mark)] for mark in second.spec.marks)


def test_without_a_box_the_mean_dimensions_are_taken(tmp_path: Path) -> None:
    write(tmp_path, LAYOUTS["images/ and masks/"])
    box = source(tmp_path).mean_box()
    assert box.size == pytest.approx((18.0, 16.0, 2 * 11.0))


def test_labels_can_be_chosen(tmp_path: Path) -> None:
    write(tmp_path, LAYOUTS["LiTS"])
    livers = source(tmp_path, labels=[2])
    with pytest.raises(UserMistakes, match="no voxel of the organ"):
        livers.load(livers.refs()[0])


def test_mismatches_are_named_in_one_report(tmp_path: Path) -> None:
    write(tmp_path, LAYOUTS["images/ and masks/"])
    nibabel.save(nibabel.Nifti1Image(np.zeros((3, 3, 3), np.uint8), np.eye(4)), tmp_path / "masks/p0.nii")
    (tmp_path / "images/p2.nii.gz").write_bytes(b"nothing")
    with pytest.raises(UserMistakes) as caught:
        source(tmp_path).refs()
    assert "masks/p0.nii" in str(caught.value)
    assert "images/p2.nii.gz" in str(caught.value)
    assert "2 of 3" in str(caught.value)
    livers = source(tmp_path, on_bad_seed="skip")
    assert [ref.seed_id for ref in livers.refs()] == ["p10"]
    assert len(livers.problems()) == 2


def test_an_unknown_layout_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UserMistakes, match="SLIVER"):
        source(tmp_path).refs()


def test_the_digest_follows_contents(tmp_path: Path) -> None:
    write(tmp_path, LAYOUTS["images/ and masks/"])
    before = source(tmp_path).digest()
    assert before == source(tmp_path).digest()
    nibabel.save(
        nibabel.Nifti1Image(np.full((20, 16, 12), 7.0), np.diag([-2.0, -2.0, 3.0, 1.0])), tmp_path / "images/p0.nii.gz"
    )
    assert source(tmp_path).digest() != before


def test_deepest_points_lie_deep_and_apart() -> None:
    organ = np.zeros((30, 40, 60), np.bool_)
    organ[5:25, 5:25, 5:25] = True
    organ[10:20, 10:20, 25:55] = True
    points = deepest_points(organ, (2.0, 2.0, 2.0), 2)
    assert points[0] == pytest.approx((14.5, 14.5, 14.5), abs=1.5)
    assert points[1][2] > 35
    assert deepest_points(organ, (2.0, 2.0, 2.0), 0) == ()
