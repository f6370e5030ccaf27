"""Messages about wrong suites: every mistake once, at its own key."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from suite_parts import BASE, add, ids, refused, settings_of

from medtest.core.errors import UserMistakes, did_you_mean
from medtest.suite.commandline.short_keys import cuda_devices, device_meant, device_mistake
from medtest.suite.compose import load_suite

# --- mistakes ---------------------------------------------------------------------------------------------------

MISTAKES: dict[str, tuple[str, int | None, str, str, str | None]] = {
    # added lines (10 …): line, key, part of the allowed values, nearest name
    "unknown key": ("relatons: {}\n", 10, "relatons", "relations", "relations"),
    "unknown key inside": (
        "oracles: {primary: {treshold: 0.1}}\n",
        10,
        "oracles.primary.treshold",
        "threshold",
        "threshold",
    ),
    "wrong type": ("max_error_percent: much\n", 10, "max_error_percent", "a number", None),
    "number in quotes": ("max_error_percent: '5'\n", 10, "max_error_percent", "a number", None),
    "out of range": ("max_error_percent: 101\n", 10, "max_error_percent", "at most 100", None),
    "threshold of one": ("oracles: {primary: {threshold: 1}}\n", 10, "oracles.primary.threshold", "below 1", None),
    "unknown score": ("oracles: {scores: [dise]}\n", 10, "oracles.scores[0]", "dice", "dice"),
    "unknown reference": ("oracles: {against: [trut]}\n", 10, "oracles.against[0]", "truth, source", "truth"),
    "unknown oracle": ("oracles: {oracle: mask}\n", 10, "oracles.oracle", "masks", "masks"),
    "gate without bound": ("gates:\n- {relation: blur}\n", 11, "gates[0].max_percent", "a value", None),
    "gate on nothing": (
        "gates:\n- {max_percent: 1}\n- {relation: blurr, max_percent: 1}\n",
        12,
        "gates[1].relation",
        "blur",
        "blur",
    ),
    "gate that bounds what is not counted": (
        "gates:\n- {max_percent: 1, against: source, max_source_failed_percent: 5}\n",
        11,
        "gates[0].max_source_failed_percent",
        "a gate against truth or input",
        None,
    ),
    "more failed sources than there are": (
        "gates: [{max_percent: 1, max_source_failed_percent: 101}]\n",
        10,
        "gates[0].max_source_failed_percent",
        "at most 100",
        None,
    ),
    "tie that is no text": ("gates:\n- {max_percent: 1, requirement: 14}\n", 11, "gates[0].requirement", "text", None),
    "gates as mapping": ("gates: {max_percent: 1}\n", 10, "gates", "a list", None),
    "size between": ("prepare: {size: 17}\n", 10, "prepare.size", "native or at least 64", None),
    "privacy": ("privacy: {images: non}\n", 10, "privacy.images", "samples, none", "none"),
    "name": ("description: [a]\n", 10, "description", "text", None),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_has_file_line_key_and_allowed_values(name: str, team: Path) -> None:
    added, line, key, allowed, nearest = MISTAKES[name]
    (mistake,) = refused(add(team, "wrong", BASE + added)).mistakes
    assert (mistake.where, mistake.line, mistake.key) == ("wrong.yaml", line, key)
    assert mistake.found
    assert allowed in mistake.allowed
    assert mistake.nearest == nearest


def test_all_mistakes_at_once_each_with_its_own_file(team: Path) -> None:
    add(team, "parent", BASE.replace("count: 3", "count: -3").replace("contrast: {}", "contrast: {severity: [1]}"))
    text = "extends: parent\nsystems: [pranett]\nrelations:\n  blurr: {}\n  blur: {severities: one}\ngates: [{}]\n"
    error = refused(add(team, "child", text), ["limit=0", "relations.txt.size=3", "only=relation:blu"])
    places = {(m.where, m.line, m.key) for m in error.mistakes}
    assert places == {
        ("parent.yaml", 5, "seeds.phantoms.count"),
        ("parent.yaml", 8, "relations.contrast.severity"),
        ("child.yaml", 2, "systems.pranett"),
        ("child.yaml", 4, "relations.blurr"),
        ("child.yaml", 5, "relations.blur.severities"),
        ("child.yaml", 6, "gates[0].max_percent"),
        ("command line", None, "limit"),
        ("command line", None, "relations.txt"),
        ("command line", None, "only"),
    }
    nearest = {m.key: m.nearest for m in error.mistakes}
    assert nearest["systems.pranett"] == "pranet"
    assert nearest["relations.blurr"] == "blur"
    assert nearest["relations.contrast.severity"] == "severities"
    assert nearest["relations.txt"] == "text"


@pytest.mark.parametrize("missing", ["version", "seed", "seeds", "relations", "systems"])
def test_missing_keys_are_named(team: Path, missing: str) -> None:
    content = {key: value for key, value in yaml.safe_load(BASE).items() if key != missing}
    (mistake,) = refused(add(team, "short", yaml.safe_dump(content))).mistakes
    assert mistake.key == missing
    assert mistake.where == "short.yaml"
    assert mistake.found == "nothing"


def test_a_removed_key_that_is_missing(team: Path) -> None:
    (mistake,) = refused("base.yaml", ["~relations.blurr"]).mistakes
    assert mistake.found == "~relations.blurr"
    assert mistake.nearest == "blur"


def test_one_key_for_several_systems(team: Path) -> None:
    (mistake,) = refused("base.yaml", ["model=[pranet,ssformer]", "checkpoint=x.pth"]).mistakes
    assert mistake.key == "checkpoint"
    assert "systems.pranet.checkpoint" in mistake.fix


def test_settings_for_a_system_that_is_not_chosen(team: Path) -> None:
    (mistake,) = refused("base.yaml", ["model=pranet", "systems.ssformer.checkpoint=x.pth"]).mistakes
    assert mistake.key == "systems.ssformer.checkpoint"
    assert "pranet" in mistake.allowed


HYDRA: dict[str, tuple[list[str], str, str, str | None]] = {
    # typed: key, part of the mistake, nearest
    "no such suite": (["suite=polyp_sag"], "suite", "polyp_seg", "polyp_seg"),
    "no such model": (["model=pranett"], "model", "pranet", "pranet"),
    "a number among models": (["model=[5,pranet]"], "model", "pranet", None),
    "no such tracking": (["tracking=locl"], "tracking", "local, none", "local"),
    "unknown option": (["limt=5"], "limt", "limit", "limit"),
    "unknown nested option": (["tracking.ur=x"], "tracking.ur", "uri", "uri"),
    "two values": (["model=pranet,ssformer"], "model", "add -m", None),
    "two values of a key": (["seed=1,2"], "seed", "add -m", None),
    "a glob without sweep": (["model=glob(*)"], "model", "add -m", None),
    "no value": (["limit"], "", "KEY=VALUE", None),
    "broken list": (["relations.blur.severities=[1,"], "relations.blur.severities", "quotes", None),
    "interpolation of nothing": (["seed=${nothing}"], "seed", "nothing", None),
    "key of Hydra": (["hydra.nothing=1"], "hydra.nothing", "hydra.nothing", None),
    "model with a package": (["model@x=pranet"], "", "without a package", None),
}


@pytest.mark.parametrize("name", HYDRA)
def test_hydra_s_errors_in_our_words(name: str, team: Path) -> None:
    typed, key, words, nearest = HYDRA[name]
    error = refused("polyp_sag" if name == "no such suite" else "base.yaml", [] if name == "no such suite" else typed)
    assert any(m.key == key and words in str(m) and m.nearest == nearest for m in error.mistakes), str(error)
    assert "hydra.cc" not in str(error)
    assert "Override" not in str(error)


# --- every mistake once, at its own key -------------------------------------------------------------------------


def keys_of(mistakes: UserMistakes) -> set[str]:
    return {mistake.key for mistake in mistakes.mistakes}


def test_a_missing_parent_is_the_only_mistake(team: Path) -> None:
    assert keys_of(refused(add(team, "orphan", "extends: nosuch\n"))) == {"extends"}
    add(team, "one", "extends: two\n")
    assert keys_of(refused(add(team, "two", "extends: one\n"))) == {"extends"}


def test_refused_values_are_not_missing_too(team: Path) -> None:
    error = refused(add(team, "odd", BASE.replace("seed: 7", "seed: ${nosuch}").replace('version: "1"\n', "")))
    assert [(m.key, m.found) for m in error.mistakes if m.key == "seed"] == [("seed", "${nosuch}")]
    assert ("version", "nothing") in [(m.key, m.found) for m in error.mistakes]


def test_all_mistakes_of_a_gate_are_reported_at_once(team: Path) -> None:
    gate = "gates: [{score: dize, relation: blurr, severity: 9, bound: x, dataset: A b}]\n"
    error = refused(add(team, "gated", BASE + gate))
    named = {"score", "relation", "severity", "bound", "dataset", "max_percent"}
    assert keys_of(error) == {f"gates[0].{name}" for name in named}
    allowed = {mistake.key: mistake.allowed for mistake in error.mistakes}
    assert allowed["gates[0].severity"] == "all, 0, 1, 2, 3, 4, 5"


@pytest.mark.parametrize("severities", ["[1, 9]", "[2, 2]"])
def test_severities_that_do_not_fit_are_shown_at_their_own_line(team: Path, severities: str) -> None:
    text = BASE.replace("blur: {severities: [1, 2, 3]}", f"blur:\n    repeats: 1\n    severities: {severities}")
    (mistake,) = refused(add(team, "odd", text)).mistakes
    assert (mistake.key, mistake.line, mistake.found) == ("relations.blur.severities", 9, severities)


@pytest.mark.parametrize("name", ["jpeg", "gaussian_noise", "corruption_tilt", "unchanged"])
def test_published_mode_of_a_relation_without_ranges_is_one_plain_mistake(name: str, team: Path) -> None:
    text = BASE.replace("blur: {severities: [1, 2, 3]}", f"{name}:\n    mode: published\n    repeats: 2")
    (mistake,) = refused(add(team, "drawn", text)).mistakes
    assert (mistake.key, mistake.line, mistake.found) == (f"relations.{name}.mode", 8, "'published'")
    assert "no published ranges" in mistake.allowed


def test_an_item_listed_twice_is_a_mistake(team: Path) -> None:
    (mistake,) = refused(add(team, "twice", BASE.replace("systems: [pranet]", "systems: [pranet, pranet]"))).mistakes
    assert mistake.key == "systems[1]"
    assert mistake.found == "pranet twice"


def test_ids_may_begin_with_a_digit_on_the_command_line() -> None:
    suite = load_suite("polyp_seg", ["relations=[text]", "+relations.3d={relation: blur}", "relations.3d.repeats=2"])
    assert ids(suite.relations) == ["unchanged", "text", "3d"]
    assert settings_of(suite, "3d").repeats == 2
    (mistake,) = refused("polyp_seg", ["relations.3d.relation=bluur"]).mistakes
    assert (mistake.where, mistake.key, mistake.nearest) == ("command line", "relations.3d.relation", "blur")


def test_missing_keys_of_a_typed_block_belong_to_the_command_line() -> None:
    (mistake,) = refused("polyp_seg", ["relations.blur.levels.9.sigma=4"]).mistakes
    assert (mistake.where, mistake.key) == ("command line", "relations.blur.levels.9.noise")


@pytest.mark.parametrize(
    ("typed", "key", "mend"),
    [
        ("oracles.primary.threshold=0,5", "oracles.primary.threshold", "type oracles.primary.threshold=0.5,"),
        ("threshold=0,5", "threshold", "type oracles.primary.threshold=0.5,"),
        ("threshold=0.5", "threshold", "type oracles.primary.threshold="),
        ("limit=2,5", "limit", "type limit=[2,5] "),
        ("seed=1,2", "seed", "type seed=[1,2] "),
        ("max_error_percent=2,5", "max_error_percent", "type max_error_percent=2.5,"),
        ("severity=3", "severity", "type only=severity:N"),
        ("device=gpu", "device", "did you mean: cuda" if cuda_devices() else "did you mean: auto"),
        ("device=CPU", "device", "did you mean: cpu"),
        ("only=blur", "only", "did you mean: relation:blur"),
        ("only=blurr", "only", "did you mean: relation:blur"),
        ("only=relation=blur", "only", "did you mean: relation:blur"),
        ("only=severity3", "only", "did you mean: severity:3"),
        ("only=3", "only", "did you mean: severity:3"),
        ("only=phantoms", "only", "did you mean: dataset:phantoms"),
        ("only=phantom-0003", "only", "seed:phantom-0003"),
    ],
)
def test_the_intended_key_is_offered(typed: str, key: str, mend: str, team: Path) -> None:
    (mistake,) = refused(add(team, "right", BASE), [typed]).mistakes
    assert mistake.key == key
    assert mend in str(mistake)


@pytest.mark.parametrize(
    ("typed", "devices", "offered", "message"),
    [
        ("gpu", 1, "cuda", ""),
        ("GPU:1", 2, "cuda:1", ""),
        ("cuda1", 1, "auto", "this machine has 1 CUDA device, from cuda:0"),
        ("gpu", 0, "auto", "this machine has no CUDA device"),
        ("CPU", 0, "cpu", ""),
        ("tpu", 1, None, ""),
    ],
)
def test_an_existing_device_is_offered(typed: str, devices: int, offered: str | None, message: str) -> None:
    nearest, fix = device_meant(typed, devices)
    assert nearest == offered
    assert fix.startswith(message) and bool(fix) == bool(message)


@pytest.mark.parametrize(
    ("typed", "devices", "allowed"),
    [
        ("auto", 0, ""),
        ("cpu", 0, ""),
        ("cuda", 1, ""),
        ("cuda:1", 2, ""),
        ("cuda", 0, "auto, cpu"),
        ("cuda:3", 0, "auto, cpu"),
        ("cuda:3", 2, "auto, cpu, cuda:0, cuda:1"),
        ("gpu", 2, "auto, cpu, cuda:0, cuda:1"),
        ("cuda:", 1, "auto, cpu, cuda:0"),
    ],
)
def test_a_device_is_one_of_the_existing_ones(typed: str, devices: int, allowed: str) -> None:
    mistake = device_mistake(typed, cuda=devices)
    assert ("" if mistake is None else mistake.allowed) == allowed


def test_devices_of_other_machines_are_not_known_here() -> None:
    assert device_mistake("cuda:7", elsewhere=True) is None
    mistake = device_mistake("gpu:7", elsewhere=True)
    assert mistake is not None
    assert (mistake.allowed, mistake.nearest) == ("auto, cpu, cuda:N", "cuda:7")


def test_a_name_is_suggested_in_its_own_letters() -> None:
    assert did_you_mean("unett", ["Unet", "FPN"]) == "; did you mean Unet?"
    assert did_you_mean("xyz", ["Unet", "FPN"]) == "."


def test_a_tab_is_called_a_tab(team: Path) -> None:
    text = BASE + "gates:\n\t- {max_percent: 5}\n"
    (mistake,) = refused(add(team, "tabbed", text)).mistakes
    assert (mistake.line, mistake.found) == (11, "a tab")
    assert "spaces" in mistake.allowed and "tabs" in mistake.fix


# --- prompts and images -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seeds", "relations", "key", "mistaken", "allowed"),
    [
        ("prompts, phantoms", "ec", "seeds.phantoms", "seeds that are images", "seeds that are prompts"),
        ("phantoms, prompts", "blur", "seeds.prompts", "seeds that are prompts", "seeds that are images"),
        ("prompts", "ec, blur", "relations.blur", "a relation of images", "relations of prompts"),
        ("prompts", "unchanged, ec, blur", "relations.blur", "a relation of images", "relations of prompts"),
    ],
)
def test_a_suite_that_mixes_prompts_and_images_is_refused_in_one_sentence(
    seeds: str, relations: str, key: str, mistaken: str, allowed: str, team: Path
) -> None:
    of = {"prompts": "{source: caption_phantoms, count: 2}", "phantoms": "{count: 2}"}
    text = (
        'name: mix\nversion: "1"\nseed: 1\n'
        f"seeds: {{{', '.join(f'{name}: {of[name]}' for name in seeds.split(', '))}}}\n"
        f"relations: {{{', '.join(f'{name}: {{}}' for name in relations.split(', '))}}}\n"
    )
    prompt_parts = "systems: {simlab_images: {}}\noracles: {oracle: scenes, primary: {score: whole, against: source}}\n"
    text += "systems: [pranet]\n" if seeds.startswith("phantoms") else prompt_parts
    (mistake,) = refused(add(team, "mix", text)).mistakes
    assert (mistake.key, mistake.found, mistake.allowed) == (key, mistaken, allowed)


def test_a_relation_of_prompts_suits_no_masks(team: Path) -> None:
    (mistake,) = refused(add(team, "mix", BASE.replace("contrast: {}", "ec: {}"))).mistakes
    assert (mistake.found, mistake.allowed) == ("a relation of prompts", "relations that suit a mask")
