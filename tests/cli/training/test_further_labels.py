"""``medtest train further`` of a classifier: material with its share of each relation, training, before and after."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from medtest.cli.app import run_app
from medtest.cli.training.tokens import parse
from medtest.core.errors import MedtestError, UserMistakes
from medtest.runner.units.parts import Parts
from medtest.suite.compose import load
from medtest.training.classification.material import drawn, prepare_material, training_suite
from medtest.training.classification.options import ClassificationOptions
from medtest.training.run import train


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    (tmp_path / "home").mkdir()
    return tmp_path


def suite_of(*overrides):
    return load(
        "wce", ["relations=[blur,text,contrast]", "prepare.size=128", "seeds.phantoms.count=3", *overrides]
    ).suite


def test_each_relation_perturbs_one_image_in_eight(tmp_path):
    parts = Parts(training_suite(suite_of(), phantoms=16), None, 4)
    refs = [ref for source in parts.sources for ref in source.refs()]
    assert len(refs) == 16 and refs[0].seed_id == "capsule-5000000"
    chosen = [address for addresses in drawn(parts, refs, share=0.125, seed=1) for address in addresses]
    counts = pd.Series([address.relation for address in chosen]).value_counts()
    assert counts.to_dict() == {"blur": 2, "text": 2, "contrast": 2}
    assert {address.dataset for address in chosen} == {"training"}
    material = prepare_material(parts, share=0.125, held_out=0.25, side=64, seed=1, folder=tmp_path / "cases")
    assert material.counts["originals"] == 12 and material.counts["held_clean"] == 4
    assert sum(material.counts.values()) == len(material.cases) <= 22
    # What is held out is held out with what was made of it.
    trained = {material.cases.clusters[i].partition("\x00")[0] for i in material.trained}
    assert trained.isdisjoint({material.cases.clusters[i].partition("\x00")[0] for i in material.watched})
    again = prepare_material(parts, share=0.125, held_out=0.25, side=64, seed=1, folder=tmp_path / "cases")
    assert again.cases.digest == material.cases.digest
    assert not np.array_equal(material.trained, material.watched)


def test_made_and_real_images_are_not_mixed_up():
    with pytest.raises(MedtestError, match="phantoms=N"):
        training_suite(suite_of(), phantoms=0)


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (["model=dsinet", "suite=wce", "phantoms=1"], "a number from 2"),
        (["model=dsinet", "suite=wce", "phantoms=9", "data=."], "one of the two"),
        (["model=dsinet", "suite=wce"], "the folder of training pairs"),
    ],
)
def test_mistyped_options_are_mistakes(tokens, expected):
    with pytest.raises(UserMistakes) as caught:
        parse(tokens)
    assert expected in str(caught.value)


@pytest.mark.slow
def test_trained_further_and_tested(home, capsys):
    start = train(
        ClassificationOptions(network="attnmel", phantoms=12, steps=2, batch=2, side=64, mlflow=False, threads=1),
        home / "start",
    )
    words = ["train", "further", "model=attnmel", "suite=robust_benchmark_melanoma_levels", "phantoms=16"]
    words += [f"from={start.weights}", f"out={home / 'out'}", "seeds.phantoms.count=2", "--threads", "1"]
    words += ["relations=[brightness]", "relations.brightness.severities=[3]", "track=false", "steps=4", "batch=2"]
    words += ["recipe.watching.every_steps=2", "held_out=0.25", "workers=1"]
    assert run_app(words) == 0
    output = capsys.readouterr().out
    assert "originals and" in output and "weighted F1" in output
    training = json.loads((home / "out" / "training.json").read_text())
    assert training["pairs"]["originals"] == 12 and training["pairs"]["held_clean"] == 4
    assert {"accuracy_clean", "accuracy", "auroc", "loss", "step"} <= set(training["history"][0])
    table = pd.read_csv(home / "out" / "before_after.csv")
    assert {"accuracy", "kappa", "f1"} <= set(table["score"])
    page = (home / "out" / "before_after.html").read_text()
    assert "phantom" in page.lower()
