"""Trainings with a defence: resumed to the bit, refused for several labels, validated under attack, and weights."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from rich.console import Console

from medtest.cli.training.compare import remake_tables
from medtest.cli.training.tokens import parse
from medtest.core.errors import UserMistakes
from medtest.systems.checkpoints.weights import read_info
from medtest.training.classification.options import ClassificationOptions
from medtest.training.classification.recipe import load_recipe
from medtest.training.defences.defence import Defence
from medtest.training.defences.step import check_labels
from medtest.training.engine.trainer import above_floor
from medtest.training.run import train


def options(defence, network="attnmel", **more):
    changes = ["watching.every_steps=2", "small=0", "watching.held_out=0.2", f"defence.name={defence}"]
    return ClassificationOptions(
        network=network, phantoms=10, steps=4, batch=2, side=64, change=changes, mlflow=False, threads=1, **more
    )


@pytest.mark.slow
@pytest.mark.parametrize("defence", ["standard", "mpadvt", "maadvt"])
def test_stopped_and_resumed_gives_the_same_weights(tmp_path, defence):
    whole = train(options(defence), tmp_path / "whole")
    parted = train(options(defence), tmp_path / "parted", stop=lambda step: step == 3)
    assert parted.step == 3
    done = train(options(defence), tmp_path / "parted")
    assert done.weights.read_bytes() == whole.weights.read_bytes()
    histories = [json.loads((tmp_path / name / "history.json").read_text()) for name in ("whole", "parted")]
    assert histories[0] == histories[1]  # what was drawn, too
    assert {"accuracy", "accuracy_attacked", "auroc_attacked", "loss_epsilon", "loss_steps"} <= set(histories[0][-1])
    assert done.best_score == max(entry["accuracy_attacked"] for entry in histories[0])


@pytest.mark.slow
def test_trainings_without_and_with_a_defence_differ(tmp_path):
    plain = train(options("standard"), tmp_path / "a")
    other = train(options("mpadvt"), tmp_path / "b")
    assert plain.weights.read_bytes() != other.weights.read_bytes()


def test_maadvt_is_refused_where_several_labels_may_hold(tmp_path):
    with pytest.raises(UserMistakes) as caught:
        train(options("maadvt", network="chexnet"), tmp_path)
    assert len(caught.value.mistakes) == 1 and "standard, mpadvt" in str(caught.value)
    check_labels(Defence(name="mpadvt"), multi=True, family="chexnet")
    check_labels(Defence(name="maadvt"), multi=False, family="attnmel")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"defence.name": "mpadv"}, "did you mean mpadvt"),
        ({"defence.name": "maadvt", "defence.variant": "relased"}, "did you mean released"),
        ({"defence.name": "maadvt", "defence.share": 0.5}, "every batch is attacked"),
        ({"defence.name": "mpadvt", "defence.steps": [5, 1]}, "the smaller number first"),
        ({"defence.name": "mpadvt", "defence.stepz": 1}, "did you mean: step"),
    ],
)
def test_an_unknown_defence_is_one_mistake(changes, expected):
    with pytest.raises(UserMistakes) as caught:
        load_recipe("defended", changes)
    assert len(caught.value.mistakes) == 1 and expected in str(caught.value)


def test_the_command_line_names_a_defence_and_its_keys():
    words = ["model=attnmel", "suite=robust_benchmark_melanoma", "phantoms=9", "recipe=defended"]
    request = parse([*words, "defence=maadvt", "defence.variant=released", "defence.regularisation=3"])
    assert request.changes == {"defence.name": "maadvt", "defence.variant": "released", "defence.regularisation": 3}
    recipe = load_recipe(request.recipe, request.changes)
    assert (recipe.defence.loss, recipe.defence.regularisation) == ("boosted", 3.0)


def test_weights_that_lost_too_much_on_clean_images_are_not_kept():
    defence = Defence(name="standard", watch={"clean_floor": 0.08})
    may_keep = above_floor("accuracy", defence.watch.clean_floor)
    assert may_keep({"accuracy": 0.82}, {"accuracy": 0.9}) and not may_keep({"accuracy": 0.81}, {"accuracy": 0.9})
    assert above_floor("accuracy", Defence(name="standard").watch.clean_floor)({"accuracy": 0.0}, {"accuracy": 0.9})


SUITE = """
name: attacks
version: "1"
description: A few phantoms under attack.
seed: 1
seeds: {phantoms: {source: label_phantoms, what: dermoscopy, count: 4}}
prepare: {size: 64, resize: 72}
relations:
  pgd: {severities: [2]}
  strongest: {severities: [3], steps: 2, tries: 2}
systems: {attnmel: {input: as_is}}
oracles: {primary: {score: label}}
"""


@pytest.mark.slow
def test_trained_further_under_attack_and_tabled(tmp_path, monkeypatch, capsys):
    from medtest.cli.app import run_app

    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "attacks.yaml").write_text(SUITE, encoding="utf-8")
    start = train(
        ClassificationOptions(network="attnmel", phantoms=12, steps=2, batch=2, side=64, mlflow=False, threads=1),
        tmp_path / "start",
    )
    words = ["train", "further", "model=attnmel", f"suite={tmp_path / 'attacks.yaml'}", "phantoms=8"]
    words += [f"from={start.weights}", f"out={tmp_path / 'out'}", "recipe=defended", "defence=standard", "steps=2"]
    words += ["batch=2", "recipe.size=64", "recipe.watching.every_steps=2", "held_out=0.25", "workers=1"]
    assert run_app([*words, "track=false", "--threads", "1"]) == 0
    output = capsys.readouterr().out
    assert "6 originals and 0 perturbed images train, 2 and 0 watch" in output
    info = read_info(tmp_path / "out" / "attnmel.safetensors")
    facts = json.loads((tmp_path / "out" / "training.json").read_text())
    assert (info.size, info.resized) == (64, True)
    assert info.defence == {"name": "standard", "variant": "paper", "from_sha256": facts["from_sha256"]}
    compared = json.loads((tmp_path / "out" / "before_after.json").read_text())
    assert compared["relations"] == ["pgd", "strongest", "pgd_transfer"]
    assert run_app(["train", "table", str(tmp_path / "out")]) == 0
    assert "MPAdvT" not in capsys.readouterr().out
    table = pd.read_csv(tmp_path / "out" / "defences.csv", keep_default_na=False, na_values=[""])
    assert list(table["defence"]) == ["None", "Attack", "Standard"]
    assert table.iloc[2][["accuracy", "clean", "strongest", "transfer", "gain"]].notna().all()
    assert "| Standard |" in (tmp_path / "out" / "defences.md").read_text()


def test_a_table_without_runs_is_one_mistake(tmp_path):
    with pytest.raises(UserMistakes) as caught:
        remake_tables([tmp_path], console=Console())
    assert len(caught.value.mistakes) == 1 and "defended_melanoma" in str(caught.value)
