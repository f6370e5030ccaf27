"""Searches in suites: one message for each impossible search, and the record of the setting."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import yaml

from medtest.core.errors import UserMistakes
from medtest.relations.base import Relation
from medtest.relations.calibration.searching.queries import unfit
from medtest.relations.levels import Level, LeveledSettings
from medtest.suite.compose import load
from medtest.suite.model import Suite

HEAD: dict[str, Any] = {
    "name": "searched",
    "version": "1",
    "description": "a search",
    "seed": 1,
    "seeds": {"phantoms": {"count": 1}},
    "systems": {"pranet": {}},
}


def loaded(folder: Path, relations: dict[str, Any], *overrides: str, **more: Any) -> Suite:
    file = folder / "searched.yaml"
    file.write_text(yaml.safe_dump({**HEAD, "relations": relations, **more}))
    return load(file, overrides, for_run=True).suite


def message(folder: Path, relations: dict[str, Any], *overrides: str, **more: Any) -> str:
    with pytest.raises(UserMistakes) as caught:
        loaded(folder, relations, *overrides, **more)
    (mistake,) = caught.value.mistakes
    return str(mistake)


def transform(mild: dict[str, Any], strong: dict[str, Any]) -> dict[str, Any]:
    levels = {1: mild, 3: strong}
    return {"relation": "perturb", "transform": "torchvision.ColorJitter", "levels": levels, "search": "mildest"}


TURN = {
    **transform({"degrees": 5, "interpolation": "bilinear"}, {"degrees": 9, "interpolation": "bilinear"}),
    "transform": "torchvision.RandomAffine",
}


@pytest.mark.parametrize(
    ("relations", "words"),
    [
        ({"blur": {"search": "mildest"}}, ("relations.blur.search", "do not nest", "smoke", "streak")),
        ({"pgd": {"search": "mildest"}}, ("relations.pgd.search", "crafted on a system", "minimal: true")),
        ({"unchanged": {"search": "worst"}}, ("relations.unchanged.search", "without levels")),
        ({"smoke": {"search": "mildest", "severities": [3]}}, ("relations.smoke.severities", "at least two")),
        ({"smoke": {"search": "deepest"}}, ("relations.smoke.search", "mildest, worst")),
        ({"smoke": {"serch": "mildest"}}, ("relations.smoke.serch", "search")),
        ({"specularity": {"search": "worst", "mode": "published"}}, ("relations.specularity.mode", "levels")),
        ({"jitter": transform({"brightness": [0.9, 1.1]}, {"brightness": [0.5, 1.5]})}, ("1.brightness", "a number")),
        ({"jitter": transform({"hue": 0.2}, {"hue": 0.1})}, ("relations.jitter.levels", "grows")),
        ({"jitter": transform({"hue": 0.2}, {"saturation": 0.3})}, ("relations.jitter.levels.3", "those of level 1")),
        (
            {"jitter": transform({"hue": 0.2, "brightness": "x"}, {"hue": 0.3})},
            ("relations.jitter.levels.1.brightness",),
        ),
        ({"turn": TURN}, ("relations.turn.levels.1.interpolation", "belong in params")),
        (
            {"smoke": {"search": "mildest", "calibrate": {"ssim": [0.9]}}},
            ("calibrate.ssim", "1 target", "at least two"),
        ),
        ({"pgd": {"search": "worst", "calibrate": {"ssim": [0.9, 0.8]}}}, ("relations.pgd.calibrate", "crafted on")),
    ],
)
def test_impossible_searches_get_one_message(relations: dict[str, Any], words: tuple[str, ...], tmp_path: Path) -> None:
    text = message(tmp_path, relations)
    assert all(word in text for word in words), text
    assert "searched.yaml" in text


def test_targets_of_any_relation_that_can_be_calibrated_are_searched(tmp_path: Path) -> None:
    # The severities of blur do not nest; its targets share their draws.
    suite = loaded(tmp_path, {"blur": {"search": "mildest", "calibrate": {"ssim": [0.95, 0.8]}}})
    assert suite.searches and suite.build_relations()["blur"].searched == "mildest"


class OddLevel(Level):
    """A level with a word."""

    amount: float
    word: str | None = None

    @property
    def scale(self) -> float:
        return self.amount


class Odd(Relation):
    """A relation with such levels."""

    Settings = LeveledSettings[OddLevel]
    nested = True

    def sample(self, seed: Any, severity: int, rng: Any) -> dict[str, Any]:
        raise NotImplementedError

    apply = sample  # type: ignore[assignment]


@pytest.mark.parametrize("word", ["red", None])
def test_a_level_that_is_not_made_of_numbers_is_refused(word: str | None) -> None:
    levels = {1: {"amount": 1.0, "word": word}, 2: {"amount": 2.0, "word": word}}
    reason = unfit(Odd(Odd.Settings(levels=levels, severities=[1, 2])))  # type: ignore[arg-type]
    assert reason is not None
    assert reason.setting == "levels.1.word"
    assert reason.found == repr(word)


def test_worst_without_optuna_names_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        "medtest.suite.checking.misfits.searching.find_spec",
        lambda name: None if name == "optuna" else find_spec(name),
    )
    text = message(tmp_path, {"smoke": {"search": "worst"}})
    assert "pip install 'medtest[search]'" in text
    assert loaded(tmp_path, {"smoke": {"search": "mildest"}}).searches


def test_finished_answers_are_refused(tmp_path: Path) -> None:
    (tmp_path / "answers").mkdir()
    with pytest.raises(UserMistakes) as caught:
        loaded(tmp_path, {"smoke": {"search": "mildest"}}, "model=predictions", f"folder={tmp_path / 'answers'}")
    texts = [str(mistake) for mistake in caught.value.mistakes]
    assert any("finished answers with a search (smoke)" in text for text in texts), texts


def test_an_api_needs_a_budget(tmp_path: Path) -> None:
    questions: dict[str, Any] = {"seeds": {"question_phantoms": {"count": 1}}, "systems": {"ollama": {}}}
    typed = ("systems.ollama.model=llava",)
    with pytest.raises(UserMistakes) as caught:
        loaded(tmp_path, {"smoke": {"search": "mildest"}}, *typed, **questions)
    budget = [str(mistake) for mistake in caught.value.mistakes if "budget" in str(mistake)]
    assert len(budget) == 1
    assert "up to 16 calls" in budget[0]
    assert "budget.max_calls=NUMBER" in budget[0]
    try:
        loaded(tmp_path, {"smoke": {"search": "mildest"}}, *typed, "budget.max_calls=100", **questions)
    except UserMistakes as others:
        assert not any("budget" in str(mistake) for mistake in others.mistakes)


def test_a_search_is_in_the_composed_suite_and_in_the_digest(tmp_path: Path) -> None:
    from medtest.suite.digest import relation_entry

    suite = loaded(tmp_path, {"smoke": {"search": "mildest"}})
    assert suite.composed["relations"]["smoke"]["search"] == "mildest"
    plan = next(plan for plan in suite.relations if plan.id == "smoke")
    relation = suite.build_relations()["smoke"]
    entry = relation_entry(plan, relation, crafter=None, task="mask")
    assert entry["search"] == {"for": "mildest", "revision": 1}
    plain = loaded(tmp_path, {"smoke": {}})
    other = next(plan for plan in plain.relations if plan.id == "smoke")
    assert "search" not in relation_entry(other, plain.build_relations()["smoke"], crafter=None, task="mask")
