"""Log of gate evaluations, stored next to their records: ``gates.jsonl``, append-only, one line each."""

from __future__ import annotations

import fcntl
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from medtest.core import __version__
from medtest.results.gating.conditions import FAILED, PASSED
from medtest.results.gating.gates import GateResult
from medtest.runner.folder import output_problems, utc_now
from medtest.suite.model import TRACE, Gate

FILE = "gates.jsonl"
_MOST_BYTES = 50_000_000


def append(
    folder: Path,
    results: Sequence[GateResult],
    *,
    suite: str,
    version: str,
    view: str,
    shown: str,
    cases: int,
    command: str,
) -> None:
    """Append one evaluation of a set of gates; without gates, do nothing.

    The line is written at once and synced. If the last line of the file is incomplete, the new one starts on its own
    line.

    Args:
        folder: Folder of the system whose records were judged.
        results: Result of each gate.
        suite: Name of the suite.
        version: Version of the suite.
        view: Digest of the view, "" for the folder's own tables.
        shown: Part of the suite that was judged, such as ``3 of 30 images``; "" for all of it.
        cases: Number of cases in the tables, including sources.
        command: Command line, without keys and paths.

    Raises:
        OutputProblem: The file cannot be written.
    """
    if not results:
        return
    line = {
        "time": utc_now(),
        "suite": suite,
        "suite_version": version,
        "view": view,
        "shown": shown,
        "cases": cases,
        "gates": [
            {
                **_stated(result.gate),
                "held": result.held,
                "verdict": result.verdict,
                "percent": _number(result.percent),
                "cases": result.cases,
                "conditions": [condition.facts() for condition in result.conditions],
                "said": result.sentence,
            }
            for result in results
        ],
        "result": PASSED if all(result.held for result in results) else FAILED,
        "command": command,
        "medtest": __version__,
    }
    path = folder / FILE
    with output_problems(path):
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)  # released when the file is closed
            size = os.fstat(file).st_size
            torn = size > 0 and os.pread(file, 1, size - 1) != b"\n"
            text = json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n"
            os.write(file, (b"\n" if torn else b"") + text.encode(errors="backslashreplace"))
            os.fsync(file)
        finally:
            os.close(file)


def read(folder: Path) -> list[dict[str, Any]]:
    """Return the evaluations in a folder, oldest first; incomplete or invalid lines are ignored."""
    path = folder / FILE
    try:
        if path.stat().st_size > _MOST_BYTES:
            return []
        lines = path.read_bytes().split(b"\n")
    except OSError:
        return []
    return [entry for line in lines if (entry := _entry(line)) is not None]


def lost(folder: Path) -> str:
    """Return a message on the unreadable lines of a folder's log; "" if there are none."""
    try:
        lines = (folder / FILE).read_bytes().split(b"\n")
    except OSError:
        return ""
    bad = [str(number) for number, line in enumerate(lines, start=1) if line.strip() and _entry(line) is None]
    if not bad:
        return ""
    return (
        f"{folder.name}/{FILE}: unreadable lines are ignored: {', '.join(bad[:9])}. Restore the file from a copy, or "
        "run the command with the same gates again, which adds a line."
    )


def _entry(line: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if _is_evaluation(entry) else None


def last_of_each(entries: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the last evaluation of each set of gates under each view, newest first.

    Args:
        entries: Entries from :func:`read`.
    """
    last: dict[tuple[str, str], Mapping[str, Any]] = {}
    for entry in entries:
        key = (str(entry.get("view", "")), _set_of(entry["gates"]))
        last.pop(key, None)
        last[key] = entry
    return list(reversed(last.values()))


def is_set(entry: Mapping[str, Any], results: Sequence[GateResult]) -> bool:
    """Return True if an evaluation was of these gates."""
    return _set_of(entry["gates"]) == _set_of([_stated(result.gate) for result in results])


def _stated(gate: Gate) -> dict[str, Any]:
    """Return the fields of a gate, without ties that it does not have."""
    return {name: value for name, value in asdict(gate).items() if value is not None or name not in TRACE}


def _number(percent: float | None) -> float | None:
    return percent if percent is not None and math.isfinite(percent) else None


def _set_of(gates: Sequence[Mapping[str, Any]]) -> str:
    """Return the identity of a set of gates, independent of their order and results."""
    became = {"held", "verdict", "percent", "cases", "conditions", "said", *TRACE}
    return "\n".join(
        sorted(json.dumps({k: v for k, v in gate.items() if k not in became}, sort_keys=True) for gate in gates)
    )


def _is_evaluation(entry: Any) -> bool:
    if not isinstance(entry, dict) or entry.get("result") not in (PASSED, FAILED):
        return False
    gates = entry.get("gates")
    return isinstance(gates, list) and bool(gates) and all(isinstance(gate, dict) for gate in gates)
