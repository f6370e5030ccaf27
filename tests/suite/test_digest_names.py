"""Finished runs are found wherever classes lie: digests in a table.

``tests/data/digests`` holds what digests call each bundled part, the digest of its settings at their defaults, and the
digests of runs, oracles and follow-ups of bundled suites. A line may change where a class's ``revision`` was raised.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from medtest.core.plugins import FAMILIES, PartInfo, PartSettings, digest_name, parts
from medtest.runner.followups.recipe import SuiteKeys
from medtest.runner.privacy.rules import ShownNames
from medtest.seeds.folders.source import FolderSource
from medtest.suite.compose import load_suite
from medtest.suite.composed import counted_settings
from medtest.suite.digest import digest_of, oracle_digest, run_digest
from medtest.suite.model import PartPlan, Suite
from medtest.systems.controls import Constant, Identity

DIGESTS = Path(__file__).parents[1] / "data" / "digests"
NEEDED = {"measured": {"property": "liver_variability"}}
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


def text_of(table: Mapping[str, Any]) -> str:
    return json.dumps(table, indent=1, sort_keys=True) + "\n"


def settings_of(info: PartInfo) -> PartSettings:
    beside = ("primary", "scores", "thresholds", "against") if info.family == "oracles" else ()
    given = {name: value for name, value in info.defaults.items() if name not in beside}
    settings: PartSettings = info.load().Settings(**given, **NEEDED.get(info.name, {}))
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
        for name, info in parts(family).items():
            if info.origin == "medtest":
                plan = PartPlan(id=name, info=info, settings=settings_of(info))
                entry = {"settings": digest_of(counted_settings(plan)), "revision": info.load().revision}
                if family == "systems":
                    entry["name"] = digest_name(info.load(), info.target)
                elif family == "seeds" and issubclass(info.load(), FolderSource):
                    entry["name"] = digest_name(info.load()).rpartition(":")[2]
                table[f"{family}/{name}"] = entry
    assert len(table) > 100
    expected(DIGESTS / "parts", {"parts.json": text_of(table)})


def test_bundled_suites_keep_their_folders_and_followups(expected: Expected) -> None:
    expected(DIGESTS / "suites", {"suites.json": text_of({name: digests_of(load_suite(name)) for name in SUITES})})


def moved(part: type[Any], module: str) -> type[Any]:
    """Return the class as it is after a move: the same content elsewhere."""
    return type(part.__name__, part.__bases__, {**vars(part), "__module__": module, "__dict__": None})


def test_a_class_that_moves_keeps_its_digest_name() -> None:
    there = moved(Constant, "medtest.systems.elsewhere.constants")
    assert digest_name(there) == digest_name(Constant) == "medtest:Constant"
    assert digest_name(there, "medtest.systems.elsewhere.constants:Constant") == "medtest:Constant"


def test_a_class_of_another_package_is_named_by_that_package() -> None:
    class Own(Identity):
        pass

    assert digest_name(Own, "theirs.module:Own") == "theirs:Own"
    assert digest_name(Identity, "theirs.module:Identity") == "theirs:Identity"


def test_no_two_bundled_classes_share_a_digest_name() -> None:
    classes = {info.load() for family in FAMILIES for info in parts(family).values() if info.origin == "medtest"}
    assert len({digest_name(part) for part in classes}) == len(classes)
