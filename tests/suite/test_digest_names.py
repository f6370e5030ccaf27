"""Finished runs are found after a move of classes: digests in a table.

``tests/data/digests`` holds the digest names of bundled parts, the digest of their settings at their defaults, and the
digests of runs, oracles and follow-ups of bundled suites. A line may change where a class's ``revision`` was raised.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from medtest.core.errors import MedtestError
from medtest.core.plugins import FAMILIES, Family, Part, PartInfo, PartSettings, digest_name, parts
from medtest.readers import READERS
from medtest.relations import RELATIONS
from medtest.runner.followups.recipe import SuiteKeys
from medtest.runner.privacy.rules import ShownNames
from medtest.seeds import SEEDS
from medtest.suite.compose import load_suite
from medtest.suite.composed import counted_settings
from medtest.suite.digest import digest_of, oracle_digest, run_digest
from medtest.suite.model import PartPlan, Suite
from medtest.systems import SYSTEMS
from medtest.systems.controls import Constant
from medtest.tasks import ORACLES, TASKS

DIGESTS = Path(__file__).parents[1] / "data" / "digests"
NEEDED = {"measured": {"property": "liver_variability"}, "perturb": {"transform": "torchvision.RandomInvert"}}
"""Settings that a part has no default of."""
SUITES = (
    "background_subtraction",
    "denoising",
    "liver",
    "medvqa",
    "polyp_seg",
    "robust_benchmark_chest_levels",
    "robust_benchmark_melanoma",
    "wce",
)

Expected = Callable[[Path, Mapping[str, str]], None]


def bundled(family: Family) -> dict[str, PartInfo]:
    return {name: info for name, info in parts(family).items() if info.origin == "medtest"}


def bundled_names(family: Family) -> list[str]:
    tables = {
        "relations": RELATIONS,
        "systems": SYSTEMS,
        "seeds": SEEDS,
        "readers": READERS,
        "oracles": ORACLES,
        "tasks": TASKS,
    }
    return list(tables.get(family, ()))


def text_of(table: Mapping[str, Any]) -> str:
    return json.dumps(table, indent=1, sort_keys=True) + "\n"


def settings_of(info: PartInfo) -> PartSettings:
    beside = ("primary", "scores", "thresholds", "against") if info.family == "oracles" else ()
    defaults = {name: value for name, value in info.defaults.items() if name not in beside}
    settings: PartSettings = info.load().Settings(**defaults, **NEEDED.get(info.name, {}))
    return settings


def digests_of(suite: Suite) -> dict[str, Any]:
    sources, relations = suite.build_seeds(None), suite.build_relations()
    systems = suite.build_systems()
    runs = {name: run_digest(suite, name, seeds=sources, relations=relations, system=systems[name]) for name in systems}
    return {
        "runs": {name: digest.value for name, digest in runs.items()},
        "oracle": oracle_digest(suite).value,
        "followups": SuiteKeys(suite, relations, ShownNames(None)).suite_key(suite, sources),
    }


def test_every_bundled_part_has_its_digest_name_and_settings(expected: Expected) -> None:
    table: dict[str, dict[str, Any]] = {}
    for family in FAMILIES:
        if family in ("tasks", "readers"):
            continue  # seeds, systems and oracles name their task; of our readers the oracle's or own revision counts
        for name, info in bundled(family).items():
            plan = PartPlan(id=name, info=info, settings=settings_of(info))
            table[f"{family}/{name}"] = {
                "name": info.digest_name,
                "revision": info.load().revision,
                "settings": digest_of(counted_settings(plan)),
            }
    assert len(table) > 100
    expected(DIGESTS / "parts", {"parts.json": text_of(table)})


def test_bundled_suites_keep_their_folders_and_followups(expected: Expected) -> None:
    expected(DIGESTS / "suites", {"suites.json": text_of({name: digests_of(load_suite(name)) for name in SUITES})})


@pytest.mark.parametrize("family", FAMILIES)
def test_every_bundled_part_loads_and_has_one_name(family: Family) -> None:
    infos = bundled(family)
    classes: dict[str, type[Part]] = {}
    for name, info in infos.items():
        loaded = info.load()
        assert issubclass(loaded, Part), name
        assert digest_name(family, loaded) == info.digest_name == info.part, name
        assert classes.setdefault(info.part, loaded) is loaded, name
    assert len(set(classes.values())) == len(classes), "two names of one class"
    listed = bundled_names(family)
    assert classes.keys() == set(listed), "an entry of the table that no file in conf/ uses"
    assert list(listed) == sorted(listed)


def test_listing_parts_imports_none() -> None:
    code = (
        "import sys; from medtest.core.plugins import FAMILIES, parts; before = set(sys.modules)\n"
        "targets = {info.target.partition(':')[0] for family in FAMILIES for info in parts(family).values()}\n"
        "print(sorted(targets & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_a_class_that_moves_keeps_its_digest_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SYSTEMS, "constant", f"{__name__}:Moved")
    parts.cache_clear()
    try:
        assert digest_name("systems", Moved) == parts("systems")["constant"].digest_name == "constant"
        assert digest_name("systems", Constant) == "medtest:Constant"
    finally:
        parts.cache_clear()


def test_another_file_of_a_part_has_its_digest_name_and_its_defaults() -> None:
    systems = parts("systems")
    assert systems["gpt_4o"].digest_name == "openai_compatible"
    assert systems["gpt_4o"].name == "gpt_4o"
    assert {**systems["gpt_4o"].defaults, **systems["openai_compatible"].defaults}.keys() == systems[
        "gpt_4o"
    ].defaults.keys()


def test_a_file_that_names_no_part_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "oracles").mkdir()
    (tmp_path / "oracles" / "guesses.yaml").write_text("summary: nothing\n")
    monkeypatch.setattr("medtest.core.plugins.conf_folder", lambda: tmp_path)
    parts.cache_clear()
    try:
        with pytest.raises(MedtestError, match=r"guesses\.yaml"):
            parts("oracles")
    finally:
        parts.cache_clear()


class Moved(Constant):
    """The class after a move."""
