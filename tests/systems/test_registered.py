"""Models of a real MLflow registry in a folder: graphs, pickles, functions, refusals and links."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import mlflow
import numpy as np
import pytest
import torch
from mlflow import MlflowClient

from medtest.core.cases import Address
from medtest.core.errors import NotTracked, UserMistakes
from medtest.core.plugins import part
from medtest.core.tasks.base import task_of
from medtest.report.mlflow.registry import update_registry
from medtest.session.runs import run
from medtest.suite.compose import load
from medtest.suite.model import Invocation

NAME = "reds"
ADDRESS = Address(dataset="d", seed_id="s", relation="source")


class Reds(torch.nn.Module):
    """Logits of pixels that are redder than green."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = torch.nn.Conv2d(3, 1, 1, bias=False)
        with torch.no_grad():
            self.mix.weight[:] = torch.tensor([1.0, -1.0, 0.0]).view(1, 3, 1, 1)

    def forward(self, images):
        return self.mix(images)


class Function(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input, params=None):
        return (model_input[:, 0] > model_input[:, 1]).astype("float32")


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    """Make a home with versions 1 (a graph), 2 (a pickle), and a function of another name."""
    home = tmp_path_factory.mktemp("home")
    (home / "mlruns").mkdir()
    uri, before = f"sqlite:///{home / 'mlruns' / 'mlflow.db'}", mlflow.get_tracking_uri()
    logging.getLogger("mlflow").setLevel(logging.ERROR)
    mlflow.set_tracking_uri(uri)
    example, network = np.zeros((1, 3, 64, 64), np.float32), Reds().eval()
    try:
        number = MlflowClient().create_experiment("models", artifact_location=(home / "mlruns" / "models").as_uri())
        with mlflow.start_run(experiment_id=number):
            options = {"registered_model_name": NAME, "pip_requirements": ["torch"]}
            mlflow.pytorch.log_model(network, name="a", serialization_format="pt2", input_example=example, **options)
            mlflow.pytorch.log_model(network, name="b", serialization_format="pickle", **options)
            options["registered_model_name"] = "function"
            mlflow.pyfunc.log_model(name="c", python_model=Function(), **options)
        MlflowClient().set_registered_model_alias(NAME, "champion", "1")
    finally:
        mlflow.set_tracking_uri(before)
        os.environ.pop("MLFLOW_TRACKING_URI", None)  # which MLflow sets with it
    return home


@pytest.fixture
def home(registry, monkeypatch):
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_REGISTRY_URI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MEDTEST_HOME", str(registry))
    return registry


def _system(uri, **settings):
    kind = part("systems", "mlflow").load()
    system = kind("mlflow", kind.Settings(uri=uri, scale=1.0, mean=[0, 0, 0], std=[1, 1, 1], **settings))
    system.kind = "mask"
    assert task_of("mask") is system.task
    return system


@pytest.mark.slow
@pytest.mark.parametrize(
    ("uri", "settings"),
    [
        (f"models:/{NAME}/1", {"trust_code": True}),
        (f"models:/{NAME}@champion", {"trust_code": True}),
        (f"models:/{NAME}/2", {"trust_code": True}),
        ("models:/function/1", {"trust_code": True, "gives": "probability"}),
    ],
)
def test_its_answers_equal_the_models(home: Path, uri: str, settings: dict[str, object]) -> None:
    system = _system(uri, **settings)
    assert list(system.check()) == []
    system.open(device="cpu", threads=1)
    image = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    (answer,) = system.predict([image], [ADDRESS])
    expected = image[..., 0].astype(int) - image[..., 1]
    values = np.asarray(answer)
    assert np.array_equal(values > 0.5 if values.max() <= 1 and values.min() >= 0 else values > 0, expected > 0)


def test_an_alias_is_its_version(home: Path) -> None:
    by_number, by_alias = _system(f"models:/{NAME}/1"), _system(f"models:/{NAME}@champion")
    assert by_number.fingerprint() == by_alias.fingerprint() != _system(f"models:/{NAME}/2").fingerprint()
    assert by_number.size == (64, 64)
    assert by_number.own_name() == f"{NAME}-v1"


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        (f"models:/{NAME}/1", "trust_code=true"),
        (f"models:/{NAME}/2", "trust_code=true"),
        ("models:/function/1", "unpickling"),
        (f"models:/{NAME}/9", "not found"),
        ("models:/nobody/1", "nobody"),
        (f"models:/{NAME}@nothing", "nothing"),
        (f"models:/{NAME}/latest", "version number"),
        ("runs:/1/model", "models:/NAME/VERSION"),
        ("", "nothing"),
    ],
)
def test_unusable_models_are_one_mistake(home: Path, uri: str, message: str) -> None:
    (mistake,) = _system(uri).check()
    assert message in str(mistake)


def test_a_suite_names_no_model_of_the_registry(home: Path, tmp_path: Path) -> None:
    suite = tmp_path / "mine.yaml"
    text = f"extends: polyp_seg\nname: mine\nsystems: {{mlflow: {{uri: 'models:/{NAME}/1'}}}}\n"
    suite.write_text(text, encoding="utf-8")
    with pytest.raises(UserMistakes, match="uri"):
        run(str(suite), plan=True)


def test_a_signature_of_other_axes_is_a_mistake_before_anything_runs(home: Path) -> None:
    (mistake,) = _system(f"models:/{NAME}/1", trust_code=True, layout="nhwc").check()
    assert "[-1, 3, 64, 64]" in str(mistake) and "layout=nchw" in str(mistake)


@pytest.mark.slow
def test_models_are_looked_up_in_the_typed_store(home: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path))
    words = ["model=mlflow", "trust_code=true", f"uri=models:/{NAME}/1"]
    typed = f"tracking.uri='sqlite:///{home / 'mlruns' / 'mlflow.db'}'"
    (system,) = load("polyp_seg", [*words, typed], for_run=True).suite.build_systems().values()
    assert system.fingerprint() == _system(f"models:/{NAME}/1").fingerprint()
    with pytest.raises(UserMistakes, match="reds"):
        load("polyp_seg", words, for_run=True)


@pytest.mark.slow
def test_a_run_links_to_the_version_and_the_version_to_the_run(home: Path) -> None:
    words = [
        "model=mlflow",
        "trust_code=true",
        f"uri=models:/{NAME}@champion",
        "workers=1",
        "relations=[blur]",
        "seeds.phantoms.count=1",
    ]
    options = ["tracking.tag_model=true", "tracking.alias=tested"]
    result = run("polyp_seg", overrides=[*words, "gates=[{max_percent: 100}]", *options], home=home, track=True)
    client = MlflowClient(tracking_uri=f"sqlite:///{home / 'mlruns' / 'mlflow.db'}")
    version = client.get_model_version(NAME, "1")
    assert version.tags["medtest.polyp_seg"] == "passed" and sorted(version.aliases) == ["champion", "tested"]
    tested = client.get_run(version.tags["medtest.polyp_seg.run"])
    assert tested.data.tags["model_registry"] == f"{NAME}/1"
    assert [model_input.model_id for model_input in tested.inputs.model_inputs] == [
        version.source.removeprefix("models:/")
    ]

    client.delete_model_version(NAME, "1")  # no test comes after this one
    invocation = Invocation(home=home, tag_model=True)
    with pytest.raises(NotTracked, match=rf"{NAME}/1 was not updated.*not found"):
        list(update_registry(invocation, result.finished.materials))
