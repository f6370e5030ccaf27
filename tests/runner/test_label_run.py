"""Labels and sequences as users see them: records, tables, report, metrics, strips, replay, privacy."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from label_parts import FINDINGS, LEVELS, SHADES, Colours, Fade, Shades, ShadeSettings, label_suite
from PIL import Image
from runner_helpers import QUICK, assert_equal_records, go, records
from runner_parts import Dim

from medtest.cli.followups.sheet import draw_sheet
from medtest.core.cases import Address, image_sha256
from medtest.core.errors import UserMistakes
from medtest.core.records import LABEL_FACTORS
from medtest.preparation import prepare, seed_factors
from medtest.report.finish import finish
from medtest.report.mlflow.headline import headline_of
from medtest.report.mlflow.metrics import metrics, tags
from medtest.report.pages.material import Material
from medtest.report.pages.sections import robustness
from medtest.results.records.records_io import Records
from medtest.results.records.wanted import Wanted
from medtest.results.series.alpha_sigma import TOO_FEW_SCALES
from medtest.results.tables import make_tables
from medtest.runner.followups import make_followups
from medtest.runner.followups.reuse import StoredFollowUps
from medtest.runner.replaying.export import export_followups
from medtest.runner.replaying.replay import replay_case
from medtest.runner.replaying.replay_answers import replay_strips
from medtest.runner.reporting.outcome import Limits
from medtest.runner.run import run_suite
from medtest.suite.model import Gate, Invocation, Privacy, Selection
from medtest.suite.reading.outline import outline

CASES = 1 + 5 + 5 * 4  # a source, dim at five severities, five sequences of four frames


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Any:
    home = tmp_path_factory.mktemp("labels")
    suite = label_suite(systems={"meter": {}, "broken": {"fault": "tie", "when": "shade-001/dim_s3"}})
    return suite, home, go(suite, home, limits=Limits(samples=8))


def test_every_frame_has_a_record(whole: Any) -> None:
    frame = records(whole[2])
    assert len(frame) == 6 * CASES
    fade = frame[frame.relation == "fade"]
    assert list(fade["frame"][:8]) == [0, 1, 2, 3, 0, 1, 2, 3]
    assert list(fade["address"][:2]) == [f"{fade.dataset.iloc[0]}/shade-000/fade_s1_f{n}_r0" for n in (0, 1)]
    assert list(fade["severity"][:8]) == [1] * 4 + [2] * 4
    assert (fade[fade.frame == 0].followup_sha256 == fade[fade.frame == 0].source_sha256).all()
    assert fade[fade.frame == 0].elapsed_ms.isna().all(), "the source itself is not asked about again"
    assert (fade[fade.frame == 0].verdict == "PASS").all()
    shared = fade.assign(way=[json.loads(p)["way"] for p in fade.params]).groupby(["seed_id", "severity"])["way"]
    assert (shared.nunique() == 1).all()


def test_another_number_of_classes_ends_the_run_after_the_first_batch_and_loses_nothing(tmp_path: Path) -> None:
    suite = label_suite(systems={"meter": {}, "short": {"fault": "count"}})
    with pytest.raises(UserMistakes) as caught:
        go(suite, tmp_path)
    (mistake,) = caught.value.mistakes
    assert mistake.found == "scores for 2 classes"
    assert mistake.allowed == "3 classes: dark, middle, bright"
    assert "systems.short.classes=[" in mistake.fix
    again = go(label_suite(systems={"meter": {}}), tmp_path)
    system = again.systems[0]
    assert 0 < system.cases_reused < len(records(again)), "answers of the other system are reused"


def test_answers_of_other_workers_are_kept_when_one_ends_the_run(tmp_path: Path) -> None:
    meet = str(tmp_path / "both-are-at-work")
    suite = label_suite(systems={"meter": {"meet": meet}, "short": {"fault": "count"}})
    with pytest.raises(UserMistakes):
        go(suite, tmp_path, workers=2, batch_size=CASES)
    (shards,) = tmp_path.glob("outputs/*/meter/*/records")
    rows = pa.concat_tables([pq.read_table(path, columns=["seed_id"]) for path in shards.glob("*.parquet")])
    assert {"shade-000", "shade-001"} <= set(rows["seed_id"].to_pylist())


def test_one_wrong_answer_is_an_error_and_no_end(tmp_path: Path) -> None:
    outcome = go(label_suite(systems={"meter": {"fault": "count", "when": "dim_s3"}}), tmp_path)
    frame = records(outcome)
    assert set(frame[frame.verdict == "ERROR"].severity) == {3}


def test_a_record_says_what_a_hand_computation_says(whole: Any) -> None:
    source = Shades(dataset="shades", settings=ShadeSettings(), root=None, suite_seed=7)
    seed = prepare(source.load(source.refs()[2]), size=None)
    address = Address(dataset="shades", seed_id="shade-002", relation="fade", severity=5, frame=3)
    loss = 3 * 5 * 8
    image = np.clip(seed.image.astype(np.int16) - loss, 0, 255).astype(np.uint8)
    frame = records(whole[2])
    row = frame[(frame.seed_id == "shade-002") & (frame.relation == "fade") & (frame.severity == 5)].iloc[3]

    def share(picture: Any) -> Any:
        logits = -np.abs(float(picture.mean()) - np.array(LEVELS)) / 10
        return np.exp(logits) / np.exp(logits).sum()

    after, before = share(image), share(seed.image)
    assert row["followup_sha256"] == image_sha256(image) and row["frame"] == address.frame
    assert (row["expected"], row["source_label"]) == ("bright", "bright")
    assert row["label"] == SHADES.names[int(np.argmax(after))] == "dark"
    assert row["probability"] == pytest.approx(after[2], abs=1e-6)
    assert row["self_probability"] == pytest.approx(after[2], abs=1e-6)
    assert row["confidence"] == pytest.approx(after.max(), abs=1e-6)
    assert row["source_confidence"] == pytest.approx(before.max(), abs=1e-6)
    assert (row["agreement"], row["source_agreement"], row["self_agreement"]) == (0, 1, 0)
    probabilities = json.loads(row["probabilities"])
    assert list(probabilities) == list(SHADES.names) and probabilities["middle"] == pytest.approx(after[1], rel=1e-5)
    assert row["verdict"] == "FAIL"
    for name, value in seed_factors(seed).items():
        assert value is None or row[name] == pytest.approx(value), name
    assert {c for c in frame.columns if c.startswith("factor_")} >= set(LABEL_FACTORS)
    assert "factor_polyp_area" not in frame.columns


def test_ties_are_errors_with_the_reason(whole: Any) -> None:
    frame = records(whole[2], 1)
    bad = frame[frame.verdict == "ERROR"]
    assert list(bad.relation + bad.severity.astype(str)) == ["dim3"]
    assert "same largest score" in bad.reason.iloc[0]
    assert bad.label.isna().all() and (bad.expected == "middle").all() and (bad.source_label == "middle").all()


def test_tables_have_an_empty_threshold_for_the_label_rule(whole: Any) -> None:
    suite, _, outcome = whole
    folder = outcome.systems[0].folder
    tables = make_tables(folder, suite)
    tables.write(folder)
    rates = pd.read_csv(folder / "tables" / "efr.csv", keep_default_na=False, dtype=str)
    label = rates[rates.score == "label"]
    assert set(label.threshold) == {""} and set(rates[rates.score == "probability"].threshold) == {"0.25", "0.5"}
    frame = records(outcome)
    fade = frame[frame.relation == "fade"]
    row = label[(label.relation == "fade") & (label.severity == "all") & (label.dataset == "all")]
    changed = int((fade.label != fade.source_label).sum())
    assert int(row[row.against == "source"].violations.iloc[0]) == changed > 0
    right = fade[fade.source_label == fade.expected]
    assert int(row[row.against == "truth"].cases.iloc[0]) == len(right)
    assert int(row[row.against == "truth"].violations.iloc[0]) == int((right.label != right.expected).sum())
    names = {path.name for path in (folder / "tables").glob("pivot_*")}
    assert names == {f"pivot_{a}{t}.csv" for a in ("source", "truth") for t in ("", "_t0.25", "_t0.5")}
    accuracy = tables.alpha_sigma.query("relation == 'dim' and score == 'agreement' and against == 'truth'")
    means = records(outcome).query("relation == 'dim'").groupby("severity").agreement.mean()
    assert accuracy.qualities.iloc[0] == " ".join(f"{value:.4f}" for value in means)
    assert {"source_confidence", "sharpness", "brightness"} <= set(tables.factors.factor)


def test_gates_report_and_metrics(whole: Any, tmp_path: Path) -> None:
    suite, home, outcome = whole
    gated = replace(suite, gates=(Gate(score="label", threshold=0.0, against="source", max_percent=1.0),))
    folder = outcome.systems[0].folder
    tables = make_tables(folder, gated)
    assert not tables.gates[0].held and str(tables.gates[0]).startswith("failed: EFR by label against source")
    material = Material(folder=folder, wanted=Wanted.of(gated), tables=tables, run={}, notices=[], command="", view="")
    head = headline_of(material, "net")
    values = metrics(material, head)
    assert list(values)[:3] == ["efr", "efr_low", "efr_high"]
    assert set(values["efr/fade"]) == {1, 2, 3, 4, 5}
    assert values["source_score"] == 1.0 and len(values) <= 40
    assert head.tags["gate"] == "failed"
    assert tags(material, head)["criterion"] == "label against source"
    result = finish(suite, Invocation(home=home, track=False, quiet=True), outcome)
    page = result.reports[0].read_text()
    assert "its label differs from that of the source image" in page
    words = re.sub(r'src="data:[^"]*"', "", page)
    assert "t = 0," not in words and not re.search(r"\bnan\b", words, re.IGNORECASE)
    assert "expected mask" not in page and "Every frame of a sequence is a case" in page
    assert re.search(r"Error-finding rate \(EFR\) overall, label<", page)


def test_the_terminal_says_how_often_sequences_flip(whole: Any) -> None:
    suite, _, outcome = whole
    folder = outcome.systems[0].folder
    tables = make_tables(folder, suite)
    material = Material(folder=folder, wanted=Wanted.of(suite), tables=tables, run={}, notices=[], command="", view="")
    fade = records(outcome).query("relation == 'fade'").sort_values(["seed_id", "severity", "frame"])
    labels = fade.label.to_numpy().reshape(-1, 4)
    share = (labels[:, 1:] != labels[:, :-1]).mean()
    assert 0 < share < 1
    (flips,) = tables.own.lines()
    assert f"flip probability {100 * share:.1f} % [" in flips and "types" not in flips
    shown = robustness(material)
    assert shown["alpha_score"] == "accuracy"
    rows = tables.alpha_sigma.query("dataset == 'all' and score == 'agreement' and against == 'truth'")
    assert [row["alpha"] for row in shown["alpha_sigma"]] == [f"{alpha:.3g}" for alpha in rows.alpha]
    lone = tables.alpha_sigma.assign(seeds=0, note=TOO_FEW_SCALES)
    assert not robustness(replace(material, tables=replace(tables, alpha_sigma=lone)))["alpha_sigma"]


def test_strips_carry_the_labels(whole: Any) -> None:
    _, _, outcome = whole
    folder = outcome.systems[0].folder / "samples"
    index = json.loads((folder / "index.json").read_text())
    assert len(index) == 8
    fade = next(entry for entry in index if entry["relation"] == "fade")
    assert f"-f{fade['frame']}-" in fade["file"]
    with Image.open(folder / index[0]["file"]) as strip:
        picture = np.asarray(strip.convert("L"))
    below = picture[-54:-2]
    assert (below < 90).sum() > 300, "three lines of words stand below the pictures"


def test_a_frame_is_replayed_and_drawn(whole: Any, tmp_path: Path) -> None:
    suite, home, outcome = whole
    frame = records(outcome)
    row = frame.query("relation == 'fade' and severity == 2 and frame == 3 and seed_id == 'shade-004'").iloc[0]
    replayed = replay_case(suite, Invocation(home=home), "shades/shade-004/fade_s2_f3_r0")
    assert replayed.followup_sha256 == row["followup_sha256"] and replayed.scale == 48
    strips = replay_strips(suite, Invocation(home=home), "shades/shade-004/fade_s2_f3_r0", tmp_path)
    assert [strip.file.name for strip in strips] == ["strip-meter.png", "strip-broken.png"]
    assert strips[0].verdict == row["verdict"]
    assert "the same label as on the source" in strips[0].words or "another label" in strips[0].words


def test_strips_of_a_replay_name_the_seed_as_privacy_says(
    whole: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite, home, _ = whole
    monkeypatch.setenv("MEDTEST_HASH_KEY_FILE", str(tmp_path / "hash.key"))
    drawn = []
    for number, seed_ids in enumerate(("plain", "plain", "hashed")):
        shown = replace(suite, privacy=Privacy(seed_ids=seed_ids), systems=suite.systems[:1])
        (strip,) = replay_strips(shown, Invocation(home=home), "shades/shade-004/dim_s2_f0_r0", tmp_path / str(number))
        drawn.append(np.asarray(Image.open(strip.file)))
    assert (drawn[0] == drawn[1]).all()
    assert drawn[0].shape == drawn[2].shape
    changed = np.flatnonzero((drawn[0] != drawn[2]).any(axis=(1, 2)))
    assert 0 < len(changed) < 40 and changed.max() < 60, "the line of words above the pictures, and nothing else"


def test_a_sheet_shows_the_frames_of_a_sequence(whole: Any) -> None:
    suite = whole[0]
    source = suite.build_seeds(None)[0]
    seed = prepare(source.load(source.refs()[2]), size=None)
    relations = suite.build_relations()
    sequence = draw_sheet(seed, {"fade": relations["fade"]}, suite_seed=7, cell=64)
    both = draw_sheet(seed, relations, suite_seed=7, cell=64)
    assert both.shape[0] > sequence.shape[0] and sequence.shape[1] >= 132 + 4 * 64
    row = sequence[-64 - 30 : -30, 132:].astype(int).sum(axis=2)
    levels = [row[10:50, 10 + 70 * n : 50 + 70 * n].mean() for n in range(4)]
    assert levels == sorted(levels, reverse=True) and levels[0] > levels[3] + 100


def test_export_writes_every_frame(whole: Any, tmp_path: Path) -> None:
    suite, home, _ = whole
    export_followups(suite, Invocation(home=home, limit=1, only=Selection(relations=frozenset({"fade"}))), tmp_path)
    names = {path.name for path in (tmp_path / "shades" / "shade-000").glob("*.png")}
    assert names == {f"fade_s{s}_f{f}_r0.png" for s in range(1, 6) for f in range(4)}


def test_parts_of_a_sequence_make_the_whole(tmp_path: Path) -> None:
    """limit, only and a resumed run leave the records of one uninterrupted run."""
    suite = label_suite()
    at_once = go(suite, tmp_path / "a")
    go(suite, tmp_path / "b", limit=2)
    go(suite, tmp_path / "b", only=Selection(severities=frozenset({4})))
    rest = go(suite, tmp_path / "b")
    assert 0 < rest.systems[0].cases_executed < len(records(at_once))
    assert_equal_records(records(at_once), records(rest))


@pytest.mark.parametrize("form", ["logits", "labels"])
def test_other_forms_say_the_same_labels(form: str, whole: Any, tmp_path: Path) -> None:
    outcome = go(label_suite(systems={"meter": {"form": form}}), tmp_path)
    expected, frame = records(whole[2]), records(outcome)
    assert (frame.label == expected.label).all() and (frame.agreement == expected.agreement).all()
    if form == "labels":
        assert frame.probability.isna().all() and (frame.probabilities == "").all()
    else:
        assert np.allclose(frame.probability, expected.probability, atol=1e-6)


def test_classes_in_another_order_are_mapped_and_others_refused(whole: Any, tmp_path: Path) -> None:
    turned = go(label_suite(systems={"meter": {"turned": True}}), tmp_path)
    assert (records(turned).label == records(whole[2]).label).all()
    with pytest.raises(UserMistakes, match="does not know bright") as caught:
        go(label_suite(systems={"meter": {"unfit": True}}), tmp_path / "unfit")
    assert "systems.meter" in str(caught.value)
    with pytest.raises(UserMistakes, match="does not know bright"):  # a plan says so too
        outline(label_suite(systems={"meter": {"unfit": True}}), Invocation(home=tmp_path / "plan"))


def test_several_labels_and_none(tmp_path: Path) -> None:
    suite = label_suite(seeds={"multi": True, "count": 8}, system=Colours, systems={"colours": {}})
    frame = records(go(suite, tmp_path))
    sources = frame[frame.relation == "source"].set_index("seed_id")
    assert sources.expected["shade-000"] == "" and sources.label["shade-000"] == ""
    assert sources.expected["shade-005"] == sources.label["shade-005"] == "red|blue"
    assert set(json.loads(sources.probabilities.iloc[0])) == set(FINDINGS.names)
    deep = frame[(frame.relation == "fade") & (frame.severity == 5) & (frame.frame == 3)].set_index("seed_id")
    assert (deep.label == "").all() and deep.verdict["shade-000"] == "PASS" and deep.verdict["shade-007"] == "FAIL"
    assert deep.self_label_share["shade-005"] == pytest.approx(1 / 3)


def test_several_labels_alone_keep_all_classes(tmp_path: Path) -> None:
    alone = label_suite(seeds={"multi": True, "count": 2}, system=Colours, systems={"colours": {"form": "labels"}})
    outcome = go(alone, tmp_path)
    frame = records(outcome)
    assert frame.probabilities.fillna("").eq("").all()
    assert set("|".join(frame.label).split("|")) <= {"", "red"}, "green and blue are never answered nor expected"
    own_records = Records.read(outcome.systems[0].folder)
    assert own_records.classes == {"shades": FINDINGS}
    assert set(make_tables(outcome.systems[0].folder, alone).own.tables.per_class["class"]) == set(FINDINGS.names)


def test_unlabelled_seeds_have_metamorphic_scores_alone(tmp_path: Path) -> None:
    outcome = go(label_suite(seeds={"labelled": False}), tmp_path)
    frame = records(outcome)
    assert frame.expected.isna().all() and frame.agreement.isna().all() and frame.self_agreement.notna().all()
    assert set(frame.verdict) == {"PASS", "FAIL"}
    tables = make_tables(outcome.systems[0].folder, label_suite())
    assert set(tables.efr.against) == {"source"}


def test_masks_are_scored_beside_labels(tmp_path: Path) -> None:
    suite = label_suite(seeds={"masks": True}, systems={"meter": {"mask": True}})
    frame = records(go(suite, tmp_path, limits=Limits(samples=4)))
    assert frame.dice.notna().all() and frame.factor_lesion_area.notna().all()


def test_hashed_ids_hide_nothing_of_the_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEDTEST_HASH_KEY_FILE", str(tmp_path / "key"))
    frame = records(go(label_suite(privacy=Privacy(seed_ids="hashed", images="none")), tmp_path / "home"))
    assert not frame.seed_id.str.contains("shade").any() and set(frame.expected) == set(SHADES.names)


def test_the_plan_counts_frames(tmp_path: Path) -> None:
    plan = outline(label_suite(), Invocation(home=tmp_path, limit=2))
    fade = next(share for share in plan.relations if share.id == "fade")
    assert (fade.frames, fade.cases, fade.per_cell, fade.independent) == (4, 2 * 5 * 4, 2 * 4, 1)
    assert plan.planned == 6 * CASES
    (system,) = plan.systems
    assert plan.sources == 2
    assert plan.seconds == pytest.approx((2 + plan.follow_ups) * system.ms_per_case / 1000)


def test_sequences_come_out_of_a_store_as_they_are_made(tmp_path: Path) -> None:
    suite = label_suite(seeds={"count": 2, "masks": True})
    plain = records(go(suite, tmp_path / "made"))
    report = make_followups(suite, Invocation(home=tmp_path), workers=0)
    assert report.made == 2 * (CASES - 1)
    stored = StoredFollowUps.of(suite, tmp_path, report.folder)
    reused = records(go(suite, tmp_path / "taken", kept=stored))
    assert_equal_records(plain, reused)
    first = reused[(reused.relation == "fade") & (reused.frame == 0)]
    assert first.elapsed_ms.isna().all()


def test_batches_do_not_matter(tmp_path: Path) -> None:
    suite = label_suite(relations={"fade": Fade, "dim": Dim})
    first, second = go(suite, tmp_path / "a", batch_size=3), go(suite, tmp_path / "b", batch_size=8, workers=2)
    assert_equal_records(records(first), records(second))


@pytest.mark.slow
def test_long_sequences_leave_memory_flat(tmp_path: Path) -> None:
    """Fourteen sequences of a seed, seed after seed: parent and worker need as much as before half of the way."""
    suite = label_suite(seeds={"count": 40}, relations={f"fade{i}": Fade for i in range(14)}, severities=[1, 2])
    total = 40 * (1 + 14 * 2 * 4)
    measured: list[tuple[int, float, float]] = []

    class Watch:
        def update(self, count: Any) -> None:
            me = psutil.Process()
            workers = [child.memory_info().rss for child in me.children(recursive=True)]
            if workers:
                measured.append((count.done, float(me.memory_info().rss), float(max(workers))))

        def close(self) -> None:
            return

    # shards are closed often, so that libraries for writing them are loaded early
    limits = replace(QUICK, shard_seconds=0.3)
    run_suite(suite, Invocation(home=tmp_path, quiet=True, workers=1), progress=Watch(), limits=limits)
    early = max(row for row in measured if row[0] < 0.4 * total)
    late = max(row for row in measured if row[0] < total and row[2])  # before the records are merged
    assert late[0] > 0.75 * total
    assert late[1] < 1.05 * early[1] and late[2] < 1.05 * early[2], (early, late)
