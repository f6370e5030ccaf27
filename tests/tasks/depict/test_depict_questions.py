"""Questions of prompts: questions that depend on a missing entity are not asked, all others are counted once."""

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
        (question.kind, *question.names): f"not asked: depends on {question.depends_on}"
        if question.depends_on
        else question.right
        for question in questions
    }


def test_colour_number_and_relations_of_a_missing_object_are_not_asked() -> None:
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


def test_present_entities_are_asked_about() -> None:
    answers = _answers(_scene(RED_DOG, DOG, SOFA, CUP, triples=[(0, "on", 2)]))
    assert answers["attributes", "red", "dog"] is False  # one of two is red
    assert answers["counts", "dog"] is True
    assert answers["relations", "dog", "on", "sofa"] is True
    assert answers["relations", "cup", "near", "sofa"] is False


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
def test_questions_beyond_the_reader_have_no_answer(tells: Tells, untold: set[tuple[str, ...]]) -> None:
    answers = _answers(_scene(RED_DOG, RED_DOG, SOFA, CUP, tells=tells))
    assert {question for question, answer in answers.items() if answer is None} == untold


def test_exclusions_of_the_prompt_are_asked_for_and_must_not_be_there() -> None:
    pool = Pool(entities=(Entity(name="sofa", count=1),), absent=("dog",))
    assert _answers(_scene(SOFA), pool)["absent", "dog"] is True
    assert _answers(_scene(SOFA, DOG), pool)["absent", "dog"] is False


def test_one_missing_thing_is_one_error_of_the_table() -> None:
    def without_first(pool: Pool, rng: np.random.Generator, prompt: str) -> Scene:
        triples = tuple(triple for triple in pool.triples if 0 not in (triple.subject, triple.object))
        lost = [
            Triple(subject=triple.subject - 1, predicate=triple.predicate, object=triple.object - 1)
            for triple in triples
        ]
        return drawn(Pool(entities=pool.entities[1:], triples=tuple(lost)))

    cases = cases_of(records(9, without_first))
    table = question_table(cases).set_index(["relation", "kind"])
    source = table.xs("source", level="relation")
    # nine prompts of three things, one of them red, all with numbers, in a chain of two relations: the first is missing
    assert source["asked"].to_dict() == {"whole": 54, "entities": 27, "attributes": 0, "counts": 18, "relations": 9}
    assert source["right"].to_dict() == {"whole": 45, "entities": 18, "attributes": 0, "counts": 18, "relations": 9}
    missing = source["not_asked_depends_on"]
    assert (missing["whole"], missing["attributes"], missing["counts"], missing["relations"]) == (27, 9, 9, 9)
    assert source["rate"]["whole"] == pytest.approx(45 / 54, abs=1e-6)
