"""``medtest inspect`` from end to end on the bundled AttnMel, and its mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from medtest.cli.app import run_app
from medtest.core.errors import UserMistakes
from medtest.inside.options import InspectOptions, options_of

SUITE = ["suite=robust_benchmark_melanoma", "limit=2", "only=relation:gaussian_noise"]


def test_options_are_read_and_mistakes_reported_together():
    options = options_of({"layers": "[conv_block2, feature(13) relu]", "cases": "12", "threshold": "0.5"})
    assert options == InspectOptions(layers=("conv_block2", "feature(13) relu"), cases=12, threshold=0.5)
    with pytest.raises(UserMistakes) as caught:
        options_of({"cases": "0", "embedding": "pca", "threshold": "2"})
    assert {mistake.key for mistake in caught.value.mistakes} == {"cases", "embedding", "threshold"}


@pytest.mark.slow
def test_inspect_writes_files_tables_and_a_section(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path))
    assert run_app(["run", *SUITE, "workers=1", "track=false"]) == 0
    assert run_app(["inspect", *SUITE, "training_cases=12", "figures=1", "track=false"]) == 0
    (inside,) = tmp_path.glob("outputs/robust_benchmark_melanoma/attnmel-compact/*/inside")
    features = pd.read_csv(inside / "features.csv")
    assert len(features) == 2 * 10 * 3
    assert features["cosine"].between(-1, 1).all()
    same = features[features["frame"] == 0]  # the clean image
    np.testing.assert_allclose(same["cosine"], 1)
    assert (same["distance"] == 0).all()
    maps = pd.read_csv(inside / "maps.csv")
    assert set(maps["map"]) == {"saliency", "attn1", "attn2"}
    assert maps["lesion_before"].between(0, 1).all()
    layers = pd.read_csv(inside / "layers.csv")
    assert list(layers["layer"]) == ["conv_block2", "conv_block4", "conv_block5"]
    assert layers["noise_distance"].notna().all()
    index = json.loads((inside / "index.json").read_text())
    assert [entry["file"] for entry in index] == ["case-01.png", "plane_tsne.png"]
    with Image.open(inside / "case-01.png") as picture:
        shown = np.asarray(picture.convert("RGB"))
    assert shown.shape[1] > 8 * 150
    assert len(np.unique(shown.reshape(-1, 3), axis=0)) > 1000
    pages = [*inside.parent.glob("views/*/report.html"), inside.parent / "report.html"]
    for page in (page_file for page_file in pages if page_file.is_file()):
        text = page.read_text(encoding="utf-8")
        assert "Inside the network" in text
        assert text.count("t-SNE of pooled features") >= 1
    assert "inside/features.csv" in (inside.parent / "manifest.sha256").read_text()


def test_an_unknown_layer_and_a_system_without_network_are_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path))
    with pytest.raises(UserMistakes, match="conv_block5"):
        run_app(["inspect", *SUITE, "layers=[conv_blok5]", "track=false"])
    (tmp_path / "mine.py").write_text("def answer(image):\n    return [0.5, 0.5]\n")
    with pytest.raises(UserMistakes, match="not a torch network"):
        run_app(["inspect", *SUITE, "model=callable", "target=mine.py:answer", "track=false"])


@pytest.mark.slow
@pytest.mark.parametrize("chosen", ["relation:pgd,severity:2", "relation:strongest,severity:1"])
def test_follow_ups_are_crafted_without_a_run_and_taken_from_a_run(
    chosen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path))
    typed = ["suite=adversarial_melanoma", "limit=1", f"only={chosen}", "track=false"]
    looked = ["inspect", *typed, "figures=0", "saliency=none", "embedding=none", "training_cases=0"]
    tables = []
    for command in (looked, ["run", *typed, "workers=1"], looked):
        assert run_app(command) == 0
        if command is looked:
            (inside,) = tmp_path.glob("outputs/adversarial_melanoma/attnmel-compact/*/inside")
            tables.append(pd.read_csv(inside / "features.csv"))
    crafted, of_run = tables
    assert set(crafted["pixels"]) == {"crafted anew"}
    assert set(of_run["pixels"]) == {"the run's"}
    np.testing.assert_allclose(
        crafted["distance"], of_run["distance"], rtol=0.01
    )  # the same pixels, but for a few levels
    # an attack of 4 levels moves the deepest layer far further than noise of its size
    deepest = of_run[of_run["layer"] == "conv_block5"].iloc[0]
    assert deepest["distance"] > 5 * deepest["noise_distance"]
