"""Evaluations of gates, kept beside the records that they are of: ``gates.jsonl``, a line each, never rewritten."""

from __future__ import annotations

import fcntl
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from medtest.core.version import __version__
from medtest.results.gating.gates import GateResult
from medtest.runner.folder import output_problems, utc_now

FILE = "gates.jsonl"
HELD, NOT_HELD = "held", "not held"
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
    """Append one evaluation of a set of gates; nothing where no gate is set.

    The line is written at once and synced. Where the file's last line is torn, the new one begins below it.

    Args:
        folder: The system's folder, of whose records the gates were judged.
        results: What became of each gate.
        suite: Name of the suite.
        version: Its version.
        view: Digest of the view, "" for the folder's own tables.
        shown: How much of the suite was judged, as ``3 of 30 images``; "" for all of it.
        cases: Cases that the tables cover, sources among them.
        command: What was typed, without keys and paths.

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
                **asdict(one.gate),
                "held": one.held,
                "verdict": one.verdict,
                "percent": _number(one.percent),
                "cases": one.cases,
                "conditions": [condition.facts() for condition in one.conditions],
                "said": one.sentence,
            }
            for one in results
        ],
        "result": HELD if all(one.held for one in results) else NOT_HELD,
        "command": command,
        "medtest": __version__,
    }
    path = folder / FILE
    with output_problems(path):
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)  # given back when the file is closed
            size = os.fstat(file).st_size
            torn = size > 0 and os.pread(file, 1, size - 1) != b"\n"
            text = json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n"
            os.write(file, (b"\n" if torn else b"") + text.encode(errors="backslashreplace"))
            os.fsync(file)
        finally:
            os.close(file)


def read(folder: Path) -> list[dict[str, Any]]:
    """Return a folder's evaluations, oldest first; lines that are torn or no evaluation are left out."""
    path = folder / FILE
    try:
        if path.stat().st_size > _MOST_BYTES:
            return []
        lines = path.read_bytes().split(b"\n")
    except OSError:
        return []
    return [entry for line in lines if (entry := _entry(line)) is not None]


def lost(folder: Path) -> str:
    """Return which lines of a folder's evaluations cannot be read, in words; "" for none."""
    try:
        lines = (folder / FILE).read_bytes().split(b"\n")
    except OSError:
        return ""
    bad = [str(number) for number, line in enumerate(lines, start=1) if line.strip() and _entry(line) is None]
    if not bad:
        return ""
    which = "line {} cannot be read and counts" if len(bad) == 1 else "lines {} cannot be read and count"
    return (
        f"{folder.name}/{FILE}: {which.format(', '.join(bad[:9]))} as no evaluation of gates. It is left as it is: "
        "mend it by hand or from a copy, or type the command with the same gates again, which adds a line."
    )


def _entry(line: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if _is_evaluation(entry) else None


def last_of_each(entries: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the last evaluation of each set of gates under each view, the newest first.

    Args:
        entries: What :func:`read` gave.
    """
    last: dict[tuple[str, str], Mapping[str, Any]] = {}
    for entry in entries:
        key = (str(entry.get("view", "")), _set_of(entry["gates"]))
        last.pop(key, None)
        last[key] = entry
    return list(reversed(last.values()))


def is_set(entry: Mapping[str, Any], results: Sequence[GateResult]) -> bool:
    """Whether an evaluation was of these gates."""
    return _set_of(entry["gates"]) == _set_of([asdict(one.gate) for one in results])


def _number(percent: float | None) -> float | None:
    return percent if percent is not None and math.isfinite(percent) else None


def _set_of(gates: Sequence[Mapping[str, Any]]) -> str:
    """Return what names a set of gates, whatever their order and what became of them."""
    became = {"held", "verdict", "percent", "cases", "conditions", "said"}
    return "\n".join(
        sorted(json.dumps({k: v for k, v in gate.items() if k not in became}, sort_keys=True) for gate in gates)
    )


def _is_evaluation(entry: Any) -> bool:
    if not isinstance(entry, dict) or entry.get("result") not in (HELD, NOT_HELD):
        return False
    gates = entry.get("gates")
    return isinstance(gates, list) and bool(gates) and all(isinstance(gate, dict) for gate in gates)
