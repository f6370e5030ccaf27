"""Plans that are frozen before the first case, and deviations of runs from them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from evidence_parts import SUITE, freeze_plan, run, write_suite

from medtest.core.errors import UserMistakes
from medtest.core.files import file_sha256, read_object
from medtest.results.gating import gate_log
from medtest.results.records.records_io import Records
from medtest.results.records.wanted import Wanted
from medtest.runner.folder import MANIFEST
from medtest.runner.reporting.frozen import (
    COPY,
    FORMAT,
    followed_notices,
    is_whole,
    plan_text,
    plans_folder,
    read_plans,
    sealed,
)
from medtest.runner.sharding.joining import join
from medtest.suite.compose import load_suite


def test_ties_reach_the_composed_suite_and_change_no_digest(tmp_path: Path) -> None:
    suite = load_suite(write_suite(tmp_path))
    relation, gate = suite.composed["relations"]["blur"], suite.composed["gates"][0]
    assert (relation["requirement"], gate["requirement"], gate["hazard"]) == ("SRS-14: blur", "SRS-14: blur", "HAZ-1")
    assert "requirement" not in suite.composed["relations"]["contrast"]
    assert "rationale" not in suite.composed["gates"][1]
    blur = next(plan for plan in suite.relations if plan.id == "blur")
    assert not hasattr(blur.settings, "requirement")  # digests cover settings
    (tmp_path / "again").mkdir()
    text = json.dumps(suite.composed)  # YAML is a superset of JSON
    assert load_suite(write_suite(tmp_path / "again", text)).composed == suite.composed


@pytest.mark.parametrize(
    ("stated", "key"), [("rationale: [why]", "relations.blur.rationale"), ("hazzard: HAZ-1", "relations.blur.hazzard")]
)
def test_a_wrong_tie_of_a_relation_is_a_mistake_of_the_suite(tmp_path: Path, stated: str, key: str) -> None:
    with pytest.raises(UserMistakes) as caught:
        load_suite(write_suite(tmp_path, SUITE.replace('requirement: "SRS-14: blur"', stated, 1)))
    mistake = caught.value.mistakes[0]
    assert mistake.nearest in (None, "hazard")
    assert (mistake.where.endswith("tied.yaml"), mistake.key, mistake.line) == (True, key, 9)


@pytest.mark.slow
def test_a_run_follows_the_frozen_plan_and_names_a_gate_changed_later(tmp_path: Path) -> None:
    suite = write_suite(tmp_path)
    path, plan = freeze_plan(suite, tmp_path)
    assert is_whole(plan) and not is_whole({**plan, "frozen_at": "2000-01-01T00:00:00Z"})
    assert plan["cases_before"] == {}
    folder = run(suite, tmp_path)
    stated = read_object(folder / "run.json")["frozen"]
    assert stated == {"hash": plan["hash"], "frozen_at": plan["frozen_at"], "cases_before": 0, "differs": []}
    assert read_object(folder / COPY) == plan
    assert f"{file_sha256(folder / COPY)}  {COPY}" in (folder / MANIFEST).read_text(encoding="utf-8")
    sources = Records.read(folder).sources
    planned = {seed_id: sha256 for _, seed_id, sha256, _ in plan["data"]["seeds"]}
    assert planned == dict(zip(sources["seed_id"], sources["source_sha256"], strict=True))

    write_suite(tmp_path, SUITE.replace("relation: blur, max_percent: 100", "relation: blur, max_percent: 50"))
    run(suite, tmp_path)
    assert read_object(folder / "run.json")["frozen"]["differs"] == ["gates.0.max_percent: 100.0 → 50.0"]
    assert Wanted.from_folder(folder).gates[0].requirement == "SRS-14: blur"
    assert len(gate_log.last_of_each(gate_log.read(folder))) == 2

    write_suite(tmp_path)
    run(suite, tmp_path, "only=severity:1", "limit=1")  # a view states nothing on the folder
    assert read_object(folder / "run.json")["frozen"]["differs"] == ["gates.0.max_percent: 100.0 → 50.0"]
    write_suite(tmp_path, SUITE.replace("relation: blur, max_percent: 100", "relation: blur, max_percent: 50"))

    _, late = freeze_plan(suite, tmp_path)
    assert list(late["cases_before"].values()) == [len(Records.read(folder).sources) + 2 * 4]


@pytest.mark.slow
def test_another_system_and_a_changed_plan_are_seen(tmp_path: Path) -> None:
    suite = write_suite(tmp_path)
    path, plan = freeze_plan(suite, tmp_path)
    red = tmp_path / "red.py"
    red.write_text(red.read_text(encoding="utf-8").replace("128", "64"), encoding="utf-8")
    differs = read_object(run(suite, tmp_path, "seed=8") / "run.json")["frozen"]["differs"]
    assert "seed: 7 → 8" in differs
    assert any(part.startswith("covers.system.fingerprint") for part in differs)
    path.write_text(path.read_text(encoding="utf-8").replace('"max_percent": 100.0', '"max_percent": 99.0'))
    assert "frozen" not in read_object(run(suite, tmp_path, "fresh=true") / "run.json")  # no run follows a forged plan


def test_a_plan_is_never_overwritten(tmp_path: Path) -> None:
    from rich.console import Console

    from medtest.cli.run.freeze import freeze_plan as freeze_typed

    suite, existing = write_suite(tmp_path), tmp_path / "plan.json"
    existing.write_text("{}", encoding="utf-8")
    for tokens, key in (([f"to={existing}"], "to"), (["only=relation:blur"], "only"), (["blur"], "")):
        with pytest.raises(UserMistakes) as caught:
            freeze_typed([f"suite={suite}", *tokens], config_dirs=[], console=Console())
        assert caught.value.mistakes[0].key == key
    assert existing.read_text(encoding="utf-8") == "{}"


@pytest.mark.slow
def test_each_system_follows_the_newest_plan_that_covers_it(tmp_path: Path) -> None:
    suite = write_suite(tmp_path)
    _, first = freeze_plan(suite, tmp_path)
    plans = plans_folder(tmp_path, first["name"])
    other = {key: value for key, value in first.items() if key != "hash"}
    other |= {"frozen_at": "2999-01-01T00:00:00Z", "covers": {"another": {}}}
    (plans / "other.json").write_text(plan_text(sealed(other)), encoding="utf-8")
    assert read_object(run(suite, tmp_path) / "run.json")["frozen"]["hash"] == first["hash"]


def test_a_plan_without_a_run_that_follows_it_is_named(tmp_path: Path) -> None:
    suite = write_suite(tmp_path)
    path, plan = freeze_plan(suite, tmp_path)
    later = sealed({**{key: value for key, value in plan.items() if key != "hash"}, "format": FORMAT + 1})
    (path.parent / "later.json").write_text(plan_text(later), encoding="utf-8")
    plans, unusable = read_plans(tmp_path, plan["name"])
    assert [entry["hash"] for entry in plans] == [plan["hash"]]
    assert [entry.name for entry in unusable] == ["later.json"]
    (notice,) = followed_notices(tmp_path, plan["name"], [], [])
    assert "later.json" in notice


@pytest.mark.slow
def test_cases_that_were_moved_aside_count_as_finished_before_the_plan(tmp_path: Path) -> None:
    suite = write_suite(tmp_path)
    folder = run(suite, tmp_path)
    cases = len(Records.read(folder).sources) + 2 * 4
    run(suite, tmp_path, "fresh=true")
    _, plan = freeze_plan(suite, tmp_path)
    assert list(plan["cases_before"].values()) == [2 * cases]


def test_joined_shards_follow_one_plan_and_state_every_part_that_differs_from_it(tmp_path: Path) -> None:
    suite = write_suite(tmp_path)
    _, plan = freeze_plan(suite, tmp_path)
    first = run(suite, tmp_path, "shard=1/2")
    write_suite(tmp_path, SUITE.replace("relation: blur, max_percent: 100", "relation: blur, max_percent: 50"))
    second = run(suite, tmp_path, "shard=2/2")
    stated = read_object(join([first, second], home=tmp_path).folder / "run.json")["frozen"]
    assert stated["hash"] == plan["hash"]
    assert stated["differs"] == ["gates.0.max_percent: 100.0 → 50.0"]

    account = read_object(second / "run.json")
    later = {**account["frozen"], "hash": "f" * 64, "frozen_at": "2999-01-01T00:00:00Z"}
    other = "2999-01-01T00:00:00Z, ffffffffffffffff"
    for frozen, words in ((later, other), (None, "no frozen plan"), ("x", "no frozen plan")):
        (second / "run.json").write_text(json.dumps({**account, "frozen": frozen}), encoding="utf-8")
        with pytest.raises(UserMistakes) as caught:
            join([first, second], home=tmp_path / "elsewhere")
        (mistake,) = caught.value.mistakes
        assert words in mistake.found and plan["hash"][:16] in mistake.found
    assert not (tmp_path / "elsewhere").exists()
