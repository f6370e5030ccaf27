"""Crafted cases outside a run: read from the folder of a run, or crafted again with a note."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pandas as pd
import pytest
from crafting_parts import NetSystem, crafting_suite
from label_parts import Shades
from runner_helpers import go, records
from runner_parts import plan_of

from medtest.cli.followups.sheet import draw_sheet
from medtest.core.cases import Address, FollowUp, Image, Seed, SeedRef, image_sha256
from medtest.core.errors import UserMistakes
from medtest.report.replayed import PictureKind, ReplayedPicture, write_pictures
from medtest.runner.replaying.crafted_runs import crafted_runs, read_from_runs
from medtest.runner.replaying.replay import replay_case
from medtest.runner.replaying.replay_answers import replay_strips
from medtest.runner.reporting.outcome import Limits
from medtest.runner.units.parts import Parts
from medtest.suite.model import Invocation, Privacy, Suite
from medtest.training.classification.material import LabelledMaterial, prepare_material


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


@pytest.mark.slow
@pytest.mark.parametrize("lost", ["folder", "pixels", "altered"])
def test_lost_cases_are_crafted_again_and_compared_with_their_records(tmp_path: Path, lost: str) -> None:
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
    assert again.followup_sha256 == sha256  # one machine crafts the same bytes
    assert again.crafted.recorded == ("" if lost == "folder" else sha256)
    problem = {"folder": "", "pixels": "is not there", "altered": "was altered"}[lost]
    assert problem in again.crafted.problem
    assert bool(again.crafted.problem) == bool(problem)


def test_a_suite_that_keeps_no_images_has_its_cases_crafted_again(tmp_path: Path) -> None:
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


def test_one_of_several_systems_with_their_own_cases_must_be_named(tmp_path: Path) -> None:
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


def test_cases_crafted_on_a_named_system_are_read_from_any_run_of_it(tmp_path: Path) -> None:
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


def test_films_and_sheets_of_a_run_read_its_own_pixels(tmp_path: Path) -> None:
    suite = crafting_suite(count=2)
    folder, address, sha256 = pushed(suite, tmp_path)
    shown: list[str] = []

    def draw(images: Sequence[Image | None], path: Path) -> Mapping[str, Any]:
        shown.extend("" if image is None else image_sha256(image) for image in images)
        path.write_bytes(b"a picture")
        return {}

    (folder / "samples").mkdir(exist_ok=True)
    picture = ReplayedPicture(entry={"file": "a.png"}, addresses=[address], draw=draw)
    kind = PictureKind(index="a.json", files="a*.png", undrawn="not drawn")
    assert write_pictures(suite, invocation(tmp_path), folder, [picture], kind, "net-0") == []
    assert shown == [sha256]


def test_a_sheet_shows_what_a_run_keeps_and_asks_for_one_where_there_is_none(tmp_path: Path) -> None:
    suite = crafting_suite(count=1)
    parts = Parts(suite, None, 8)
    number, ref = parts.refs()[0]
    seed, relations = parts.prepared(number, ref), {"push": parts.relations["push"]}
    with pytest.raises(UserMistakes, match="Run it first"):
        read_from_runs(suite, invocation(tmp_path), parts)
    go(suite, tmp_path)
    read_from_runs(suite, invocation(tmp_path), parts)
    shown: list[str] = []

    def crafted(address: Address) -> FollowUp:
        follow = parts.make(seed, address).follow
        assert follow is not None
        shown.append(image_sha256(follow.image))
        return follow

    draw_sheet(seed, relations, suite_seed=suite.seed, cell=48, crafted=crafted)
    assert len(set(shown)) == 3
    for sha256 in shown:
        assert list((tmp_path / "outputs").glob(f"*/*/*/crafted/images/*/{sha256}.png"))


def test_fresh_moves_the_pixels_with_the_folder(tmp_path: Path) -> None:
    suite = crafting_suite(count=2)
    folder, _, sha256 = pushed(suite, tmp_path)
    go(suite, tmp_path, fresh=True)
    aside = list(folder.parent.glob("*.old-*"))
    assert [list(moved.glob(f"crafted/images/*/{sha256}.png")) != [] for moved in aside] == [True]
    assert list(folder.glob(f"crafted/images/*/{sha256}.png"))


def test_a_view_shares_the_folder_s_pixels(tmp_path: Path) -> None:
    suite = crafting_suite(count=2)
    folder, address, sha256 = pushed(suite, tmp_path)
    other = replace(suite, oracle=replace(suite.oracle, primary=replace(suite.oracle.primary, against="source")))
    go(other, tmp_path, limits=Limits(samples=2))
    assert not list(folder.rglob("views/*/crafted"))
    again = replay_case(other, invocation(tmp_path), address)
    assert again.crafted is not None
    assert (again.crafted.folder, again.followup_sha256) == (folder, sha256)


def test_the_manifest_notices_altered_pixels(tmp_path: Path) -> None:
    folder, _, sha256 = pushed(crafting_suite(count=2), tmp_path)
    file = next(folder.glob(f"crafted/images/*/{sha256}.png"))
    named = dict(reversed(line.split("  ", 1)) for line in (folder / "manifest.sha256").read_text().splitlines())
    assert named[file.relative_to(folder).as_posix()] == hashlib.sha256(file.read_bytes()).hexdigest()


class SameShades(Shades):
    """The same images under any name of the data set, as phantoms and files are."""

    def load(self, ref: SeedRef) -> Seed:
        return replace(super().load(replace(ref, dataset="any")), ref=ref)


def test_training_reads_what_a_run_over_its_images_crafted(tmp_path: Path) -> None:
    suite = crafting_suite(natural=False, count=6)
    suite = replace(suite, seeds=(plan_of("seeds", "shades", SameShades, count=6),))
    training = replace(suite, seeds=(plan_of("seeds", "training", SameShades, count=6),))

    def material(folder: Path) -> LabelledMaterial:
        parts = Parts(training, None, 8)
        parts.crafted = crafted_runs(training, invocation(tmp_path), parts, by_source=True)
        return prepare_material(parts, share=0.5, held_out=0.3, side=48, seed=3, folder=folder)

    with pytest.raises(UserMistakes, match="Run it first.*model=net"):
        material(tmp_path / "none")
    outcome = go(suite, tmp_path)
    trained_on = material(tmp_path / "some")
    stored = {image_sha256(_rgb(path)) for path in outcome.systems[0].folder.glob("crafted/images/*/*.png")}
    drawn = [np.asarray(trained_on.cases.images[index]) for index in np.flatnonzero(trained_on.perturbed)]
    assert len(drawn) == 3
    assert all(image_sha256(image) in stored for image in drawn)
    alone = prepare_material(Parts(training, None, 8), share=0.5, held_out=0.3, side=48, seed=3, folder=tmp_path / "no")
    assert not alone.perturbed.any()  # a defence attacks during its steps; nothing is drawn here


def _rgb(path: Path) -> Image:
    return np.ascontiguousarray(cv2.imread(str(path))[..., ::-1])
