"""Inserted objects, read from the effect of a relation and compared with the changed pixels."""

from __future__ import annotations

import numpy as np
import pytest
from shipped_relations import effects_of

from medtest.core.cases import Address, Effect, Json
from medtest.core.plugins import part
from medtest.language.questions.answers.extract.place import CELLS
from medtest.language.questions.answers.lexicon.words import sections
from medtest.language.questions.expectations import Inserted, inserted_of, judge_against_source, judge_against_truth
from medtest.language.questions.judging import wanted_text
from medtest.language.questions.matrix import default_matrix, expectation
from medtest.language.questions.questions import by_name
from medtest.relations.objects.library import load_library
from medtest.relations.objects.tools.shapes import MODELS
from medtest.testing import synthetic_seed


@pytest.mark.parametrize("name", ["instrument", "feces", "blood", "text"])
@pytest.mark.parametrize("number", range(4))
def test_cells_are_those_whose_pixels_changed(name: str, number: int) -> None:
    info = part("relations", name)
    relation = info.load()(info.load().Settings(**dict(info.defaults)))
    seed = synthetic_seed(number, height=288, width=384)
    address = Address(dataset="d", seed_id=f"s{number}", relation=name, severity=3)
    transformed = relation.apply(seed, relation.sample(seed, 3, address.generator(1)))
    inserted = inserted_of(transformed.effect)
    assert inserted is not None
    assert inserted.count == transformed.effect.data["count"]
    correct = frozenset(MODELS[str(transformed.params["tool"])].called) if name == "instrument" else frozenset()
    assert inserted.names == correct
    assert bool(inserted.names) == (name == "instrument")
    changed = (transformed.image != seed.image).any(axis=2)
    # Feathered edges and shadows change pixels too, so that a share near the bound may fall on either side of it.
    rows, columns = np.nonzero(changed)
    shares = np.bincount(rows * 3 // 288 * 3 + columns * 3 // 384, minlength=9) / rows.size
    sure, possible = ({CELLS[index] for index in np.flatnonzero(shares >= share)} for share in (0.25, 0.08))
    assert sure <= inserted.cells <= possible


def test_effects_of_other_kinds_and_of_old_stores() -> None:
    assert inserted_of(Effect()) is None
    assert inserted_of(Effect(kind="move", data={"matrix": [[1, 0, 0], [0, 1, 0]]})) is None
    places: list[Json] = [[0.1, 0.9], [0.5, 0.5], [1.0, 1.0]]
    inserted = inserted_of(Effect(kind="add", data={"count": 3, "places": places}))
    assert inserted == Inserted(count=3, cells=frozenset({"lower-left", "center", "lower-right"}))
    named = inserted_of(Effect(kind="add", data={"names": ["tube"], "grid": [0.0] * 8 + [1.0]}))
    assert named == Inserted(count=1, names=frozenset({"tube"}), cells=frozenset({"lower-right"}))
    assert inserted_of(Effect(kind="add", data={"places": ["x", [1]]})) == Inserted(count=1)


def test_bundled_instruments_have_names_that_answers_give() -> None:
    """Every drawn instrument has a name that answers give; the kinds of four were looked up by hand."""
    instruments = set(sections()["instrument"])
    infos = load_library().kind("instrument")
    assert len(infos) >= 15
    for info in infos:
        assert info.called, info.name
        assert set(info.called) <= instruments, info.name
    called = {info.name: info.called for info in infos}
    assert called["biopsy_forceps_open"] == ["biopsy_forceps"]
    assert called["snare_hexagonal"] == ["polyp_snare"]
    assert called["injection_needle"] == ["injection_needle"]
    assert called["clip_on_catheter"] == ["metal_clip", "tube"]


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ("Yes, biopsy forceps", "PASS"),
        ("Yes.", "PASS"),
        ("An instrument is visible.", "PASS"),
        ("biopsy forceps and a polyp snare", "PASS"),
        ("A polyp snare.", "PASS"),  # it is seen, if called something else
        ("A tube.", "FAIL"),  # which the source has already
        ("A tube and a polyp snare.", "PASS"),
        ("No instruments.", "FAIL"),
    ],
)
def test_an_instrument_of_known_kind_is_asked_for_by_its_name(answer: str, verdict: str) -> None:
    question = by_name("instruments")
    assert question is not None
    effect = Effect(kind="add", data={"count": 1, "places": [[0.5, 0.5]], "names": ["biopsy_forceps"]})
    expected = expectation(default_matrix(), "instrument", question, effects=effects_of("instrument"))
    value, source = question.parse(answer), question.parse("A tube" if "tube" in answer else "No")
    named = "forceps" in answer or answer in ("Yes.", "An instrument is visible.")
    right = judge_against_truth(expected, value, source, inserted=inserted_of(effect)).verdict == "PASS"
    assert right == named
    assert judge_against_source(expected, value, source, inserted=inserted_of(effect)).verdict == verdict
    assert wanted_text(expected, value, source, inserted_of(effect)) == "biopsy_forceps;yes"
    unknown = inserted_of(Effect(kind="add", data={"count": 1, "places": [[0.5, 0.5]]}))
    affirms = "No" not in answer
    assert (judge_against_source(expected, value, source, inserted=unknown).verdict == "PASS") == affirms
    assert wanted_text(expected, value, source, unknown) == "yes"
