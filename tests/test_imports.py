"""Imports run one way, and the core imports nothing heavy: the fifth rule of the house."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "medtest"

LAYERS: dict[str, int] = {
    "errors": 0,
    "paths": 0,
    "signals": 0,
    "portable": 0,
    "files.sqlite": 0,
    "address": 0,
    "probes": 0,
    "scenes": 0,
    "outputs": 0,
    "cases": 0,
    "moved": 0,
    "classes": 1,
    "plugins": 1,
    "records": 1,
    "files": 0,
    "files.tensors": 1,
    "files.tiffheader": 1,
    "files.images": 1,
    "files.links": 0,
    "files.walk": 1,
    "files.mask_levels": 1,
    "files.masks": 1,
    "files.by_content": 1,
    "generators": 2,
    "vqa": 2,
    "captions": 2,
    "api": 1,
    "data_url": 2,  # folders in stores, fetched
    "simlab": 2,
    "volumes": 1,
    "tasks.base": 2,  # what every other room may ask; the tasks themselves stand above the engines
    "oracles.moves": 1,  # arithmetic that judges and pictures share
    "preparation": 2,
    "phantoms": 2,
    "seeds": 3,
    "relations": 3,
    "systems": 3,
    "oracles": 3,
    "readers": 4,  # above the parts: none of them knows who reads what
    "embeddings": 5,  # networks of pictures, for figures of what systems drew
    "suite": 5,
    "runner": 6,
    "results": 7,
    "followups": 7,
    "training": 8,
    "study": 8,
    "tracking": 9,
    "report": 9,
    "tasks": 9,
    "result": 10,
    "testing": 10,
    "inside": 10,
    "packs": 10,
    "arguments": 6,
    "runs": 10,
    "cli": 11,
    "__main__": 12,
}
FOUR_PARTS = {"seeds", "relations", "systems", "oracles"}
LAZY_ALLOWED = {
    ("report", "tracking"),  # finish() tracks after it has reported
    ("training", "tracking"),  # training logs to the same store
    ("study", "tracking"),  # so does a study's report
}
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


TASKS = ("tasks.base", "tasks")


def _room(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return _placed(parts)


def _placed(parts: Sequence[str]) -> str:
    """Return the room of a module, or the module itself where it has a place of its own."""
    own = ".".join(parts[:2])
    if own in ("tasks", "tasks.results", "tasks.panels"):
        return "tasks.base"
    return own if own in LAYERS else parts[0]


@cache
def _modules() -> list[Path]:
    return [p for p in sorted(PACKAGE.rglob("*.py")) if p.name != "__init__.py" or p.parent != PACKAGE]


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def _statements(path: Path) -> tuple[list[ast.Import | ast.ImportFrom], list[ast.Import | ast.ImportFrom]]:
    """Return what a file imports, and what of it only where types are checked."""
    tree = _tree(path)
    types = [one for one in tree.body if isinstance(one, ast.If) and "TYPE_CHECKING" in ast.dump(one.test)]
    every, typed = (
        [node for part in parts for node in ast.walk(part) if isinstance(node, ast.Import | ast.ImportFrom)]
        for parts in (tree.body, types)
    )
    return every, typed


def _imports(path: Path) -> list[str]:
    names: list[str] = []
    for node in _statements(path)[0]:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif node.level == 0 and node.module:
            names.append(node.module)
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def _upward(path: Path) -> Iterator[str]:
    """Say what a file imports that it must not know."""
    room = _room(path)
    for name in _imports(path):
        parts = name.split(".")
        if parts[0] != "medtest" or len(parts) < 2 or parts[1] not in LAYERS:
            continue
        other = _placed(parts[1:])
        if other == room or (room, other) in LAZY_ALLOWED:
            continue
        if LAYERS[other] > LAYERS[room]:
            yield f"{path} imports {name}, which stands above it"
        if other == "tasks" and room not in TASKS:
            yield f"{path} imports {name}: engines ask the task object (tasks/base)"
        if room in FOUR_PARTS and other in FOUR_PARTS - {room}:
            yield f"{path} imports {name}: the four parts do not know one another"


def test_imports_run_one_way() -> None:
    assert {_room(path) for path in _modules()} <= LAYERS.keys()
    assert [breach for path in _modules() for breach in _upward(path)] == []


def test_no_modules_import_one_another_in_a_circle() -> None:
    paths = {path.relative_to(PACKAGE.parent).with_suffix("").parts: path for path in _modules()}
    modules = {".".join(name).removesuffix(".__init__"): path for name, path in paths.items()}
    graph: TopologicalSorter[str] = TopologicalSorter()
    for name, path in modules.items():
        every, typed = _statements(path)
        for node in (one for one in every if one not in typed):
            if isinstance(node, ast.Import):
                graph.add(name, *modules.keys() & {alias.name for alias in node.names})
            elif node.level == 0:
                inner = (f"{node.module}.{alias.name}" for alias in node.names)
                graph.add(name, *modules.keys() & {one if one in modules else str(node.module) for one in inner})
    graph.prepare()  # else a CycleError names them


KINDS = frozenset({"mask", "label", "answer", "image", "region"})
OUTPUTS = frozenset({"MaskOutput", "LabelOutput", "AnswerOutput", "ImageOutput", "RegionOutput", "AskingSystem"})


def _said(node: ast.AST) -> str:
    return str(getattr(node, "attr", getattr(node, "id", "")))


def _asks_for_a_kind(node: ast.AST) -> bool:
    """Say whether code looks at the name of a task, or at the class of an output, to tell what it has before it."""
    if isinstance(node, ast.Compare):
        constants = {one.value for one in ast.walk(node) if isinstance(one, ast.Constant)}
        sides = [_said(side) for side in (node.left, *node.comparators)]
        kinds = any(side.endswith(("kind", "task", "tasks")) for side in sides) and bool(constants & KINDS)
        asked = [one for one in ast.walk(node) if isinstance(one, ast.Call) and _said(one.func) == "type"]
        return kinds or (bool(asked) and bool({_said(one) for one in ast.walk(node)} & OUTPUTS))
    if isinstance(node, ast.Match):
        patterns = {_said(one) for case in node.cases for one in ast.walk(case.pattern)}
        return _said(node.subject).endswith(("kind", "task")) or bool(patterns & OUTPUTS)
    if isinstance(node, ast.Call) and _said(node.func) in ("isinstance", "issubclass"):
        return bool({_said(one) for one in ast.walk(node.args[1])} & OUTPUTS)
    if isinstance(node, ast.Call) and _said(node.func) == "hasattr":
        return _said(node.args[0]).endswith(("output", "answer"))
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
            "oracles",
            "criteria.py",
        ):  # its keys are names of criteria
            asking += [f"{path}:{node.lineno}" for node in ast.walk(_tree(path)) if _asks_for_a_kind(node)]
    assert asking == [], "ask the task object (medtest/core/tasks/base.py)"


ENGINES = ("runner", "results", "report", "tracking", "suite", "cli", "runs", "result")
"""Rooms that run, count and show whatever the kind of answer; published figures name their own tables."""
PUBLISHED = ("results", "published")


@cache
def _names_of_tasks_tables() -> frozenset[str]:
    """Return the names of the tables that single tasks make: texts of their modules that end so."""
    paths = [path for path in _modules() if path.relative_to(PACKAGE).parts[0] == "tasks"]
    texts = [
        node.value
        for path in paths
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return frozenset(text for text in texts if re.fullmatch(r"[a-z_]+\.csv", text))


@cache
def _shared_by_all_tasks() -> tuple[frozenset[str], frozenset[str]]:
    """Return what all tasks' tables, and what tasks make besides, may be asked for."""
    from medtest.core.tasks.results import TaskResults
    from medtest.results.tables import Tables

    return tuple(frozenset(dir(one) + list(getattr(one, "__annotations__", ()))) for one in (Tables, TaskResults))  # type: ignore[return-value]


