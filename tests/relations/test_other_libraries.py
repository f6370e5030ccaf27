"""The contract of relations on every allowed class of every library, and the table of docs/other-libraries.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from medtest.core.address import image_sha256
from medtest.core.errors import NotApplicable
from medtest.relations.perturb.library import NO_COMPANIONS, Moves, library_of
from medtest.relations.perturb.movement import coordinate_planes, coordinates
from medtest.relations.perturb.rehearsal import SIDE
from medtest.relations.perturb.relation import Perturb
from medtest.relations.perturb.transform import transforms_of
from medtest.testing import check_relation, load_relation, synthetic_seed
from tests.relations.perturb_parts import EXAMPLES

PAGE = Path(__file__).parents[2] / "docs" / "other-libraries.md"
HEADING = "## Every class\n"
LIBRARIES = ("albumentations", "monai", "nrtk", "torchio", "torchvision")
LEAST = {"albumentations": 70, "monai": 40, "nrtk": 15, "torchio": 18, "torchvision": 25}
"""Fewest classes of each library that hold the contract."""
PIXELS = {
    "none": "stay",
    "move": "move by a matrix, masks too",
    "warp": "move by a field, masks too",
    Moves.WITHOUT_MASKS.value: "move untold: only for labels and questions",
}


def perturb(transform: str) -> Perturb:
    relation = load_relation("perturb", transform=transform, params=EXAMPLES.get(transform, {}))
    assert isinstance(relation, Perturb)
    return relation


def tried(transform: str) -> tuple[str, str]:
    """Return effect and draws of a class that holds the contract; "" and the reason for one that is refused."""
    try:
        relation = perturb(transform)
    except ValidationError as error:
        (detail,) = error.errors()
        return "", str(detail["ctx"]["mistakes"][0].allowed).partition(": ")[2] or "?"
    seed = synthetic_seed(0, height=128, width=128, framed=False)
    follow_ups = check_relation(relation, seed, may_skip=True)
    drawn = set()
    for draw in range(1, 5):
        try:
            changed, _ = relation.transform.change(relation.settings.arguments(1), draw, seed.image, NO_COMPANIONS)
        except NotApplicable:
            continue
        drawn.add(image_sha256(changed))
    kinds = {each.effect.kind for each in follow_ups} or {"none"}
    kind = next(each for each in ("warp", "move", "none") if each in kinds)
    kind = kind if relation.tells_places else Moves.WITHOUT_MASKS.value
    return PIXELS[kind], "drawn" if len(drawn) > 1 else "the same for all draws"


def table(library: str) -> str:
    """Return the section of a library, for which every class is tried."""
    adapter = library_of(library)
    allowed, refused = transforms_of(adapter)
    groups: dict[tuple[str, str], list[str]] = {}
    reasons: dict[str, list[str]] = {}
    for name, reason in refused.items():
        reasons.setdefault(reason, []).append(name)
    for name in allowed:
        pixels, draws = tried(f"{library}.{name}")
        if pixels:
            groups.setdefault((pixels, draws), []).append(name)
        else:
            reasons.setdefault(draws, []).append(name)
    assert sum(map(len, groups.values())) >= LEAST[library]
    for side in (SIDE, 128):  # no class changes the coordinates, which all share
        assert np.array_equal(coordinate_planes(side, side), coordinates(side, side).transpose(2, 0, 1))
        assert np.array_equal(coordinates(side, side)[..., 0], np.broadcast_to(np.arange(side), (side, side)))
    rows = [f"| {pixels} | {draws} | {_names(names)} |" for (pixels, draws), names in sorted(groups.items())]
    no = [f"| refused: {reason} | | {_names(names)} |" for reason, names in sorted(reasons.items())]
    head = "| pixels | change | classes |\n|---|---|---|"
    return "\n".join([f"### {library}\n", head, *rows, *no, ""])


def _names(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


@pytest.mark.slow
@pytest.mark.parametrize("library", LIBRARIES)
def test_every_class_holds_the_contract_or_is_refused(library: str, pytestconfig: pytest.Config) -> None:
    pytest.importorskip(library)
    page = PAGE.read_text(encoding="utf-8")
    start = page.index(f"### {library}\n") if f"### {library}\n" in page else len(page)
    following = page.find("### ", start + 1)
    end = len(page) if following < 0 else following
    section = table(library)
    if pytestconfig.getoption("--remake"):
        parts = [page[:start].rstrip(), section.rstrip(), page[end:].rstrip()]
        PAGE.write_text("\n\n".join(part for part in parts if part) + "\n", encoding="utf-8")
        pytest.skip(f"WRITTEN AGAIN: {PAGE}")
    assert page[start:end].strip() == section.strip(), "run this file with -m slow --remake"


@pytest.mark.slow
def test_masks_of_a_warp_are_those_of_the_library() -> None:
    """The mask of GridDistortion moved by the effect agrees with the library's own mask."""
    albumentations = pytest.importorskip("albumentations")
    seed = synthetic_seed(0, height=160, width=160, framed=False)
    relation = perturb("albumentations.GridDistortion")
    agreements: list[float] = []
    for draw in range(5):
        params: dict[str, Any] = {**relation.sample(seed, 1, np.random.default_rng(draw))}
        from medtest.core.oracles.moves import moved_mask

        assert seed.mask is not None
        follow = relation.apply(seed, params)
        moved = moved_mask(seed.mask, follow.effect)
        composed = albumentations.Compose([albumentations.GridDistortion(p=1.0)], seed=params["seed"])
        mask = composed(image=seed.image, mask=seed.mask.astype(np.uint8))["mask"] > 0
        agreements.append(2.0 * (mask & moved).sum() / (mask.sum() + moved.sum()))
    assert min(agreements) >= 0.98
