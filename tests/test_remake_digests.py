"""The script that remakes digests and golden files: the differences that it allows and those that it refuses."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).parents[1]
RUN = Path("tests/data/golden/records/suite/system")
TABLE = Path("tests/data/golden/expected/suite/system")
DIGESTS = Path("tests/data/digests")
OLD, NEW = "0" * 24, "a" * 24


def script() -> Any:
    spec = importlib.util.spec_from_file_location("remake_digests", ROOT / "scripts" / "remake_digests.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_records(root: Path, digest: str, **columns: list[Any]) -> None:
    values = {"dice": [0.5, float("nan")], "reason": ["", "no room"], **columns}
    pq.write_table(pa.table(values), root / RUN / digest / "records.parquet")


def write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def write_files(root: Path, digest: str) -> None:
    """Write a small copy of the files that the script compares."""
    covers = {"system": {"class": "medtest:Net", "revision": 1}, "relations": {"blur": {"settings": {"sigma": 3.0}}}}
    write_json(root / RUN / digest / "run.json", {"format": 2, "digest": digest, "covers": covers})
    write_json(root / DIGESTS / "parts.json", {"relations/blur": {"revision": 1, "settings": OLD}})
    write_json(root / DIGESTS / "suites.json", {"suite": {"runs": {"net": digest}, "oracle": digest}})
    write_records(root, digest)
    (root / TABLE / digest).mkdir(parents=True)
    (root / TABLE / digest / "efr.csv").write_text("relation,efr\nblur,0.25\n")
    (root / TABLE / digest / "report.txt").write_text(f"Run {digest}\nblur | 0.25 | 1 of 4\n")
    (root / TABLE / digest / "curve.dat").write_text("1 2\n")


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    for name, digest in (("old", OLD), ("new", NEW)):
        write_files(tmp_path / name, digest)
    return tmp_path / "old", tmp_path / "new"


def test_digests_names_formats_and_reasons_may_differ(sides: tuple[Path, Path]) -> None:
    old, new = sides
    covers = {"system": {"system": "net", "revision": 1}, "relations": {"blur": {"settings": {"sigma": 3.0}}}}
    write_json(new / RUN / NEW / "run.json", {"format": 3, "digest": NEW, "covers": covers})
    write_json(new / DIGESTS / "parts.json", {"relations/blur": {"revision": 1, "settings": OLD, "name": "blur"}})
    write_records(new, NEW, reason=["", "too small"], reason_code=["", "not_applicable"])
    (new / TABLE / NEW / "report.txt").write_text(f"The run {NEW}\nblur | 0.25 | 1 of 4\n")
    assert script().differences(old, new) == []


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "score": (lambda root: write_records(root, NEW, dice=[0.25, float("nan")]), "dice: 1 of 2"),
    "missing score": (lambda root: write_records(root, NEW, dice=[0.5, 0.5]), "dice: 1 of 2"),
    "new column": (lambda root: write_records(root, NEW, iou=[0.5, 0.5]), "column iou"),
    "fewer records": (lambda root: write_records(root, NEW, dice=[0.5], reason=[""]), "dice: 2 rows became 1"),
    "table": (lambda root: (root / TABLE / NEW / "efr.csv").write_text("relation,efr\nblur,0.5\n"), "'0.25' became"),
    "figure of a page": (
        lambda root: (root / TABLE / NEW / "report.txt").write_text("blur | 0.5 | 1 of 4\n"),
        "0.25 became 0.5",
    ),
    "settings of a part": (
        lambda root: write_json(root / DIGESTS / "parts.json", {"relations/blur": {"revision": 1, "settings": NEW}}),
        "relations/blur.settings",
    ),
    "revision of a part": (
        lambda root: write_json(root / DIGESTS / "parts.json", {"relations/blur": {"revision": 2, "settings": OLD}}),
        "relations/blur.revision: 1 became 2",
    ),
    "fewer parts": (lambda root: write_json(root / DIGESTS / "parts.json", {}), "relations/blur"),
    "missing file": (lambda root: shutil.rmtree(root / TABLE), "report.txt: only before"),
    "curve": (lambda root: (root / TABLE / NEW / "curve.dat").write_text("1 3\n"), "curve.dat"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_any_other_difference_is_refused(change: str, sides: tuple[Path, Path]) -> None:
    old, new = sides
    make, expected = CHANGES[change]
    make(new)
    lines = script().differences(old, new)
    assert any(expected in line for line in lines), lines
