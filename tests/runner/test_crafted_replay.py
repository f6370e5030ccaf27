"""Crafted cases beside a run: read where a run keeps them, crafted anew where none does, and it is said which."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pandas as pd
import pytest
from crafting_parts import NetSystem, crafting_suite
from runner_helpers import go, records

from medtest.cases import image_sha256
from medtest.errors import UserMistakes
from medtest.runner import replay_case, replay_strips
from medtest.suite.model import Invocation, Privacy, Suite


def invocation(home: Path) -> Invocation:
    return Invocation(home=home, device="cpu", batch_seconds=60.0)


def pushed(suite: Suite, home: Path, system: int = 0) -> tuple[Path, str, str]:
    """Run a suite; return the system's folder, and address and SHA-256 of a pushed case."""
    outcome = go(suite, home)
    frame = records(outcome, system)
    row = frame[(frame["relation"] == "push") & (frame["severity"] == 5)].iloc[1]
    return outcome.systems[system].folder, row["address"], row["followup_sha256"]


def test_a_kept_case_is_read_with_all_that_its_record_says(tmp_path: Path) -> None:
    suite = crafting_suite()
    folder, address, sha256 = pushed(suite, tmp_path)
    again = replay_case(suite, invocation(tmp_path), address)
    assert again.crafted is not None
    assert again.crafted.folder == folder
    assert again.crafted.on == "net-0"
    assert again.followup_sha256 == image_sha256(again.followup) == sha256
    frame = records_of(folder)
    row = frame[frame["address"] == address].iloc[0]
    assert again.scale == row["scale"]
    assert dict(again.params) == json.loads(row["params"])


def records_of(folder: Path) -> pd.DataFrame:
    return pd.read_parquet(folder / "records.parquet")


@pytest.mark.parametrize("lost", ["folder", "pixels", "altered"])
def test_what_is_lost_is_crafted_anew_and_compared_with_its_record(tmp_path: Path, lost: str) -> None:
    suite = crafting_suite()
    folder, address, sha256 = pushed(suite, tmp_path)
    file = folder / "crafted" / "images" / sha256[:2] / f"{sha256}.png"
    if lost == "folder":
        shutil.rmtree(folder)
    elif lost == "pixels":
        shutil.rmtree(folder / "crafted")
    else:
        cv2.imwrite(str(file), 255 - cv2.imread(str(file)))
    again = replay_case(suite, invocation(tmp_path), address)
    assert again.crafted is not None
    assert again.crafted.folder is None
    assert again.followup_sha256 == sha256  # one machine crafts it alike
    assert again.crafted.recorded == ("" if lost == "folder" else sha256)
    said = {"folder": "", "pixels": "is not there", "altered": "was altered"}[lost]
    assert said in again.crafted.problem
    assert bool(again.crafted.problem) == bool(said)


def test_a_suite_that_keeps_no_images_has_its_cases_crafted_anew(tmp_path: Path) -> None:
    suite = crafting_suite(privacy=Privacy(images="none"))
    folder, address, sha256 = pushed(suite, tmp_path)
    again = replay_case(suite, invocation(tmp_path), address)
    assert again.crafted is not None
    assert again.crafted.recorded == again.followup_sha256 == sha256
    assert not (folder / "crafted").exists()


def test_hashed_ids_are_replayed(tmp_path: Path) -> None:
    suite = crafting_suite(privacy=Privacy(seed_ids="hashed"))
    folder, address, sha256 = pushed(suite, tmp_path)
    assert replay_case(suite, invocation(tmp_path), address).crafted.folder == folder
    shutil.rmtree(folder / "crafted")
    again = replay_case(suite, invocation(tmp_path), address)
    assert again.crafted.folder is None
    assert again.crafted.recorded == again.followup_sha256 == sha256


def test_of_several_systems_with_cases_of_their_own_one_is_named(tmp_path: Path) -> None:
    suite = crafting_suite(systems={"one": {"net": 1}, "two": {"net": 2}})
    _, address, sha256 = pushed(suite, tmp_path, 1)
    with pytest.raises(UserMistakes, match="model=one") as raised:
        replay_case(suite, invocation(tmp_path), address)
    assert "one, two" in str(raised.value)
    alone = replace(suite, systems=suite.systems[1:])
    again = replay_case(alone, invocation(tmp_path), address)
    assert again.followup_sha256 == sha256
    assert again.crafted.on == "net-2"
    assert again.crafted.folder is not None


def test_what_is_crafted_on_a_named_system_is_read_from_any_run_of_it(tmp_path: Path) -> None:
    white = crafting_suite(systems={"net": {}})
    folder, address, sha256 = pushed(white, tmp_path)
    transfer = crafting_suite(systems={"one": {"net": 1}}, crafted_on="net", crafter={"net": 0})
    again = replay_case(transfer, invocation(tmp_path), address)
    assert again.crafted.folder == folder
    assert again.followup_sha256 == sha256


def test_another_relation_of_that_name_is_not_taken_for_it(tmp_path: Path) -> None:
    _, address, sha256 = pushed(crafting_suite(), tmp_path)
    other = crafting_suite(severities=(1, 5))  # other batches
    again = replay_case(other, invocation(tmp_path), address)
    assert again.crafted.folder is None
    assert again.crafted.recorded == ""


@pytest.mark.slow  # worker processes import torch
def test_strips_show_and_judge_the_kept_pixels(tmp_path: Path) -> None:
    suite = crafting_suite(system=NetSystem, natural=False, count=2)
    folder, address, _ = pushed(suite, tmp_path / "home")
    row = records_of(folder).set_index("address").loc[address]
    (answered,) = replay_strips(suite, invocation(tmp_path / "home"), address, tmp_path / "out")
    assert answered.verdict == row["verdict"]
    before = cv2.imread(str(answered.file))
    shutil.rmtree(folder)
    scratch = tmp_path / "scratch"
    replay_case(suite, invocation(tmp_path / "home"), address, scratch=scratch)
    (answered,) = replay_strips(suite, invocation(tmp_path / "home"), address, tmp_path / "out", scratch=scratch)
    assert answered.verdict == row["verdict"]
    assert np.array_equal(cv2.imread(str(answered.file)), before)
