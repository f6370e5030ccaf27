"""Systems that read predictions from a folder of maps."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from adapter_parts import IMAGE, make_system

from medtest.core.cases import Address
from medtest.core.errors import BadOutput
from medtest.core.tasks.border import check_mask
from medtest.systems.base import Missing


def _case(relation: str = "source", severity: int = 0, *, dataset: str = "set", seed_id: str = "a1") -> Address:
    return Address(dataset=dataset, seed_id=seed_id, relation=relation, severity=severity)


def test_maps_are_found_by_address(tmp_path: Path) -> None:
    folder = tmp_path / "maps of [us]"
    (folder / "set" / "a1").mkdir(parents=True)
    (folder / "b2").mkdir()
    cv2.imwrite(str(folder / "set" / "a1.png"), np.full((4, 4), 255, np.uint8))
    cv2.imwrite(str(folder / "set" / "a1" / "blur_s3_f0_r0.png"), np.full((4, 4), 51, np.uint8))
    np.save(folder / "b2.npy", np.full((5, 6), 0.75))
    cv2.imwrite(str(folder / "b2" / "text_s1_f0_r0.png"), np.full((4, 4), 32768, np.uint16))
    system = make_system("predictions", folder=str(folder))
    assert not system.check()
    cases = [
        _case(),
        _case("blur", 3),
        _case("blur", 4),
        _case(seed_id="b2"),
        _case("text", 1, seed_id="b2"),
        _case(dataset="other"),
    ]
    system.open(device="cpu", threads=1)
    answers = system.predict([IMAGE] * len(cases), cases)
    assert check_mask(answers[0], (8, 8)).mask.all()
    assert check_mask(answers[1], (4, 4)).probability == pytest.approx(0.2)
    assert answers[2] == Missing("no prediction")
    assert check_mask(answers[3], (5, 6)).probability == pytest.approx(0.75)
    assert check_mask(answers[4], (4, 4)).probability == pytest.approx(32768 / 65535)
    assert answers[5] == Missing("no prediction")


def test_the_fingerprint_of_a_folder_follows_names_and_contents(tmp_path: Path) -> None:
    cv2.imwrite(str(tmp_path / "a.png"), np.zeros((4, 4), np.uint8))
    prints = [make_system("predictions", folder=str(tmp_path)).fingerprint()["folder_sha256"]]
    (tmp_path / "notes.txt").write_text("nothing", encoding="utf-8")
    assert make_system("predictions", folder=str(tmp_path)).fingerprint()["folder_sha256"] == prints[0]
    (tmp_path / "a.png").rename(tmp_path / "b.png")
    prints.append(make_system("predictions", folder=str(tmp_path)).fingerprint()["folder_sha256"])
    cv2.imwrite(str(tmp_path / "b.png"), np.ones((4, 4), np.uint8))
    prints.append(make_system("predictions", folder=str(tmp_path)).fingerprint()["folder_sha256"])
    assert len(set(prints)) == 3


def test_bad_maps_are_errors_of_the_system_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    path = tmp_path / "set" / "a1.png"
    system = make_system("predictions", folder=str(tmp_path), max_pixels=1000)
    for content, reason in ((b"some text", "a1.png is text"), (b"\x89PNG\r\n\x1a\n\0\0\0", "a1.png .*damaged")):
        path.write_bytes(content)
        with pytest.raises(BadOutput, match=reason):
            system.predict([IMAGE], [_case()])
    cv2.imwrite(str(path), np.zeros((40, 40), np.uint8))
    with pytest.raises(BadOutput, match="bound"):
        system.predict([IMAGE], [_case()])
    path.unlink()
    np.save(path.with_suffix(".npy"), np.array([{"a": 1}], object), allow_pickle=True)
    with pytest.raises(BadOutput, match="not an array"):
        system.predict([IMAGE], [_case()])


def test_seed_ids_cannot_climb_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "maps").mkdir()
    cv2.imwrite(str(tmp_path / "secret.png"), np.zeros((4, 4), np.uint8))
    (tmp_path / "maps" / "link.png").symlink_to(tmp_path / "secret.png")
    system = make_system("predictions", folder=str(tmp_path / "maps"))
    for seed_id in ("../secret", "../../secret", str(tmp_path / "secret")):
        assert system.predict([IMAGE], [_case(seed_id=seed_id)]) == [Missing("no prediction")]
    assert not isinstance(system.predict([IMAGE], [_case(seed_id="link")])[0], Missing)  # the user's own folder


def test_a_folder_without_maps_is_a_mistake_and_capital_suffixes_are_maps(tmp_path: Path) -> None:
    (tmp_path / "readme.txt").write_text("none", encoding="utf-8")
    (mistake,) = make_system("predictions", folder=str(tmp_path)).check()
    assert "no map" in mistake.found
    cv2.imwrite(str(tmp_path / "x.png"), np.full((2, 2), 255, np.uint8))
    (tmp_path / "x.png").rename(tmp_path / "a1.PNG")
    system = make_system("predictions", folder=str(tmp_path))
    assert not system.check()
    assert np.asarray(system.predict([IMAGE], [_case()])[0]).all()


def test_labels_and_a_missing_folder(tmp_path: Path) -> None:
    cv2.imwrite(str(tmp_path / "a1.png"), np.array([[0, 1], [2, 255]], np.uint8))
    (answer,) = make_system("predictions", folder=str(tmp_path), values="labels").predict([IMAGE], [_case()])
    assert answer.tolist() == [[False, True], [True, True]]
    for folder, reason in (
        ("", "nothing"),
        (str(tmp_path / "non"), "no such folder"),
        (str(tmp_path / "a1.png"), "file"),
    ):
        (mistake,) = make_system("predictions", folder=folder).check()
        assert reason in mistake.found
