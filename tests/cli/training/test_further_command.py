"""``medtest train further``: refused commands, and one whole training with its comparison."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import cv2
import pandas as pd
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "training" / "further"))
from further_parts import small_pairs, write_start

from medtest.cli.app import run_app
from medtest.cli.training.tokens import command_of, parse
from medtest.core.errors import MedtestError, UserMistakes

SMALL = [
    "prepare.size=96",
    "relations=[blur,saturation]",
    "relations.blur.severities=[3]",
    "relations.saturation.severities=[1,3]",
    "steps=4",
    "batch=4",
    "recipe.size=64",
    "recipe.scales.kind=one",
    "recipe.validation.every_steps=2",
    "recipe.validation.keep=last",
    "held_out=2",
    "device=cpu",
    "workers=1",
]


def _write(root: Path, count: int, random: int) -> None:
    pairs = small_pairs(count, 96, random)
    for name in ("images", "masks"):
        (root / name).mkdir(parents=True)
    for name, image, mask in zip(pairs.names, pairs.images, pairs.masks, strict=True):
        cv2.imwrite(str(root / "images" / f"{name}.png"), image)
        cv2.imwrite(str(root / "masks" / f"{name}.png"), mask)


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    (tmp_path / "home").mkdir()
    _write(tmp_path / "data" / "train", 10, 1)
    _write(tmp_path / "data" / "test", 4, 2)
    return tmp_path


def _make_command(home: Path, *more: str) -> list[str]:
    start = write_start(home / "start.safetensors")
    words = ["train", "further", "model=pranet", "suite=polyp_seg_folder", f"data={home / 'data'}", f"from={start}"]
    return [*words, f"out={home / 'out'}", "--threads", "1", *SMALL, *more]


def test_a_root_with_train_and_test_is_parted(home):
    request = parse(["model=pranet", "suite=polyp_seg", f"data={home / 'data'}", "rate=1e-4", "recipe.batch=6"])
    assert (request.data.name, request.test.name) == ("train", "test")
    assert request.changes == {"optimizer.rate": 1e-4, "batch": 6}
    assert (request.start, request.recipe, request.compare) == ("compact", "compact", True)
    alone = parse(
        ["model=pranet", "suite=polyp_seg", f"data={home / 'data' / 'train'}", f"test={home / 'data' / 'test'}"]
    )
    assert (alone.data, alone.test) == (request.data, request.test)
    words = command_of(parse(["model=pranet", "suite=polyp_seg", f"data={home}", f"from={home}/secret.pth", "limit=2"]))
    assert str(home) not in words and "secret" not in words and "limit=2" in words


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (["suite=polyp_seg", "data=."], "model"),
        (["model=pranet", "suite=polyp_seg"], "the folder of training pairs"),
        (["model=pranet", "suite=polyp_seg", "data=/nowhere"], "an existing folder"),
        (["model=pranet", "suite=polyp_seg", "data=.", "compare=perhaps"], "true or false"),
        (["model=pranet", "suite=polyp_seg", "data=.", "formm"], "did you mean: from"),
        (["model=pranet", "data=."], "suite=NAME"),
    ],
)
def test_missing_options_are_mistakes(tokens, expected):
    with pytest.raises(UserMistakes) as caught:
        parse(tokens)
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (["model=pranett"], "did you mean: pranet"),
        (["recipe=pranett"], "did you mean: pranet"),
        (["from=nothing.pth"], "there is no such file"),
        (["recpe=pranet"], "did you mean: recipe"),
        (["stps=3"], "did you mean: steps"),
        (["suite=polyp_segg"], "did you mean: polyp_seg"),
        (["model=unet"], "allowed: pranet, sanet, tganet, ssformer, agdn"),
        (["recipe.optimiser.rate=1"], "did you mean: optimizer"),
        (["relations.blurr.severities=[1]"], "blur"),
    ],
)
def test_mistakes_end_before_anything_is_trained(home, more, expected):
    with pytest.raises(UserMistakes) as caught:
        run_app([*_make_command(home), *more])
    assert expected in str(caught.value)
    assert not (home / "out").exists()


@pytest.mark.parametrize(
    ("more", "expected"), [(["device=cuda:99"], "no CUDA device"), (["precision=amp"], "bf16 runs on a CPU too")]
)
def test_missing_libraries_are_mistakes_before_follow_ups_are_made(home, more, expected):
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device here")
    with pytest.raises(MedtestError) as caught:
        run_app([*_make_command(home), *more])
    assert expected in str(caught.value)
    assert not (home / "out").exists()


def test_training_pictures_among_test_seeds_are_refused(home):
    image = cv2.imread(str(home / "data" / "train" / "images" / "p1-4.png"))
    mask = cv2.imread(str(home / "data" / "train" / "masks" / "p1-4.png"))
    cv2.imwrite(str(home / "data" / "test" / "images" / "renamed.bmp"), image)
    cv2.imwrite(str(home / "data" / "test" / "masks" / "renamed.png"), mask)
    with pytest.raises(UserMistakes) as caught:
        run_app(_make_command(home))
    words = str(caught.value)
    assert "training/p1-4" in words and "renamed" in words and "nothing was trained" in words
    assert not (home / "out").exists()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_trained_tested_and_tracked(home, capsys):
    assert run_app(_make_command(home)) == 0
    out = home / "out"
    output = capsys.readouterr().out
    assert "none of them is among the 4 test seeds" in output and "held-out Dice clean" in output
    assert "Mean of relations" in output and "Average with originals" in output  # whole on 80 columns
    table = pd.read_csv(out / "before_after.csv")
    assert list(table.loc[table["score"] == "dice", "relation"]) == [
        "original",
        "blur",
        "saturation",
        "relations",
        "average",
    ]
    assert (table["seeds"] == 4).all() and not table["before"].isna().any()
    facts = json.loads((out / "training.json").read_text())
    assert facts["kept_step"] == 4 and facts["pairs"]["originals"] == facts["pairs"]["perturbed"] == 8
    links = json.loads((out / "before_after.json").read_text())
    for when in ("before", "after"):
        assert (out / links[when] / "records.parquet").is_file()
        assert not Path(links[when]).is_absolute()
    page = (out / "before_after.html").read_text()
    assert "before and after further training" in page and str(home) not in page
    assert (home / "home" / "followups").is_dir()
    _check_mlflow(home / "home", out)
    # the tables come from records alone
    for name in ("before_after.csv", "before_after.md", "before_after.html"):
        (out / name).unlink()
    assert run_app(["train", "table", str(home)]) == 0
    assert pd.read_csv(out / "before_after.csv").equals(table)
    assert (out / "before_after.html").read_text() == page
    # again: nothing is trained and no case is run
    capsys.readouterr()
    assert run_app(_make_command(home)) == 0
    assert pd.read_csv(out / "before_after.csv").equals(table)
    # other options in the same folder are refused, and leave the earlier training's runs as they are
    with pytest.raises(MedtestError, match="another recipe"):
        run_app(_make_command(home, "steps=3"))
    assert _statuses(home / "home", out) == ["FINISHED", "FINISHED"]
    _check_exclusion(home, out, table)
    # with anew the earlier training is moved aside, whole
    before = (out / "training.json").read_text()
    assert run_app(_make_command(home, "fresh=true", "compare=false", "track=false")) == 0
    (aside,) = home.glob("out.old-*")
    assert (aside / "training.json").read_text() == before and (aside / "pranet.safetensors").is_file()
    assert json.loads((out / "training.json").read_text())["kept_step"] == 4


def _check_exclusion(home: Path, out: Path, table: pd.DataFrame) -> None:
    """Flagged follow-ups are left out of both sides of the table."""
    links = json.loads((out / "before_after.json").read_text())
    records = pd.read_parquet(out / links["after"] / "records.parquet")
    flagged = records.loc[(records["relation"] == "blur").to_numpy()].head(1)
    listed = home / "flagged.csv"
    flagged[["relation", "followup_sha256"]].to_csv(listed, index=False)
    assert run_app(_make_command(home, f"exclude.study={listed}")) == 0
    fewer = pd.read_csv(out / "before_after.csv")
    blur = (fewer["relation"] == "blur").to_numpy()
    assert (fewer.loc[blur, "cases"] == table.loc[blur, "cases"] - 1).all()
    assert "1 follow-ups flagged" in (out / "before_after.html").read_text()


def _statuses(home: Path, out: Path) -> list[str]:
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{home}/mlruns/mlflow.db")
    logged = json.loads((out / "mlflow.json").read_text())
    return [client.get_run(logged[name]).info.status for name in ("parent", "run")]


def _check_mlflow(home: Path, out: Path) -> None:
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{home}/mlruns/mlflow.db")
    experiment = client.get_experiment_by_name("polyp_seg_folder")
    runs = {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}
    logged = json.loads((out / "mlflow.json").read_text())
    parent = client.get_run(logged["parent"])
    children = [run for run in runs.values() if run.data.tags.get("mlflow.parentRunId") == logged["parent"]]
    assert {run.info.run_name for run in children} >= {"pranet-compact training"}
    assert len(children) == 3, sorted(runs)  # training, before, after
    assert all(run.info.status == "FINISHED" for run in [parent, *children])
    training = client.get_run(logged["run"])
    assert training.data.params["optimizer.name"] == "adamw" and training.data.params["pairs_perturbed"] == "8"
    assert training.data.tags["medtest.suite_run"] == logged["parent"]
    steps = [point.step for point in client.get_metric_history(logged["run"], "val_dice_perturbed")]
    assert sorted(steps) == [0, 2, 4]
    assert "before_after/dice/relations/difference" in parent.data.metrics
    names = {artifact.path for artifact in client.list_artifacts(logged["parent"])}
    assert {"before_after.html", "before_after.csv", "tables"} <= names


@pytest.mark.slow
def test_without_test_seeds_it_only_trains(home, capsys):
    typed = [word for word in _make_command(home, "track=false", "store=none") if not word.startswith("data=")]
    assert run_app([*typed, f"data={home / 'data' / 'train'}"]) == 0
    output = capsys.readouterr().out
    assert "add test=FOLDER to this command" in output
    assert (home / "out" / "pranet.safetensors").is_file() and not (home / "out" / "before_after.csv").exists()
    assert not (home / "home" / "mlruns").exists() and not (home / "home" / "followups").exists()
