"""Questions of prompts: what depends on a missing thing is not asked, and everything else is counted once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from depict_records import drawn, entity, records

from medtest.core.scenes import Entity, Pool, Scene, SeenEntity, Tells, Triple, pool_of
from medtest.tasks.depict.questions import questions_about
from medtest.tasks.depict.tables.cases import cases_of
from medtest.tasks.depict.tables.questions import question_table
from medtest.tasks.depict.views import Said, SceneLook

RED_DOGS_ON_SOFA = pool_of(
    [entity("dog", 2, "red"), entity("sofa", None), entity("cup", 1)], [(0, "on", 1), (2, "near", 1)]
)
DOG, SOFA, CUP = (SeenEntity(name=name) for name in ("dog", "sofa", "cup"))
RED_DOG = SeenEntity(name="dog", attributes=("red",))


def _scene(*entities: SeenEntity, triples: Any = (), tells: Tells = Tells()) -> Scene:  # noqa: B008
    return Scene(
        entities=entities, triples=tuple(Triple(subject=a, predicate=p, object=b) for a, p, b in triples), tells=tells
    )


def _answers(scene: Scene, pool: Pool = RED_DOGS_ON_SOFA) -> dict[tuple[str, ...], Any]:
    questions = questions_about(SceneLook.of(scene), Said.of(pool))
    return {
        (one.kind, *one.names): f"not asked: depends on {one.depends_on}" if one.depends_on else one.right
        for one in questions
    }


def test_colour_number_and_relations_of_a_missing_thing_are_not_asked() -> None:
    assert _answers(_scene(SOFA, CUP, triples=[(1, "near", 0)])) == {
        ("entities", "dog"): False,
        ("entities", "sofa"): True,
        ("entities", "cup"): True,
        ("attributes", "red", "dog"): "not asked: depends on dog",
        ("counts", "dog"): "not asked: depends on dog",
        ("counts", "cup"): True,
        ("relations", "dog", "on", "sofa"): "not asked: depends on dog",
        ("relations", "cup", "near", "sofa"): True,
    }


def test_what_is_there_is_asked_about() -> None:
    found = _answers(_scene(RED_DOG, DOG, SOFA, CUP, triples=[(0, "on", 2)]))
    assert found["attributes", "red", "dog"] is False  # one of two is red
    assert found["counts", "dog"] is True
    assert found["relations", "dog", "on", "sofa"] is True
    assert found["relations", "cup", "near", "sofa"] is False


@pytest.mark.parametrize(
    ("tells", "untold"),
    [
        (Tells(counts=False), {("counts", "dog"), ("counts", "cup")}),
        (Tells(attributes=frozenset({"blue"})), {("attributes", "red", "dog")}),
        (Tells(predicates=frozenset({"on"})), {("relations", "cup", "near", "sofa")}),
        (
            Tells(classes=frozenset({"dog", "sofa"})),
            {("entities", "cup"), ("counts", "cup"), ("relations", "cup", "near", "sofa")},
        ),
    ],
)
def test_what_the_reader_cannot_tell_has_no_answer(tells: Tells, untold: set[tuple[str, ...]]) -> None:
    found = _answers(_scene(RED_DOG, RED_DOG, SOFA, CUP, tells=tells))
    assert {question for question, answer in found.items() if answer is None} == untold


def test_what_the_prompt_excludes_is_asked_for_and_must_not_be_there() -> None:
    pool = Pool(entities=(Entity(name="sofa", count=1),), absent=("dog",))
    assert _answers(_scene(SOFA), pool)["absent", "dog"] is True
    assert _answers(_scene(SOFA, DOG), pool)["absent", "dog"] is False


def test_one_missing_thing_is_one_error_of_the_table() -> None:
    def without_first(pool: Pool, rng: np.random.Generator, prompt: str) -> Scene:
        triples = tuple(one for one in pool.triples if 0 not in (one.subject, one.object))
        lost = [Triple(subject=one.subject - 1, predicate=one.predicate, object=one.object - 1) for one in triples]
        return drawn(Pool(entities=pool.entities[1:], triples=tuple(lost)))

    cases = cases_of(records(9, without_first))
    found = question_table(cases).set_index(["relation", "kind"])
    source = found.xs("source", level="relation")
    # nine prompts of three things, one of them red, all with numbers, in a chain of two relations: the first is missing
    assert source["asked"].to_dict() == {"whole": 54, "entities": 27, "attributes": 0, "counts": 18, "relations": 9}
    assert source["right"].to_dict() == {"whole": 45, "entities": 18, "attributes": 0, "counts": 18, "relations": 9}
    missing = source["not_asked_depends_on"]
    assert (missing["whole"], missing["attributes"], missing["counts"], missing["relations"]) == (27, 9, 9, 9)
    assert source["rate"]["whole"] == pytest.approx(45 / 54, abs=1e-6)
