"""Imports run one way, and the core imports nothing heavy."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "medtest"

HEAVY = {
    "torch",
    "torchvision",
    "mlflow",
    "transformers",
    "openai",
    "pandas",
    "matplotlib",
    "statsmodels",
    "onnxruntime",
}


def _room(path: Path) -> str:
    """Return the first folder below the package, or the module itself if it is in none."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


@cache
def _modules() -> list[Path]:
    return [p for p in sorted(PACKAGE.rglob("*.py")) if p.name != "__init__.py" or p.parent != PACKAGE]


@dataclass(frozen=True, kw_only=True)
class Module:
    """Parts of a file that the rules below need; its tree is not kept, since 1,200 of them slow later tests down.

    Attributes:
        imports: Its import statements, those for annotations too.
        kinds: Lines that ask for a kind of answer.
        tables: Lines that ask for a table of one kind.
        csv_names: Texts that name a CSV file.
    """

    imports: tuple[ast.Import | ast.ImportFrom, ...]
    kinds: tuple[int, ...]
    tables: tuple[int, ...]
    csv_names: frozenset[str]


@cache
def _module(path: Path) -> Module:
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    texts = (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return Module(
        imports=tuple(node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)),
        kinds=tuple(getattr(node, "lineno", 0) for node in nodes if _asks_for_a_kind(node)),
        tables=tuple(getattr(node, "lineno", 0) for node in nodes if _asks_for_a_table(node)),
        csv_names=frozenset(text for text in texts if re.fullmatch(r"[a-z_]+\.csv", text)),
    )


def _imports(path: Path) -> list[str]:
    names: list[str] = []
    for node in _module(path).imports:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif node.level == 0 and node.module:
            names.append(node.module)
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def test_rooms_import_only_rooms_below_them() -> None:
    # the layers of pyproject.toml, as `make lint` checks them
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"],
        capture_output=True,
        text=True,
        cwd=PACKAGE.parent,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr


def test_no_modules_import_one_another_in_a_circle() -> None:
    paths = {path.relative_to(PACKAGE.parent).with_suffix("").parts: path for path in _modules()}
    modules = {".".join(name).removesuffix(".__init__"): path for name, path in paths.items()}
    graph: TopologicalSorter[str] = TopologicalSorter()
    for name, path in modules.items():
        for node in _module(path).imports:
            if isinstance(node, ast.Import):
                graph.add(name, *modules.keys() & {alias.name for alias in node.names})
            elif node.level == 0:
                inner = (f"{node.module}.{alias.name}" for alias in node.names)
                graph.add(name, *modules.keys() & {full if full in modules else str(node.module) for full in inner})
    graph.prepare()  # else a CycleError names them


def _left_over(path: Path) -> bool:
    """Return True for a folder that holds nothing but compiled files after its modules moved."""
    return path.is_dir() and not [inner for inner in path.rglob("*") if inner.is_file() and inner.suffix != ".pyc"]


def test_no_folder_holds_more_than_fifteen_entries() -> None:
    data = {"weights", "published", "blood", "feces", "instrument"}
    crowded = {}
    for folder in [PACKAGE, *(path for path in PACKAGE.rglob("*") if path.is_dir() and path.name != "__pycache__")]:
        entries = [
            path for path in folder.iterdir() if path.name not in ("__pycache__", "_data") and not _left_over(path)
        ]
        if folder.name not in data and folder != PACKAGE and len(entries) > 15:
            crowded[str(folder)] = len(entries)
    assert crowded == {}


KINDS = frozenset({"mask", "label", "answer", "image", "region"})
OUTPUTS = frozenset({"MaskOutput", "LabelOutput", "AnswerOutput", "ImageOutput", "RegionOutput", "AskingSystem"})


def _name_of(node: ast.AST) -> str:
    return str(getattr(node, "attr", getattr(node, "id", "")))


def _asks_for_a_kind(node: ast.AST) -> bool:
    """Return True for code that looks at the name of a task, or at the class of an output, to choose what to do."""
    if isinstance(node, ast.Compare):
        constants = {part.value for part in ast.walk(node) if isinstance(part, ast.Constant)}
        sides = [_name_of(side) for side in (node.left, *node.comparators)]
        kinds = any(side.endswith(("kind", "task", "tasks")) for side in sides) and bool(constants & KINDS)
        calls = [part for part in ast.walk(node) if isinstance(part, ast.Call) and _name_of(part.func) == "type"]
        return kinds or (bool(calls) and bool({_name_of(part) for part in ast.walk(node)} & OUTPUTS))
    if isinstance(node, ast.Match):
        patterns = {_name_of(part) for case in node.cases for part in ast.walk(case.pattern)}
        return _name_of(node.subject).endswith(("kind", "task")) or bool(patterns & OUTPUTS)
    if isinstance(node, ast.Call) and _name_of(node.func) in ("isinstance", "issubclass"):
        return bool({_name_of(part) for part in ast.walk(node.args[1])} & OUTPUTS)
    if isinstance(node, ast.Call) and _name_of(node.func) == "hasattr":
        return _name_of(node.args[0]).endswith(("output", "answer"))
    if isinstance(node, ast.Dict):
        keys = [key.value for key in node.keys if isinstance(key, ast.Constant)]
        return len(keys) > 1 and set(keys) <= KINDS
    return False


