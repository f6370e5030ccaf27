"""Small pairs, a small network's initial weights and material for tests of further training."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import cv2
import numpy as np

from medtest.systems.checkpoints.weights import WeightsInfo, save_weights
from medtest.systems.pytorch import networks
from medtest.training.engine.initial import initialise
from medtest.training.further.material import PairMaterial
from medtest.training.segmentation.data import Pairs

sys.path.insert(0, str(Path(__file__).parents[1]))
from training_pairs import write_pairs


def small_pairs(count: int, size: int, random: int = 1) -> Pairs:
    """Return bright discs on noise."""
    rng = np.random.default_rng(random)
    masks = np.zeros((count, size, size), np.uint8)
    for mask in masks:
        x, y = rng.integers(size // 4, 3 * size // 4, 2)
        cv2.circle(mask, (int(x), int(y)), size // 5, 255, -1)
    images = np.repeat(masks[..., None] // 2, 3, axis=3) + rng.integers(0, 90, (count, size, size, 3)).astype(np.uint8)
    return Pairs(images=images, masks=masks, names=tuple(f"p{random}-{i}" for i in range(count)))


def small_material() -> PairMaterial:
    """Return material of 64 pixels."""
    held = {"clean": small_pairs(2, 64, 3), "perturbed": small_pairs(3, 64, 4)}
    return PairMaterial(
        originals=small_pairs(6, 96, 1),
        perturbed=small_pairs(6, 96, 2),
        held_out=held,
        counts={"originals": 6, "perturbed": 6},
        digest="small",
    )


def write_start(path: Path, family: str = "pranet", seed: int = 0, size: int = 64) -> Path:
    """Write weights of an untrained compact network in medtest's form."""
    path.write_bytes(_start(family, seed, size))
    return path


@cache
def _start(family: str, seed: int, size: int) -> bytes:
    config = networks.COMPACT[family]
    network = networks.make(config)
    initialise(network, seed)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "start.safetensors"
        save_weights(path, network.state_dict(), WeightsInfo(network=networks.describe(config), size=size))
        return path.read_bytes()


def write_folder(root: Path, count: int, random: int = 1, size: int = 96) -> Path:
    """Write a folder of images and masks."""
    return write_pairs(root, small_pairs(count, size, random))
