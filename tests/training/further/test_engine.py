"""The training loop: resumed and killed trainings equal uninterrupted ones bit for bit; early stopping; checkpoints."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from forked_program import Program

sys.path.insert(0, str(Path(__file__).parent))
from further_parts import small_material, write_start

from medtest.core.errors import Interrupted, MedtestError
from medtest.systems.checkpoints.weights import load_network, read_info
from medtest.training.engine.precision import precision_of
from medtest.training.engine.trainer import Evaluation, Trainer, TrainingStep
from medtest.training.further.batches import RecipeBatches
from medtest.training.further.networks import open_start
from medtest.training.further.recipe import SegmentationRecipe, load_recipe
from medtest.training.further.task import further_training
from medtest.training.further.train import check_state, train_further, writer

STEPS = 8


def _recipe(name: str = "compact", **changes) -> SegmentationRecipe:
    small = {
        "size": 64,
        "batch": 4,
        "steps": STEPS,
        "scales.kind": "one",
        "validation.every_steps": 3,
        "validation.clean_floor": None,
    }
    return load_recipe(name, {**small, **changes})


def _train(weights: Path, out: Path, recipe: SegmentationRecipe, save_every: int = 2, progress=None):
    torch.set_num_threads(1)
    start, material = open_start("pranet", str(weights)), small_material()
    training = further_training(start, material, recipe, device="cpu", write=writer(out, start, recipe))
    check_state(training, out)
    return train_further(training, start, material, out, threads=1, save_every=save_every, progress=progress)


def _state(out: Path):
    return torch.load(out / "state.pt", weights_only=True)


def _assert_same(first_folder: Path, second_folder: Path) -> None:
    first, second = _state(first_folder), _state(second_folder)
    for part in ("network", "average"):
        assert all(torch.equal(first[part][key], second[part][key]) for key in first[part]), part
    moments = [state["optimizer"]["state"] for state in (first, second)]
    for number in moments[0]:
        for key in moments[0][number]:
            assert torch.equal(moments[0][number][key], moments[1][number][key])
    assert first["reached"] == second["reached"]
    assert first["schedule"] == second["schedule"]
    assert (first_folder / "pranet.safetensors").read_bytes() == (second_folder / "pranet.safetensors").read_bytes()
    assert (first_folder / "history.json").read_text() == (second_folder / "history.json").read_text()


@pytest.mark.slow
def test_interrupted_and_resumed_equals_uninterrupted(tmp_path):
    weights = write_start(tmp_path / "start.safetensors")
    recipe = _recipe(steps=4)
    whole = _train(weights, tmp_path / "whole", recipe)

    def interrupt(point: TrainingStep) -> None:
        if point.step == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Interrupted, match="2 of 4"):
        _train(weights, tmp_path / "parts", recipe, progress=interrupt)
    assert _state(tmp_path / "parts")["reached"]["step"] == 2
    again = _train(weights, tmp_path / "parts", recipe)
    _assert_same(tmp_path / "whole", tmp_path / "parts")
    assert whole.kept_step == again.kept_step and whole.history == again.history
    # a finished training is not trained again
    done = _state(tmp_path / "whole")
    _train(weights, tmp_path / "whole", recipe)
    assert _state(tmp_path / "whole")["reached"] == done["reached"]


def _kill_at(weights: str, out: str, step: int) -> None:
    def kill(point: TrainingStep) -> None:
        if point.step == step:
            os.kill(os.getpid(), signal.SIGKILL)

    _train(Path(weights), Path(out), _recipe(), save_every=3, progress=kill)


@pytest.mark.slow
def test_killed_and_resumed_equals_uninterrupted(tmp_path):
    weights = write_start(tmp_path / "start.safetensors")
    for step in (2, 7):  # between states: what was done since the last one is done again
        call = f"from test_engine import _kill_at; _kill_at({str(weights)!r}, {str(tmp_path / 'killed')!r}, {step})"
        assert Program(call, modules=("torch", "torchvision")).wait(200) == -signal.SIGKILL
    assert 0 < _state(tmp_path / "killed")["reached"]["step"] < 7
    _train(weights, tmp_path / "killed", _recipe())
    _train(weights, tmp_path / "whole", _recipe())
    _assert_same(tmp_path / "whole", tmp_path / "killed")


@pytest.mark.slow
def test_training_learns(tmp_path):
    weights = write_start(tmp_path / "start.safetensors")
    losses: list[float] = []
    recipe = _recipe(steps=16, **{"optimizer.rate": 3e-3, "augment.own": False, "validation.every_steps": 16})
    _train(weights, tmp_path / "out", recipe, progress=lambda point: losses.append(point.numbers.get("loss", np.nan)))
    assert np.mean(losses[-4:]) < 0.8 * np.mean(losses[1:5])


@pytest.mark.slow
def test_saved_weights_keep_the_format_of_their_start(tmp_path):
    weights = write_start(tmp_path / "start.safetensors")
    trained = _train(weights, tmp_path / "out", _recipe(steps=3, **{"validation.keep": "last"}))
    info = read_info(trained.weights)
    assert info.network["family"] == "pranet" and info.size == 64 and "step 3" in info.note
    network, _ = load_network(trained.weights)
    average = _state(tmp_path / "out")["average"]
    assert all(
        torch.equal(value, average[name].half().float() if value.is_floating_point() else average[name])
        for name, value in network.state_dict().items()
    )
    facts = json.loads((tmp_path / "out" / "training.json").read_text())
    assert facts["kept_step"] == 3 and facts["recipe"]["name"] == "compact"


def _trainer(tmp_path, recipe, family="pranet"):
    start = open_start(family, str(write_start(tmp_path / "start.safetensors", family)))
    write = writer(tmp_path, start, recipe)
    return Trainer(further_training(start, small_material(), recipe, device="cpu", write=write), tmp_path)


def test_weights_are_saved_if_they_are_better_and_above_the_floor(tmp_path):
    trainer = _trainer(tmp_path, _recipe(**{"validation.clean_floor": 0.01, "validation.patience": 3}))
    scores = [(0.80, 0.60), (0.78, 0.70), (0.795, 0.66), (0.80, 0.64), (0.79, 0.60)]
    verdicts = []
    for step, (clean, perturbed) in enumerate(scores):
        trainer.reached.step = step
        score = (clean + perturbed) / 2
        verdicts.append(trainer.judge(Evaluation(score=score, loss=1.0, facts={"dice_clean": clean}), {}))
    # the second is best but loses two points on clean images, the fourth is not better than the third
    assert verdicts == [True, False, True, False, False]
    assert trainer.reached.best_step == 2 and not trainer.reached.stopped
    trainer.reached.step = 5
    trainer.judge(Evaluation(score=0.65, loss=1.0, facts={"dice_clean": 0.8}), {})
    assert trainer.reached.stopped


@pytest.mark.slow
def test_early_stopping_ends_the_training(tmp_path):
    weights = write_start(tmp_path / "start.safetensors")
    recipe = _recipe(steps=40, **{"optimizer.rate": 1e-9, "validation.every_steps": 1, "validation.patience": 2})
    trained = _train(weights, tmp_path / "out", recipe)
    assert trained.stopped and trained.step < 40
    assert _train(weights, tmp_path / "out", recipe).step == trained.step


@pytest.mark.slow
def test_a_state_of_another_training_is_refused(tmp_path):
    weights = write_start(tmp_path / "start.safetensors")
    _train(weights, tmp_path / "out", _recipe(steps=2))
    with pytest.raises(MedtestError, match="another recipe"):
        _train(weights, tmp_path / "out", _recipe(steps=3))
    with pytest.raises(MedtestError, match="other weights"):
        _train(write_start(tmp_path / "other.safetensors", seed=5), tmp_path / "out", _recipe(steps=2))
    (tmp_path / "out" / "state.pt").write_bytes(b"torn")
    with pytest.raises(MedtestError, match="cannot be read"):
        _train(weights, tmp_path / "out", _recipe(steps=2))


def test_a_loss_that_is_nan_is_an_error(tmp_path):
    trainer = _trainer(tmp_path, _recipe())
    with torch.no_grad():
        next(trainer.network.parameters()).fill_(float("nan"))
    with pytest.raises(MedtestError, match="the loss is nan at step 0"):
        trainer.advance()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pranet", "sanet", "tganet", "ssformer"])
def test_every_paper_s_recipe_does_a_step(tmp_path, name):
    changes = {"steps": 2} if name != "sanet" else {"epochs": 1}
    recipe = load_recipe(name, {"size": 64, "batch": 4, **changes, "scales.sizes": [64], "scales.weights": []})
    trainer = _trainer(tmp_path, recipe, name)
    before = {key: value.clone() for key, value in trainer.network.state_dict().items()}
    numbers = trainer.advance()
    assert np.isfinite(numbers["loss"])
    assert any(not torch.equal(value, before[key]) for key, value in trainer.network.state_dict().items())


def test_bfloat16_on_a_cpu(tmp_path):
    trainer = _trainer(tmp_path, _recipe(precision="bf16"))
    assert np.isfinite(trainer.advance()["loss"])
    assert all(value.dtype != torch.bfloat16 for value in trainer.network.state_dict().values())


def test_float16_needs_a_gpu():
    with pytest.raises(MedtestError, match="needs a CUDA device"):
        precision_of("amp", "cpu")
    assert load_recipe("sanet").precision == "auto"
    assert precision_of("auto", "cpu") == "fp32"
    assert precision_of("auto", "cuda:0") == "amp"


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
def test_amp_on_a_gpu(tmp_path):
    recipe = _recipe(precision="amp")
    start, material = open_start("pranet", str(write_start(tmp_path / "start.safetensors"))), small_material()
    training = further_training(start, material, recipe, device="cuda:0", write=writer(tmp_path / "out", start, recipe))
    trained = train_further(training, start, material, tmp_path / "out")
    assert trained.step == STEPS


def test_gradients_are_clipped_by_value(tmp_path):
    trainer = _trainer(tmp_path, _recipe("pranet", clip_value=1e-6, steps=4))
    trainer.advance()
    gradients = [p.grad.abs().max().item() for p in trainer.network.parameters() if p.grad is not None]
    assert 0 < max(gradients) <= 1e-6


def test_batches_follow_from_seed_and_step():
    material = small_material()
    recipe = _recipe("pranet", **{"scales.kind": "each", "size": 128})
    batches = RecipeBatches(material.originals, material.perturbed, recipe, size=128)
    assert batches.steps_per_batch == 3 and batches.steps_per_epoch == 9
    sides = [batches.batch(step)[2] for step in range(3)]
    assert sides == [96, 128, 160]
    assert all(np.array_equal(batches.batch(0)[0], batches.batch(step)[0]) for step in (1, 2))
    assert not np.array_equal(batches.batch(0)[0], batches.batch(3)[0])
    again = RecipeBatches(material.originals, material.perturbed, recipe, size=128)
    assert np.array_equal(again.batch(7)[0], batches.batch(7)[0])


def test_an_epoch_shows_every_pair_once():
    material = small_material()
    recipe = _recipe("pranet", **{"scales.kind": "one", "size": 96})
    batches = RecipeBatches(material.originals, material.perturbed, recipe, size=96)
    shown = [image.tobytes() for step in range(3) for image in batches.batch(step)[0]]
    everything = {image.tobytes() for pairs in (material.originals, material.perturbed) for image in pairs.images}
    assert len(shown) == 12 and set(shown) == everything


def test_half_of_every_batch_is_perturbed():
    material = small_material()
    recipe = _recipe(**{"augment.own": False, "size": 96})
    batches = RecipeBatches(material.originals, material.perturbed, recipe, size=96)
    originals = {image.tobytes() for image in material.originals.images}
    for step in range(4):
        assert sum(image.tobytes() in originals for image in batches.batch(step)[0]) == 2


def test_starting_takes_seconds_not_minutes(tmp_path):
    started = time.process_time()
    open_start("pranet", str(write_start(tmp_path / "start.safetensors")))
    assert time.process_time() - started < 10
