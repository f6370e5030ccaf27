"""The product shares no code with its judges."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import medtest.simlab

FOLDER = Path(medtest.simlab.__file__).parent
FORBIDDEN = ("language", "phantoms", "readers", "relations", "results", "seeds", "systems", "tasks")
BRUSH = "medtest.phantoms.scenes"
"""What paints scenes: the product's pictures and those on which readers of pictures train come of one brush."""
BRUSHES = (BRUSH, *(f"medtest.phantoms.{kind}.ordered" for kind in ("chest", "questions", "capsule")))
"""All that paints."""


def test_it_imports_no_module_that_types_or_judges_answers_or_draws_pictures() -> None:
    files = sorted(FOLDER.rglob("*.py"))
    assert len(files) > 10
    assert all((FOLDER.parent / room).is_dir() for room in FORBIDDEN)
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            if isinstance(node, ast.ImportFrom):
                names = [str(node.module), *(f"{node.module}.{name}" for name in names)]
            if "drawing" in path.relative_to(FOLDER).parts:
                names = [name for name in names if not name.startswith(BRUSHES)]
            for name in names:
                assert not name.startswith(tuple(f"medtest.{room}" for room in FORBIDDEN)), f"{path.name}: {name}"


def _loaded_modules(module: str) -> set[str]:
    """Return the modules of forbidden rooms that importing one module loads."""
    code = (
        f"import sys, {module}\n"
        f"print([n for n in sys.modules if n.startswith(tuple('medtest.' + r for r in {FORBIDDEN!r}))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(ast.literal_eval(done.stdout))


def test_no_forbidden_module_is_loaded_by_another_room() -> None:
    assert _loaded_modules("medtest.simlab.serve") <= _loaded_modules(BRUSH)
    assert _loaded_modules("medtest.simlab.config") == set()


def test_readers_of_captions_and_pictures_do_not_know_the_module_that_draws_them() -> None:
    # its words and its layouts are its own: nothing that parses, sees or paints has them
    for room in ("language", "readers", "relations", "phantoms", "core/oracles"):
        files = sorted((FOLDER.parent / room).rglob("*.py"))
        assert files, room
        for path in files:
            assert "simlab" not in path.read_text(encoding="utf-8"), path
    for own in (FOLDER / "drawing" / "nouns.yaml", FOLDER / "drawing" / "clinical" / "nouns.yaml"):
        others = [path for path in FOLDER.parent.rglob("*.yaml") if path.parent != own.parent]
        assert all(own.read_bytes() != path.read_bytes() for path in others)
