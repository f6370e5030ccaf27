"""No two modules hold the same function: written once, it is corrected once."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "medtest"
LEAST = 12
"""Smallest number of nodes of a body that is worth a shared function; shorter ones are a call or two."""


def _bound(tree: ast.Module) -> dict[str, str]:
    """Return the origin of each name at the top of a module, "here" for its own."""
    origins: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            origins |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            origins[node.name] = "here"
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            origins |= {
                name.id: "here" for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)
            }
    return origins


def _does(function: ast.FunctionDef, bound: dict[str, str], path: Path) -> str | None:
    """Return the body of a function as text, without its name, docstring and annotations; None if it is short."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    nodes = [node for part in body for node in ast.walk(part)]
    if len(nodes) < LEAST:
        return None
    names = sorted({node.id for node in nodes if isinstance(node, ast.Name)} - {function.name})
    origins = [str(path) if bound.get(name) == "here" else bound.get(name, "") for name in names]
    parameters = [argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)]
    return repr((parameters, [ast.dump(part) for part in body], origins))


@pytest.mark.slow
def test_no_two_modules_hold_the_same_function() -> None:
    held: dict[str, list[str]] = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        bound = _bound(tree)
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and (does := _does(node, bound, path)) is not None:
                held[does].append(f"{path.relative_to(PACKAGE)}: {node.name}")
    assert [places for places in held.values() if len({place.split(":")[0] for place in places}) > 1] == []
