"""Draw the strips of docs/relations.md and docs/controls.md: source and severities of a phantom for each relation.

Run it again after a relation's revision was raised: ``python scripts/relation_cards.py`` (``--noise`` for the scales of
uncertainty alone).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from medtest.cli.followups.sheet import draw_sheet
from medtest.core.cases import CONTROLS, Address, Peers, PreparedSeed
from medtest.core.errors import NotApplicable
from medtest.core.plugins import parts
from medtest.preparation import prepare
from medtest.relations.base import Relation
from medtest.suite.compose import load_suite

ROOT = Path(__file__).resolve().parents[1]
NOISE = (
    "gaussian_noise",
    "rician_noise",
    "poisson_noise",
    "speckle_noise",
    "salt_pepper_noise",
    "gaussian_blur",
    "jpeg",
)
"""Scales of uncertainty that are as fine as a pixel."""
OTHERS = ("bias_field", "breathing", "elastic", "lens_distortion")


def pictures_of(seeds: Iterable[PreparedSeed], name: str, relation: Relation, suite_seed: int) -> list[np.ndarray]:
    """Return source and severities of the first phantom on which every severity has room, whole if there is one."""
    weakened: list[np.ndarray] = []
    for seed in seeds:
        pictures, whole = [seed.image], True
        try:
            for severity in relation.severities():
                address = Address(dataset=seed.ref.dataset, seed_id=seed.ref.seed_id, relation=name, severity=severity)
                follow_up = relation.follow_up(seed, severity, relation.generator(address, suite_seed))
                pictures.append(follow_up.image)
                whole &= "scale_applied" not in follow_up.params
        except NotApplicable:
            continue
        if whole:
            return pictures
        weakened = weakened or pictures
    if not weakened:
        raise SystemExit(f"{name} has room at every severity on none of the phantoms")
    return weakened


def strip(pictures: Sequence[np.ndarray], name: str, side: int) -> Image.Image:
    """Return pictures side by side: whole, or their middle where grain is to be seen."""
    small = [_middle(p, side) if name in NOISE else _small(p, side) for p in pictures]
    gap = np.full((side, 4, 3), 255, np.uint8)
    row = [part for picture in small for part in (picture, gap)][:-1]
    return Image.fromarray(np.hstack(row))


def _small(picture: np.ndarray, side: int) -> np.ndarray:
    return np.asarray(cv2.resize(picture, (side, side), interpolation=cv2.INTER_AREA))


def _middle(picture: np.ndarray, side: int) -> np.ndarray:
    top, left = ((length - side) // 2 for length in picture.shape[:2])
    return picture[top : top + side, left : left + side]


def main() -> None:
    """Write docs/images/relations/*.jpg and docs/images/sheet.jpg."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--index", type=int, default=0, help="first phantom of suite polyp_seg_wide to try")
    parser.add_argument("--side", type=int, default=200)
    parser.add_argument("--noise", action="store_true", help="the scales of uncertainty alone")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images")
    options = parser.parse_args()
    folder = options.out / "relations"
    folder.mkdir(parents=True, exist_ok=True)
    suite = load_suite("polyp_seg_wide")
    source = suite.build_seeds(None)[0]
    refs = source.refs()[options.index :]
    seed = prepare(source.load(refs[0]), size=suite.prepare.size)
    relations = suite.build_relations()
    noise = load_suite("polyp_seg", [f"relations=[{','.join((*NOISE, *OTHERS))}]"]).build_relations()
    drawn = noise if options.noise else {**relations, **noise}
    for name, relation in drawn.items():
        if options.noise and name not in (*NOISE, *OTHERS):
            continue
        if name in parts("relations"):
            others = (prepare(source.load(ref), size=suite.prepare.size) for ref in refs[1:])
            pictures = pictures_of(chain([seed], others), name, relation, suite.seed)
            strip(pictures, name, options.side).save(folder / f"{name}.jpg", quality=86)
    if options.noise:
        return
    peers = Peers(refs, lambda ref: prepare(source.load(ref), size=suite.prepare.size))
    for name, relation in load_suite("polyp_seg_controls").build_relations().items():
        if relation.group == CONTROLS:
            seeds = (replace(peers.case(number), peers=peers) for number in range(len(refs)))
            strip(pictures_of(seeds, name, relation, suite.seed), name, options.side).save(
                folder / f"{name}.jpg", quality=86
            )
    nine = load_suite("polyp_seg").build_relations()
    sheet = draw_sheet(seed, nine, suite_seed=suite.seed, cell=150)
    Image.fromarray(sheet).save(options.out / "sheet.jpg", quality=84)


if __name__ == "__main__":
    main()
