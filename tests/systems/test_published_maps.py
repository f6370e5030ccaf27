"""The 50 published maps of PraNet's authors, through model=predictions, against an evaluator written here.

The evaluator follows the description of the MATLAB one: the map is scaled to [0, 1] by its smallest and largest
value, the ground truth is binarised at > 128, and Dice and IoU are averaged over the 256 thresholds 1, 254/255, …, 0.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

from medtest.tasks.segment.oracle import mean_over_thresholds

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("MEDTEST_SHARED", ROOT.parent / "shared"))
PAIRS = SHARED / "data" / "polyp" / "kvasir_seg" / "test"


def evaluate(answer: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """Return mean Dice and IoU over 256 thresholds, one threshold after the other.

    Args:
        answer: uint8 h×w.
        truth: bool h×w.
    """
    low, high = int(answer.min()), int(answer.max())
    scaled = (answer.astype(np.float64) - low) / (high - low) if high > low else answer / 255.0
    dice, iou = [], []
    for step in range(255, -1, -1):
        predicted = scaled >= step / 255 - 1e-12  # equal values shall not be lost to rounding
        both, either = (predicted & truth).sum(), (predicted | truth).sum()
        dice.append(2 * both / (predicted.sum() + truth.sum()))
        iou.append(both / either)
    return float(np.mean(dice)), float(np.mean(iou))


@pytest.mark.parametrize("seed", range(12))
def test_the_oracle_agrees_on_small_random_maps(seed: int) -> None:
    random = np.random.default_rng(seed)
    height, width = random.integers(3, 20, 2)
    low, high = sorted(random.integers(0, 256, 2))
    answer = random.integers(low, high + 1, (height, width), dtype=np.uint8)
    truth = random.random((height, width)) < random.random()
    truth[0, 0] = True
    assert mean_over_thresholds(answer, truth) == pytest.approx(evaluate(answer, truth), abs=1e-9)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(not PAIRS.is_dir(), reason="the real images are absent (../shared/data/polyp)")
def test_published_maps_score_as_published(tmp_path: Path) -> None:
    import pandas as pd

    command = [
        *(sys.executable, str(ROOT / "run.py"), "suite=polyp_seg_folder", f"data={PAIRS}", "model=predictions"),
        *(f"folder={PAIRS / 'pranet_maps'}", "only=relation:unchanged", "answers=maps", "track=false"),
        "workers=1",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    (table,) = (tmp_path / "outputs").rglob("tables/seeds.csv")
    seeds = pd.read_csv(table).set_index("seed_id")
    assert len(seeds) == 50
    expected = {}
    for path in sorted((PAIRS / "pranet_maps").iterdir()):
        answer = cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)
        truth = cv2.imread(str(PAIRS / "masks" / path.name), cv2.IMREAD_GRAYSCALE) > 128
        expected[path.stem] = evaluate(answer, truth)
    own = pd.DataFrame.from_dict(expected, orient="index", columns=["mean_dice_256", "mean_iou_256"]).loc[seeds.index]
    # masks are JPEGs: a seed's mask is cut at > 127 where the evaluator cuts at > 128
    assert seeds[own.columns].to_numpy() == pytest.approx(own.to_numpy(), abs=2e-3)
    means = seeds[own.columns].mean()
    assert means["mean_dice_256"] == pytest.approx(0.9132, abs=5e-4)
    assert means["mean_iou_256"] == pytest.approx(0.8554, abs=5e-4)
    # published over all 100 test images: 0.898 and 0.840; these are 50 of them
    assert abs(means["mean_dice_256"] - 0.898) < 0.03
    assert abs(means["mean_iou_256"] - 0.840) < 0.03
