"""Print the coverage of each room of the package, from a JSON report of coverage.py.

    make test COVERAGE=1

What workers of a run execute in their own processes is not counted.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path

COUNTS = ("num_statements", "covered_lines", "num_branches", "covered_branches")


def rooms_of(report: Path) -> dict[str, Counter[str]]:
    """Return the counts of each room, and of ``all``."""
    rooms: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for name, file in json.loads(report.read_text(encoding="utf-8"))["files"].items():
        inner = Path(name).parts[Path(name).parts.index("medtest") + 1 :]
        counts = {count: file["summary"][count] for count in COUNTS}
        for room in (inner[0] if len(inner) > 1 else "(top)", "all"):
            rooms[room].update(counts)
    return dict(sorted(rooms.items(), key=lambda room: (room[0] == "all", room[0])))


def main() -> None:
    """Print the table."""
    print(f"{'room':14}{'lines':>8}{'covered':>9}{'branches':>10}{'covered':>9}")
    for room, counts in rooms_of(Path(sys.argv[1])).items():
        lines = 100 * counts["covered_lines"] / max(counts["num_statements"], 1)
        branches = 100 * counts["covered_branches"] / max(counts["num_branches"], 1)
        print(f"{room:14}{counts['num_statements']:8,}{lines:8.1f}%{counts['num_branches']:10,}{branches:8.1f}%")


if __name__ == "__main__":
    main()
