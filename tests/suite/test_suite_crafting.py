"""The system that a relation is crafted on: allowed settings, early refusals, digests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from suite_parts import add, refused

from medtest.cli.run.launch import main
from medtest.core.errors import UserMistakes
from medtest.core.plugins import parts
from medtest.suite.compose import load_suite
from medtest.suite.digest import run_digest
from medtest.suite.model import Invocation, Suite
from medtest.suite.reading.outline import outline

MODULE = """
from medtest.core.errors import Mistake
from medtest.core.probes import Need
from medtest.relations.base import CraftedRelation, CraftedSettings


class NudgeSettings(CraftedSettings):
    levels: dict[int, float] = {1: 1.0, 2: 2.0}
    severities: list[int] = [1, 2]
    needing: str = "gradients"
    trained: bool = True


class Nudge(CraftedRelation):
    Settings = NudgeSettings
    group = "adversarial"
    takes = frozenset({"label", "mask"})

    @property
    def needs(self):
        return Need(self.settings.needing)

    def missing_on(self, system, name, *, size=None, typed=""):
        return () if self.settings.trained else (Mistake(where=f"no {system[:4]} for {name}"),)

    def fingerprint_on(self, system):
        return {"generator": "of " + system}

    def network_passes(self, severity):
        return 10 * severity

    def sample(self, seed, severity, rng):
        return {}

    def craft(self, cases, probe):
        raise NotImplementedError
"""
SUITE = """\
name: nudged
version: "1"
seed: 7
seeds:
  label_phantoms: {what: dermoscopy, count: 3}
prepare: {size: 224}
relations:
  nudge: {}
systems:
  attnmel: {}
  onnx: {}
oracles: {primary: {score: label, against: source}}
"""


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Make a folder of suites, and install a package with the relation ``nudge``."""
    site = tmp_path / "site"
    folder, about = site / "nudges", site / "nudges-1.0.dist-info"
    folder.mkdir(parents=True)
    about.mkdir()
    (folder / "__init__.py").touch()
    (folder / "relations.py").write_text(MODULE)
    (folder / "nudge.yaml").write_text("summary: pushes pixels\n")
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: nudges\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[medtest.relations]\nnudge = nudges.relations:Nudge\n")
    monkeypatch.syspath_prepend(site)
    parts.cache_clear()
    suites = tmp_path / "suites"
    suites.mkdir()
    add(suites, "nudged", SUITE)
    yield suites
    parts.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "nudges"]:
        del sys.modules[name]


ONNX = "systems.onnx.path=net.onnx"


def loaded(team: Path, *overrides: str) -> Suite:
    return load_suite(str(team / "nudged.yaml"), ["systems.onnx=false", *overrides])


def entry(suite: Suite) -> tuple[str, object]:
    systems, relations = suite.build_systems(), suite.build_relations()
    name = next(iter(systems))
    digest = run_digest(suite, name, seeds=suite.build_seeds(None), relations=relations, system=systems[name])
    return digest.value, digest.covers["relations"]["nudge"]


def test_a_system_without_gradients_is_refused_with_the_alternatives(team: Path) -> None:
    text = str(refused(str(team / "nudged.yaml"), [ONNX]))
    assert "relations.nudge" in text
    assert "onnx, which provides only scores" in text
    assert "systems that provide gradients" in text and "attnmel" in text
    assert "crafted_on: NAME" in text
    assert load_suite(str(team / "nudged.yaml"), [ONNX, "relations.nudge.needing=scores"]).crafts


def test_answers_from_files_and_apis_are_refused_for_crafted_relations(team: Path) -> None:
    text = str(refused(str(team / "nudged.yaml"), ["model=predictions", "relations.nudge.needing=scores"]))
    assert "predictions, which provides neither scores nor gradients" in text


def test_a_named_system_makes_them_for_one_that_could_not(team: Path) -> None:
    suite = load_suite(str(team / "nudged.yaml"), ["model=onnx", "path=net.onnx", "relations.nudge.crafted_on=attnmel"])
    assert [plan.id for plan in suite.systems] == ["onnx"]
    assert {name: plan.info.name for name, plan in suite.crafters.items()} == {"nudge": "attnmel"}
    assert suite.build_crafters()["nudge"].kind == "label"


