"""Every benchmark and every script runs to its end at a small size; figures are not checked."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]
BENCHMARKS = sorted(path.stem for path in (ROOT / "benchmarks").glob("[!_]*.py"))
MAY_FIND = {"drawing", "orders", "simlab"}
"""What ends with 1 where its figure misses a bound, as a handful of campaigns may."""
SCRIPTS: dict[str, list[str]] = {
    "corruption_sheets": ["--side=24", "--out=OUT"],
    "draw_objects": ["--out=OUT"],
    "failure_pictures": ["--out=OUT"],
    "fit_temperature": ["--scenes=400", "--out=OUT/temperature.json"],
    "phantom_sheet": ["capsule", "OUT/sheet.jpg"],
    "relation_cards": ["--side=24", "--noise", "--out=OUT"],
}
ELSEWHERE = {
    *("attested_triples", "score_captions", "compare_commits", "defended_weights", "map_picture"),
    *("recompute_actesting", "remake_digests", "pack_weights", "coverage_by_room", "mutants"),
    *("relation_gallery", "site_hook", "finding_heads"),
}
"""Scripts with tests of their own, or whose every step is a command that has them and which take hours."""


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "MEDTEST_HOME": str(folder)}
    environment["MEDTEST_BENCH_SIZES"] = "small"
    line = [sys.executable, *command]
    return subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def test_no_script_is_forgotten() -> None:
    assert set(SCRIPTS) | ELSEWHERE == {path.stem for path in (ROOT / "scripts").glob("*.py")}


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_runs_as_make_bench_runs_it(name: str, tmp_path: Path) -> None:
    done = _run(["-m", "benchmarks", name], tmp_path)
    assert done.returncode in ((0, 1) if name in MAY_FIND else (0,)), f"{done.stdout[-1500:]}\n{done.stderr[-3000:]}"
    assert "Traceback" not in done.stderr
    lines = done.stdout.splitlines()[2:-1]  # without its name and its duration
    if lines and lines[0].startswith("left out: "):
        pytest.skip(lines[0])
    assert lines


def test_another_size_than_small_is_refused(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks", "depictions"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MEDTEST_BENCH_SIZES": "tiny"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "MEDTEST_BENCH_SIZES is 'tiny'; it may be 'small' or empty" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_writes_its_files(name: str, tmp_path: Path) -> None:
    if name == "failure_pictures" and not any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))):
        pytest.skip("Chromium is not installed")
    words = [word.replace("OUT", str(tmp_path)) for word in SCRIPTS[name]]
    done = _run([str(ROOT / "scripts" / f"{name}.py"), *words], tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    written = [path for path in tmp_path.rglob("*") if path.suffix in (".jpg", ".png", ".webp", ".json")]
    assert written
    for path in written:
        if path.suffix == ".json":
            assert json.loads(path.read_text(encoding="utf-8"))
        else:
            assert path.stat().st_size > 200, path