def _asks_for_a_table(node: ast.AST) -> bool:
    """Say whether code asks by attribute for a table that only one kind of answer has."""
    if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute)):
        return False
    of_all, of_tasks = _shared_by_all_tasks()
    holder, whose = node.value.attr, _said(node.value.value)
    if holder == "tables" and whose == "material":
        return node.attr not in of_all
    return holder == "own" and whose in ("tables", "made") and node.attr not in of_tasks


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
        nodes = list(ast.walk(_tree(path)))
        asking += [f"{path}:{getattr(node, 'lineno', 0)}" for node in nodes if _asks_for_a_table(node)]
        if path.relative_to(PACKAGE).parts[:2] != PUBLISHED:
            texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
            asking += [f"{path} names {name}" for name in sorted(_names_of_tasks_tables() & texts)]
    assert asking == [], "ask what the task makes of records (medtest/core/tasks/results.py)"


def test_only_tracking_imports_mlflow() -> None:
    registry = PACKAGE / "systems" / "adapters" / "registry"  # a model of MLflow's is loaded by MLflow
    for path in _modules():
        if _room(path) != "tracking" and path.parent != registry:
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


def test_files_of_tests_have_names_of_their_own():
    # pytest imports them by these names alone
    names = [path.name for path in Path(__file__).parent.rglob("test_*.py")]
    assert sorted(set(names)) == sorted(names)


def _beside() -> list[Path]:
    root = PACKAGE.parent
    return [path for folder in ("benchmarks", "scripts") for path in sorted((root / folder).glob("*.py"))]


@pytest.mark.parametrize("path", _beside(), ids=lambda p: f"{p.parent.name}/{p.name}")
def test_benchmarks_and_scripts_import_what_is_there(path: Path) -> None:
    # they are run by hand, when what they import may have moved long since
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").split(".")[0] == "medtest":
            module = importlib.import_module(str(node.module))
            for alias in node.names:
                found = hasattr(module, alias.name) or importlib.util.find_spec(f"{node.module}.{alias.name}")
                assert found, f"{path.name} imports {alias.name} from {node.module}, where it is not"
