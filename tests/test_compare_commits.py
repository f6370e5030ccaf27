"""The script that runs two commits: which runs are equal, and what it prints of a difference."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "scripts" / "compare_commits.py"
GOLDEN = ROOT / "tests" / "data" / "golden"
SUITE = "liver"


def script() -> Any:
    spec = importlib.util.spec_from_file_location("compare_commits", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Any, Any, Any]:
    """Return the script and two sides that ran the same."""
    module = script()
    roles = []
    for role in ("before", "after"):
        for part in ("records", "expected"):
            to = tmp_path / role / "outputs" / SUITE
            shutil.copytree(GOLDEN / part / SUITE, to, dirs_exist_ok=True)
        roles.append(module.Side(role, tmp_path, tmp_path / role, sys.executable))
    return module, roles[0], roles[1]


def changed(folder: Path, column: str, value: object) -> None:
    """Give the last record another value."""
    path = folder / "records.parquet"
    table = pq.read_table(path)
    values = [*table[column].to_pylist()[:-1], value]
    place = table.column_names.index(column)
    pq.write_table(table.set_column(place, column, pa.array(values, table[column].type)), path)


def test_equal_runs_are_equal_and_time_is_no_difference(sides: tuple[Any, Any, Any]) -> None:
    module, before, after = sides
    folder = after.folders(SUITE)["region_growing"]
    changed(folder, "elapsed_ms", 12345.0)
    table = pq.read_table(folder / "records.parquet")
    pq.write_table(table.take(list(range(table.num_rows))[::-1]), folder / "records.parquet")
    assert module.compare(before, after, SUITE) == []


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("dice", 0.5, "region_growing: records: dice differs in 1 of 12 rows, first "),
        ("followup_sha256", "ab" * 32, "region_growing: hash: followup_sha256 differs in 1 of 12 rows, first "),
        ("relation", "other", "region_growing: records: other cases (12 rows became 12)"),
    ],
)
def test_a_record_that_differs_is_named(sides: tuple[Any, Any, Any], column: str, value: object, message: str) -> None:
    module, before, after = sides
    changed(after.folders(SUITE)["region_growing"], column, value)
    lines = module.compare(before, after, SUITE)
    assert lines[0].startswith(message), lines


def test_tables_digests_and_systems_that_differ_are_named(sides: tuple[Any, Any, Any]) -> None:
    module, before, after = sides
    folders = after.folders(SUITE)
    table = folders["constant"] / "tables" / "efr.csv"
    table.write_text(table.read_text().replace("truth", "truths", 1))
    run = json.loads((folders["identity"] / "run.json").read_text())
    run["covers"]["system"]["revision"] = 99
    (folders["identity"] / "run.json").write_text(json.dumps(run))
    folders["identity"].rename(folders["identity"].with_name("0" * 24))
    shutil.rmtree(folders["shape_prior"].parent)
    output = "\n".join(module.compare(before, after, SUITE))
    assert "shape_prior: run by one alone" in output
    assert "constant: efr.csv: 1 of " in output
    assert f"identity: digest {folders['identity'].name} became {'0' * 24}" in output
    assert "identity: covers.system.revision: 1 became 99" in output


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_commit_equals_itself() -> None:
    if subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, check=False).returncode:
        pytest.skip("no git repository: nothing to compare")
    ran = subprocess.run(
        [sys.executable, str(SCRIPT), "HEAD", "HEAD", "--suites", "denoising,wce"],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.count("  equal: ") == 2 and "nothing differs" in ran.stdout
    listed = subprocess.run(["git", "-C", str(ROOT), "worktree", "list"], capture_output=True, text=True, check=True)
    assert "compare-commits-" not in listed.stdout
