"""Training cases of classifiers: images, labels and masks as arrays on disk, to keep memory constant."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Classes, Image, Mask, PreparedSeed
from medtest.core.errors import MedtestError

Pixels = NDArray[np.uint8]
_FACTS = "cases.json"
MOST_WATCHED = 600
"""Maximum number of held-out cases in an evaluation; of more, a random subset is used."""
PHANTOM_ROOMS = {
    "capsule": "capsule",
    "capsule findings": "capsule.findings",
    "dermoscopy": "skin",
    "fundus": "fundus",
    "chest": "chest",
}
"""Modules of the phantoms by kind."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelledCase:
    """One case before it is stored.

    Attributes:
        image: uint8 H×W×3 RGB.
        labels: Its labels.
        mask: The lesion's mask, bool H×W; None if unknown.
        cluster: Patient, video or the case itself: clusters are held out as a whole.
    """

    image: Image
    labels: tuple[str, ...]
    mask: Mask | None
    cluster: str


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelledSet:
    """Cases of one size, memory-mapped.

    Attributes:
        images: uint8 N×S×S×3 RGB.
        truth: float32 N×C, 1 for classes that apply.
        masks: uint8 N×S×S, 255 on the lesion.
        has_mask: bool N; whether the mask is known.
        clusters: Name of each case's cluster.
        classes: The classes.
        digest: SHA-256 of everything.
    """

    images: Pixels
    truth: NDArray[np.float32]
    masks: Pixels
    has_mask: NDArray[np.bool_]
    clusters: tuple[str, ...]
    classes: Classes
    digest: str

    def __len__(self) -> int:
        return len(self.clusters)


def keep(cases: Iterable[LabelledCase], folder: Path, *, classes: Classes, side: int, origin: str) -> LabelledSet:
    """Write cases to a folder, square at ``side``, or open existing ones of the same origin.

    Args:
        cases: Cases to write; read only if the folder does not hold them.
        folder: The folder.
        classes: The classes.
        side: Side in pixels; the central square of an image is resized to it.
        origin: Origin of the cases (source, seed, number), to recognise them.

    Raises:
        MedtestError: There are no cases, or one has a label that is no class.
    """
    facts = {"what": origin, "side": side, "classes": list(classes.names), "multi": classes.multi}
    existing = _stored_facts(folder)
    if existing is None or {key: existing.get(key) for key in facts} != facts:
        _write(cases, folder, facts)
    return opened(folder)


