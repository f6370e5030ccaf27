"""The training engine on a small network for regression."""

from __future__ import annotations

import itertools
import json
import os
import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from medtest.core.errors import Interrupted, MedtestError
from medtest.training.engine.averaging import AveragedWeights
from medtest.training.engine.trainer import Evaluation, Trainer, Training
from medtest.training.settings.recipe import Cosine, Optimizer, Plateau, Recipe, Validation


class Noise:
    """Batches of a line with a slope of 2."""

    def batch(self, step: int) -> tuple[Tensor, Tensor]:
        """Return points of the line."""
        x = torch.randn(8, 3, 1, 1, generator=torch.Generator().manual_seed(step))
        return x, 2.0 * x.sum(dim=1).flatten()


class Net(nn.Module):
    """A convolution, a norm with counters, and dropout, so that every source of state and chance counts."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.layers = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), nn.Dropout(0.2), nn.Conv2d(4, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        """Return a number for each point."""
        numbers: Tensor = self.layers(x)
        return numbers.flatten()


def loss(network: nn.Module, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, Mapping[str, Tensor]]:
    """Return a loss of two parts."""
    x, target = batch
    error, size = ((network(x) - target) ** 2).mean(), sum(p.abs().sum() for p in network.parameters())
    return error + 1e-3 * size, {"error": error, "size": torch.as_tensor(size)}


def evaluate(network: nn.Module) -> Evaluation:
    """Return the network's error on a separate batch."""
    assert not network.training
    x, target = Noise().batch(10_000)
    with torch.inference_mode():
        error = float(((network(x) - target) ** 2).mean())
    return Evaluation(score=-error, loss=error, facts={"error": error})


RECIPE = Recipe(
    name="line",
    batch=8,
    steps=9,
    optimizer=Optimizer(name="adamw", rate=0.05),
    schedule=Cosine(kind="cosine", warmup_steps=2),
    clip_norm=1.0,
    average=0.9,
)


