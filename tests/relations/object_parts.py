"""Relations of objects, and seeds to paste on."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from medtest.core.cases import Address, FollowUp, PreparedSeed, SeedRef
from medtest.core.plugins import parts
from medtest.relations.objects.cutouts import Variant, cutout
from medtest.relations.objects.library import SOLID
from medtest.relations.objects.pasted import GREY_AT_MEAN
from medtest.relations.placement import keep_out
from medtest.testing import SUITE_SEED, synthetic_seed

NAMES = ("instrument", "feces", "blood")


def relation(name: str, **changed: Any) -> Any:
    entry = parts("relations")[name]
    relation_class = entry.load()
    return relation_class(relation_class.Settings(**{**entry.defaults, **changed}))


def pasting(name: str) -> Any:
    """Return the relation that pastes cut-outs: with levels of cut-outs for instruments, else in published mode."""
    return cutouts() if name == "instrument" else relation(name, mode="published")


def cutouts(**changed: Any) -> Any:
    """Return instruments of the library, at areas of five severities."""
    areas = {1: {"area": 1.0}, 2: {"area": 2.0}, 3: {"area": 3.5}, 4: {"area": 5.5}, 5: {"area": 8.0}}
    return relation("instrument", kind="cutout", levels=areas, **changed)


def draws(paster: Any) -> list[tuple[int, int]]:
    """Return severities and repeats of at least five cases."""
    severities = paster.severities()
    return [(severity, repeat) for severity in severities for repeat in range(-(-5 // len(severities)))]


@cache
def seed_of(number: int, labelled: bool = True) -> PreparedSeed:
    return synthetic_seed(number, height=288, width=320, labelled=labelled)


def follow(paster: Any, seed: PreparedSeed, severity: int, repeat: int = 0) -> FollowUp:
    address = Address(
        dataset="synthetic", seed_id=seed.ref.seed_id, relation=paster.kind, severity=severity, repeat=repeat
    )
    result: FollowUp = paster.follow_up(seed, severity, address.generator(SUITE_SEED))
    return result


def flat_seed(level: int = 110, *, dark_half: bool = False, lesion: bool = True, side: int = 256) -> PreparedSeed:
    """Return an even field without a frame; the grey mask has its mean value, and 0 in a dark left half."""
    image = np.empty((side, side, 3), np.uint8)
    image[:] = (level + 50, level - 20, level - 40)
    mask = np.zeros((side, side), bool)
    if lesion:
        mask[100:140, 100:150] = True
    grey = np.full((side, side), GREY_AT_MEAN, np.float32)
    if dark_half:
        grey[:, : side // 2] = 0.0
    return PreparedSeed(
        ref=SeedRef(dataset="flat", seed_id=f"f{level}{dark_half}{lesion}"),
        image=image,
        mask=mask,
        original_mask=mask,
        frame=np.zeros((side, side), bool),
        grey=grey,
    )


def solid_of(paster: Any, seed: PreparedSeed, result: FollowUp) -> np.ndarray:  # type: ignore[type-arg]
    """Return a mask of the objects, drawn from the parameters without the relation's blending."""
    solid = np.zeros(seed.frame.shape, bool)
    for item in result.params["objects"]:  # type: ignore[union-attr]
        info = paster.library.info(paster.kind, item["name"])  # type: ignore[index, call-overload]
        variant = Variant(info=info, angle=item["angle"], step=item["size"], flip=item["flip"])  # type: ignore[index, call-overload, arg-type]
        piece = cutout(paster.library, variant, round(paster.settings.edge_blur * seed.height, 2))
        top, left = item["y"] + piece.offset[1], item["x"] + piece.offset[0]  # type: ignore[index, call-overload, operator]
        for row, column in np.argwhere(piece.alpha[..., 0] >= SOLID):
            if 0 <= top + row < seed.height and 0 <= left + column < seed.width:
                solid[top + row, left + column] = True
    margin = round(paster.settings.margin * seed.height)
    return solid & ~seed.frame & ~keep_out(seed, margin=margin)
