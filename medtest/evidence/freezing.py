"""Freezing of a suite's plan before its first case: suite, data, gates, software, seed, under one hash."""

from __future__ import annotations

import json
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from medtest.core.errors import OutputProblem, typed_error
from medtest.report.packs.lists import Progress, SeedLine, Surveyor
from medtest.report.packs.suites import parts_of
from medtest.runner.folder import RECORDS, SHARD_FOLDERS, output_problems, utc_now, writing_text
from medtest.runner.prepared import prepare_run
from medtest.runner.reporting.frozen import FORMAT, KIND, plan_text, plans_folder, sealed
from medtest.runner.reporting.software import lock_of
from medtest.suite.compose import Loaded
from medtest.suite.model import Invocation, Selection


def freeze(
    loaded: Loaded, invocation: Invocation, *, to: Path | None = None, progress: Progress | None = None
) -> tuple[Path, dict[str, Any]]:
    """Write the plan of a suite; runs of the suite then say which parts of it they follow.

    Args:
        loaded: The suite with its systems.
        invocation: Only ``data``, ``home`` and ``limit`` are used.
        to: File to write, which must not exist; by default one below ``outputs/<suite>/frozen/``, where runs look.
        progress: Called with the number of finished seeds and their total.

    Returns:
        The file and its content.

    Raises:
        UserMistakes: Seeds or systems are unusable, or the file exists.
        MedtestError: A seed cannot be loaded.
        OutputProblem: The file cannot be written.
    """
    if invocation.only != Selection():
        raise typed_error("only", "a selection", "limit=N")
    if to is not None and to.exists():
        raise typed_error("to", f"{to.name}, which exists", "a new file")
    prepared = prepare_run(loaded.suite, invocation)
    composed, lines = json.loads(json.dumps(prepared.suite.composed)), _seed_lines(loaded, invocation, progress)
    systems = [plan.id for plan in prepared.suite.systems]
    plan = sealed(
        {
            "kind": KIND,
            "format": FORMAT,
            "frozen_at": utc_now(),
            "name": loaded.suite.name,
            "version": loaded.suite.version,
            "seed": loaded.suite.seed,
            "limit": invocation.limit,
            "gates": composed.get("gates", []),
            "suite": composed,
            "covers": {
                name: json.loads(json.dumps(digest.covers))
                for name, digest in zip(systems, prepared.digests, strict=True)
            },
            "cases_before": {
                digest.value: count
                for digest, folder in zip(prepared.digests, prepared.folders, strict=True)
                if (count := _finished_in_all(folder))
            },
            "data": {"columns": [field.name for field in fields(SeedLine)], "seeds": [list(astuple(s)) for s in lines]},
            "packages": lock_of(part.origin for part in parts_of(loaded.suite).values() if part.origin != "medtest"),
        }
    )
    path = to or plans_folder(invocation.home, loaded.suite.name) / f"{plan['hash'][:16]}.json"
    with output_problems(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with writing_text(path) as file:
        file.write(plan_text(plan))
    return path, plan


def _seed_lines(loaded: Loaded, invocation: Invocation, progress: Progress | None) -> list[SeedLine]:
    """Return the SHA-256 of the prepared image and expected answer of every seed."""
    surveyor = Surveyor(loaded.suite, invocation)
    lines = []
    for number, place in enumerate(surveyor.places, start=1):
        lines.append(surveyor.line(surveyor.parts.prepare(surveyor.load(place))))
        if progress is not None:
            progress(number, len(surveyor.places))
    return lines


def _finished_in_all(folder: Path) -> int:
    """Return the number of records of a run, with those of its shards and of earlier runs that were moved aside."""
    shards = (folder / SHARD_FOLDERS).glob("*/")
    earlier = folder.parent.glob(f"{folder.name}.old-*/")
    return max(_finished(folder), sum(_finished(shard) for shard in shards)) + sum(_finished(old) for old in earlier)


def _finished(folder: Path) -> int:
    """Return the number of records in a run's folder, merged or not."""
    try:
        merged = pq.read_metadata(folder / RECORDS).num_rows if (folder / RECORDS).is_file() else 0
        shards = sum(pq.read_metadata(path).num_rows for path in (folder / "records").glob("*.parquet"))
    except (OSError, ValueError) as error:
        raise OutputProblem(f"Records in {folder.name} cannot be read: {error}") from error
    return max(int(merged), int(shards))