def _stored_facts(folder: Path) -> dict[str, Any] | None:
    try:
        facts = json.loads((folder / _FACTS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return facts if isinstance(facts, dict) else None


def _write(cases: Iterable[LabelledCase], folder: Path, facts: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _FACTS).unlink(missing_ok=True)
    names: Sequence[str] = facts["classes"]
    side: int = facts["side"]
    sha = hashlib.sha256()
    clusters: list[str] = []
    truth: list[NDArray[np.float32]] = []
    has_mask: list[bool] = []
    with (folder / "images.raw").open("wb") as images, (folder / "masks.raw").open("wb") as masks:
        for case in cases:
            strangers = [label for label in case.labels if label not in names]
            if strangers:
                raise MedtestError(f"a training case is labelled {strangers[0]}; the classes are {', '.join(names)}")
            image = squared(case.image, side)
            mask = np.zeros((side, side), np.uint8) if case.mask is None else squared_mask(case.mask, side)
            images.write(image.data)
            masks.write(mask.data)
            sha.update(image.data)
            sha.update(mask.data)
            truth.append(np.array([name in case.labels for name in names], np.float32))
            has_mask.append(case.mask is not None)
            clusters.append(case.cluster)
    if not clusters:
        raise MedtestError("there is no case to train on")
    table = np.stack(truth)
    sha.update(table.data)
    sha.update(json.dumps([facts, has_mask, clusters], sort_keys=True).encode())
    np.save(folder / "truth.npy", table)
    np.save(folder / "known.npy", np.array(has_mask, bool))
    written = {**facts, "count": len(clusters), "clusters": clusters, "digest": sha.hexdigest()}
    (folder / _FACTS).write_text(json.dumps(written), encoding="utf-8")


def opened(folder: Path) -> LabelledSet:
    """Map the cases written by :func:`keep`."""
    facts = json.loads((folder / _FACTS).read_text(encoding="utf-8"))
    count, side = int(facts["count"]), int(facts["side"])
    return LabelledSet(
        images=np.memmap(folder / "images.raw", np.uint8, "r", shape=(count, side, side, 3)),
        truth=np.load(folder / "truth.npy", allow_pickle=False),
        masks=np.memmap(folder / "masks.raw", np.uint8, "r", shape=(count, side, side)),
        has_mask=np.load(folder / "known.npy", allow_pickle=False),
        clusters=tuple(facts["clusters"]),
        classes=Classes(names=tuple(facts["classes"]), multi=bool(facts["multi"])),
        digest=str(facts["digest"]),
    )


def squared(image: Image, side: int) -> Pixels:
    """Return the central square of an image at ``side``, averaging areas when shrinking."""
    square = _middle(image)
    if square.shape[0] == side:
        return np.ascontiguousarray(square)
    interpolation = cv2.INTER_AREA if square.shape[0] > side else cv2.INTER_LINEAR
    return np.ascontiguousarray(cv2.resize(np.ascontiguousarray(square), (side, side), interpolation=interpolation))


def squared_mask(mask: Mask, side: int) -> Pixels:
    """Return the central square of a mask at ``side``, 0 or 255, nearest."""
    square = np.ascontiguousarray(_middle(mask), dtype=np.uint8)
    resized = np.asarray(cv2.resize(square, (side, side), interpolation=cv2.INTER_NEAREST_EXACT), np.uint8)
    return resized * np.uint8(255)


def _middle(array: NDArray[Any]) -> NDArray[Any]:
    height, width = array.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    return array[top : top + side, left : left + side]


def phantom_cases(kind: str, count: int, *, seed: int, size: int) -> Iterator[LabelledCase]:
    """Generate phantoms one by one; each is its own cluster."""
    make = maker(kind)
    for index in range(count):
        phantom = make(index, seed, size=size)
        yield LabelledCase(image=phantom.image, labels=phantom.labels, mask=phantom.mask, cluster=str(index))


def maker(kind: str) -> Callable[..., Any]:
    """Return the function that generates phantoms of a kind: ``make(index, suite_seed, *, size)``."""
    from importlib import import_module

    make: Callable[..., Any] = import_module(f"medtest.phantoms.{PHANTOM_ROOMS[kind]}").make
    return make


def seed_cases(seeds: Iterable[PreparedSeed]) -> Iterator[LabelledCase]:
    """Convert labelled prepared seeds to cases."""
    for seed in seeds:
        if seed.labels is not None:
            yield LabelledCase(
                image=seed.image,
                labels=seed.labels,
                mask=seed.mask,
                cluster=f"{seed.ref.dataset}/{seed.ref.cluster}",
            )


def held_out(cases: LabelledSet, *, share: float, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split cases into training and held-out ones, without splitting clusters.

    Args:
        cases: All cases.
        share: Share held out, at least one cluster.
        seed: Determines the split.

    Returns:
        Ascending indices of the training cases, and of the others.

    Raises:
        MedtestError: There are fewer than two clusters.
    """
    outside = held_out_names(cases.clusters, share=share, seed=seed)
    apart = np.array([name in outside for name in cases.clusters])
    return np.flatnonzero(~apart), np.flatnonzero(apart)


def held_out_names(clusters: Sequence[str], *, share: float, seed: int) -> set[str]:
    """Return the held-out clusters: ``share`` of them, at least one and not all.

    Raises:
        MedtestError: There are fewer than two clusters.
    """
    names = sorted(set(clusters))
    if len(names) < 2:
        raise MedtestError("all training cases are of one patient or video: none can be held out")
    order = np.random.Generator(np.random.PCG64([seed, 11])).permutation(len(names))
    count = min(len(names) - 1, max(1, round(share * len(names))))
    return {names[place] for place in order[:count]}


def some_of(watched: NDArray[np.int64], *, seed: int, most: int = MOST_WATCHED) -> NDArray[np.int64]:
    """Return a random subset of at most ``most`` held-out cases for evaluation."""
    order = np.random.Generator(np.random.PCG64([seed, 12])).permutation(len(watched))
    return np.sort(watched[order[: min(most, MOST_WATCHED)]])
