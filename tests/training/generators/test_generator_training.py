"""Training of a generator: it fools a small network, resumes to the byte, and reaches its target class."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from generator_parts import DIGEST, ONE, SEVERAL, SIDE, SmallProbe, picture

from medtest.core.cases import Classes
from medtest.core.errors import MedtestError, UserMistakes
from medtest.relations.adversarial.generators.files import FILE, GeneratorInfo, GeneratorSettings, load_generator
from medtest.relations.adversarial.generators.goals import decisions, losses, reached, target_answers
from medtest.relations.adversarial.generators.network import GeneratorShape
from medtest.training.classification.cases import LabelledCase, LabelledSet, keep
from medtest.training.generators.recipe import FOLDER, GeneratorRecipe, load_recipe
from medtest.training.generators.task import GeneratorObjective, fooled
from medtest.training.generators.train import noise_floor, train_generator
from medtest.training.settings.recipe_files import names_in

COUNT = 24
CHANGES = {
    "steps": 60,
    "goal": "least_likely",
    "width": 2,
    "batch": 6,
    "optimizer.rate": 0.03,
    "schedule.warmup_steps": 0,
    "watching.every_steps": 20,
}


def cases_in(folder: Path, classes: Classes = ONE) -> LabelledSet:
    def cases() -> Iterator[LabelledCase]:
        for number in range(COUNT):
            field = np.ones((SIDE, SIDE), bool)
            field[:, :4] = False
            yield LabelledCase(image=picture(number), labels=(), mask=field, cluster=f"patient {number // 2}")

    return keep(cases(), folder, classes=classes, side=SIDE, origin="small")


def attack_of(settings: GeneratorSettings, classes: Classes = ONE, **changes: Any) -> GeneratorObjective:
    recipe: GeneratorRecipe = load_recipe("compact", {**CHANGES, **changes})
    shape = GeneratorShape(width=recipe.width, side=SIDE, dropout=recipe.dropout)
    info = GeneratorInfo(
        settings=settings, shape=shape.described(), classes=classes, mean=(0.5,) * 3, std=(0.2, 0.2, 0.2)
    )
    return GeneratorObjective(probe=SmallProbe(classes), classes=classes, info=info, recipe=recipe)


@pytest.mark.slow
def test_training_lowers_the_agreement_of_answers(tmp_path: Path) -> None:
    attack = attack_of(GeneratorSettings(linf=30))
    cases = cases_in(tmp_path / "cases")
    done = train_generator(attack, cases, tmp_path, system=DIGEST)
    assert done.best_score >= noise_floor(attack, cases) + 0.2
    network, info = load_generator(tmp_path / FILE)
    came, _ = fooled(attack, network, cases, np.arange(len(cases)))
    assert came.mean() >= 0.4
    assert info.data == cases.digest


@pytest.mark.slow
@pytest.mark.parametrize(
    ("classes", "target", "universal"),
    [
        (ONE, ("bright",), False),
        (ONE, ("bright",), True),
        (SEVERAL, ("blue", "red"), False),
        (SEVERAL, ("blue", "red"), True),
        (SEVERAL, (), False),
    ],
)
def test_it_reaches_its_target(tmp_path: Path, classes: Classes, target: tuple[str, ...], universal: bool) -> None:
    attack = attack_of(GeneratorSettings(linf=30, target=target, universal=universal), classes)
    cases = cases_in(tmp_path / "cases", classes)
    train_generator(attack, cases, tmp_path, system=DIGEST)
    network, _ = load_generator(tmp_path / FILE)
    came, _ = fooled(attack, network, cases, np.arange(len(cases)))
    noise, _ = fooled(attack, None, cases, np.arange(len(cases)))
    assert came.mean() >= noise.mean() + 0.2


def test_a_stopped_training_gives_the_same_weights(tmp_path: Path) -> None:
    cases = cases_in(tmp_path / "cases")
    settings = GeneratorSettings(linf=15)
    whole = train_generator(attack_of(settings, steps=6), cases, tmp_path / "whole", system=DIGEST)
    parted = attack_of(settings, steps=6)
    train_generator(parted, cases, tmp_path / "parted", system=DIGEST, stop=lambda step: step == 4)
    assert train_generator(parted, cases, tmp_path / "parted", system=DIGEST).step == 6
    assert (tmp_path / "parted" / FILE).read_bytes() == whole.weights.read_bytes()


def test_a_state_of_another_system_or_bound_is_refused(tmp_path: Path) -> None:
    cases = cases_in(tmp_path / "cases")
    train_generator(attack_of(GeneratorSettings(), steps=1), cases, tmp_path / "out", system=DIGEST)
    for settings, system in ((GeneratorSettings(), "another"), (GeneratorSettings(linf=3), DIGEST)):
        with pytest.raises(MedtestError, match="belongs to a training with"):
            train_generator(attack_of(settings, steps=1), cases, tmp_path / "out", system=system)


def test_a_step_moves_the_generator_and_nothing_of_the_network(tmp_path: Path) -> None:
    attack = attack_of(GeneratorSettings(variant="released"), steps=2, start="torch", frozen_norms=False, dropout=0.5)
    weights = torch.nn.Parameter(torch.ones(1))
    attack.probe.network.register_parameter("extra", weights)  # type: ignore[attr-defined]
    cases = cases_in(tmp_path / "cases")
    train_generator(attack, cases, tmp_path, system=DIGEST)
    assert weights.grad is None
    assert (tmp_path / FILE).is_file()


def test_the_default_target_is_the_least_likely_label_and_for_several_labels_every_inverted_decision() -> None:
    clean = torch.tensor([[2.0, 1.0, -1.0], [-3.0, 0.5, 0.4]])
    assert target_answers(clean, ONE).tolist() == [[0, 0, 1], [1, 0, 0]]
    assert target_answers(clean, SEVERAL).tolist() == [[0, 0, 1], [1, 0, 0]]
    assert target_answers(clean, ONE, ("middle",)).tolist() == [[0, 1, 0]] * 2
    assert decisions(clean, multi=True).tolist() == [[1, 1, 0], [0, 1, 1]]
    two = Classes(names=("benign", "melanoma"))
    assert target_answers(clean[:, :2], two).tolist() == [[0, 1], [1, 0]]  # the other one
    with pytest.raises(ValueError, match="target"):
        target_answers(clean, ONE, ("dark", "bright"))


def test_losses_equal_torch_and_equation_4() -> None:
    from torch.nn import functional

    source = torch.Generator().manual_seed(0)
    logits, clean = (torch.randn(4, 3, generator=source) for _ in range(2))
    expected = functional.cross_entropy(logits, clean.argmin(1), reduction="none")
    assert torch.allclose(losses(logits, clean, ONE), expected)
    chosen = logits.softmax(1)[torch.arange(4), clean.argmax(1)]
    assert torch.allclose(losses(logits, clean, ONE, goal="away"), chosen.log(), atol=1e-6)
    flipped = (clean <= 0).float()
    each = -(flipped * torch.sigmoid(logits).log() + (1 - flipped) * torch.sigmoid(-logits).log())
    assert torch.allclose(losses(logits, clean, SEVERAL), each.mean(1), atol=1e-6)
    assert reached(clean, clean, ONE).tolist() == [0.0] * 4
    assert reached(-clean, clean, SEVERAL).tolist() == [1.0] * 4


def test_every_recipe_can_be_read_and_the_published_ones_hold_published_values() -> None:
    assert set(names_in(FOLDER)) == {"attnmel", "chexnet", "compact", "inceptionv3_dr"}
    published = {name: load_recipe(name) for name in names_in(FOLDER) if name != "compact"}
    assert all(
        (recipe.width, recipe.optimizer.rate, recipe.start) == (64, 2e-4, "torch") for recipe in published.values()
    )
    sizes = {name: (recipe.epochs, recipe.batch, recipe.most_batches) for name, recipe in published.items()}
    assert sizes == {"attnmel": (13, 8, 101), "inceptionv3_dr": (10, 9, 101), "chexnet": (8, 6, None)}


@pytest.mark.parametrize(
    ("token", "message"),
    [
        ("linf=0", "above 0"),
        ("universal=maybe", "true or false"),
        ("variant=paperr", "paper or released"),
        ("phantoms=1", "a number from 2"),
        ("on=training", "one of the two"),
        ("linff", "KEY=VALUE"),
    ],
)
def test_mistyped_options_are_mistakes(token: str, message: str) -> None:
    from medtest.cli.training.gap import parse_gap

    with pytest.raises(UserMistakes, match=message):
        parse_gap(["suite=s", "model=m", "phantoms=8", token])
    with pytest.raises(UserMistakes, match="trained against one system"):
        parse_gap(["suite=s"])


@pytest.mark.slow
def test_the_command_writes_to_the_folder_of_the_relation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights are missing before the command and present after it; the same command then has nothing to do."""
    from rich.console import Console

    from medtest.cli.training.gap import attacked, load_of, parse_gap, train_gap
    from medtest.suite.checking.misfits.crafting import missing_mistakes

    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path))
    words = ["suite=adversarial_gap", "model=attnmel", "phantoms=8", "linf=7", "universal=true"]
    short = ["steps=1", "batch=2", "width=1", "tracking=none"]
    changed = ["relations=[gap]", "relations.gap.trained_at=7", "relations.gap.universal=true"]
    suite = load_of(parse_gap([*words, *changed]), ()).suite

    def missing() -> list[str]:
        return [mistake.fix for mistake in missing_mistakes(suite, suite.build_relations(), suite.build_systems())]

    (fix,) = missing()
    assert fix == "medtest train gap suite=adversarial_gap model=attnmel phantoms=800 linf=7 universal=true"
    request = parse_gap([*words, *short])
    done = train_gap(request, threads=1, console=Console(quiet=True))
    assert missing() == []
    _, digest = attacked(load_of(request, ()))
    assert digest in done.weights.parts
    written = done.weights.stat().st_mtime_ns
    assert train_gap(request, threads=1, console=Console(quiet=True)).weights.stat().st_mtime_ns == written
    with pytest.raises(MedtestError, match="belongs to a training with"):
        train_gap(parse_gap([*words, *short, "rate=0.1"]), threads=1, console=Console(quiet=True))
