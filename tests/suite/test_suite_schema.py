"""The JSON Schema of suites: what it allows and refuses; the bundled file is up to date."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from suite_parts import add, refused

from medtest.core.files.paths import suites_folder
from medtest.core.plugins import parts
from medtest.suite.checking.editors import suites
from medtest.suite.checking.editors.suites import FILE, schema_text
from medtest.suite.compose import load_suite
from medtest.suite.reading.library import suite_names

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

SHIPPED = [suites_folder() / f"{name}.yaml" for name in suite_names([suites_folder()])]
OMITTED = object()
STATED: dict[str, Any] = {
    "name": "stated",
    "version": "1",
    "seed": 7,
    "seeds": {"phantoms": {"count": 3}},
    "relations": {"blur": {"severities": [1, 3]}, "contrast": {}},
    "systems": {"pranet": {}},
    "oracles": {"primary": {"score": "dice", "threshold": 0.25, "against": "truth"}},
    "gates": [{"relation": "blur", "max_percent": 10}],
}
MISTAKES: list[tuple[str, Any]] = [
    # unknown or misspelt keys
    ("relatons", {}),
    ("limit", 5),
    ("hydra", {}),
    ("model", "pranet"),
    ("oracles.primry", {"score": "dice"}),
    ("oracles.primary.treshold", 0.5),
    ("oracles.tolerance_of", 1),
    ("gates.0.max_percents", 5),
    ("privacy", {"image": "none"}),
    ("prepare", {"sise": 128}),
    ("exclude", {"studies": "flagged.csv"}),
    ("seeds.phantoms.counts", 3),
    ("relations.blur.severity", [1]),
    ("relations.blur.levels", {3: {"sigmas": 2.0}}),
    ("systems.pranet.checkpoints", "x"),
    # misspelt names
    ("relations.blurr", {}),
    ("relations.hard_blur", {"relation": "blurr"}),
    ("relations.hard_blur", {"severities": [3]}),
    ("relations", ["blur", "contrst"]),
    ("seeds.phantom", {}),
    ("seeds.mine", {"source": "image_mask_folder"}),
    ("systems", {"pranett": {}}),
    ("systems", ["pranet", "sanett"]),
    ("systems.mine", {"use": "pranett"}),
    ("oracles.oracle", "mask"),
    ("oracles.primary.score", "dise"),
    ("oracles.scores", ["dice", "ious"]),
    ("oracles.primary.against", "sourc"),
    ("oracles.against", ["trut"]),
    ("oracles.reader", {"use": "typed_answer"}),
    ("gates.0.bound", "ci_hi"),
    ("relations.blur.mode", "level"),
    ("relations.fgsm", {"crafted_on": {"use": "pranett"}}),
    ("answers", "map"),
    ("privacy", {"seed_ids": "hash"}),
    # wrong types
    ("name", 5),
    ("seed", "seven"),
    ("seed", 7.5),
    ("description", ["a"]),
    ("seeds", "phantoms"),
    ("relations.blur", "strong"),
    ("relations.blur.severities", 3),
    ("relations.blur.severities", ["1"]),
    ("relations.blur.repeats", True),
    ("relations.blur.levels", {"mild": {"sigma": 2.0}}),
    ("seeds.phantoms.count", "3"),
    ("oracles.thresholds", 0.5),
    ("gates", {"max_percent": 1}),
    ("max_error_percent", "5"),
    ("may_alter", "blood"),
    # numbers out of range, and lists that are too short
    ("seed", -1),
    ("seeds.phantoms.count", 0),
    ("relations.blur.repeats", 0),
    ("relations.blur.levels", {3: {"sigma": 99.0}}),
    ("oracles.primary.threshold", 1),
    ("gates.0.max_percent", 101),
    ("gates.0.severity", 9),
    ("max_error_percent", -1),
    ("prepare", {"size": 17}),
    ("relations.blur.severities", []),
    # ids and names of a wrong form
    ("name", "Our Polyps"),
    ("relations.source", {"relation": "blur"}),
    ("seeds.all", {"source": "phantoms"}),
    ("exclude", {"study": "../flagged.csv"}),
    # keys that only conf/ and the command line set
    ("systems.pranet.checkpoint", "ssformer.pth"),
    ("systems", {"vllm": {"base_url": "http://127.0.0.1:8000/v1"}}),
    ("gates.0.no_worse_than", "polyp_seg/pranet"),
    # missing keys
    ("name", OMITTED),
    ("version", OMITTED),
    ("seed", OMITTED),
    ("seeds", OMITTED),
    ("relations", OMITTED),
    ("gates.0.max_percent", OMITTED),
    ("relations.variability", {"relation": "measured"}),
]
ALLOWED: list[tuple[str, Any]] = [
    ("version", 1.0),
    ("description", "Seed ${seed}."),
    ("max_error_percent", "${seeds.phantoms.count}"),
    ("relations", ["blur", "contrast"]),
    ("relations.hard_blur", {"relation": "blur", "severities": [5], "repeats": 3}),
    ("relations.contrast", False),
    ("relations.contrast", None),
    ("relations.contrast", True),
    ("relations.blur.levels", {3: {"sigma": 10}}),
    ("relations.fgsm", {"crafted_on": {"use": "sanet"}}),
    ("systems", OMITTED),
    ("systems", {"mine": {"use": "pranet"}}),
    ("seeds", {"mine": {"source": "phantoms"}}),
    ("oracles.oracle", "masks"),
    ("oracles.primary.score", "either"),
    ("gates", None),
    ("gates.0.severity", 3),
    ("gates.0.dataset", "phantoms"),
    ("prepare", {"size": "native"}),
    ("extends", "polyp_seg"),
]


def _plain(value: Any) -> Any:
    """Return YAML's data as JSON has it: keys are text."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _changed(place: str, value: Any) -> dict[str, Any]:
    content = copy.deepcopy(STATED)
    block: Any = content
    *outer, last = [int(part) if part.isdecimal() else part for part in place.split(".")]
    for part in outer:
        block = block[part]
    if value is OMITTED:
        del block[last]
    else:
        block[last] = value
    return content


