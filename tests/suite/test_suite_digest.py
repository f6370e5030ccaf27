"""Changes that move the folder of a run, and changes that must not."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from medtest.suite.compose import load_suite
from medtest.suite.digest import Digest, digest_of, oracle_digest, run_digest
from medtest.suite.model import Suite

BASE = """\
name: base
version: "1"
seed: 7
seeds: {phantoms: {count: 2}}
relations: {blur: {severities: [1, 2]}, contrast: {}}
systems: [pranet]
"""


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "base.yaml"
    path.write_text(BASE)
    return path


def digest(suite: Suite) -> Digest:
    plan = suite.systems[0]
    return run_digest(
        suite,
        plan.id,
        seeds=suite.build_seeds(None),
        relations=suite.build_relations(),
        system=suite.build_systems()[plan.id],
    )


def test_a_digest_is_short_hexadecimal_and_the_same_every_time(base: Path) -> None:
    first, second = digest(load_suite(base)), digest(load_suite(base))
    assert first == second
    assert re.fullmatch(r"[0-9a-f]{24}", first.value)


@pytest.mark.parametrize(
    "typed",
    [
        ["version=2"],
        ["name=other"],
        ["description=other"],
        ["oracles.primary.threshold=0.5"],
        ["oracles.scores=[iou]"],
        ["gates=[{max_percent: 5}]"],
        ["privacy.images=none"],
        ["max_error_percent=50"],
        ["device=cpu", "workers=1", "threads=3", "limit=1", "only=relation:blur", "batch_size=4", "fresh=true"],
        ["track=false", "tracking=none", "quiet=true", "batch_seconds=10"],
        ["systems.pranet.trained_on=[x]"],
        ["+systems.other={use: ssformer}"],
        ["relations.blur.repeats=1"],
        ["relations.blur={severities: [1, 2]}"],
    ],
)
def test_changes_without_other_cases_leave_the_digest(base: Path, typed: list[str]) -> None:
    assert digest(load_suite(base, typed)).value == digest(load_suite(base)).value


@pytest.mark.parametrize(
    "typed",
    [
        ["seed=8"],
        ["seeds.phantoms.count=3"],
        ["+seeds.more={source: phantoms, count: 1}"],
        ["relations.blur.severities=[1]"],
        ["relations.blur.repeats=2"],
        ["relations.contrast.levels.2.brightness=0.75"],
        ["~relations.contrast"],
        ["+relations.text={}"],
        ["+relations.mild={relation: blur}"],
        ["prepare.size=256"],
        ["prepare.size=native"],
        ["systems.pranet.threshold=0.4"],
        ["model=ssformer"],
    ],
)
def test_changes_of_cases_change_the_digest(base: Path, typed: list[str]) -> None:
    assert digest(load_suite(base, typed)).value != digest(load_suite(base)).value


def test_a_file_counts_by_its_content_and_not_by_its_place(base: Path, tmp_path: Path) -> None:
    weights = [tmp_path / "here" / "a.py", tmp_path / "somewhere else" / "b.py"]
    for path in weights:
        path.parent.mkdir()
        path.write_text("def predict(images):\n    return images\n")
    package = Path(__file__).parents[2] / "medtest" / "weights" / "pranet-compact.safetensors"
    copies = [tmp_path / "here" / "a.safetensors", tmp_path / "somewhere else" / "b.safetensors"]
    for copy in copies:
        shutil.copy(package, copy)
    first, second = (digest(load_suite(base, [f"checkpoint={copy}"])) for copy in copies)
    assert first == second
    text = json.dumps(dict(first.covers))
    assert str(tmp_path) not in text
    assert "somewhere" not in text
    copies[1].write_bytes(copies[1].read_bytes()[:-1] + b"\x01")
    assert digest(load_suite(base, [f"checkpoint={copies[1]}"])).value != first.value


def test_revisions_are_covered(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = load_suite(base)
    before = digest(suite).value
    values = {before}
    for plan in (suite.relations[1], suite.seeds[0], suite.systems[0]):
        part = plan.info.load()
        with monkeypatch.context() as patch:
            patch.setattr(part, "revision", part.revision + 1)
            values.add(digest(suite).value)
    with monkeypatch.context() as patch:
        patch.setattr("medtest.preparation.REVISION", 10**6)
        values.add(digest(suite).value)
    assert len(values) == 5
    assert digest(suite).value == before


def test_canonical_form() -> None:
    # SHA-256 of {"a":[1,2.5],"b":"\u00e4"} by coreutils, first 24 digits
    assert digest_of({"b": "ä", "a": [1, 2.5]}) == "bfd13913e6c6f157521f5854"
    with pytest.raises(ValueError, match="Out of range"):
        digest_of({"a": float("nan")})


def test_the_oracle_s_digest_covers_how_it_judges(base: Path) -> None:
    own = oracle_digest(load_suite(base)).value
    assert oracle_digest(load_suite(base, ["seed=8", "limit=1"])).value == own
    for typed in ("oracles.primary.threshold=0.5", "oracles.primary.against=source", "oracles.thresholds=[0.1]"):
        assert oracle_digest(load_suite(base, [typed])).value != own
