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
    """The relation that pastes cut-outs: levels of cut-outs for instruments, else published mode."""
    return cutouts() if name == "instrument" else relation(name, mode="published")


def cutouts(**changed: Any) -> Any:
    """Instruments of the library, at areas of five severities."""
    areas = {1: {"area": 1.0}, 2: {"area": 2.0}, 3: {"area": 3.5}, 4: {"area": 5.5}, 5: {"area": 8.0}}
    return relation("instrument", kind="cutout", levels=areas, **changed)


def draws(made_by: Any) -> list[tuple[int, int]]:
    """Severities and repeats of at least five cases."""
    severities = made_by.severities()
    return [(severity, repeat) for severity in severities for repeat in range(-(-5 // len(severities)))]


@cache
def seed_of(number: int, labelled: bool = True) -> PreparedSeed:
    return synthetic_seed(number, height=288, width=320, labelled=labelled)


def follow(made_by: Any, seed: PreparedSeed, severity: int, repeat: int = 0) -> FollowUp:
    address = Address(
        dataset="synthetic", seed_id=seed.ref.seed_id, relation=made_by.kind, severity=severity, repeat=repeat
    )
    made: FollowUp = made_by.follow_up(seed, severity, address.generator(SUITE_SEED))
    return made


def flat_seed(level: int = 110, *, dark_half: bool = False, lesion: bool = True, side: int = 256) -> PreparedSeed:
    """An even field without a frame; the grey mask is at its mean value, 0 in the left half when asked."""
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


def solid_of(made_by: Any, seed: PreparedSeed, made: FollowUp) -> np.ndarray:  # type: ignore[type-arg]
    """The objects' pixels, drawn from the parameters without the relation's blending."""
    solid = np.zeros(seed.frame.shape, bool)
    for item in made.params["objects"]:  # type: ignore[union-attr]
        info = made_by.library.info(made_by.kind, item["name"])  # type: ignore[index, call-overload]
        variant = Variant(info=info, angle=item["angle"], step=item["size"], flip=item["flip"])  # type: ignore[index, call-overload, arg-type]
        piece = cutout(made_by.library, variant, round(made_by.settings.edge_blur * seed.height, 2))
        top, left = item["y"] + piece.offset[1], item["x"] + piece.offset[0]  # type: ignore[index, call-overload, operator]
        for row, column in np.argwhere(piece.alpha[..., 0] >= SOLID):
            if 0 <= top + row < seed.height and 0 <= left + column < seed.width:
                solid[top + row, left + column] = True
    margin = round(made_by.settings.margin * seed.height)
    return solid & ~seed.frame & ~keep_out(seed, margin=margin)
