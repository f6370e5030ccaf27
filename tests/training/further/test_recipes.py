"""Recipes: published settings as in models.md, and messages on mistakes."""

from __future__ import annotations

import pytest

from medtest.core.errors import UserMistakes
from medtest.training.further.recipe import FOLDER, load_recipe
from medtest.training.settings.recipe_files import names_in


def test_the_recipes_are_the_four_papers_and_compact():
    assert set(names_in(FOLDER)) == {"compact", "pranet", "sanet", "ssformer", "tganet"}


def test_pranet_as_published():
    recipe = load_recipe("pranet")
    assert (recipe.size, recipe.batch, recipe.epochs) == (352, 16, 19)
    assert (recipe.optimizer.name, recipe.optimizer.rate, recipe.clip_value) == ("adam", 1e-4, 0.5)
    assert recipe.scales.kind == "each" and recipe.scales.factors == [0.75, 1.0, 1.25] and recipe.scales.corners
    assert recipe.quirks.mean_cross_entropy and recipe.quirks.soft_masks


def test_sanet_as_published():
    recipe = load_recipe("sanet")
    optimizer = recipe.optimizer
    assert (
        optimizer.name,
        optimizer.rate,
        optimizer.backbone_rate,
        optimizer.momentum,
        optimizer.nesterov,
        optimizer.decay,
    ) == (
        "sgd",
        0.4,
        0.04,
        0.9,
        True,
        5e-4,
    )
    assert (recipe.batch, recipe.epochs) == (64, 128)
    assert dict(zip(recipe.scales.sizes, recipe.scales.weights, strict=True)) == {
        256: 0.1,
        288: 0.2,
        320: 0.3,
        352: 0.4,
    }
    assert recipe.quirks.wrapping_colours and recipe.augment.exchange == 1.0


def test_tganet_as_published():
    recipe = load_recipe("tganet")
    assert (recipe.optimizer.name, recipe.optimizer.rate, recipe.batch, recipe.epochs) == ("adam", 1e-4, 16, 500)
    assert (recipe.seed, recipe.size, recipe.validation.patience) == (42, 256, 50)
    assert recipe.schedule.kind == "plateau" and recipe.quirks.double_softmax
    augment = recipe.augment
    assert (augment.rotate, augment.angle, augment.flip, augment.flip_vertical) == (0.3, 35, 0.3, 0.3)
    assert (augment.dropout, augment.holes, augment.hole_side) == (0.3, 10, 32)


def test_ssformer_as_published():
    recipe = load_recipe("ssformer")
    optimizer = recipe.optimizer
    assert (optimizer.name, optimizer.rate, optimizer.decay, optimizer.decay_all, recipe.batch) == (
        "adamw",
        1e-4,
        0.01,
        True,
        32,
    )
    assert recipe.quirks.double_sigmoid and recipe.loss.map == "bce_pixel_dice"


def test_steps_take_the_place_of_epochs():
    recipe = load_recipe("pranet", {"steps": 12, "optimizer.rate": 1e-5, "quirks.soft_masks": False})
    assert (recipe.steps, recipe.epochs, recipe.optimizer.rate, recipe.quirks.soft_masks) == (12, None, 1e-5, False)
    assert load_recipe("compact", {"epochs": 2}).steps is None


@pytest.mark.parametrize(
    ("name", "changes", "expected"),
    [
        ("pranett", {}, "did you mean: pranet"),
        ("pranet", {"optimizer.rates": 1}, "no such key"),
        ("pranet", {"batch": 1}, "greater than or equal to 2"),
        ("pranet", {"optimizer.name": "lion"}, "'adam', 'adamw' or 'sgd'"),
        ("sanet", {"scales.sizes": [250, 288, 320, 352]}, "multiples of 32"),
        ("sanet", {"steps": 5}, "milestones are counted in epochs"),
        ("sanet", {"scales.weights": [1, 1, 1, -1]}, "greater than 0"),
        ("ssformer", {"augment.zoom_range": [0.0, 1.0]}, "greater than or equal to 0.1"),
        ("ssformer", {"augment.zoom_range": [1.2, 0.8]}, "the smaller factor first"),
        ("pranet", {"quirks.soft_mask": True}, "did you mean: soft_masks"),
        ("pranet", {"schedule.evry": 3}, "did you mean: every"),
        ("pranet", {"bach": 8}, "did you mean: batch"),
        ("pranet", {"name": "../../elsewhere"}, "should match pattern"),
        ("nowhere.yaml", {}, "a YAML file that can be read"),
    ],
)
def test_mistakes_are_messages(name, changes, expected):
    with pytest.raises(UserMistakes) as caught:
        load_recipe(name, changes)
    assert expected in str(caught.value)


def test_an_own_recipe(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "batch: 4\nsteps: 10\noptimizer: {name: adam, rate: 1.0e-3}\nschedule: {kind: steps}\n", encoding="utf-8"
    )
    assert load_recipe(str(path)).name == "mine"
    named = tmp_path / ".. my own (2).yaml"
    named.write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    assert load_recipe(str(named)).name == "my-own-2"
    path.write_text("[]", encoding="utf-8")
    with pytest.raises(UserMistakes, match="mistake"):
        load_recipe(str(path))
    path.write_text("!!python/object/apply:os.system [ls]", encoding="utf-8")
    with pytest.raises(UserMistakes, match="mistake"):
        load_recipe(str(path))
