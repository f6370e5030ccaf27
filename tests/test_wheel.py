"""The built wheel carries conf/, suites/, weights, objects and published figures, and works installed elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build it with the tools that the lock already holds, without a network."""
    target = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(target), str(ROOT)],
        check=True,
        capture_output=True,
    )
    (built,) = target.glob("*.whl")
    return built


def test_what_the_wheel_carries(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for needed in (
        "medtest/_data/conf/config.yaml",
        "medtest/_data/conf/relations/blur.yaml",
        "medtest/_data/conf/model/pranet.yaml",
        "medtest/_data/suites/polyp_seg.yaml",
        "medtest/results/published/medtest_efr.csv",
    ):
        assert needed in names, needed
    assert sum(n.startswith("medtest/weights/") and n.endswith(".safetensors") for n in names) >= 2
    assert sum(n.startswith("medtest/relations/objects/bundled/") and n.endswith(".png") for n in names) >= 36
    assert not [n for n in names if n.startswith(("tests/", "outputs/", "mlruns/"))]


def test_the_package_index_would_take_it(wheel: Path) -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", str(wheel)], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_it_works_installed_elsewhere(wheel: Path, tmp_path: Path) -> None:
    """Installed into a folder of its own, run from another, with the network cut off by an unusable proxy."""
    site, away = tmp_path / "site", tmp_path / "some folder"
    away.mkdir()
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", str(site), str(wheel)],
        check=True,
        capture_output=True,
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MEDTEST")}
    environment |= {"PYTHONPATH": str(site), "https_proxy": "http://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9"}
    where = "import medtest; print(medtest.__file__)"
    found = subprocess.run([sys.executable, "-c", where], capture_output=True, text=True, env=environment, cwd=away)
    assert str(site) in found.stdout
    done = subprocess.run(
        [sys.executable, "-m", "medtest", "run", "suite=polyp_seg", "model=pranet", "limit=1", "only=relation:blur"],
        capture_output=True,
        text=True,
        env=environment,
        cwd=away,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    (records,) = away.glob("outputs/polyp_seg/pranet-compact/*/records.csv")
    assert len(records.read_text(encoding="utf-8").splitlines()) == 1 + 1 + 5
    assert list((away / "outputs").rglob("report.html"))
    assert (away / "mlruns" / "mlflow.db").is_file()