@pytest.fixture(scope="module")
def make_validator() -> type[Validator]:
    from jsonschema import Draft202012Validator  # parses a grammar when it is imported, which takes seconds

    return Draft202012Validator


@pytest.fixture(scope="module")
def validator(make_validator: type[Validator]) -> Validator:
    schema = json.loads(schema_text())
    make_validator.check_schema(schema)
    return make_validator(schema)


def test_the_schema_that_ships_is_made_of_the_parts_that_ship(request: pytest.FixtureRequest) -> None:
    path, text = suites_folder() / FILE, schema_text()
    if request.config.getoption("--remake"):
        path.write_text(text, encoding="utf-8")
        pytest.skip(f"WRITTEN AGAIN: {path}")
    assert path.read_text(encoding="utf-8") == text, f"pytest --remake {__file__} writes it again"


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_shipped_suite_fits_and_names_the_schema(path: Path, validator: Validator) -> None:
    text = path.read_text(encoding="utf-8")
    problems = [
        f"{error.json_path}: {error.message[:200]}" for error in validator.iter_errors(_plain(yaml.safe_load(text)))
    ]
    assert not problems
    line = text.splitlines()[0]
    assert line == f"# yaml-language-server: $schema={FILE}"
    assert (path.parent / FILE).is_file()


@pytest.mark.parametrize(("place", "value"), MISTAKES, ids=lambda item: item if isinstance(item, str) else "")
def test_mistakes_are_refused_by_the_schema_and_by_the_check(
    place: str, value: Any, validator: Validator, team: Path
) -> None:
    content = _changed(place, value)
    assert not validator.is_valid(_plain(content))
    assert refused(add(team, "stated", yaml.safe_dump(content))).mistakes


