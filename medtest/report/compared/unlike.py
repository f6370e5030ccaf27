"""Differences between two finished runs: suite, seeds, relations, system, weights, oracle, versions, machine."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from medtest.report.pages.material import read_run
from medtest.results.records.wanted import SUITE_FILE

_OF_A_RUN = ("device", "versions", "cpu", "medtest", "suite_version")
_BLOCKS = ("version", "seed", "seeds", "relations", "prepare", "oracles", "privacy", "exclude", "max_error_percent")
_MOST = 60


def differences(first: Path, second: Path) -> list[tuple[str, str, str]]:
    """Return the differences of two runs as rows of name, first value, second value.

    Args:
        first: Folder of a run, with ``suite.yaml`` and ``run.json``.
        second: Folder of the other run.
    """
    facts, other_facts = dict(_facts(first)), dict(_facts(second))
    names = [*facts, *(name for name in other_facts if name not in facts)]
    rows = [
        (name, facts.get(name, "–"), other_facts.get(name, "–"))
        for name in names
        if facts.get(name) != other_facts.get(name)
    ]
    if len(rows) > _MOST:
        rows = [*rows[:_MOST], (f"and {len(rows) - _MOST} more", "", "")]
    return rows


def _facts(folder: Path) -> Iterator[tuple[str, str]]:
    run = read_run(folder)
    yield "suite", str(run.get("suite", ""))
    yield "system", str(run.get("system", ""))
    yield "digest of the run", folder.name
    try:
        content = yaml.safe_load((folder / SUITE_FILE).read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError):
        content = {}
    for name in _BLOCKS:
        if isinstance(content, dict) and name in content:
            yield from _flat(f"suite: {name}", content[name])
    covers = run.get("covers")
    if isinstance(covers, Mapping):
        yield from _flat("system", covers.get("system"))
        for name, seeds in (covers.get("seeds") or {}).items():
            if isinstance(seeds, Mapping) and "digest" in seeds:
                yield f"seeds: {name}, digest", str(seeds["digest"])
    for name in _OF_A_RUN:
        yield from _flat(name, run.get(name))


def _flat(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(f"{name}.{key}", inner)
    elif value is not None and value != "":
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        yield name, text if len(text) <= 200 else f"{text[:199]}…"
