"""Remake digests and golden files, and check that nothing else changes.

``python scripts/remake_digests.py`` writes ``tests/data/digests``, ``tests/data/golden/expected`` and
``medtest/weights/gap.json`` again and compares them, and the frozen records, with those of a git revision, HEAD by
default. Digests, names of parts, formats and reasons may differ, and the words of pages; figures in tables of pages may
not. Exit code 0: nothing else differs; 1: something does, and it is listed.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from medtest.relations.adversarial.generators.files import SHIPPED
from medtest.suite.compose import load
from medtest.suite.digest import system_digest

ROOT = Path(__file__).resolve().parents[1]
GAP = Path("medtest/weights") / SHIPPED
FILES = (Path("tests/data/digests"), Path("tests/data/golden/records"), Path("tests/data/golden/expected"), GAP)
TESTS = ("tests/suite/test_digest_names.py", "tests/cli/test_golden.py")
GENERATORS = {
    "attnmel": "robust_benchmark_melanoma",
    "chexnet": "robust_benchmark_chest",
    "inceptionv3_dr": "robust_benchmark_retinopathy",
}
"""Systems that shipped generators attack, and a suite with each."""
NAMES = {"class", "name", "oracle", "reader", "relation", "source", "system"}
"""Keys of JSON whose values name a part."""
MAY_DIFFER = {"digest", "format", "reason", "reason_code", "tables_of"}
"""Keys of JSON and columns of records and tables that may differ."""
_DIGEST = re.compile(r"\b[0-9a-f]{24}\b")


def main(arguments: Sequence[str] | None = None) -> int:
    """Remake the files and list differences that are not allowed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revision", nargs="?", default="HEAD", help="git revision to compare with; default: HEAD")
    parser.add_argument("--check", action="store_true", help="compare the files as they are, without remaking them")
    options = parser.parse_args(arguments)
    if not options.check:
        _remake()
    with tempfile.TemporaryDirectory() as folder:
        old = Path(folder)
        archive = ["git", "-C", str(ROOT), "archive", options.revision, *map(str, FILES)]
        with tarfile.open(fileobj=io.BytesIO(subprocess.run(archive, capture_output=True, check=True).stdout)) as tar:
            tar.extractall(old, filter="data")
        lines = differences(old, ROOT)
    print("\n".join(lines) or f"only digests, names of parts, formats and reasons differ from {options.revision}")
    return int(bool(lines))


def _remake() -> None:
    digests = {}
    for name, suite_name in GENERATORS.items():
        suite = load(suite_name, [f"model={name}"]).suite
        digests[f"gap-{name}-compact"] = [system_digest(suite.systems[0], suite.build_systems()[name], suite.task)]
    (ROOT / GAP).write_text(json.dumps(digests, indent=1) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "--remake", *TESTS]
    if subprocess.run(command, cwd=ROOT, check=False).returncode:
        sys.exit("pytest --remake failed")


def differences(old: Path, new: Path) -> list[str]:
    """Return the differences between two copies of the files that are not allowed, one per line."""
    before, after = _files(old), _files(new)
    lines = [f"{name}: only {'before' if name in before else 'after'}" for name in sorted(before.keys() ^ after.keys())]
    for name in sorted(before.keys() & after.keys()):
        pair = before[name], after[name]
        if pair[0].read_bytes() != pair[1].read_bytes():
            compare = _COMPARISONS.get(pair[0].suffix, _text)
            lines += [f"{name}: {line}" for line in compare(*pair)]
    return lines


def _files(root: Path) -> dict[str, Path]:
    """Return the files by their paths, in which every digest is masked."""
    files = [path for place in FILES for path in (root / place, *(root / place).rglob("*")) if path.is_file()]
    return {_DIGEST.sub("DIGEST", path.relative_to(root).as_posix()): path for path in files}


def _json(old: Path, new: Path) -> Iterator[str]:
    yield from _values(*(json.loads(path.read_text(encoding="utf-8")) for path in (old, new)), at=())


def _values(old: Any, new: Any, *, at: tuple[str, ...]) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from _values(old.get(key), new.get(key), at=(*at, key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, pair in enumerate(zip(old, new, strict=True)):
            yield from _values(*pair, at=(*at, str(number)))
    elif old != new and not _is_allowed(old, new, at[-1]):
        yield f"{'.'.join(at)}: {old!r} became {new!r}"


def _is_allowed(old: Any, new: Any, key: str) -> bool:
    if key in MAY_DIFFER:
        return True
    if key in NAMES:
        return all(isinstance(value, str | None) for value in (old, new))
    is_digest = all(isinstance(value, str) and _DIGEST.fullmatch(value) for value in (old, new))
    return is_digest and key != "settings"


def _records(old: Path, new: Path) -> Iterator[str]:
    tables = [pq.read_table(path) for path in (old, new)]
    yield from _columns(*({name: table[name].to_pylist() for name in table.column_names} for table in tables))


def _table(old: Path, new: Path) -> Iterator[str]:
    columns = []
    for path in (old, new):
        header, *rows = csv.reader(path.read_text(encoding="utf-8").splitlines())
        columns.append(dict(zip(header, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(header, ()))
    yield from _columns(*columns)


def _columns(old: dict[str, Sequence[Any]], new: dict[str, Sequence[Any]]) -> Iterator[str]:
    yield from (f"column {name} is in one alone" for name in sorted((old.keys() ^ new.keys()) - MAY_DIFFER))
    for name in sorted((old.keys() & new.keys()) - MAY_DIFFER):
        if len(old[name]) != len(new[name]):
            yield f"{name}: {len(old[name])} rows became {len(new[name])}"
            continue
        pairs = list(zip(old[name], new[name], strict=True))
        rows = [row for row, (left, right) in enumerate(pairs) if left != right and not left != left != right != right]
        if rows:
            left, right = pairs[rows[0]]
            yield f"{name}: {len(rows)} of {len(pairs)} values differ; row {rows[0]}: {left!r} became {right!r}"


def _page(old: Path, new: Path) -> Iterator[str]:
    """Compare the cells that hold figures; words and the sentences around them may differ."""
    cells = [_figures(path.read_text(encoding="utf-8")) for path in (old, new)]
    if cells[0] != cells[1]:
        pairs = zip(*cells, strict=False)
        yield next((f"cell {left} became {right}" for left, right in pairs if left != right), "more or fewer cells")


def _figures(page: str) -> list[str]:
    cells = (cell.strip() for line in page.splitlines() if "|" in line for cell in line.split("|"))
    return [cell for cell in cells if any(map(str.isdigit, cell)) and not any(map(str.isalpha, cell))]


def _text(old: Path, new: Path) -> Iterator[str]:
    yield f"{old.suffix or 'file'} content differs"


_COMPARISONS = {".json": _json, ".parquet": _records, ".csv": _table, ".txt": _page}

if __name__ == "__main__":
    sys.exit(main())
