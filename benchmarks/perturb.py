"""Milliseconds of transforms of other libraries at 512×512: the library's own work, and what medtest adds to it.

``python benchmarks/perturb.py [--draws N] [--passes N] [--size N]`` prints a line for each transform: the library's
construction of an object and its call on arrays in its own layout (with coordinates, where it moves pixels); a
follow-up; the overhead, which is conversion, clipping, effect and black frame; the field of a warp (its folds and
SHA-256) and the lesion's visibility, which medtest's own relations need, too. Processor time of one core: the median of
several draws, of each the minimum of several passes, which other programs on the machine disturb least. The target is
an overhead of at most 1 ms. Memory is allocated as in workers.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import cv2
import numpy as np

from benchmarks._sizes import options
from benchmarks.relations import prepared_seeds
from medtest.core.cases import FollowUp, PreparedSeed
from medtest.core.errors import NotApplicable
from medtest.core.oracles.warps import warp_effect
from medtest.preparation.visibility import visibility
from medtest.relations.perturb.arguments import checked_arguments
from medtest.relations.perturb.library import Moves, library_of
from medtest.relations.perturb.movement import coordinates
from medtest.relations.perturb.relation import Perturb
from medtest.relations.perturb.values import seeded_torch
from medtest.runner.pool.allocator import keeping_memory
from medtest.testing import load_relation

TARGET = 1.0
TRANSFORMS: dict[str, dict[str, Any]] = {
    "albumentations.RandomFog": {"alpha_coef": 0.02, "fog_coef_range": [0.1, 0.2]},
    "albumentations.GaussNoise": {"std_range": [0.02, 0.03]},
    "albumentations.Rotate": {"limit": 20},
    "albumentations.GridDistortion": {},
    "torchvision.ColorJitter": {"brightness": 0.3},
    "torchvision.GaussianNoise": {"sigma": 0.03},
    "torchvision.RandomAffine": {"degrees": 20},
    "monai.RandGaussianNoise": {"std": 0.03},
    "monai.RandAffine": {"rotate_range": 0.3},
    "torchio.RandomNoise": {"std": 0.03},
    "torchio.RandomAffine": {},
    "nrtk.HazePerturber": {"factor": 0.2},
    "nrtk.GaussianNoisePerturber": {"var": 0.001},
}


def main() -> None:
    """Measure every transform whose library is installed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=7)
    parser.add_argument("--passes", type=int, default=7)
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--only", nargs="+", default=list(TRANSFORMS))
    chosen = options(parser, draws=2, passes=2, size=128, only=["torchvision.ColorJitter", "torchvision.RandomAffine"])
    cv2.setNumThreads(1)
    (seed,) = prepared_seeds(1)
    heads = ("library", "follow-up", "overhead", "field", "visibility")
    print(f"{'transform':32}" + "".join(f"{head:>12}" for head in heads) + "   (ms)")
    worst = 0.0
    for name in chosen.only:
        if library_of(name.partition(".")[0]).problem()[0]:
            print(f"{name:32}  not installed")
            continue
        library, whole, field, visible = _measure(name, _resized(seed, chosen.size), chosen.draws, chosen.passes)
        overhead = whole - library - field - visible
        worst = max(worst, overhead)
        print(f"{name:32}" + "".join(f"{value:12.2f}" for value in (library, whole, overhead, field, visible)))
    print(f"largest overhead: {worst:.2f} ms (target: {TARGET:g})")


def _resized(seed: PreparedSeed, size: int) -> PreparedSeed:
    if seed.height == size:
        return seed
    from medtest.testing import synthetic_seed

    return synthetic_seed(0, height=size, width=size)


