"""Sample strips, replay of one case, export of follow-ups."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pandas.testing import assert_frame_equal
from PIL import Image
from runner_helpers import go, records
from runner_parts import Dim, Picky, make_suite

from medtest.core.cases import image_sha256
from medtest.core.errors import UserMistakes
from medtest.core.plugins import part
from medtest.runner.pictures.samples import choose
from medtest.runner.prepared import prepare_run
from medtest.runner.records.ledger import CasePlaces
from medtest.runner.replaying import export
from medtest.runner.replaying.export import export_followups
from medtest.runner.replaying.replay import replay_case
from medtest.runner.replaying.replay_answers import replay_strips
from medtest.runner.reporting.outcome import Limits
from medtest.suite.model import Invocation, PartPlan, Selection


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> Any:
    home = tmp_path_factory.mktemp("sampled")
    suite = make_suite(
        seeds=6,
        relations={"dim": Dim, "dim2": Dim, "picky": Picky},
        systems={"dark": {"level": 150, "fault": "nan", "when": "patient-0003/dim_s2"}},
    )
    return suite, home, go(suite, home, limits=Limits(samples=12))


def test_about_as_many_strips_as_asked_for_worst_median_and_errors(sampled: Any) -> None:
    _, _, outcome = sampled
    folder = outcome.systems[0].folder / "samples"
    index = json.loads((folder / "index.json").read_text())
    assert 10 <= len(index) <= 12
    assert {entry["kind"] for entry in index} == {"worst", "median", "error"}
    assert {entry["relation"] for entry in index} == {"dim", "dim2", "picky"}
    assert sorted(p.name for p in folder.glob("*.png")) == sorted(entry["file"] for entry in index)
    frame = records(outcome)
    judged = frame[frame.verdict.isin(["PASS", "FAIL"]) & (frame.relation != "source")]
    drop = (judged.source_dice - judged.dice).max()
    first = index[0]
    assert first["kind"] == "worst" and first["source_score"] - first["score"] == pytest.approx(drop)
    assert first["address"].endswith(f"/{first['relation']}_s{first['severity']}_f0_r0")


@pytest.mark.parametrize(("count", "errors"), [(4, 1), (6, 1), (7, 3), (12, 3)])
def test_many_errors_leave_room_for_judged_cases(sampled: Any, tmp_path: Path, count: int, errors: int) -> None:
    suite, home, outcome = sampled
    table = pq.read_table(outcome.systems[0].folder / "records.parquet")
    frame = table.to_pandas()
    frame.loc[frame.relation == "dim2", "verdict"] = "ERROR"
    pq.write_table(pa.Table.from_pandas(frame, schema=table.schema), tmp_path / "records.parquet")
    prepared = prepare_run(suite, Invocation(home=home))
    places = CasePlaces(prepared.plan, prepared.names)
    chosen = choose(tmp_path, places, oracle=suite.build_oracle(), primary=suite.oracle.primary, count=count)
    kinds = [sample.kind for sample in chosen]
    assert kinds.count("error") == errors and len(kinds) == count


def test_strips_are_pictures_that_show_the_case(sampled: Any) -> None:
    _, _, outcome = sampled
    folder = outcome.systems[0].folder / "samples"
    index = json.loads((folder / "index.json").read_text())
    with Image.open(folder / index[0]["file"]) as strip:
        assert strip.width > 4 * strip.height and strip.height > 300
        pixels = np.asarray(strip.convert("RGB")).reshape(-1, 3)
    for colour in ((0, 230, 118), (255, 64, 178)):
        assert (np.abs(pixels.astype(int) - colour).max(axis=1) < 12).any()


def test_samples_are_kept_while_the_records_are_the_same(sampled: Any) -> None:
    suite, home, outcome = sampled
    folder = outcome.systems[0].folder / "samples"
    worst = next(folder.glob("01-*.png"))
    before = worst.stat().st_mtime_ns
    errors = outcome.systems[0].counts["ERROR"]
    again = go(suite, home, limits=Limits(samples=12))
    assert again.systems[0].cases_executed == errors and worst.stat().st_mtime_ns == before
    worst.unlink()
    go(suite, home, limits=Limits(samples=12))
    assert worst.exists()


def test_a_case_is_replayed_from_its_address(sampled: Any) -> None:
    suite, home, outcome = sampled
    row = records(outcome).query("relation == 'dim2' and severity == 4 and seed_id == 'patient-0004'").iloc[0]
    replayed = replay_case(suite, Invocation(home=home), "blobs/patient-0004/dim2_s4_f0_r0")
    assert (replayed.followup_sha256, replayed.source_sha256) == (row.followup_sha256, row.source_sha256)
    assert dict(replayed.params) == json.loads(row.params) and replayed.scale == row.scale
    assert replayed.truth is not None and replayed.truth.shape == replayed.followup.shape[:2]


@pytest.mark.parametrize(
    ("address", "nearest"),
    [
        ("blobs/patient-0004/dim3_s4_f0_r0", "did you mean: dim"),
        ("blobs/patient-004/dim_s4_f0_r0", "did you mean: blobs/patient-0004"),
        ("blobs/patient-0004/dim_s9_f0_r0", "dim_s1_f0_r0 … dim_s5_f0_r0"),
        ("dim_s1", "dataset/seed_id/relation"),
        ("blobs/patient-0004/picky_s1_f0_r0", "no room"),
    ],
)
def test_a_wrong_address_is_answered_with_the_nearest(sampled: Any, address: str, nearest: str) -> None:
    suite, home, _ = sampled
    with pytest.raises(UserMistakes) as caught:
        replay_case(suite, Invocation(home=home), address)
    assert nearest in str(caught.value)


def test_a_strip_of_any_case_for_every_system(sampled: Any, tmp_path: Path) -> None:
    _, home, _ = sampled
    suite = make_suite(seeds=2, systems={"bright": {}, "dark": {"level": 150}})
    files = replay_strips(suite, Invocation(home=home), "blobs/patient-0001/dim_s5_f0_r0", tmp_path / "out")
    assert [strip.file.name for strip in files] == ["strip-bright.png", "strip-dark.png"]
    assert all(Image.open(strip.file).width > 1000 for strip in files)


def test_replayed_cases_are_judged_as_in_the_records(sampled: Any, tmp_path: Path) -> None:
    suite, home, outcome = sampled
    frame = records(outcome)
    for seed, relation, severity in (("patient-0004", "dim2", 4), ("patient-0003", "dim", 2)):
        row = frame.query(f"relation == {relation!r} and severity == {severity} and seed_id == {seed!r}").iloc[0]
        address = f"blobs/{seed}/{relation}_s{severity}_f0_r0"
        (shown,) = replay_strips(suite, Invocation(home=home), address, tmp_path)
        assert shown.verdict == row.verdict
        scores = f"dice {row.source_dice:.3f} on the source, {row.dice:.3f} on the follow-up"
        assert shown.words == (row.reason if row.verdict == "ERROR" else scores)
    assert row.verdict == "ERROR"


def _manifest(folder: Path) -> list[dict[str, str]]:
    with (folder / "manifest.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_export_writes_what_a_run_shows_its_systems(sampled: Any, tmp_path: Path) -> None:
    suite, home, outcome = sampled
    count = export_followups(suite, Invocation(home=home), tmp_path / "to")
    frame = records(outcome)
    rows = _manifest(tmp_path / "to")
    assert [row["address"] for row in rows] == [
        f"{r.dataset}/{r.seed_id}/{r.relation}_s{r.severity}_f{r.frame}_r{r.repeat}" for r in frame.itertuples()
    ]
    assert count == sum(bool(row["file"]) for row in rows) == (frame.followup_sha256 != "").sum()
    for row, record in zip(rows, frame.itertuples(), strict=True):
        assert row["sha256"] == record.followup_sha256
        if row["file"]:
            pixels = cv2.cvtColor(cv2.imread(str(tmp_path / "to" / row["file"])), cv2.COLOR_BGR2RGB)
            assert image_sha256(pixels) == row["sha256"]
            assert json.loads(row["params"]) == json.loads(record.params) and float(row["scale"]) == record.scale
        else:
            assert row["skipped"]
    assert rows[0]["file"] == "blobs/patient-0000.png"
    assert rows[1]["file"] == "blobs/patient-0000/dim_s1_f0_r0.png"
    assert not list((tmp_path / "to").rglob("*.tmp"))


def test_export_goes_on_where_it_stopped(sampled: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite, home, _ = sampled
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    export_followups(suite, Invocation(home=home), whole)
    saved: list[Path] = []
    save = export._save

    def stop_after_20(path: Path, image: Any) -> None:
        saved.append(path)
        if len(saved) == 20:
            raise KeyboardInterrupt
        save(path, image)

    monkeypatch.setattr(export, "_save", stop_after_20)
    with pytest.raises(KeyboardInterrupt):
        export_followups(suite, Invocation(home=home), cut)
    assert not (cut / "manifest.csv").exists()
    draft = cut / ".manifest.part"
    draft.write_text(draft.read_text() + "blobs/patient-0001/dim_s1_f0_r0,blobs/pat")  # torn by a kill
    monkeypatch.setattr(export, "_save", lambda path, image: (saved.append(path), save(path, image)))
    saved.clear()
    export_followups(suite, Invocation(home=home), cut)
    assert saved and not any("patient-0000" in str(path) for path in saved)
    assert _manifest(cut) == _manifest(whole)
    saved.clear()
    export_followups(suite, Invocation(home=home), cut)
    assert not saved


def test_export_of_a_part_and_of_something_else(sampled: Any, tmp_path: Path) -> None:
    suite, home, _ = sampled
    only = Selection(relations=frozenset({"dim"}), severities=frozenset({3}))
    assert export_followups(suite, Invocation(home=home, limit=2, only=only), tmp_path) == 4
    with pytest.raises(UserMistakes) as caught:
        export_followups(make_suite(seed=99), Invocation(home=home), tmp_path)
    assert "other follow-ups" in str(caught.value)


def test_exported_images_answered_elsewhere_come_back_with_the_same_scores(tmp_path: Path) -> None:
    suite = make_suite(seeds=2, systems={"bright": {"level": 120}}, relations={"dim": Dim, "picky": Picky})
    suite = replace(suite, answers="maps")
    direct = records(go(suite, tmp_path))
    export_followups(suite, Invocation(home=tmp_path), tmp_path / "to")
    left_out = tmp_path / "to" / "blobs" / "patient-0001" / "dim_s4_f0_r0.png"
    for path in (tmp_path / "to").rglob("*.png"):  # answered on another machine
        answer = np.asarray(Image.open(path)).max(axis=2) > 120
        target = tmp_path / "maps" / path.relative_to(tmp_path / "to")
        target.parent.mkdir(parents=True, exist_ok=True)
        if path != left_out:
            Image.fromarray((answer * 255).astype(np.uint8)).save(target)
    info = part("systems", "predictions")
    settings = info.load().Settings(**{**info.defaults, "folder": str(tmp_path / "maps")})
    maps = replace(suite, systems=(PartPlan(id="maps", info=info, settings=settings),))
    back = records(go(maps, tmp_path))
    missing = (back.seed_id == "patient-0001") & (back.relation == "dim") & (back.severity == 4)
    assert list(back[missing].verdict) == ["SKIP"] and list(back[missing].reason_code) == ["no_prediction"]
    same = ["followup_sha256", "verdict", "reason_code", "dice", "iou", "source_dice", "self_dice", "mean_dice_256"]
    assert_frame_equal(direct[~missing][same], back[~missing][same], check_exact=True)
