"""Rules on attributes that a prompt exchanges, and on classes that it excludes or calls uncertain."""

from __future__ import annotations

import pytest

from medtest.core.scenes import Entity, Pool, Scene, SeenEntity, Tells, difference
from medtest.tasks.depict.rules import ATTRIBUTES, ENTITIES, STRICT, JudgedPair, against_source, against_truth
from medtest.tasks.depict.views import NO_CHANGE, PoolChange, Said, SceneLook

ALL = Tells()


def pool(*entities: tuple[str, int | None, str], **more: tuple[str, ...]) -> Pool:
    """Return a pool of classes with a number and one attribute each."""
    listed = tuple(
        Entity(name=name, count=count, attributes=(value,) if value else ()) for name, count, value in entities
    )
    return Pool(entities=listed, **more)


def scene_of(*entities: tuple[str, str], tells: Tells = ALL) -> SceneLook:
    """Return the look of a scene of entities with one attribute each."""
    return SceneLook.of(
        Scene(
            entities=tuple(SeenEntity(name=n, attributes=(value,) if value else ()) for n, value in entities),
            tells=tells,
        )
    )


LEFT, RIGHT = pool(("effusion", None, "left")), pool(("effusion", None, "right"))
SIDE = PoolChange.of(difference(LEFT, RIGHT))


def judge_move(before: SceneLook, after: SceneLook) -> JudgedPair:
    """Return the judgement of a pair whose prompt moved an effusion from the left to the right."""
    return against_source(STRICT, before, after, Said.of(RIGHT), SIDE)


def test_an_exchanged_attribute_is_in_the_difference() -> None:
    change = difference(LEFT, RIGHT)
    assert change["removed"] == {"entities": [], "triples": [], "attributes": [["effusion", "left"]]}
    assert change["added"] == {"entities": [], "triples": [], "attributes": [["effusion", "right"]]}


def test_a_class_with_another_number_has_no_exchanged_attributes() -> None:
    change = difference(pool(("polyp", 1, "red")), pool(("polyp", 2, "red")))
    assert "attributes" not in change["added"]


@pytest.mark.parametrize(
    ("before", "after", "right"),
    [
        ("left", "right", True),
        ("left", "left", False),  # the side stayed
        ("right", "left", False),  # both are swapped
        ("right", "right", False),
        ("left", "bilateral", False),
    ],
)
def test_an_exchanged_side_must_be_seen_in_both_pictures(before: str, after: str, right: bool) -> None:
    pair = judge_move(scene_of(("effusion", before)), scene_of(("effusion", after)))
    assert pair.right[ATTRIBUTES] is right
    assert pair.right[ENTITIES] is True


def test_an_undrawn_finding_cannot_change_sides() -> None:
    assert judge_move(scene_of(), scene_of()).right[ATTRIBUTES] is False


def test_a_reader_without_sides_judges_no_change_of_sides() -> None:
    blind = Tells(attributes=frozenset())
    pair = judge_move(scene_of(("effusion", ""), tells=blind), scene_of(("effusion", ""), tells=blind))
    assert not pair.detectable
    assert pair.whole is None
    assert pair.right[ATTRIBUTES] is None


def test_excluded_findings_must_not_be_in_the_picture() -> None:
    prompt = Said.of(pool(("mass", 1, ""), absent=("effusion",), uncertain=("edema",)))
    assert against_truth(scene_of(("mass", "")), prompt, NO_CHANGE).whole is True
    assert against_truth(scene_of(("mass", ""), ("edema", "")), prompt, NO_CHANGE).whole is True
    assert against_truth(scene_of(("mass", ""), ("effusion", "")), prompt, NO_CHANGE).right[ENTITIES] is False


def test_uncertain_findings_may_come_and_go() -> None:
    prompt = Said.of(pool(("mass", 1, ""), uncertain=("edema",)))
    pair = against_source(STRICT, scene_of(("mass", "")), scene_of(("mass", ""), ("edema", "")), prompt, NO_CHANGE)
    assert pair.whole is True
    pair = against_source(STRICT, scene_of(("mass", "")), scene_of(("mass", ""), ("hernia", "")), prompt, NO_CHANGE)
    assert pair.right[ENTITIES] is False


def test_a_negated_finding_must_have_gone() -> None:
    before = pool(("effusion", None, "left"), ("mass", 1, ""))
    after = pool(("mass", 1, ""), absent=("effusion",))
    change = PoolChange.of(difference(before, after))
    before_scene, after_scene = scene_of(("effusion", "left"), ("mass", "")), scene_of(("mass", ""))
    assert against_source(STRICT, before_scene, after_scene, Said.of(after), change).whole is True
    assert against_source(STRICT, before_scene, before_scene, Said.of(after), change).right[ENTITIES] is False
    assert against_source(STRICT, after_scene, after_scene, Said.of(after), change).right[ENTITIES] is False


def test_a_finding_ordered_on_each_side_is_there_if_it_is_seen_on_both() -> None:
    both = Said.of(pool(("nodule", 2, "left"), ("nodule", 1, "right")))
    tells = Tells(counts=False)
    assert against_truth(scene_of(("nodule", "bilateral"), tells=tells), both, NO_CHANGE).whole is True
    assert against_truth(scene_of(("nodule", "left"), tells=tells), both, NO_CHANGE).right[ATTRIBUTES] is False
    alone = Said.of(pool(("nodule", 1, "left")))
    assert against_truth(scene_of(("nodule", "bilateral"), tells=tells), alone, NO_CHANGE).right[ATTRIBUTES] is False
