"""Selection of held-out training images and follow-ups: pure functions of seeds, sizes and names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Address, SeedRef
from medtest.core.errors import MedtestError
from medtest.suite.plan import Step

_SPLIT, _DRAW, _HELD = 3, 7, 8


PerturbationSlot: TypeAlias = tuple[int, tuple[Address, ...]]
"""Index of an image, and its cases in the order in which they are tried: later ones if a relation has no room."""


def split(
    refs: Sequence[SeedRef], prints: Sequence[str], *, held_out: float, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the indices for training, and those held out for validation.

    Images of one patient or video (their cluster), and equal pictures, stay on one side. If all images are independent,
    the held-out ones are those that ``medtest train`` with the same seed holds out.

    Args:
        refs: All images.
        prints: Fingerprint of each picture.
        held_out: Number of held-out images, or a share below 1; at least one and at most a quarter.
        seed: Seed of the shuffle.

    Raises:
        MedtestError: There are too few images or groups of images to hold any out.
    """
    count = len(refs)
    target = min(round(held_out * count) if held_out < 1 else round(held_out), count // 4)
    target = max(1, target)
    groups = _groups(refs, prints)
    order = np.random.Generator(np.random.PCG64([seed, _SPLIT])).permutation(count)
    held: set[int] = set()
    for index in order:
        members = groups[int(index)]
        if int(index) in held or len(held) + len(members) > max(target, count // 3):
            continue
        if len(held) >= target:
            break
        held |= set(members)
    if not held or len(held) == count:
        raise MedtestError(
            f"{count} training images in {len({tuple(g) for g in groups})} groups (patients, videos, equal pictures) "
            "are too few to hold any out for validation"
        )
    training = np.array([int(index) for index in order if int(index) not in held], np.int64)
    return training, np.array([int(index) for index in order if int(index) in held], np.int64)


def _groups(refs: Sequence[SeedRef], prints: Sequence[str]) -> list[list[int]]:
    """Return for each image all images that share its cluster or its picture, directly or transitively."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    count = len(refs)
    first: dict[tuple[str, str], int] = {}
    edges = [
        (index, first.setdefault(key, index))
        for index, (ref, picture) in enumerate(zip(refs, prints, strict=True))
        for key in ((f"cluster of {ref.dataset}", ref.cluster), ("picture", picture))
    ]
    rows, columns = np.array(edges, np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(len(rows)), (rows, columns)), shape=(count, count))
    _, labels = connected_components(graph, directed=False)
    return [np.flatnonzero(labels == label).tolist() for label in labels]


def draw_slots(
    refs: Mapping[int, SeedRef],
    shape: Sequence[Step],
    *,
    count: int,
    order: str,
    seed: int,
    held: bool = False,
) -> list[PerturbationSlot]:
    """Draw the perturbed images, each as the cases to try.

    Args:
        refs: The source images, by index.
        shape: Every follow-up of an image, as listed in a plan.
        count: Number of perturbed images.
        order: ``random``: all follow-ups of all images with equal probability, without repetition until all are used.
            ``balanced``: every image and every relation equally often, with random severities.
        seed: Seed of the draw.
        held: Whether these are for validation, which has separate draws.
    """
    if not refs or not shape or count <= 0:
        return []
    rng = np.random.Generator(np.random.PCG64([seed, _HELD if held else _DRAW]))
    indices = list(refs)
    picks = (
        _random(rng, len(indices), len(shape), count)
        if order == "random"
        else _balanced(rng, len(indices), shape, count)
    )
    relations = list(dict.fromkeys(step.relation for step in shape))
    slots: list[PerturbationSlot] = []
    for image, case in picks:
        rest = [int(number) for number in rng.permutation(len(shape)) if int(number) != case]
        if order == "balanced":  # another relation is tried before another severity of the one that had no room
            rest.sort(key=lambda number: shape[number][0] == shape[case][0])
        ref = refs[indices[image]]
        tried = (case, *rest[: 3 * len(relations)])
        slots.append((indices[image], tuple(shape[number].address(ref) for number in tried)))
    return slots


def _random(rng: np.random.Generator, images: int, cases: int, count: int) -> list[tuple[int, int]]:
    picks: list[tuple[int, int]] = []
    while len(picks) < count:
        flat = rng.permutation(images * cases)[: count - len(picks)]
        picks += [divmod(int(flat_index), cases) for flat_index in flat]
    return picks


def _balanced(rng: np.random.Generator, images: int, shape: Sequence[Step], count: int) -> list[tuple[int, int]]:
    relations = list(dict.fromkeys(step.relation for step in shape))
    of = {name: [number for number, case in enumerate(shape) if case[0] == name] for name in relations}
    picks: list[tuple[int, int]] = []
    image_order: list[int] = []
    relation_order: list[str] = []
    for _ in range(count):
        if not image_order:
            image_order = [int(index) for index in rng.permutation(images)]
        if not relation_order:
            relation_order = [relations[int(index)] for index in rng.permutation(len(relations))]
        choices = of[relation_order.pop()]
        picks.append((image_order.pop(), choices[int(rng.integers(len(choices)))]))
    return picks