def _measure(name: str, seed: PreparedSeed, draws: int, passes: int) -> tuple[float, float, float, float]:
    """Return milliseconds of the library, of a follow-up, of the field of a warp, and of the visibility."""
    relation = load_relation("perturb", transform=name, params=TRANSFORMS[name])
    if not isinstance(relation, Perturb):
        raise TypeError(name)
    drawn = [relation.sample(seed, 1, np.random.default_rng(number)) for number in range(draws)]
    transform = relation.transform
    arguments, _ = checked_arguments(transform.library, transform.kind, relation.settings.arguments(1))
    grid = coordinates(seed.height, seed.width) if transform.moves is Moves.WITH_MASKS else None
    native = NATIVE[name.partition(".")[0]](transform.kind, arguments, seed.image, grid)
    rows = []
    for params in drawn:
        made = _follow_up(relation, seed, params)
        if made is None:
            continue
        field = None if made.effect.displacements is None else made.effect.displacements.astype(np.float32)
        works: list[Callable[[], Any]] = [
            partial(native, int(params["seed"])),
            partial(_follow_up, relation, seed, params),
            float if field is None else partial(warp_effect, field),
            partial(visibility, seed, made.image, made.effect),
        ]
        rows.append(np.min([[_milliseconds(work) for work in works] for _ in range(passes)], axis=0))
    library, whole, field_part, visible = np.median(rows, axis=0).tolist()
    return library, whole, field_part, visible


def _follow_up(relation: Perturb, seed: PreparedSeed, params: Mapping[str, Any]) -> FollowUp | None:
    with contextlib.suppress(NotApplicable):
        return relation.apply(seed, params)
    return None


def _milliseconds(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return 1000.0 * (time.process_time() - start)


def _albumentations(kind: type, arguments: Mapping[str, Any], image: Any, grid: Any) -> Callable[[int], Any]:
    from albumentations import Compose

    others = {} if grid is None else {"masks": [grid]}
    smooth = None if grid is None else cv2.INTER_LINEAR
    return lambda seed: Compose([kind(**arguments)], seed=seed, mask_interpolation=smooth)(image=image, **others)


def _torchvision(kind: type, arguments: Mapping[str, Any], image: Any, grid: Any) -> Callable[[int], Any]:
    import torch
    from torchvision import tv_tensors

    pictures = {"image": image} if grid is None else {"image": image, "grid": grid}
    tensors = {name: tv_tensors.Image(torch.from_numpy(_channels_first(each))) for name, each in pictures.items()}

    def work(seed: int) -> Any:
        with seeded_torch(seed):
            return kind(**arguments)(tensors)

    return work


def _monai(kind: type, arguments: Mapping[str, Any], image: Any, grid: Any) -> Callable[[int], Any]:
    arrays = [_channels_first(image / np.float32(255.0))] + ([] if grid is None else [_channels_first(grid)])

    def work(seed: int) -> Any:
        return [kind(**arguments).set_random_state(seed=seed)(array) for array in arrays]

    return work


def _torchio(kind: type, arguments: Mapping[str, Any], image: Any, grid: Any) -> Callable[[int], Any]:
    import torch
    import torchio

    def volume(array: Any) -> Any:
        return torch.from_numpy(np.ascontiguousarray(array.transpose(2, 1, 0), np.float32)[..., None])

    picture, places = volume(image / np.float32(255.0)), None if grid is None else volume(grid)

    def work(seed: int) -> Any:
        images = {"image": torchio.ScalarImage(tensor=picture)}
        others = {}
        if places is not None:
            images["grid"], others = torchio.LabelMap(tensor=places), {"label_interpolation": "linear"}
        with seeded_torch(seed):
            return kind(**{**arguments, **others})(torchio.Subject(images))["image"].data.numpy()

    return work


def _nrtk(kind: type, arguments: Mapping[str, Any], image: Any, grid: Any) -> Callable[[int], Any]:
    seeded = "seed" in library_of("nrtk").parameters(kind)
    return lambda seed: kind(**arguments, **({"seed": seed} if seeded else {}))(image=image)


def _channels_first(array: Any) -> Any:
    return np.ascontiguousarray(array.transpose(2, 0, 1))


NATIVE: dict[str, Callable[..., Callable[[int], Any]]] = {
    "albumentations": _albumentations,
    "monai": _monai,
    "nrtk": _nrtk,
    "torchio": _torchio,
    "torchvision": _torchvision,
}

if __name__ == "__main__":
    memory = keeping_memory(os.environ)
    if memory:  # the allocator of workers, which is set when a process starts
        os.execve(sys.executable, [*sys.orig_argv], {**os.environ, **memory})  # noqa: S606 - this script again
    main()
