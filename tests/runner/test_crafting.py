"""Relations that need a system: crafted in workers, stored by content, equal records for any number of workers."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pandas as pd
import pytest
from crafting_parts import LocalNet, NetSystem, Push, crafting_suite
from label_parts import Meter, label_suite
from runner_helpers import assert_equal_records, go, records
from runner_parts import plan_of

from medtest.core.address import image_sha256
from medtest.core.cases import ReasonCode
from medtest.core.records import CRAFTING_COLUMNS
from medtest.runner.privacy.rules import ShownNames
from medtest.runner.records.crafted import CraftedCases, kept
from medtest.runner.reporting.outcome import Limits
from medtest.runner.units.parts import Parts
from medtest.suite.digest import run_digest
from medtest.suite.model import Privacy, Selection, Suite

COLUMNS = [name for name, _ in CRAFTING_COLUMNS]


def pushed(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[frame["relation"] == "push"]


def digest(suite: Suite, system: str) -> str:
    systems = suite.build_systems()
    result = run_digest(
        suite, system, seeds=suite.build_seeds(None), relations=suite.build_relations(), system=systems[system]
    )
    return result.value


def test_judged_images_are_those_that_are_stored(tmp_path: Path) -> None:
    outcome = go(crafting_suite(), tmp_path)
    frame, folder = records(outcome), outcome.systems[0].folder
    assert len(pushed(frame)) == 4 * 3
    for row in pushed(frame).itertuples():
        image = cv2.cvtColor(cv2.imread(str(next(folder.glob(f"crafted/images/*/{row.followup_sha256}.png")))), 4)
        assert image_sha256(image) == row.followup_sha256
        assert 0 < row.linf <= row.scale == json.loads(row.params)["epsilon"]
        assert row.crafted_on == "net-0"
        assert row.queries == 1
        assert row.attack_reference == "truth"
    assert (pushed(frame).groupby("severity")["ssim"].mean().diff().dropna() < 0).all()
    manifest = (folder / "manifest.sha256").read_text()
    assert manifest.count("crafted/images/") == pushed(frame)["followup_sha256"].nunique()


def test_natural_rows_have_distances_too_and_rows_of_sources_have_gaps(tmp_path: Path) -> None:
    frame = records(go(crafting_suite(), tmp_path))
    natural = frame[(frame["relation"] == "dim") & frame["verdict"].isin(["PASS", "FAIL"])]
    assert natural[["linf", "l2", "ssim"]].notna().all().all()
    assert natural["crafted_on"].isna().all()
    sources = frame[frame["relation"] == "source"]
    assert (sources["probe_gap"] < 1e-5).all()
    assert (sources["repeat_gap"] == 0).all()


def test_distances_are_those_of_scikit_image_and_numpy(tmp_path: Path) -> None:
    from skimage.metrics import structural_similarity

    suite = crafting_suite(count=1)
    outcome = go(suite, tmp_path)
    parts = Parts(suite, None, 8)
    source = parts.prepared(*parts.refs()[0]).image
    for row in pushed(records(outcome)).itertuples():
        image = kept(outcome.systems[0].folder, row.followup_sha256)
        assert image is not None
        away = (image.astype(float) - source.astype(float)).ravel()
        assert row.linf == np.abs(away).max()
        assert row.l2 == pytest.approx(np.linalg.norm(away), rel=1e-12)
        window = {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False, "data_range": 255}
        means = [structural_similarity(source[..., c], image[..., c], **window) for c in range(3)]
        assert row.ssim == pytest.approx(np.mean(means), rel=1e-9)


@pytest.mark.slow  # worker processes import torch
def test_records_do_not_depend_on_workers_and_selection(tmp_path: Path) -> None:
    suite = crafting_suite(repeats=2, system=NetSystem)
    whole = records(go(suite, tmp_path / "one"))
    assert_equal_records(whole, records(go(suite, tmp_path / "two", workers=2)))
    chosen = Selection(relations=frozenset({"push"}), severities=frozenset({3}))
    part = records(go(suite, tmp_path / "part", only=chosen))
    assert len(pushed(part)) == 4 * 2
    same = whole.merge(part[["address"]], on="address")
    assert_equal_records(same.reset_index(drop=True), part.reset_index(drop=True))
    again = records(go(suite, tmp_path / "part"))
    assert_equal_records(whole, again)


def test_interrupted_cases_are_crafted_equally_by_the_next_call(tmp_path: Path) -> None:
    suite = crafting_suite()
    whole = records(go(suite, tmp_path / "whole"))
    outcome = go(suite, tmp_path / "cut", limit=2)
    shutil.rmtree(outcome.systems[0].folder / "crafted")  # lost pixels are not made again unnoticed
    assert_equal_records(whole, records(go(suite, tmp_path / "cut")))


def test_one_named_system_makes_them_for_all(tmp_path: Path) -> None:
    suite = crafting_suite(systems={"one": {"net": 1}, "two": {"net": 2}}, crafted_on="net", crafter={"net": 0})
    outcome = go(suite, tmp_path)
    first, second = (pushed(records(outcome, n)) for n in (0, 1))
    assert (first["followup_sha256"].to_numpy() == second["followup_sha256"].to_numpy()).all()
    assert set(first["crafted_on"]) == set(second["crafted_on"]) == {"net-0"}
    alone = go(crafting_suite(systems={"net": {}}), tmp_path)
    assert (pushed(records(alone))["followup_sha256"].to_numpy() == first["followup_sha256"].to_numpy()).all()
    for system in outcome.systems:
        assert len(list(system.folder.glob("crafted/images/*/*.png"))) == first["followup_sha256"].nunique()


def test_on_each_system_its_own(tmp_path: Path) -> None:
    outcome = go(crafting_suite(systems={"one": {"net": 1}, "two": {"net": 2}}), tmp_path)
    first, second = (pushed(records(outcome, n)) for n in (0, 1))
    assert set(first["crafted_on"]) == {"net-1"}
    assert set(second["crafted_on"]) == {"net-2"}
    assert (first["followup_sha256"].to_numpy() != second["followup_sha256"].to_numpy()).any()


def test_the_crafting_system_is_in_the_digest_and_no_other_run_knows_of_it() -> None:
    on_0 = crafting_suite(systems={"one": {"net": 1}}, crafted_on="net", crafter={"net": 0})
    on_2 = crafting_suite(systems={"one": {"net": 1}}, crafted_on="net", crafter={"net": 2})
    each = crafting_suite(systems={"one": {"net": 1}})
    assert len({digest(suite, "one") for suite in (on_0, on_2, each)}) == 3


def test_suites_without_such_relations_have_no_such_columns(tmp_path: Path) -> None:
    frame = records(go(label_suite(seeds={"count": 1}), tmp_path))
    assert not set(COLUMNS) & set(frame.columns)
    assert not list(tmp_path.rglob("crafted"))


def test_nothing_is_kept_where_a_suite_forbids_images(tmp_path: Path) -> None:
    outcome = go(crafting_suite(privacy=Privacy(images="none")), tmp_path)
    assert not (outcome.systems[0].folder / "crafted").exists()
    assert pushed(records(outcome))["followup_sha256"].str.len().eq(64).all()


def test_hashed_ids_find_their_pixels(tmp_path: Path) -> None:
    suite = crafting_suite(privacy=Privacy(seed_ids="hashed"))
    outcome = go(suite, tmp_path)
    parts = Parts(suite, None, 8)
    parts.crafted = CraftedCases([outcome.systems[0].folder], ShownNames.of(suite.privacy, tmp_path))
    number, ref = parts.refs()[2]
    seed = parts.prepared(number, ref)
    address = next(case for case in parts.unit(ref).cases if case.relation == "push")
    remade = parts.make(seed, address)
    assert remade.follow is not None
    assert remade.sha256 in set(pushed(records(outcome))["followup_sha256"])


def test_without_the_run_there_are_no_pixels() -> None:
    parts = Parts(crafting_suite(), None, 8)
    number, ref = parts.refs()[0]
    address = next(case for case in parts.unit(ref).cases if case.relation == "push")
    remade = parts.make(parts.prepared(number, ref), address)
    assert remade.verdict == "SKIP"
    assert remade.reason.code == ReasonCode.FOLLOW_UP_NOT_STORED


@pytest.mark.slow
def test_a_network_that_hangs_while_attacked_is_an_error_and_the_rest_goes_on(tmp_path: Path) -> None:
    fault = {"fault": "hang", "sign": str(tmp_path / "hung")}
    suite = crafting_suite(systems={"net": fault}, count=2, system=NetSystem)
    frame = records(go(suite, tmp_path, batch_seconds=3.0))
    hung = pushed(frame)[pushed(frame)["verdict"] == "ERROR"]
    assert len(hung) == 3
    assert (hung["reason_code"] == "timeout").all()
    assert pushed(frame)["linf"].notna().sum() == 3
    assert frame[frame["relation"] != "push"]["verdict"].ne("ERROR").all()


@pytest.mark.parametrize(
    ("fault", "words"), [("nan", "NaN"), pytest.param("crash", "exit code 3", marks=pytest.mark.slow)]
)
def test_a_network_that_breaks_while_attacked_is_an_error(tmp_path: Path, fault: str, words: str) -> None:
    system = NetSystem if fault == "crash" else LocalNet
    frame = records(go(crafting_suite(systems={"net": {"fault": fault}}, count=1, system=system), tmp_path))
    assert pushed(frame)["verdict"].eq("ERROR").all()
    assert pushed(frame)["reason"].str.contains(words).all()
    assert frame[frame["relation"] != "push"]["verdict"].ne("ERROR").all()


def test_samples_show_what_was_judged(tmp_path: Path) -> None:
    outcome = go(crafting_suite(natural=False), tmp_path, limits=Limits(samples=3))
    folder = outcome.systems[0].folder
    samples = json.loads((folder / "samples" / "index.json").read_text())
    assert [sample for sample in samples if sample["relation"] == "push"]
    for sample in samples:
        assert (folder / "samples" / sample["file"]).is_file()


def test_crafting_leaves_the_number_of_threads(tmp_path: Path) -> None:
    import torch

    from medtest.runner.units.crafting import one_thread

    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with pytest.raises(KeyError), one_thread():
            assert torch.get_num_threads() == 1
            raise KeyError
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_a_system_without_gradients_is_named_before_anything_runs() -> None:
    suite = replace(
        crafting_suite(), systems=(plan_of("systems", "meter", Meter), plan_of("systems", "net", NetSystem))
    )
    assert suite.crafts
    from medtest.core.probes import Need

    offered: dict[str, Any] = {name: system.offers() for name, system in suite.build_systems().items()}
    assert offered == {"meter": Need.SCORES, "net": Need.GRADIENTS}
    assert Push(Push.Settings()).needs is Need.GRADIENTS
