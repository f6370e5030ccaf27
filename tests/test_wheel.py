"""The built wheel: contents, size, metadata, and runs of it in an empty virtual environment."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LARGEST = 28_000_000
"""Bytes that the wheel may have; the bundled networks take most of them."""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel with the tools of the lock, without a network."""
    target = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(target), str(ROOT)],
        check=True,
        capture_output=True,
    )
    (built,) = target.glob("*.whl")
    return built


def test_the_wheel_has_the_expected_files(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for needed in (
        "medtest/_data/conf/config.yaml",
        "medtest/_data/conf/relations/blur.yaml",
        "medtest/_data/conf/model/pranet.yaml",
        "medtest/_data/suites/polyp_seg.yaml",
        "medtest/_data/suites/medtest.schema.json",
        "medtest/results/published/medtest_efr.csv",
    ):
        assert needed in names, needed
    assert sum(n.startswith("medtest/weights/") and n.endswith(".safetensors") for n in names) >= 2
    pictures = [n for n in names if n.startswith("medtest/relations/objects/bundled/") and n.endswith(".webp")]
    swatches = [n for n in pictures if n.endswith((".albedo.webp", ".surface.webp"))]
    assert len(pictures) - len(swatches) >= 36 and len(swatches) == 20
    assert not [n for n in names if n.startswith(("tests/", "outputs/", "mlruns/"))]


def test_the_package_index_would_accept_the_wheel(wheel: Path) -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", str(wheel)], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_wheel_is_small(wheel: Path) -> None:
    assert wheel.stat().st_size <= LARGEST, "scripts/pack_weights.py packs networks that ship"


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the lock and the wheel into an empty environment; uv's cache of `make` saves the downloads."""
    uv = shutil.which("uv", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    if uv is None:
        pytest.skip("uv is not installed, so that no empty environment can be filled quickly")
    folder = tmp_path_factory.mktemp("empty") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    cache = os.environ.get("UV_CACHE_DIR", str(Path(pwd.getpwuid(os.getuid()).pw_dir) / ".cache" / "uv"))
    install = [uv, "pip", "install", "--python", str(python), "--cache-dir", cache]
    lock = ["--require-hashes", "-r", str(ROOT / "requirements.lock")]
    for offline in (["--offline"], []):
        try:
            done = subprocess.run([*install, *offline, *lock], capture_output=True, text=True, timeout=240, check=False)
        except subprocess.TimeoutExpired:
            pytest.skip("the package index needs more than four minutes to deliver the lock")
        if done.returncode == 0:
            break
    else:
        pytest.skip(f"no package index could be reached: {done.stderr.strip().splitlines()[-1]}")
    subprocess.run([*install, "--offline", "--no-deps", str(wheel)], check=True, capture_output=True)
    return python


@pytest.fixture
def away(tmp_path: Path) -> Path:
    folder = tmp_path / "some folder"
    folder.mkdir()
    return folder


def _medtest(python: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the installed wheel, with the network cut off by an unusable proxy."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MEDTEST", "PYTHON", "VIRTUAL_ENV"))}
    environment |= {"https_proxy": "http://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9", "HOME": str(folder)}
    command = [str(python.with_name("medtest")), *words]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder, check=False)


@pytest.mark.parametrize(("words", "expected"), [(["--help"], "run"), (["list", "suites"], "polyp_seg")])
def test_commands_work_in_an_empty_environment(python: Path, away: Path, words: list[str], expected: str) -> None:
    done = _medtest(python, away, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert expected in done.stdout
    assert not list(away.rglob("outputs"))


def test_a_suite_runs_in_an_empty_environment(python: Path, away: Path) -> None:
    done = _medtest(python, away, "run", "suite=polyp_seg", "model=pranet", "limit=1", "only=relation:blur")
    assert done.returncode in (0, 1), done.stdout + done.stderr
    (records,) = away.glob("outputs/polyp_seg/pranet-compact/*/records.csv")
    assert len(records.read_text(encoding="utf-8").splitlines()) == 1 + 1 + 5
    assert list((away / "outputs").rglob("report.html"))
    assert (away / "mlruns" / "mlflow.db").is_file()