def test_sixty_mistakes_are_tried(make_validator: type[Validator]) -> None:
    assert len(MISTAKES) >= 60
    assert make_validator(json.loads(schema_text())).is_valid(_plain(STATED))


@pytest.mark.slow
@pytest.mark.parametrize(("place", "value"), ALLOWED, ids=lambda item: item if isinstance(item, str) else "")
def test_the_schema_allows_all_that_the_check_allows(place: str, value: Any, validator: Validator, team: Path) -> None:
    content = _changed(place, value)
    load_suite(add(team, "stated", yaml.safe_dump(content)), ["model=pranet"])
    assert [error.message for error in validator.iter_errors(_plain(content))] == []


def test_a_suite_that_extends_another_states_the_differences(validator: Validator) -> None:
    def fits(**content: Any) -> bool:
        return validator.is_valid(_plain({"extends": "robust_benchmark_chest", **content}))

    assert fits(relations={"gaussian_noise": {"form": "levels", "severities": [1, 2]}})  # the parent names the part
    assert fits(relations={"mine": {"severities": [2]}}, seeds={"phantoms": {"what": "chest"}})
    assert not fits(relations={"gaussian_noise": {"forms": "levels"}})
    assert not fits(relations={"mine": {"severitys": [2]}})
    assert not fits(relations={"mine": {"severities": 2}})
    assert not fits(oracles={"primary": {"score": "labels"}})


def test_every_setting_is_explained() -> None:
    schema = json.loads(schema_text())

    def unexplained(block: Any, place: str) -> list[str]:
        if not isinstance(block, dict):
            return []
        fields = block.get("properties", {}) if block.get("additionalProperties") is False else {}
        names = ("relation", "source", "use")
        return [f"{place}.{name}" for name, field in fields.items() if "description" not in field and name not in names]

    definitions = {name: block for name, block in schema["$defs"].items() if not name.endswith(":any")}
    assert [item for name, block in definitions.items() for item in unexplained(block, name)] == []
    sigma = schema["$defs"]["BlurLevel"]["properties"]["sigma"]
    assert sigma["description"] == "Spatial constant of the Gaussian in pixels, in (0, 15]."
    assert (sigma["exclusiveMinimum"], sigma["maximum"]) == (0.0, 15.0)
    blur = schema["$defs"]["relations.blur"]
    assert blur["description"] == parts("relations")["blur"].summary
    assert blur["properties"]["severities"]["default"] == [1, 2, 3, 4, 5]


def test_parts_of_other_packages_and_teams_are_named(
    monkeypatch: pytest.MonkeyPatch, team: Path, make_validator: type[Validator]
) -> None:
    foreign = replace(parts("relations")["contrast"], name="vignette", origin="other")
    original = suites.parts
    monkeypatch.setattr(
        suites, "parts", lambda family: {**original(family), **({"vignette": foreign} if family == "relations" else {})}
    )
    (team / "model").mkdir()
    (team / "model" / "ours.yaml").write_text("use: pranet\nsummary: Our network.\n", encoding="utf-8")
    add(team, "parent", "extends: polyp_seg\nrelations: {shade: {relation: vignette}}\n")
    validator = make_validator(json.loads(schema_text(suite_dirs=[team], config_dirs=[team])))
    content = {**STATED, "relations": {"vignette": {}}, "systems": {"ours": {}}}
    assert validator.is_valid(_plain(content))
    assert not validator.is_valid(_plain({**content, "relations": {"vignete": {}}}))
    assert not validator.is_valid(_plain({"extends": "parent", "relations": {"shade": {"clusters": 3}}}))


@pytest.mark.slow
def test_the_command_prints_the_schema(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "medtest", "schema"]
    printed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert printed.stdout == schema_text()
    assert printed.stderr == ""
