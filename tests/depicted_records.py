"""Records of a text-to-image system and its pictures, which are drawn here: rectangles on plain grounds."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from medtest.core.cases import Image, image_sha256
from medtest.core.files.by_content import PictureFiles
from medtest.core.files.paths import package_folder
from medtest.core.records import PICTURES, addresses
from medtest.core.scenes import Entity, Pool, Scene, SeenEntity, dumped, pool_of
from medtest.readers.embeddings.bundled import WEIGHTS
from medtest.results.records.records_io import Records

needs_weights = pytest.mark.skipif(
    not (package_folder() / "weights" / WEIGHTS).is_file(),
    reason="the weights that embed are not there",
)
"""Tests that embed pictures with the shipped network run where its weights are."""
CLASSES = ("dog", "cat", "bench", "tree", "car", "kite")


def picture(number: int, noise: int = 0, size: int = 64) -> Image:
    """Return a different picture for each number; ``noise`` tells apart two that show the same."""
    rng = np.random.default_rng(number)
    image = np.full((size, size, 3), rng.integers(0, 256, 3), np.uint8)
    for _ in range(5):
        left, top = rng.integers(0, size - 12, 2)
        width, height = rng.integers(8, size // 2, 2)
        image[top : top + height, left : left + width] = rng.integers(0, 256, 3)
    if noise:
        shift = np.random.default_rng(noise).integers(-3, 4, image.shape)
        image = np.clip(image.astype(int) + shift, 0, 255).astype(np.uint8)
    return image


def pool(number: int) -> Pool:
    """Return one of thirty pools: two things, one of them red."""
    first, second = CLASSES[number % 6], CLASSES[(number + 1 + number // 6 % 5) % 6]
    return pool_of([Entity(name=first, attributes=("red",)), Entity(name=second)], [(0, "left of", 1)])


def scene_of(content: Pool) -> Scene:
    """Return the scene of a picture that shows a pool, things in a row."""
    width = 1 / max(1, len(content.entities))
    entities = tuple(
        SeenEntity(
            name=entity.name, box=(n * width, 0.3, (n + 0.9) * width, 0.7), score=0.9, attributes=entity.attributes
        )
        for n, entity in enumerate(content.entities)
    )
    return Scene(entities=entities, triples=content.triples)


def row(seed: int, relation: str, content: Pool, drawn: Image | None, **others: Any) -> dict[str, Any]:
    """Return a record."""
    text = " and ".join(entity.name for entity in content.entities)
    sha = "" if drawn is None else image_sha256(drawn)
    key = {"dataset": "made", "seed_id": f"{seed:04}", "relation": relation}
    key |= {"severity": 0, "frame": 0, "repeat": 0, "item": ""}
    shown = dumped(scene_of(content).as_json()) if sha else ""
    return {
        **key,
        "address": addresses({name: [value] for name, value in key.items()})[0],
        "system": "painter",
        "cluster": f"{seed:04}",
        "group": relation,
        "verdict": "PASS",
        "reason_code": "",
        "reason": "",
        "prompt": f"{text} number {seed}" if relation == "source" else f"{text} number {seed} {relation}",
        "pool": dumped(content.as_json()),
        "picture": sha,
        "scene": shown,
        "tells": dumped({"counts": True}) if sha else "",
        **others,
    }


def records(rows: Sequence[dict[str, Any]]) -> Records:
    """Return records of rows."""
    return Records.of(pd.DataFrame(rows))


def keep_pictures(folder: Path, images: Sequence[Image]) -> None:
    """Write pictures as a run does."""
    files = PictureFiles(folder / PICTURES)
    for image in images:
        files.put("images", image_sha256(image), image)


def run(folder: Path, seeds: int, draw: Callable[[int, str], Image]) -> Records:
    """Return the records of a run of sources, ``unchanged`` and ``ec``, whose pictures are in a folder."""
    rows, images = [], []
    for seed in range(seeds):
        for relation, content in (("source", pool(seed)), ("unchanged", pool(seed)), ("ec", pool(seed + 7))):
            images.append(draw(seed, relation))
            verdict = "FAIL" if relation == "ec" and seed % 3 == 0 else "PASS"
            rows.append(row(seed, relation, content, images[-1], verdict=verdict))
            if relation == "unchanged":
                rows[-1]["prompt"] = rows[-2]["prompt"]
    keep_pictures(folder, images)
    return records(rows)


def loads(text: str) -> Any:
    """Return JSON."""
    return json.loads(text)
