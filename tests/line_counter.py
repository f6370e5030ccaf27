"""Counter of the lines and branches of the package that tests run.

    COUNT_LINES=FOLDER pytest

coverage.py traces every line of every library on Python 3.11 and doubles to triples the time of the tests. Here, each
statement and each way out of an ``if``, a loop or a ``match`` of the package is preceded by one assignment to a list,
written into its syntax tree as the module is imported, which costs some nanoseconds. Each process writes a file
``{path: [lines, hits]}`` to the folder: ``lines`` has the line of each marked statement and 0 for each marked branch,
and ``hits`` one digit each, 1 if it was run. ``scripts/coverage_by_room.py`` adds the files up.

Lines and branches are those of coverage.py, but that an exception clause, or a ``case``, counts as run if its body is
entered, and that a ``match`` has one branch for each ``case`` and one for no match.
"""

from __future__ import annotations

import ast
import json
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

PACKAGE = Path(__file__).parents[1] / "medtest"
LINES: dict[str, list[int]] = {}
HITS: dict[str, list[int]] = {}
_LIST = "__hits__"
"""Name of the list in each module."""


class _Marks:
    """Marks put into the syntax tree of a module, in place."""

    def __init__(self, tree: ast.Module) -> None:
        self.lines: list[int] = []
        self._mark_bodies(tree)

    def _mark(self, line: int, at: int) -> ast.stmt:
        """Return an assignment for a statement of a line, or for a branch (0), which has the line ``at``."""
        place = _place(at)
        number = ast.Constant(len(self.lines), **place)
        item = ast.Subscript(ast.Name(_LIST, ast.Load(), **place), number, ast.Store(), **place)
        self.lines.append(line)
        return ast.Assign([item], ast.Constant(1, **place), **place)

    def _mark_bodies(self, node: ast.AST) -> None:
        for field in ("body", "orelse", "finalbody"):
            if body := getattr(node, field, None):
                setattr(node, field, self._marked(body))
        for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            line = part.lineno if isinstance(part, ast.ExceptHandler) else part.pattern.lineno
            self._mark_bodies(part)
            part.body.insert(0, self._mark(line, line))

    def _marked(self, body: list[ast.stmt]) -> list[ast.stmt]:
        marked: list[ast.stmt] = []
        for statement in body:
            if _is_from_future(statement):  # comes first
                marked += [statement, self._mark(statement.lineno, statement.lineno)]
                continue
            if not _is_unmarked(statement, statement is body[0]):
                for decorator in getattr(statement, "decorator_list", ()):
                    marked.append(self._mark(decorator.lineno, decorator.lineno))
                marked.append(self._mark(statement.lineno, statement.lineno))
                self._mark_bodies(statement)
                self._mark_branches(statement)
            marked.append(statement)
        return marked

    def _mark_branches(self, node: ast.stmt) -> None:
        line = node.lineno
        if isinstance(node, ast.Match):
            for case in node.cases:
                case.body.insert(0, self._mark(0, line))
            if not _matches_all(node.cases[-1]):
                node.cases.append(ast.match_case(ast.MatchAs(**_place(line)), None, [self._mark(0, line)]))
        elif isinstance(node, ast.If | ast.For | ast.AsyncFor) or (
            isinstance(node, ast.While) and not isinstance(node.test, ast.Constant)
        ):
            node.body.insert(0, self._mark(0, line))
            node.orelse.insert(0, self._mark(0, line))


def _place(line: int) -> dict[str, int]:
    return {"lineno": line, "end_lineno": line, "col_offset": 0, "end_col_offset": 0}


def _is_from_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _is_unmarked(node: ast.stmt, is_first: bool) -> bool:
    """Return True for docstrings, ``...`` and ``if TYPE_CHECKING``."""
    match node:
        case ast.Expr(value=ast.Constant(value=value)):
            return is_first or value is ...
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
    return False


def _matches_all(case: ast.match_case) -> bool:
    return case.guard is None and isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None


def count(path: str) -> ast.Module:
    """Return the syntax tree of a file with marks, and make its list of hits."""
    tree = ast.parse(Path(path).read_bytes(), path)
    lines = _Marks(tree).lines
    if path not in HITS:
        LINES[path], HITS[path] = lines, [0] * len(lines)
    first = next((at for at, node in enumerate(tree.body) if isinstance(node, ast.Assign)), len(tree.body))
    get_list = f"{_LIST} = __import__('sys').modules[{__name__!r}].HITS[{path!r}]"
    tree.body[first:first] = ast.parse(get_list).body
    return tree


class _Loader(SourceFileLoader):
    """Loader of the modules of the package."""

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of a module with marks, which is not written to ``__pycache__``."""
        path = self.get_filename(fullname)
        return compile(count(path), path, "exec", dont_inherit=True)


class _Finder:
    """Finder of the modules of the package."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec of a module of the package, with the loader that counts."""
        if name.partition(".")[0] != PACKAGE.name:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec and type(spec.loader) is SourceFileLoader and spec.origin and PACKAGE in Path(spec.origin).parents:
            spec.loader = _Loader(name, spec.origin)
        return spec


def start() -> None:
    """Count the lines of modules that are imported from now on if the environment asks for it."""
    if os.environ.get("COUNT_LINES"):
        sys.meta_path.insert(0, _Finder())  # type: ignore[arg-type]


def write() -> None:
    """Write which lines this process has run, and all lines of modules that it has not imported."""
    if folder := os.environ.get("COUNT_LINES"):
        for path in PACKAGE.rglob("*.py"):
            if str(path) not in HITS:
                count(str(path))
        counts = {path: [LINES[path], "".join(map(str, hits))] for path, hits in HITS.items()}
        Path(folder).mkdir(parents=True, exist_ok=True)
        Path(folder, f"{os.getpid()}.json").write_text(json.dumps(counts), encoding="utf-8")
