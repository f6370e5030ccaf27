"""Bundled generators: small, each with its card, found by suites, and better than noise."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest

from medtest.core.files.paths import package_folder
from medtest.relations.adversarial.generators.files import SHIPPED, GeneratorSettings, found_files, load_generator
from medtest.suite.compose import load
from medtest.suite.digest import system_digest

FOLDER = package_folder() / "weights"
SUITES = {
    "attnmel": "robust_benchmark_melanoma",
    "inceptionv3_dr": "robust_benchmark_retinopathy",
    "chexnet": "robust_benchmark_chest",
}


@pytest.mark.parametrize("model", SUITES)
def test_a_generator_that_ships_is_small_and_its_card_is_of_this_file(model: str) -> None:
    path = FOLDER / f"gap-{model}-compact.safetensors"
    assert path.stat().st_size <= 1_000_000
    network, info = load_generator(path)
    assert info.settings == GeneratorSettings(linf=11)
    assert not network.training
    card = path.with_suffix(".md").read_text(encoding="utf-8")
    assert hashlib.sha256(path.read_bytes()).hexdigest() in card, "the card is of other weights"
    row = re.search(r"^\| 11 \| ([0-9.]+) \|.*\| ([0-9.]+) \|", card, flags=re.MULTILINE)
    assert row is not None
    assert float(row[1]) >= float(row[2]) + 0.20


@pytest.mark.parametrize("model", SUITES)
def test_the_suites_find_the_generator_that_ships(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path))
    suite = load(SUITES[model], [f"model={model}"]).suite
    system = suite.build_systems()[model]
    digest = system_digest(suite.systems[0], system, suite.task)
    listed = json.loads((FOLDER / SHIPPED).read_text(encoding="utf-8"))
    assert digest in listed[f"gap-{model}-compact"], "medtest train release-generator adds today's digest"
    assert [path.stem for path in found_files(digest, GeneratorSettings(linf=11))] == [f"gap-{model}-compact"]


@pytest.mark.slow
@pytest.mark.parametrize("model", SUITES)
def test_a_card_says_what_its_generator_does(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first few of the card's images are measured again: the difference may come from their small number."""
    from medtest.cli.training.gap import attacked, attacking, load_of, parse_gap
    from medtest.runner.units.parts import Parts
    from medtest.training.generators.recipe import load_recipe
    from medtest.training.generators.release import measure, unseen_suite

    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path))
    request = parse_gap([f"suite={SUITES[model]}", f"model={model}"])
    loaded = load_of(request, ())
    system, digest = attacked(loaded)
    parts = Parts(unseen_suite(loaded.suite, 16), None, 8)
    attack, cases = attacking(request, load_recipe("compact"), parts, system, digest, tmp_path / "unseen", "cpu", 1)
    path = FOLDER / f"gap-{model}-compact.safetensors"
    (result,) = measure(attack, path, cases, levels=(11.0,))
    system.close()
    row = re.search(r"^\| 11 \| ([0-9.]+) \|", path.with_suffix(".md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert row is not None
    spread = 3 * np.sqrt(max(float(row[1]) * (1 - float(row[1])), 0.01) / 16)
    assert abs(result["fooled"].mean - float(row[1])) <= spread
    assert result["fooled"].mean >= result["noise"].mean + 0.10
