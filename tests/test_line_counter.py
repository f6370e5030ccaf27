"""The counter of lines and branches agrees with coverage.py."""

from __future__ import annotations

import runpy
from pathlib import Path

import coverage
import line_counter
import pytest

PROGRAM = '''"""Docstring."""
from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any
SIZE = 3
"""Documentation of a name."""


@cache
def parity(number):
    """Docstring."""
    if number < 0:
        return "none"
    elif number % 2:
        word = "odd"
    else:
        word = "even"
    return word


class Counter:
    """Docstring."""

    total = 0

    def add(self, numbers):
        for number in numbers:
            if number == 2:
                continue
            self.total += number
        else:
            self.total += 100
        while True:
            self.total += 1
            if self.total > 5:
                break
        while self.total > 4:
            self.total -= 1

    def unused(self):
        with open("nothing") as file:
            for line in file:
                print(line)


counter = Counter()
counter.add([1, 2, 3])
try:
    words = [parity(number) for number in (1, 2)]
    counter.add(None)
    words.append("never")
except TypeError:
    words.append("no numbers")
finally:
    result = counter.total
'''


@pytest.fixture
def hits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_counter, "HITS", {})
    monkeypatch.setattr(line_counter, "LINES", {})


def _counted(path: Path) -> list[tuple[int, int]]:
    """Return the lines of marks, 0 for branches, and 1 or 0 for run or not."""
    exec(compile(line_counter.count(str(path)), str(path), "exec"), {"__name__": "program"})  # noqa: S102 - our own text
    return list(zip(line_counter.LINES[str(path)], line_counter.HITS[str(path)], strict=True))


@pytest.mark.usefixtures("hits")
def test_lines_and_branches_are_those_of_coverage(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    tracer = coverage.Coverage(data_file=None, branch=True, include=[str(path)])
    with tracer.collect():
        runpy.run_path(str(path))
    analysis = tracer._analyze(str(path))
    marks = _counted(path)
    assert {line for line, _ in marks if line} == analysis.statements
    assert {line for line, hit in marks if line and not hit} == analysis.missing
    numbers = analysis.numbers
    assert sum(not line for line, _ in marks) == numbers.n_branches
    assert sum(hit for line, hit in marks if not line) == numbers.n_branches - numbers.n_missing_branches


@pytest.mark.usefixtures("hits")
@pytest.mark.parametrize(("word", "branches"), [("a", [1, 0, 0]), ("b", [0, 1, 0]), ("c", [0, 0, 1])])
def test_a_match_has_a_branch_for_each_case_and_one_for_none(tmp_path: Path, word: str, branches: list[int]) -> None:
    path = tmp_path / "program.py"
    path.write_text(f"match {word!r}:\n    case 'a':\n        x = 1\n    case 'b':\n        x = 2\n", encoding="utf-8")
    assert [hit for line, hit in _counted(path) if not line] == branches


@pytest.mark.usefixtures("hits")
def test_marks_keep_docstrings_and_lines_of_errors(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM + "\nraise ValueError(parity.__doc__)\n", encoding="utf-8")
    with pytest.raises(ValueError, match="Docstring") as raised:
        _counted(path)
    assert raised.traceback[-1].lineno + 1 == PROGRAM.count("\n") + 2


@pytest.mark.usefixtures("hits")
@pytest.mark.parametrize(
    "text", ["print()\nx = 1\n", "print()\n", '"""Docstring."""\nprint()\n', "import os\nprint()\n"]
)
def test_a_module_may_begin_with_any_statement(tmp_path: Path, text: str) -> None:
    path = tmp_path / "program.py"
    path.write_text(text, encoding="utf-8")
    assert all(hit for _, hit in _counted(path))
