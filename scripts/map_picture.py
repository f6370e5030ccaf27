"""Draw the rooms of the package and their imports: ``python scripts/map_picture.py`` writes docs/images/map.svg.

Rows are the layers that pyproject.toml gives to import-linter. An arrow is an import between rooms that no other path
of arrows implies (the transitive reduction of the import graph).
"""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).parents[1]
OUT = ROOT / "docs" / "images" / "map.svg"
WIDTH, ROW, BOX_HEIGHT, BOX_WIDTH = 860, 62, 34, 116
NOTES = {
    "cli": "commands",
    "session": "one call",
    "study": "human study",
    "inside": "look inside",
    "training": "trainers",
    "tasks": "kinds of answer",
    "report": "pages, MLflow, CI",
    "results": "records → tables",
    "testing": "for plug-ins",
    "runner": "plan → records",
    "interop": "MAITE, NRTK",
    "suite": "YAML → plan",
    "readers": "answers → facts",
    "seeds": "source cases",
    "relations": "follow-ups",
    "systems": "under test",
    "language": "words",
    "simlab": "simulated product",
    "core": "vocabulary",
    "api": "calls to models",
}


def layers() -> list[list[str]]:
    """Return the rooms of each layer, highest layer first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    rows = project["tool"]["importlinter"]["contracts"][0]["layers"]
    return [[room.strip() for room in row.split("|")] for row in rows]


def imports() -> dict[str, set[str]]:
    """Return the rooms that each room imports."""
    graph: dict[str, set[str]] = {}
    package = ROOT / "medtest"
    for path in package.rglob("*.py"):
        room = path.relative_to(package).with_suffix("").parts[0]
        names: set[str] = graph.setdefault(room, set())
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                full = [node.module] if "." in node.module else [f"{node.module}.{alias.name}" for alias in node.names]
                names |= {name.split(".")[1] for name in full if name.startswith("medtest.")}
        names.discard(room)
    return graph


def reduced(graph: dict[str, set[str]]) -> list[tuple[str, str]]:
    """Return the edges of the transitive reduction of an acyclic graph."""

    def below(room: str, seen: set[str]) -> set[str]:
        for other in graph.get(room, set()) - seen:
            seen.add(other)
            below(other, seen)
        return seen

    reach = {room: below(room, set()) for room in graph}
    return [
        (room, other)
        for room, others in sorted(graph.items())
        for other in sorted(others)
        if not any(other in reach.get(middle, set()) for middle in others - {other})
    ]


def draw() -> str:
    """Return the picture as SVG text."""
    rows = layers()
    places: dict[str, tuple[float, float]] = {}
    for index, row in enumerate(rows):
        step = WIDTH / (len(row) + 1)
        for column, room in enumerate(row):
            places[room] = (step * (column + 1), 24 + index * ROW)
    graph = {
        room: {other for other in others if other in places} for room, others in imports().items() if room in places
    }
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {len(rows) * ROW + 12}" role="img" '
        'font-family="system-ui, sans-serif" font-size="14">',
        "<title>Rooms of the package; arrows point from a room to those it imports</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="#8a94a6"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{len(rows) * ROW + 12}" fill="#fff"/>',
    ]
    for upper, lower in reduced(graph):
        (x1, y1), (x2, y2) = places[upper], places[lower]
        parts.append(
            f'<path d="M{x1:.0f} {y1 + BOX_HEIGHT / 2:.0f}C{x1:.0f} {y1 + 40:.0f} {x2:.0f} {y2 - 40:.0f} {x2:.0f} '
            f'{y2 - BOX_HEIGHT / 2 - 1:.0f}" fill="none" stroke="#8a94a6" stroke-width="1.2" marker-end="url(#tip)"/>'
        )
    for room, (x, y) in places.items():
        note = NOTES.get(room, "")
        parts.append(
            f'<rect x="{x - BOX_WIDTH / 2:.0f}" y="{y - BOX_HEIGHT / 2:.0f}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" '
            'rx="6" fill="#eef3fb" stroke="#3b6fb6"/>'
            f'<text x="{x:.0f}" y="{y + (-2 if note else 5):.0f}" text-anchor="middle" fill="#10284a">'
            f"{escape(room)}</text>"
        )
        if note:
            parts.append(
                f'<text x="{x:.0f}" y="{y + 12:.0f}" text-anchor="middle" font-size="10.5" fill="#475569">'
                f"{escape(note)}</text>"
            )
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    OUT.write_text(draw(), encoding="utf-8")
    print(f"wrote {OUT.relative_to(ROOT)}")
