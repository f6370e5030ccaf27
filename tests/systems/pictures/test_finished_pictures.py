"""Pictures drawn elsewhere: looked up by address or in a table; missing and damaged ones are reported."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exchanges import BLANK, PNG, SHA256, ask, call, draw_noise, output

from medtest.core.cases import Address, image_sha256
from medtest.core.files.by_content import PictureFiles, encode
from medtest.core.records import PICTURES
from medtest.systems.base import Missing
from medtest.systems.pictures.finished import FinishedPictures
from medtest.systems.pictures.picture_table import words_sha256


def system(folder: Path, **settings: Any) -> FinishedPictures:
    return FinishedPictures("finished", FinishedPictures.Settings(folder=str(folder), **settings))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "pictures"
    (root / "d" / "s1").mkdir(parents=True)
    (root / "d" / "s0.png").write_bytes(PNG)
    (root / "d" / "s1" / "ec_s0_f0_r0.png").write_bytes(encode("images", draw_noise(1)))
    (root / "d" / "s2.png").write_bytes(PNG[:100])
    (root / "d" / "s3.png").write_bytes(BLANK)
    return root


def followup(number: int) -> Address:
    return Address(dataset="d", seed_id=f"s{number}", relation="ec", severity=0, frame=0, repeat=0)


def test_pictures_are_found_by_address(folder: Path, tmp_path: Path) -> None:
    finished = system(folder)
    assert not finished.check()
    calls = [call(0), replace(call(1), addresses=(followup(1),)), call(2), call(3), call(4)]
    outputs = [output(result) for result in ask(finished, tmp_path, calls)]
    assert outputs[0].picture == SHA256 and outputs[0].state == "answered"
    assert outputs[1].picture == image_sha256(draw_noise(1))
    assert "s2.png is truncated" in outputs[2]
    assert (outputs[3].state, outputs[3].picture, outputs[3].why) == (
        "content_filter",
        "",
        "the picture is of one colour",
    )
    assert "no picture" in outputs[4]
    files = PictureFiles(tmp_path / "run" / PICTURES)
    assert np.array_equal(files.read("images", outputs[1].picture), draw_noise(1))


def test_a_table_names_files_by_address_or_prompt(folder: Path, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    address = str(call(0).addresses[0])
    table.write_text(
        f'address,prompt,file\n{address},,d/s1/ec_s0_f0_r0.png\n,"a cat, and a dog",d/s0.png\n,outside,../table.csv\n'
    )
    finished = system(folder, table=str(table))
    assert not finished.check()
    calls = [call(0), call(7, "a cat, and a dog"), call(8, "outside"), call(9, "unknown")]
    outputs = [output(result) for result in ask(finished, tmp_path, calls)]
    assert (outputs[0].picture, outputs[1].picture) == (image_sha256(draw_noise(1)), SHA256)
    assert all("no picture" in problem for problem in outputs[2:])
    before = finished.fingerprint()
    table.write_text(table.read_text().replace("unknown", "x") + ",more,d/s0.png\n")
    assert system(folder, table=str(table)).fingerprint() != before


def test_pictures_are_made_to_a_size_where_asked(folder: Path, tmp_path: Path) -> None:
    (result,) = ask(system(folder, kept_size=16), tmp_path, [call(0)])
    assert PictureFiles(tmp_path / "run" / PICTURES).read("images", output(result).picture).shape == (16, 16, 3)


def test_mistakes_are_reported_before_anything_runs(folder: Path, tmp_path: Path) -> None:
    assert system(tmp_path / "none").check()[0].key == "folder"
    (tmp_path / "empty").mkdir()
    assert "no picture" in system(tmp_path / "empty").check()[0].found
    assert system(folder, table="missing.csv").check()[0].key == "table"
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n")
    assert "column" in system(folder, table=str(tmp_path / "bad.csv")).check()[0].found


def address_of(number: int, repeat: int = 0) -> Address:
    return Address(dataset="d", seed_id=f"s{number}", relation="unchanged", severity=0, frame=0, repeat=repeat)


def test_an_unchanged_copy_of_a_picture_is_not_a_second_drawing(folder: Path, tmp_path: Path) -> None:
    (folder / "d" / "s0").mkdir()
    (folder / "d" / "s0" / "unchanged_s0_f0_r0.png").write_bytes(PNG)  # a copy of the source's
    (folder / "d" / "s0" / "unchanged_s0_f0_r1.png").write_bytes(encode("images", draw_noise(1)))
    calls = [replace(call(number), addresses=(address_of(0, number),)) for number in range(3)]
    copied, second, missing = (output(answered) for answered in ask(system(folder), tmp_path, calls))
    assert isinstance(copied, Missing) and "source's own" in copied.reason
    assert second.picture == image_sha256(draw_noise(1))
    assert isinstance(missing, Missing) and "no further picture" in missing.reason


def test_several_rows_of_a_prompt_are_several_pictures_of_it(folder: Path, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("prompt,file\na cat  and a dog,d/s0.png\na cat and a dog ,d/s1/ec_s0_f0_r0.png\na fox,d/s0.png\n")
    finished = system(folder, table=str(table))
    calls = [call(0, "a cat and  a dog")]
    calls += [replace(call(number, "a cat and a dog"), addresses=(address_of(0, number - 1),)) for number in (1, 2)]
    calls += [replace(call(3, "a fox"), addresses=(address_of(0),))]
    source, second, third, alone = (output(answered) for answered in ask(finished, tmp_path, calls))
    assert (source.picture, second.picture) == (SHA256, image_sha256(draw_noise(1)))
    assert isinstance(third, Missing) and isinstance(alone, Missing)


def test_a_table_of_an_import_names_the_drawn_words(folder: Path, tmp_path: Path) -> None:
    address, further = call(0).addresses[0], replace(followup(0), repeat=1)
    sha256 = words_sha256("a red dog on a table")
    (folder / "pictures.csv").write_text(
        f"address,file,prompt_sha256\n{address},d/s0.png,{sha256}\n{further},,{sha256}\n"
    )
    finished = system(folder)
    calls = [call(0), call(0, "a blue dog"), replace(call(1), addresses=(further,))]
    calls = [replace(asking, number=number) for number, asking in enumerate(calls)]
    right, other, missing = (output(answered) for answered in ask(finished, tmp_path, calls))
    assert right.picture == SHA256
    assert "of another prompt" in other
    assert isinstance(missing, Missing)
    (folder / "pictures.csv").unlink()
    (folder / "prompts.csv").write_text("id,file\n")
    assert "medtest prompts import" in system(folder).check()[0].fix
