"""A run whose home, working, data and result folders have a space and a letter beyond ASCII in their names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]


def _pairs(folder: Path) -> None:
    """Write two pictures with masks, their names odd too."""
    rng = np.random.default_rng(0)
    for name, first_column in (("bild 1ö", 20), ("bild 2ö", 50)):
        mask = np.zeros((96, 120), np.uint8)
        mask[30:70, first_column : first_column + 40] = 255
        image = rng.integers(60, 110, (96, 120, 3)).astype(np.uint8)
        image[mask > 0] += 90
        for kind, pixels in (("images", image), ("masks", mask)):
            (folder / kind).mkdir(parents=True, exist_ok=True)
            (folder / kind / f"{name}.png").write_bytes(cv2.imencode(".png", pixels)[1].tobytes())


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the folders by purpose, with pictures in the data folder."""
    base = tmp_path_factory.mktemp("odd")
    folders = {name: base / f"mein {name} ö" for name in ("home", "work", "data", "results", "tmp")}
    for folder in folders.values():
        folder.mkdir()
    _pairs(folders["data"])
    (folders["work"] / "netz ö.py").write_text("def hell(image):\n    return image[..., 0] > 128\n", encoding="utf-8")
    return folders


def _call(odd: dict[str, Path], *words: str) -> str:
    variables = {"HOME": odd["home"], "TMPDIR": odd["tmp"], "MEDTEST_HOME": odd["results"]}
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **{name: str(folder) for name, folder in variables.items()}}
    environment.pop("MLFLOW_TRACKING_URI", None)
    line = [sys.executable, *words]
    done = subprocess.run(line, cwd=odd["work"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.slow
def test_a_suite_is_planned_run_resumed_tracked_and_shown_in_odd_folders(odd: dict[str, Path]) -> None:
    system = ("model=callable", "target=netz ö.py:hell", "relations=[blur,text]")
    run = (str(ROOT / "run.py"), "suite=polyp_seg_folder", f"data={odd['data']}", *system)
    assert "2" in _call(odd, *run, "plan=true")
    _call(odd, *run)
    (records,) = odd["results"].glob("outputs/polyp_seg_folder/*/*/records.parquet")
    table = pd.read_parquet(records)
    assert set(table["seed_id"]) == {"bild 1ö", "bild 2ö"} or len(set(table["seed_id"])) == 2
    assert set(table["relation"]) == {"source", "unchanged", "blur", "text"}
    assert not (table["verdict"] == "ERROR").any()
    assert "No case to run" in _call(odd, *run)
    folder = records.parent
    assert (folder / "tables" / "efr.csv").is_file()
    assert (odd["results"] / "mlruns" / "mlflow.db").is_file()
    _call(odd, "-m", "medtest", "tables", str(folder))
    _call(odd, "-m", "medtest", "track", str(folder))
    _call(odd, "-m", "medtest", "data", "inspect", str(odd["data"]))
    assert not list(odd["work"].glob("outputs*")) and not list(odd["work"].glob("mlruns*"))
