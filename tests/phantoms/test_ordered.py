"""Pictures with ordered findings: they show these, with the ordered side and size, and no others."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from medtest.core.portable import key_generator
from medtest.phantoms.capsule.ordered import LESIONS, draw_capsule
from medtest.phantoms.chest.ordered import LARGEST, FilmFinding, draw_film
from medtest.phantoms.chest.sides import SIDED, sides_of
from medtest.phantoms.classes import CHEST
from medtest.phantoms.questions.ordered import OrderedPolyp, draw_endoscopy


def part_of(number: int, name: str) -> np.random.Generator:
    """Return the random stream of a part of a picture."""
    return key_generator([number, name])


@pytest.mark.parametrize("name", CHEST.names)
def test_a_film_shows_the_finding_on_its_side_and_no_other(name: str) -> None:
    for number, side in enumerate(("left", "right", "bilateral") if name in SIDED else ("",)):
        film = draw_film(partial(part_of, number), [FilmFinding(name=name, side=side)], size=128)
        assert film.labels == (name,)
        if side:
            sides = {"left", "right"} if side == "bilateral" else {side}
            assert sides_of(film.facts) == {name: sides}


def test_a_film_without_findings_is_normal() -> None:
    assert draw_film(partial(part_of, 1), [], size=128).labels == ()


@pytest.mark.parametrize("millimetres", [8.0, 60.0, 300.0, 1e12])
def test_round_opacities_have_their_size_up_to_the_largest_that_fits(millimetres: float) -> None:
    finding = FilmFinding(name="mass", side="left", millimetres=millimetres)
    film = draw_film(partial(part_of, 2), [finding, finding], size=128)
    diameters = [opacity["diameter_mm"] for opacity in film.facts["round_opacities"]]
    assert diameters == [pytest.approx(min(millimetres, LARGEST), abs=0.1)] * 2


def test_an_endoscopy_shows_its_polyps_and_instruments() -> None:
    polyp = OrderedPolyp(millimetres=8.0, colour="red", type="is")
    facts = draw_endoscopy(partial(part_of, 3), polyps=[polyp] * 3, tools=["metal clip"], size=128).facts
    assert [(shown["colour"], shown["type"], shown["size"]) for shown in facts["polyps"]] == [
        ("red", "is", "5-10mm")
    ] * 3
    assert facts["instruments"] == ["metal clip"]


def test_a_capsule_frame_shows_its_lesions() -> None:
    counts = {"erosion": 3, "bleeding": 1}
    facts = draw_capsule(partial(part_of, 4), counts, size=128).facts
    kinds = [lesion["kind"] for lesion in facts["lesions"]]
    assert {name: kinds.count(LESIONS[name]) for name in counts} == counts
