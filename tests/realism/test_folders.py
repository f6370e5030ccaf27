"""Folders of real pictures: their relations, masks, groups, and mistakes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from realism_parts import write_real

from medtest.core.errors import UserMistakes
from medtest.core.files.images import BadFileError
from medtest.realism.folders import real_folders
from medtest.realism.options import RealPlaces, keys_of, options_of, real_places

PARTS = {"feces": "feces", "much_stool": "feces", "blood": "blood"}


def _places(typed: dict[str, str]) -> RealPlaces:
    places = real_places(typed)
    assert places is not None
    return places


def test_folders_belong_to_relations_by_id_or_part(tmp_path: Path):
    write_real(tmp_path / "feces", 2)
    write_real(tmp_path / "smoke", 1)
    write_real(tmp_path / "elsewhere", 1)
    typed = {"real": str(tmp_path), "real.blood": str(tmp_path / "elsewhere")}
    folders, notices = real_folders(_places(typed), PARTS)
    assert [(folder.relation, len(folder.pictures)) for folder in folders] == [("feces", 2), ("blood", 1)]
    assert "smoke" in " ".join(notices)
    write_real(tmp_path / "feces", 2)
    folders, _ = real_folders(_places({"real.feces": str(tmp_path / "feces")}), {"much_stool": "feces"})
    assert [folder.relation for folder in folders] == ["much_stool"]


def test_pictures_of_one_video_are_one_group(tmp_path: Path):
    write_real(tmp_path / "feces", 3)
    (tmp_path / "metadata.csv").write_text("image,video\ncase0.png,a\ncase1.png,a\ncase2.png,b\n")
    (folder,), _ = real_folders(_places({"real": str(tmp_path)}), PARTS | {"much_stool": "other"})
    assert [picture.group for picture in folder.pictures] == ["a", "a", "b"]


def test_a_mask_of_another_size_is_reported_and_stool_is_outlined_without_a_mask(tmp_path: Path):
    write_real(tmp_path / "feces", 2)
    Image.new("L", (10, 10)).save(tmp_path / "feces" / "case0_mask.png")
    (tmp_path / "feces" / "case1_mask.png").unlink()
    (folder,), _ = real_folders(_places({"real": str(tmp_path)}), {"feces": "feces"})
    with pytest.raises(BadFileError, match="10×10"):
        folder.pictures[0].read("feces")
    _, _, outlined = folder.pictures[1].read("feces")
    assert outlined is not None and 0.05 < np.mean(outlined) < 0.2
    assert folder.pictures[1].read("blood")[2] is None


@pytest.mark.parametrize(
    ("typed", "key"),
    [
        ({}, "real"),
        ({"real": "/nowhere/at/all"}, "real"),
        ({"real": ".", "cases": "0"}, "cases"),
        ({"real": ".", "seam": "many"}, "seam"),
    ],
)
def test_options_are_checked(typed: dict[str, str], key: str):
    with pytest.raises(UserMistakes) as error:
        options_of(typed)
    assert [mistake.key for mistake in error.value.mistakes] == [key]


def test_unknown_relations_empty_folders_and_missing_rows_are_mistakes(tmp_path: Path):
    write_real(tmp_path / "feces", 1)
    (tmp_path / "blood").mkdir()

    def mistake(typed: dict[str, str]) -> str:
        with pytest.raises(UserMistakes) as error:
            real_folders(_places(typed), PARTS)
        (problem,) = error.value.mistakes
        return str(problem)

    feces = str(tmp_path / "feces")
    assert "did you mean: blood" in mistake({"real.bloood": feces})
    assert "no pictures" in mistake({"real.blood": str(tmp_path / "blood")})
    assert "much_stool" in mistake({"real": feces})
    assert "videos.csv" in mistake({"real.feces": feces, "metadata": "videos.csv"})
    (tmp_path / "feces" / "metadata.csv").write_text("image,video\nother.png,a\n")
    assert "case0.png" in mistake({"real.feces": feces})


def test_keys_of_single_relations_are_this_commands():
    assert keys_of(["suite=x", "real.feces=a", "relations.blur.repeats=2"])[-1] == "real.feces"
