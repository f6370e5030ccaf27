"""Users' finished runs stay found wherever classes lie and whichever settings are gone: digests in a table.

``tests/data/digests`` holds what digests call each bundled part, the digest of its settings at their defaults, and the
digests of runs, oracles and follow-ups of bundled suites. A line may change where a class's ``revision`` was raised.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import ValidationError

import medtest.systems.controls
from medtest.core.plugins import FAMILIES, PartInfo, PartSettings, digest_name, parts
from medtest.relations.base import RelationSettings
from medtest.relations.clinical.motion import Blur
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


@pytest.mark.parametrize("family", ["systems", "seeds"])
def test_a_bundled_class_that_digests_name_states_its_name_itself(family: str) -> None:
    for name, info in parts(family).items():  # type: ignore[arg-type]
        part = info.load()
        if info.origin == "medtest" and (family == "systems" or issubclass(part, FolderSource)):
            assert vars(part).get("digest_name"), f"{family}/{name}: say digest_name, else a move loses users' folders"


def moved(part: type[Any], module: str) -> type[Any]:
    """Return the class as it is after a move: the same content elsewhere."""
    return type(part.__name__, part.__bases__, {**vars(part), "__module__": module, "__dict__": None})


def test_a_class_that_moves_keeps_its_digest_name() -> None:
    there = moved(Constant, "medtest.systems.elsewhere.constants")
    assert digest_name(there) == "medtest.systems.controls:Constant"
    assert digest_name(there, "medtest.systems.elsewhere.constants:Constant") == "medtest.systems.controls:Constant"
    assert digest_name(Constant, "medtest.systems.old_way:Constant") == "medtest.systems.controls:Constant"


def test_a_class_of_another_package_counts_as_it_did() -> None:
    class Own(Identity):
        pass

    assert digest_name(Own) == f"{__name__}:Own"
    assert digest_name(Own, "theirs.module:Own") == "theirs.module:Own"
    assert digest_name(medtest.systems.controls.Identity, "theirs.module:Identity") == "theirs.module:Identity"


class WithoutMode(PartSettings):
    """Settings of a relation in a version that has no ``mode`` any more."""

    retired: ClassVar[Mapping[str, Any]] = RelationSettings.retired

    severities: list[int]
    repeats: int
    levels: Any
    published: Any


def test_a_setting_that_is_gone_counts_at_the_default_that_it_had() -> None:
    suite = load_suite("polyp_seg")
    plan = next(one for one in suite.relations if one.id == "blur")
    rest = {name: value for name, value in plan.settings.model_dump(mode="json").items() if name != "mode"}
    after = replace(plan, settings=WithoutMode(**rest))
    assert "mode" in counted_settings(plan) and "mode" not in WithoutMode.model_fields
    assert counted_settings(after) == counted_settings(plan)
    changed = replace(suite, relations=tuple(after if one is plan else one for one in suite.relations))
    relations, sources = suite.build_relations(), suite.build_seeds(None)
    keys = [SuiteKeys(one, relations, ShownNames(None)).suite_key(one, sources) for one in (suite, changed)]
    assert keys[0] == keys[1]
    system = suite.build_systems()["pranet"]
    digests = [
        run_digest(one, "pranet", seeds=sources, relations=relations, system=system).value for one in (suite, changed)
    ]
    assert digests[0] == digests[1]


def test_a_setting_that_is_still_there_counts_as_it_is_set() -> None:
    info = parts("relations")["blur"]
    settings = Blur.Settings(**{**info.defaults, "mode": "published"})
    assert settings.counted()["mode"] == "published"


def test_a_file_that_states_a_setting_that_is_gone_is_read_where_it_states_the_default() -> None:
    rest = {"severities": [1], "repeats": 1, "levels": {}, "published": {}}
    assert WithoutMode(**rest, mode="levels") == WithoutMode(**rest)  # type: ignore[call-arg]
    with pytest.raises(ValidationError, match="mode"):
        WithoutMode(**rest, mode="published")  # type: ignore[call-arg]
