"""Presets of Hydra's launchers: they compose, and their jobs return results."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LAUNCHERS = {
    "processes": ("hydra_plugins.hydra_joblib_launcher", "n_jobs: 2"),
    "slurm": ("hydra_plugins.hydra_submitit_launcher", "array_parallelism: 64"),
    "slurm_here": ("hydra_plugins.hydra_submitit_launcher", "timeout_min: 240"),
}
"""By preset the package that it needs and a line that it composes to."""


def _run(folder: Path, *tokens: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MEDTEST_HOME": str(folder), "PWD": str(folder)}
    command = [sys.executable, "-m", "medtest", "run", "suite=polyp_seg", "model=pranet", *tokens]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_every_preset_is_tested() -> None:
    assert {path.stem for path in (ROOT / "conf" / "hydra" / "launcher").glob("*.yaml")} == set(LAUNCHERS)


@pytest.mark.slow
@pytest.mark.parametrize("name", LAUNCHERS)
def test_a_preset_composes(name: str, tmp_path: Path) -> None:
    package, line = LAUNCHERS[name]
    pytest.importorskip(package)
    done = _run(tmp_path, f"hydra/launcher={name}", "--cfg", "hydra", "-p", "hydra.launcher")
    assert done.returncode == 0, done.stderr
    assert line in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", ["processes", "slurm_here"])
def test_jobs_round_trip(name: str, tmp_path: Path) -> None:
    pytest.importorskip(LAUNCHERS[name][0])
    done = _run(tmp_path, "-m", "shard=1/2,2/2", f"hydra/launcher={name}", "plan=true")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("planned") == 2
    wrong = _run(tmp_path, "-m", "shard=1/2,3/2", f"hydra/launcher={name}", "plan=true")
    assert wrong.returncode == 2
    assert "Traceback" not in wrong.stderr
