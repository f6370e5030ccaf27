"""GenEval's rule against cases worked out by hand from its evaluate_images.py."""

from __future__ import annotations

from typing import Any

import pytest

from medtest.core.scenes import Entity, Pool, Scene, SeenEntity, Tells, pool_of
from medtest.results.fidelity.geneval.rule import GenEvalRule, shown

LEFT, MIDDLE, RIGHT = (0.0, 0.4, 0.2, 0.6), (0.4, 0.4, 0.6, 0.6), (0.8, 0.4, 1.0, 0.6)


def _entity(name: str, box: Any = MIDDLE, score: float = 0.9, *attributes: str) -> SeenEntity:
    return SeenEntity(name=name, box=box, score=score, attributes=attributes)


def _scene(*entities: SeenEntity, tells: Tells = Tells()) -> Scene:  # noqa: B008
    return Scene(entities=entities, tells=tells)


TWO_DOGS = pool_of([Entity(name="dog", count=2)])
RED_DOG = pool_of([Entity(name="dog", attributes=("red",))])
RED_DOG_BLUE_CAT = pool_of([Entity(name="dog", attributes=("red",)), Entity(name="cat", attributes=("blue",))])
CAT_RIGHT_OF_DOG = pool_of([Entity(name="dog"), Entity(name="cat")], [(1, "right of", 0)])


@pytest.mark.parametrize(
    ("pool", "tag", "scene", "correct"),
    [
        # a thing that is there more often is right, but where the prompt counts
        (pool_of([Entity(name="dog")]), "single_object", _scene(_entity("dog"), _entity("dog"), _entity("cat")), True),
        (pool_of([Entity(name="dog")]), "single_object", _scene(_entity("cat")), False),
        (TWO_DOGS, "counting", _scene(_entity("dog"), _entity("dog")), True),
        (TWO_DOGS, "counting", _scene(_entity("dog")), False),
        (TWO_DOGS, "counting", _scene(_entity("dog"), _entity("dog"), _entity("dog")), False),
        (TWO_DOGS, "two_object", _scene(_entity("dog"), _entity("dog"), _entity("dog")), True),
        (TWO_DOGS, "counting", _scene(_entity("dog"), _entity("dog"), _entity("cat")), True),
        # colours are those of the things that the reader is surest of
        (RED_DOG, "colors", _scene(_entity("dog", MIDDLE, 0.9, "red"), _entity("dog", LEFT, 0.8, "blue")), True),
        (RED_DOG, "colors", _scene(_entity("dog", MIDDLE, 0.7, "red"), _entity("dog", LEFT, 0.8, "blue")), False),
        (
            RED_DOG_BLUE_CAT,
            "color_attr",
            _scene(_entity("dog", LEFT, 0.9, "red"), _entity("cat", RIGHT, 0.9, "blue")),
            True,
        ),
        (
            RED_DOG_BLUE_CAT,
            "color_attr",
            _scene(_entity("dog", LEFT, 0.9, "blue"), _entity("cat", RIGHT, 0.9, "red")),
            False,
        ),
        # places
        (CAT_RIGHT_OF_DOG, "position", _scene(_entity("dog", LEFT), _entity("cat", RIGHT)), True),
        (CAT_RIGHT_OF_DOG, "position", _scene(_entity("dog", RIGHT), _entity("cat", LEFT)), False),
        (CAT_RIGHT_OF_DOG, "position", _scene(_entity("dog", MIDDLE), _entity("cat", MIDDLE)), False),
        (
            CAT_RIGHT_OF_DOG,
            "position",
            _scene(_entity("dog", LEFT), _entity("cat", RIGHT, 0.8), _entity("cat", (0.0, 0.0, 0.1, 0.1), 0.3)),
            True,
        ),
        (CAT_RIGHT_OF_DOG, "position", _scene(_entity("cat", RIGHT)), False),
        (pool_of([Entity(name="dog")]), "single_object", _scene(), False),
    ],
)
def test_the_rule(pool: Pool, tag: str, scene: Scene, correct: bool) -> None:
    shown_ = shown(scene, pool, tag)
    assert shown_.correct is correct
    assert bool(shown_.why) is not correct


@pytest.mark.parametrize(
    ("pool", "tells", "why"),
    [
        (RED_DOG, Tells(classes=frozenset({"cat"})), "cannot tell dog"),
        (RED_DOG, Tells(attributes=frozenset()), "cannot tell red"),
        (TWO_DOGS, Tells(counts=False), "cannot count"),
        (pool_of([Entity(name="dog"), Entity(name="cat")], [(0, "holding", 1)]), Tells(), "does not cover holding"),
    ],
)
def test_what_the_reader_cannot_report_is_neither_right_nor_wrong(pool: Pool, tells: Tells, why: str) -> None:
    shown_ = shown(_scene(_entity("dog", MIDDLE, 0.9, "red"), tells=tells), pool, "counting")
    assert shown_.correct is None
    assert why in shown_.why


def test_things_without_a_box_have_no_place() -> None:
    shown_ = shown(_scene(_entity("dog", None), _entity("cat", None)), CAT_RIGHT_OF_DOG, "position")
    assert shown_.correct is None


def test_thresholds_of_the_published_reader_can_be_set_and_counting_has_its_own() -> None:
    rule = GenEvalRule(score=0.3, counting_score=0.9)
    scene = _scene(_entity("dog", LEFT, 0.95), _entity("dog", RIGHT, 0.5))
    assert shown(scene, TWO_DOGS, "two_object", rule=rule).correct is True
    assert shown(scene, TWO_DOGS, "counting", rule=rule).correct is False
    most = _scene(*(_entity("dog") for _ in range(20)))
    assert shown(most, pool_of([Entity(name="dog", count=16)]), "counting").correct is True  # 16 count at most


def test_directions_match_pixels() -> None:
    scene = _scene(_entity("dog", (0.0, 0.0, 0.2, 0.2)), _entity("cat", (0.5, 0.5, 0.7, 0.7)))
    below = pool_of([Entity(name="dog"), Entity(name="cat")], [(1, "under", 0)])
    assert shown(scene, below, "position").correct is True
    assert shown(scene, below, "position", aspect=8.0).correct is False
