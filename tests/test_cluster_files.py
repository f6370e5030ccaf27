"""Files for schedulers and containers work as documented, as far as this can be tried without them."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "cluster" / "shards.sbatch"
_ARRAY = {
    "SLURM_ARRAY_TASK_ID": "2",
    "SLURM_ARRAY_TASK_MIN": "1",
    "SLURM_ARRAY_TASK_MAX": "4",
    "SLURM_CPUS_PER_TASK": "3",
}


def _task(folder: Path, body: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the script as Slurm does, with a program called medtest in place of a run."""
    tool = folder / "medtest"
    tool.write_text(f"#!/bin/bash\n{body}\n")
    tool.chmod(0o755)
    environment = {"PATH": f"{folder}:{os.environ['PATH']}", **variables}
    return subprocess.run(
        ["bash", str(SCRIPT), "suite=polyp_seg", "model=a b"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_task_of_an_array_is_a_shard(tmp_path: Path) -> None:
    done = _task(tmp_path, 'printf "%s\\n" "$@"; exit 3', **_ARRAY)
    assert done.stdout.split("\n")[:6] == [
        "run",
        "suite=polyp_seg",
        "model=a b",
        "shard=2/4",
        "workers=3",
        "quiet=true",
    ]
    assert done.returncode == 3


def test_an_array_from_two_on_is_refused(tmp_path: Path) -> None:
    done = _task(tmp_path, "exit 0", **{**_ARRAY, "SLURM_ARRAY_TASK_MIN": "2"})
    assert done.returncode == 2 and "1-N" in done.stderr
    assert _task(tmp_path, "exit 0").returncode != 0  # no array at all


def test_a_task_that_gets_a_signal_waits_for_the_run(tmp_path: Path) -> None:
    body = "trap 'echo stopped; exit 130' TERM\nkill -TERM $PPID\nfor i in $(seq 200); do sleep 0.1; done"
    done = _task(tmp_path, body, **_ARRAY)
    assert done.stdout.strip() == "stopped" and done.returncode == 130, done.stderr


@pytest.mark.parametrize(
    "path",
    [
        "requirements.lock",
        "requirements-dev.lock",
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "medtest",
        "conf",
        "suites",
    ],
)
def test_the_image_is_built_of_existing_files(path: str) -> None:
    copied = re.findall(r"^COPY (.+) \S+$", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    assert path in " ".join(copied).split()
    assert (ROOT / path).exists()


def test_extras_in_the_image_have_the_versions_of_the_development_lock(tmp_path: Path) -> None:
    (script,) = re.findall(r"^ +(sed .*) >versions\.txt", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    done = subprocess.run(["sh", "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    pinned = re.findall(r"^[a-z0-9._-]+==", (ROOT / "requirements-dev.lock").read_text(), flags=re.MULTILINE)
    assert [line.partition("==")[0] + "==" for line in lines] == pinned
    assert any(line.startswith("ray==") for line in lines) and not any("--hash" in line for line in lines)
    assert {str(Requirement(line)) for line in lines}  # pip can read each
