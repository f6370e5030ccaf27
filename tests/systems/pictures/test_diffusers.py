"""A pipeline in a folder: drawings follow the case's seed, and no code or pickle of the folder runs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exchanges import ask, call, output
from tiny_pipeline import save_pipeline

from medtest.core.cases import Image
from medtest.core.errors import MedtestError
from medtest.core.files.by_content import PictureFiles
from medtest.core.records import PICTURES
from medtest.systems.answering.asking import Asking
from medtest.systems.pictures.diffusers import Diffusers, to_pixels
from medtest.systems.pictures.local import Filtered

pytestmark = pytest.mark.skipif(find_spec("diffusers") is None, reason="diffusers is not installed (an extra)")
SMALL = {"steps": 2, "width": 32, "height": 32}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_pipeline(tmp_path_factory.mktemp("pipeline") / "tiny")


def system(folder: Path, **settings: Any) -> Diffusers:
    return Diffusers("diffusers", Diffusers.Settings(path=str(folder), **{**SMALL, **settings}))


@pytest.mark.slow
def test_the_case_decides_the_picture(folder: Path, tmp_path: Path) -> None:
    pipeline = system(folder)
    assert not pipeline.check()
    calls = [
        call(0, "a red dog"),
        call(1, "a red dog"),
        call(2, "a red dog", seed=8),
        call(3, "two blue cars on a road"),
    ]
    answers = [output(result) for result in ask(pipeline, tmp_path, calls)]
    assert {answer.state for answer in answers} == {"answered"}
    same, again, seed, words = (answer.picture for answer in answers)
    assert same == again and len({same, seed, words}) == 3
    assert PictureFiles(tmp_path / "run" / PICTURES).read("images", same).shape == (32, 32, 3)
    assert [output(result).picture for result in ask(system(folder), tmp_path, calls[:1], run="other")] == [same]
    fixed = [output(result).picture for result in ask(system(folder, seed=7), tmp_path, calls[2:3], run="fixed")]
    assert fixed == [same]


@pytest.mark.slow
def test_pictures_of_one_prompt_are_drawn_together_each_by_its_seed(folder: Path, tmp_path: Path) -> None:
    calls = [call(number, "a red dog", seed=number) for number in range(3)] + [call(3, "two cars", seed=1)]
    single = [output(result) for result in ask(system(folder), tmp_path, calls)]
    pipeline, files = system(folder, pictures_per_call=2), PictureFiles(tmp_path / "run" / PICTURES)
    drawn: list[int] = []
    draw = pipeline.draw_together

    def draw_noted(calls: Sequence[Asking]) -> Sequence[Image | Filtered]:
        drawn.append(len(calls))
        return draw(calls)

    pipeline.draw_together = draw_noted  # type: ignore[method-assign]
    together = [output(result) for result in ask(pipeline, tmp_path, calls)]
    assert drawn == [2, 1, 1]
    for alone, in_batch in zip(single, together, strict=True):
        pixels = [files.read("images", answer.picture).astype(int) for answer in (alone, in_batch)]
        assert np.abs(pixels[0] - pixels[1]).max() <= 1  # rounding
    assert len({answer.picture for answer in together}) == 4


def test_what_is_in_the_folder_counts(folder: Path, tmp_path: Path) -> None:
    other = shutil.copytree(folder, tmp_path / "other")
    assert system(folder).fingerprint() == system(other).fingerprint()
    config = other / "scheduler" / "scheduler_config.json"
    config.write_text(config.read_text().replace("0.02", "0.03"))
    assert system(folder).fingerprint() != system(other).fingerprint()


@pytest.mark.parametrize("kind", ["pickle", "code", "own pipeline", "own part", "none"])
def test_a_folder_with_code_is_refused(folder: Path, tmp_path: Path, kind: str) -> None:
    other = shutil.copytree(folder, tmp_path / "other")
    index = json.loads((other / "model_index.json").read_text())
    if kind == "pickle":
        (other / "unet" / "diffusion_pytorch_model.safetensors").rename(other / "unet" / "diffusion_pytorch_model.bin")
    elif kind == "code":
        (other / "pipeline.py").write_text("raise SystemExit\n")
    elif kind == "own pipeline":
        index["_class_name"] = ["pipeline", "Mine"]
    elif kind == "own part":
        index["unet"] = ["my_unet", "Mine"]
    else:
        index = {}
    (other / "model_index.json").write_text(json.dumps(index))
    mistakes = system(other).check()
    assert len(mistakes) == 1 and mistakes[0].key == "path"
    pipeline = system(other)
    pipeline.keep_in(tmp_path, tmp_path, budget=None, cache="off")  # type: ignore[arg-type]
    with pytest.raises(MedtestError):
        pipeline.open(device="cpu", threads=1)


def test_a_folder_is_needed() -> None:
    (mistake,) = Diffusers("d", Diffusers.Settings()).check()
    assert mistake.key == "path"


def test_pictures_of_a_pipeline_become_eight_bits() -> None:
    assert to_pixels(np.array([[[0.0, 0.5, 1.2]]])).tolist() == [[[0, 128, 255]]]
    for wrong in (np.zeros((4, 4)), np.zeros((4, 4, 4)), np.full((4, 4, 3), np.nan)):
        with pytest.raises(ValueError, match="picture"):
            to_pixels(wrong)
