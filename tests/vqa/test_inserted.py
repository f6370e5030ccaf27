"""What a relation inserted, from its effect: against the pixels that it changed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from medtest.cases import Address, Effect, Json
from medtest.plugins import part
from medtest.vqa.expectations import Inserted, cells_of
from medtest.vqa.inserted import inserted_of

sys.path.insert(0, str(Path(__file__).parents[1] / "relations"))
from relation_seeds import synthetic_seed  # noqa: E402


@pytest.mark.parametrize("name", ["instrument", "feces", "blood", "text"])
@pytest.mark.parametrize("number", range(4))
def test_cells_are_those_whose_pixels_changed(name: str, number: int) -> None:
    info = part("relations", name)
    made_by = info.load()(info.load().Settings(**dict(info.defaults)))
    seed = synthetic_seed(number, height=288, width=384)
    address = Address(dataset="d", seed_id=f"s{number}", relation=name, severity=3)
    made = made_by.apply(seed, made_by.sample(seed, 3, address.generator(1)))
    found = inserted_of(made.effect)
    assert found is not None
    assert found.count == made.effect.data["count"]
    assert found.names == frozenset()
    changed = (made.image != seed.image).any(axis=2)
    # Feathered edges and shadows change pixels too, so that a share near the bound may fall on either side of it.
    assert cells_of(changed, share=0.25) <= found.cells <= cells_of(changed, share=0.08)


def test_effects_of_other_kinds_and_of_old_stores() -> None:
    assert inserted_of(Effect()) is None
    assert inserted_of(Effect(kind="move", data={"matrix": [[1, 0, 0], [0, 1, 0]]})) is None
    places: list[Json] = [[0.1, 0.9], [0.5, 0.5], [1.0, 1.0]]
    found = inserted_of(Effect(kind="add", data={"count": 3, "places": places}))
    assert found == Inserted(count=3, cells=frozenset({"lower-left", "center", "lower-right"}))
    named = inserted_of(Effect(kind="add", data={"names": ["tube"], "grid": [0.0] * 8 + [1.0]}))
    assert named == Inserted(count=1, names=frozenset({"tube"}), cells=frozenset({"lower-right"}))
    assert inserted_of(Effect(kind="add", data={"places": ["x", [1]]})) == Inserted(count=1)