@pytest.mark.parametrize(
    "code",
    [
        'x = seed.kind == "mask"',
        'x = kind in ("image", "region")',
        'x = "label" in system.tasks',
        "x = isinstance(answer.output, LabelOutput | MaskOutput)",
        "x = type(output) is MaskOutput",
        'x = hasattr(case.output, "region")',
        'x = {"label": 1, "answer": 2}.get(suite.kind, 3)',
        "match suite.kind:\n    case _:\n        pass",
        "match output:\n    case MaskOutput():\n        pass",
    ],
)
def test_code_that_asks_for_a_kind_of_answer_is_seen(code: str) -> None:
    assert any(_asks_for_a_kind(node) for node in ast.walk(ast.parse(code)))


def test_no_engine_asks_for_a_kind_of_answer() -> None:
    asking = []
    for path in _modules():
        parts = path.relative_to(PACKAGE).parts
        if parts[0] not in ("tasks", "readers") and parts != (
            "core",
            "oracles",
            "criteria.py",
        ):
            asking += [f"{path}:{line}" for line in _module(path).kinds]
    assert asking == [], "ask the task object (medtest/core/tasks/base.py)"


ENGINES = ("runner", "results", "report", "suite", "cli", "session")
"""Rooms that run, count and show every kind of answer; published figures name their own tables."""
PUBLISHED = ("results", "published")


@cache
def _names_of_tasks_tables() -> frozenset[str]:
    """Return the names of the tables that single tasks make: texts of their modules with such an end."""
    return frozenset().union(*(_module(path).csv_names for path in _modules() if _room(path) == "tasks"))


@cache
def _shared_by_all_tasks() -> tuple[frozenset[str], frozenset[str]]:
    """Return the attributes of all tasks' tables, and of the other results of tasks."""
    from medtest.core.tasks.results import TaskResults
    from medtest.results.tables import Tables

    return tuple(frozenset(dir(cls) + list(getattr(cls, "__annotations__", ()))) for cls in (Tables, TaskResults))  # type: ignore[return-value]


def _asks_for_a_table(node: ast.AST) -> bool:
    """Return True for code that asks by attribute for a table that only one kind of answer has."""
    if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute)):
        return False
    of_all, of_tasks = _shared_by_all_tasks()
    holder, owner = node.value.attr, _name_of(node.value.value)
    if holder == "tables" and owner == "material":
        return node.attr not in of_all
    return holder == "own" and owner in ("tables", "made") and node.attr not in of_tasks


@pytest.mark.parametrize(
    "code",
    [
        "x = material.tables.answers",
        "x = one.material.tables.labels.flips",
        "x = material.tables.own.tables",
        "x = made.own.found",
    ],
)
def test_code_that_asks_for_a_table_of_one_kind_is_seen(code: str) -> None:
    assert any(_asks_for_a_table(node) for node in ast.walk(ast.parse(code)))


def test_no_engine_asks_for_a_table_of_one_kind() -> None:
    asking = []
    for path in (path for path in _modules() if _room(path) in ENGINES):
        asking += [f"{path}:{line}" for line in _module(path).tables]
        if path.relative_to(PACKAGE).parts[:2] != PUBLISHED:
            asking += [f"{path} names {name}" for name in sorted(_names_of_tasks_tables() & _module(path).csv_names)]
    assert asking == [], "ask what the task makes of records (medtest/core/tasks/results.py)"


def test_only_tracking_imports_mlflow() -> None:
    model = PACKAGE / "systems" / "adapters" / "mlflow_model.py"  # MLflow loads its own models
    for path in _modules():
        if path.relative_to(PACKAGE).parts[:2] != ("report", "tracking") and path != model:
            assert not any(n.split(".")[0] == "mlflow" for n in _imports(path)), path


def test_nothing_private_of_hydra_is_imported() -> None:
    for path in _modules():
        private = [name for name in _imports(path) if name.startswith(("hydra._", "omegaconf._"))]
        assert not private, f"{path} imports {private[0]}, which another version may not have"


def test_the_core_imports_nothing_heavy() -> None:
    code = (
        "import sys, medtest.suite.compose, medtest.runner, medtest.cli.app, medtest.cli.run.launch\n"
        f"print(sorted({HEAVY!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_files_of_tests_have_unique_names():
    # pytest imports them by their bare names
    names = [path.name for path in Path(__file__).parent.rglob("test_*.py")]
    assert sorted(set(names)) == sorted(names)


def _beside() -> list[Path]:
    root = PACKAGE.parent
    return [path for folder in ("benchmarks", "scripts") for path in sorted((root / folder).glob("*.py"))]


@pytest.mark.parametrize("path", _beside(), ids=lambda p: f"{p.parent.name}/{p.name}")
def test_benchmarks_and_scripts_import_existing_names(path: Path) -> None:
    # they are run by hand, maybe long after their imports have moved
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").split(".")[0] == "medtest":
            module = importlib.import_module(str(node.module))
            for alias in node.names:
                exists = hasattr(module, alias.name) or importlib.util.find_spec(f"{node.module}.{alias.name}")
                assert exists, f"{path.name} imports {alias.name} from {node.module}, which does not have it"
