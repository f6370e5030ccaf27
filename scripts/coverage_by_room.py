"""Print the coverage of each room of the package, from what the processes of a test run have counted.

    make test COVERAGE=1

What workers of a run execute in their own processes is not counted. tests/line_counter.py describes what is counted.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path


def hits_of(folder: Path) -> dict[str, list[tuple[int, bool]]]:
    """Return the line and whether any process ran it, for each statement of each file; branches have line 0."""
    files: dict[str, list[tuple[int, bool]]] = {}
    for report in sorted(folder.glob("*.json")):
        for name, (lines, hits) in json.loads(report.read_text(encoding="utf-8")).items():
            earlier = [hit for _, hit in files.get(name, ())] or [False] * len(lines)
            files[name] = [(line, hit == "1" or ran) for line, hit, ran in zip(lines, hits, earlier, strict=True)]
    return files


def rooms_of(folder: Path) -> dict[str, Counter[str]]:
    """Return the counts of each room, and of ``all``."""
    rooms: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for name, marks in hits_of(folder).items():
        inner = Path(name).parts[Path(name).parts.index("medtest") + 1 :]
        branches = [hit for line, hit in marks if not line]
        counts = {
            "lines": len({line for line, _ in marks if line}),
            "covered_lines": len({line for line, hit in marks if line and hit}),
            "branches": len(branches),
            "covered_branches": sum(branches),
        }
        for room in (inner[0] if len(inner) > 1 else "(top)", "all"):
            rooms[room].update(counts)
    return dict(sorted(rooms.items(), key=lambda room: (room[0] == "all", room[0])))


def main() -> None:
    """Print the table."""
    print(f"{'room':14}{'lines':>8}{'covered':>9}{'branches':>10}{'covered':>9}")
    for room, counts in rooms_of(Path(sys.argv[1])).items():
        lines = 100 * counts["covered_lines"] / max(counts["lines"], 1)
        branches = 100 * counts["covered_branches"] / max(counts["branches"], 1)
        print(f"{room:14}{counts['lines']:8,}{lines:8.1f}%{counts['branches']:10,}{branches:8.1f}%")


if __name__ == "__main__":
    main()
