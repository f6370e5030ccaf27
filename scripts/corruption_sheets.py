"""Draw the pictures of docs/sequences.md: the fourteen perturbations as levels and as sequences, one made lesion.

Run it again after a perturbation's revision was raised: ``python scripts/corruption_sheets.py``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import cv2
import numpy as np
from PIL import Image, ImageDraw, ImageFont
from relation_cards import strip

from medtest.core.cases import Address, PreparedSeed
from medtest.preparation import prepare
from medtest.relations.base import Relation
from medtest.suite.compose import load_suite
from medtest.suite.model import Suite

ROOT = Path(__file__).resolve().parents[1]
SUITE = "robust_benchmark_melanoma"
FRAMES = (0, 1, 3, 5, 7, 9)
LABEL = 110


def first_seed(suite: Suite, index: int) -> PreparedSeed:
    """Return a prepared seed of a suite."""
    source = suite.build_seeds(None)[0]
    return prepare(source.load(source.refs()[index]), size=suite.prepare.size, resize=suite.prepare.resize)


def film(seed: PreparedSeed, name: str, relation: Relation, suite_seed: int, side: int) -> Image.Image:
    """Return some frames of a sequence side by side."""
    difficulty = max(relation.severities())
    pictures = []
    for frame in FRAMES:
        at = Address(
            dataset=seed.ref.dataset, seed_id=seed.ref.seed_id, relation=name, severity=difficulty, frame=frame
        )
        own, shared = at.generator(suite_seed), at.sequence_generator(suite_seed)
        made = relation.apply(seed, relation.sample_frame(seed, difficulty, frame, own, shared))
        pictures.append(cv2.resize(made.image, (side, side), interpolation=cv2.INTER_AREA))
    gap = np.full((side, 4, 3), 255, np.uint8)
    row = [part for picture in pictures for part in (picture, gap)][:-1]
    return Image.fromarray(np.hstack(row))


def stacked(rows: dict[str, Image.Image]) -> Image.Image:
    """Return strips under one another with their names at the left."""
    width, height = next(iter(rows.values())).size
    sheet = Image.new("RGB", (LABEL + width, len(rows) * (height + 4)), "white")
    draw = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(13)
    for number, (name, row) in enumerate(rows.items()):
        top = number * (height + 4)
        draw.text((2, top + height // 2 - 8), name.replace("_", " "), fill=(30, 30, 34), font=font)
        sheet.paste(row, (LABEL, top))
    return sheet


def main() -> None:
    """Write docs/images/corruption_levels.jpg and docs/images/corruption_sequences.jpg."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--index", type=int, default=1, help="which phantom of the suite")
    parser.add_argument("--side", type=int, default=112)
    parser.add_argument("--difficulty", type=int, default=3, help="of the sequences")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images")
    options = parser.parse_args()
    folder = options.out
    for suite_name, draw, file in (
        (f"{SUITE}_levels", strip, "corruption_levels.jpg"),
        (SUITE, film, "corruption_sequences.jpg"),
    ):
        suite = load_suite(suite_name)
        seed = first_seed(suite, options.index)
        rows = {}
        for name, relation in suite.build_relations().items():
            if relation.group == "floor":
                continue
            if draw is film:
                relation = type(relation)(relation.settings.model_copy(update={"severities": [options.difficulty]}))
            rows[name] = draw(seed, name, relation, suite.seed, options.side)
        stacked(rows).save(folder / file, quality=86)


if __name__ == "__main__":
    main()