class Kept:
    """A writer of weights that keeps its arguments."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.weights: dict[str, Tensor] = {}

    def __call__(self, weights: Mapping[str, Tensor], note: str) -> None:
        self.notes.append(note)
        self.weights = {name: value.clone() for name, value in weights.items()}


class Points:
    """A log that keeps its points."""

    def __init__(self) -> None:
        self.points: list[tuple[int, dict[str, float]]] = []

    def metrics(self, values: Mapping[str, float], step: int) -> None:
        """Keep a point of each curve."""
        self.points.append((step, dict(values)))


def training(recipe: Recipe = RECIPE, **more: Any) -> Training:
    """Return a training of the small network."""
    values: dict[str, Any] = {
        "network": Net(), "recipe": recipe, "validation": Validation(every_steps=3), "batch": Noise().batch,
        "loss": loss, "evaluate": evaluate, "write": Kept(), "steps": recipe.steps_of(3), "steps_per_epoch": 3,
        "seed": 4, "device": "cpu", "identity": {"recipe": recipe.model_dump(mode="json")}, **more,
    }  # fmt: skip
    return Training(**values)


def states(folder: Path) -> dict[str, Any]:
    return dict(torch.load(folder / "state.pt", weights_only=True))


def are_equal(first: Any, second: Any) -> bool:
    """Return whether two states are equal, tensors bit for bit."""
    if isinstance(first, Tensor):
        return torch.equal(first, second)
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(are_equal(first[key], second[key]) for key in first)
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(are_equal(a, b) for a, b in zip(first, second, strict=True))
    return bool(first == second)


@pytest.mark.slow
@pytest.mark.parametrize(
    "recipe",
    [
        RECIPE,
        RECIPE.model_copy(update={"average": 0.0, "schedule": Plateau(kind="plateau", patience=0, factor=0.5)}),
        RECIPE.model_copy(update={"optimizer": Optimizer(name="sgd", rate=0.05), "fresh_every_epoch": True}),
        RECIPE.model_copy(update={"frozen_norms": True, "clip_value": 0.1, "precision": "bf16"}),
    ],
    ids=["cosine", "plateau", "fresh", "frozen"],
)
@pytest.mark.parametrize("at", [1, 3, 5])
def test_stopped_and_resumed_equals_uninterrupted(tmp_path: Path, recipe: Recipe, at: int) -> None:
    for name in ("whole", "parts"):
        (tmp_path / name).mkdir()
    Trainer(training(recipe, from_start=True), tmp_path / "whole").fit()
    Trainer(training(recipe, from_start=True), tmp_path / "parts").fit(stop=lambda step: step == at)
    again = Trainer(training(recipe, from_start=True), tmp_path / "parts")
    assert again.resume() and again.reached.step == at
    again.fit()
    assert are_equal(states(tmp_path / "whole"), states(tmp_path / "parts"))
    texts = [(tmp_path / name / "history.json").read_text() for name in ("whole", "parts")]
    assert texts[0] == texts[1] and [entry["step"] for entry in json.loads(texts[0])] == [0, 3, 6, 9]


def test_a_signal_writes_the_state_and_is_reported(tmp_path: Path) -> None:
    def interrupt(point: Any) -> None:
        if point.step == 5:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted, match="step 5 of 9"):
        Trainer(training(), tmp_path).fit(progress=interrupt)
    assert states(tmp_path)["reached"]["step"] == 5


def test_averaged_weights_follow_the_formula() -> None:
    for ramp in (True, False):
        network = Net().train()
        expected = {name: value.clone() for name, value in network.state_dict().items()}
        model = AveragedWeights(network, 0.8, ramp=ramp)
        for update in range(1, 60):
            with torch.no_grad():
                for value in network.state_dict().values():
                    value.add_(torch.ones_like(value))
            model.follow()
            decay = min(0.8, update / (9 + update)) if ramp else 0.8
            for name, value in network.state_dict().items():
                if value.is_floating_point():
                    expected[name] = decay * expected[name].double() + (1 - decay) * value.double()
                else:
                    expected[name] = value.clone()
        for name, value in model.module.state_dict().items():
            assert torch.allclose(value.double(), expected[name].double(), rtol=1e-5), name


def test_states_between_evaluations_take_a_small_share_of_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, saved = itertools.count(), list[int]()

    class Slow(Trainer):
        """A step takes a second, and so does every look at the clock: a state is looked at before and after."""

        def advance(self) -> dict[str, float]:
            next(now)
            return super().advance()

        def save(self) -> None:
            saved.append(self.reached.step)
            super().save()

    monkeypatch.setattr("medtest.training.engine.trainer.time", SimpleNamespace(monotonic=lambda: float(next(now))))
    recipe = RECIPE.model_copy(update={"steps": 90})
    Slow(training(recipe, validation=Validation(every_steps=90)), tmp_path, save_every=5).fit()
    assert saved == [5, 35, 65, 90]  # the first at once, each later one 1 / 0.03 s of steps after the one before


def test_averaged_weights_are_evaluated_and_written(tmp_path: Path) -> None:
    plan = training()
    trainer = Trainer(replace(plan, validation=Validation(every_steps=9, keep="last")), tmp_path)
    trainer.fit()
    written = plan.write
    assert isinstance(written, Kept) and written.notes == ["step 9"]
    average = states(tmp_path)["average"]
    assert all(torch.equal(value, average[name]) for name, value in written.weights.items())
    assert not torch.equal(average["layers.0.weight"], states(tmp_path)["network"]["layers.0.weight"])


def test_parts_of_the_loss_rates_and_evaluations_are_logged(tmp_path: Path) -> None:
    log = Points()
    Trainer(training(curves=("loss", "factor"), prefix="val_dice_"), tmp_path).fit(log=log)
    assert [step for step, values in log.points if "val_dice_error" in values] == [3, 6, 9]
    numbers = [values for _, values in log.points if "loss" in values]
    assert all(set(values) == {"loss", "factor", "loss_error", "loss_size"} for values in numbers)
    assert numbers[0]["loss"] == pytest.approx(numbers[0]["loss_error"] + 1e-3 * numbers[0]["loss_size"], rel=1e-6)
    assert numbers[0]["factor"] == 1.0  # of the third step: the warm-up is over


@pytest.mark.parametrize(
    ("keep", "patience", "saved", "steps"),
    [("best", None, [0, 2], 6), ("last", None, [1, 2, 3, 4, 5, 6], 6), ("best", 2, [0, 2], 4)],
)
def test_saved_weights_follow_the_rule(
    tmp_path: Path, keep: str, patience: int | None, saved: list[int], steps: int
) -> None:
    scores = iter([0.5, 0.4, 0.7, 0.9, 0.7, 0.6, 0.9])  # 0.9 is not allowed

    def scored(network: nn.Module) -> Evaluation:
        return Evaluation(score=(score := next(scores)), loss=1.0, facts={"score": score})

    def may_keep(facts: Mapping[str, float], first: Mapping[str, float]) -> bool:
        return facts["score"] - first["score"] < 0.3

    recipe = RECIPE.model_copy(update={"steps": 6})
    validation = Validation(every_steps=1, keep=keep, patience=patience)
    plan = training(recipe, validation=validation, evaluate=scored, may_keep=may_keep, from_start=True)
    reached = Trainer(plan, tmp_path).fit()
    assert isinstance(plan.write, Kept) and plan.write.notes == [f"step {step}" for step in saved]
    assert (reached.kept_step, reached.best_step, reached.best_score, reached.step) == (saved[-1], 2, 0.7, steps)
    assert reached.stopped == (patience is not None)


def test_a_loss_that_is_nan_ends_the_training(tmp_path: Path) -> None:
    trainer = Trainer(training(), tmp_path)
    with torch.no_grad():
        next(trainer.network.parameters()).fill_(float("nan"))
    with pytest.raises(MedtestError, match="the loss is nan at step 0: a lower rate"):
        trainer.advance()