def test_an_unknown_name_is_one_mistake_with_the_nearest(team: Path) -> None:
    text = str(refused(str(team / "nudged.yaml"), ["systems.onnx=false", "relations.nudge.crafted_on=atnmel"]))
    assert "relations.nudge.crafted_on" in text and "attnmel" in text and "each" in text
    assert text.count("atnmel") == 1


def test_a_system_with_settings_may_be_named_but_no_file_in_a_suite(team: Path) -> None:
    on = "{use: torchvision, architecture: resnet50}"
    suite = loaded(team, f"relations.nudge.crafted_on={on.replace(': ', ':')}")
    assert suite.crafters["nudge"].settings.architecture == "resnet50"
    assert suite.composed["relations"]["nudge"]["crafted_on"]["use"] == "torchvision"
    add(team, "sly", SUITE.replace("nudge: {}", "nudge: {crafted_on: {use: attnmel, checkpoint: /etc/passwd}}"))
    text = str(refused(str(team / "sly.yaml")))
    assert "relations.nudge.crafted_on.checkpoint" in text and "command line" in text


def test_a_system_for_another_task_is_refused(team: Path) -> None:
    text = str(refused(str(team / "nudged.yaml"), ["systems.onnx=false", "relations.nudge.crafted_on=pranet"]))
    assert "a system for the task mask" in text


def test_where_it_is_crafted_is_in_the_digest(team: Path) -> None:
    each = loaded(team)
    named = loaded(team, "model=chexnet", "relations.nudge.crafted_on=attnmel")
    value, covered = entry(each)
    assert covered["crafted_on"] == "each" and covered["fingerprint"]["generator"].startswith("of ")
    other, other_covered = entry(named)
    assert value != other
    assert other_covered["crafted_on"]["system"] == "attnmel"
    assert "crafted_on" not in other_covered["settings"]


def test_a_plan_counts_passes_and_disk(team: Path, tmp_path: Path) -> None:
    plan = outline(loaded(team), Invocation(home=tmp_path, limit=2))
    nudge = next(share for share in plan.relations if share.id == "nudge")
    assert nudge.passes == 2 * (10 + 20) and nudge.gradients
    assert plan.disk == 2 * 2 * 3 * 224**2
    hidden = outline(loaded(team, "privacy.images=none"), Invocation(home=tmp_path))
    assert hidden.disk == 0


def test_missing_training_is_reported_before_a_run_and_in_a_plan(team: Path, tmp_path: Path) -> None:
    suite = loaded(team, "relations.nudge.trained=false")
    with pytest.raises(UserMistakes, match="no .* for attnmel"):
        outline(suite, Invocation(home=tmp_path))


@pytest.mark.parametrize("target", ["melanomma", "nevus"])
def test_a_target_that_is_no_class_of_the_seeds_is_a_mistake_of_the_plan(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    typed = ["suite=adversarial_melanoma", "relations=[pgd]", "limit=1", "plan=true"]
    assert main([*typed, f"relations.pgd.target=[{target}]"], command="python run.py") == 2
    text = capsys.readouterr().err
    assert "relations.pgd.target" in text and target in text and "allowed: benign, melanoma" in text
    assert main([*typed, "relations.pgd.target=[melanoma]"], command="python run.py") == 0
    assert main([*typed, "relations.pgd.target=[random]"], command="python run.py") == 0


def test_a_label_that_may_stay_under_a_control_is_one_of_the_classes(tmp_path: Path) -> None:
    suite = load_suite("skin_controls", ["relations.lesion_erased.no_finding=[beningn]"])
    with pytest.raises(UserMistakes) as caught:
        outline(suite, Invocation(home=tmp_path))
    assert "relations.lesion_erased.no_finding" in str(caught.value) and "did you mean: benign" in str(caught.value)
