"""The product shares no code with what judges it."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import medtest.simlab

FOLDER = Path(medtest.simlab.__file__).parent
FORBIDDEN = ("vqa", "oracles", "results", "seeds", "phantoms", "relations", "systems")


def test_it_imports_nothing_that_types_or_judges_answers_or_draws_pictures() -> None:
    files = sorted(FOLDER.rglob("*.py"))
    assert len(files) > 10
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            if isinstance(node, ast.ImportFrom):
                names = [str(node.module), *(f"{node.module}.{name}" for name in names)]
            for name in names:
                assert not name.startswith(tuple(f"medtest.{room}" for room in FORBIDDEN)), f"{path.name}: {name}"


def test_nothing_comes_in_by_way_of_another_room() -> None:
    code = (
        "import sys, medtest.simlab.serve\n"
        f"print([n for n in sys.modules if n.startswith(tuple('medtest.' + r for r in {FORBIDDEN!r}))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
