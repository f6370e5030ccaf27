"""Rules of pairs of pictures: verdicts on right and wrong pictures, and mistakes that the paper's rules miss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medtest.core.scenes import Entity, Pool, Scene, SeenEntity, Tells, Triple, difference, pool_of
from medtest.tasks.depict.rules import (
    KINDS,
    PAPER,
    RELEASED,
    RULES,
    STRICT,
    JudgedPair,
    against_source,
    against_truth,
    missed,
)
from medtest.tasks.depict.views import (
    ADDITION,
    EXCHANGE,
    EXCHANGE_ADDITION,
    EXCHANGE_REMOVAL,
    REMOVAL,
    SAME,
    SHAPES,
    PoolChange,
    Said,
    SceneLook,
)

NAMES = ("dog", "cat", "sofa", "cup", "table", "tree")
PREDICATES = ("on", "near", "left of")


def entity(name: str, count: int | None = 1, *attributes: str) -> Entity:
    return Entity(name=name, count=count, attributes=tuple(sorted(attributes)))


SOURCE = pool_of(
    [entity("dog", 2, "brown"), entity("sofa"), entity("cat"), entity("table")], [(0, "on", 1), (2, "left of", 3)]
)
EC = pool_of(
    [entity("zebra", 2, "brown"), entity("sofa"), entity("cat"), entity("table")], [(0, "on", 1), (2, "left of", 3)]
)
ER_R = pool_of([entity("dog", 2, "brown"), entity("sofa")], [(0, "on", 1)])
ER_A = pool_of([*SOURCE.entities, entity("cup")], [(0, "on", 1), (2, "left of", 3), (4, "on", 3)])
EC_ER_R = pool_of([entity("zebra", 2, "brown"), entity("sofa")], [(0, "on", 1)])
EC_ER_A = pool_of([*EC.entities, entity("cup")], [(0, "on", 1), (2, "left of", 3), (4, "on", 3)])
OPERATORS = {
    SAME: SOURCE,
    EXCHANGE: EC,
    REMOVAL: ER_R,
    ADDITION: ER_A,
    EXCHANGE_REMOVAL: EC_ER_R,
    EXCHANGE_ADDITION: EC_ER_A,
}


EVERYTHING = Tells()


def draw_scene(pool: Pool, tells: Tells = EVERYTHING) -> Scene:
    """Return a perfect reader's scene of a right picture of a pool; three entities where no number is given."""
    entities: list[SeenEntity] = []
    indices: list[list[int]] = []
    for drawn_entity in pool.entities:
        count = 3 if drawn_entity.count is None else drawn_entity.count
        indices.append(list(range(len(entities), len(entities) + count)))
        entities += [SeenEntity(name=drawn_entity.name, attributes=drawn_entity.attributes)] * count
    triples = [
        Triple(subject=a, predicate=triple.predicate, object=b)
        for triple in pool.triples
        for a in indices[triple.subject]
        for b in indices[triple.object]
        if a != b
    ]
    return Scene(entities=tuple(entities), triples=tuple(triples), tells=tells)


def judge_pair(rule: str, source: Pool, follow: Pool, before: Scene, after: Scene) -> JudgedPair:
    change = PoolChange.of(difference(source, follow))
    return against_source(rule, SceneLook.of(before), SceneLook.of(after), Said.of(follow), change)


def truth(follow: Pool, after: Scene, source: Pool | None = None) -> JudgedPair:
    change = PoolChange.of({} if source is None else difference(source, follow))
    return against_truth(SceneLook.of(after), Said.of(follow), change)


@pytest.mark.parametrize("shape", SHAPES)
def test_right_pictures_pass_every_rule_and_empty_ones_fail_all_but_like_with_like(shape: str) -> None:
    follow = OPERATORS[shape]
    assert PoolChange.of(difference(SOURCE, follow)).shape == shape
    for rule in (STRICT, PAPER):
        assert judge_pair(rule, SOURCE, follow, draw_scene(SOURCE), draw_scene(follow)).whole is True, rule
    assert truth(follow, draw_scene(follow), SOURCE).whole is True
    assert truth(follow, Scene(), SOURCE).whole is False
    assert judge_pair(STRICT, SOURCE, follow, Scene(), Scene()).whole is (shape == SAME)


def test_the_papers_relations_hold_in_wrong_cases_and_break_in_a_right_one() -> None:
    both = draw_scene(SOURCE)
    judgement = judge_pair(
        PAPER, SOURCE, ER_R, draw_scene(ER_R), draw_scene(ER_R)
    )  # MR2 asks nothing of the source's picture
    assert judgement.whole is True
    assert judge_pair(PAPER, SOURCE, ER_R, both, both).whole is True  # MR2: what was removed stays
    assert judge_pair(PAPER, SOURCE, ER_A, both, both).whole is True  # MR3: what was added never comes
    without = draw_scene(pool_of(EC.entities[1:], [(1, "left of", 2), (0, "on", 2)]))
    assert judge_pair(PAPER, SOURCE, EC, both, without).right["entities"] is True  # MR1: the new one is missing
    for follow in (EC, ER_R, ER_A):
        assert judge_pair(PAPER, SOURCE, follow, Scene(), Scene()).whole is True  # every picture is empty
    source_pool = pool_of([entity("dog"), entity("dog"), entity("sofa")], [(0, "on", 2), (1, "near", 2)])
    changed_pool = pool_of([entity("cat"), entity("dog"), entity("sofa")], [(0, "on", 2), (1, "near", 2)])
    assert (
        judge_pair(PAPER, source_pool, changed_pool, draw_scene(source_pool), draw_scene(changed_pool)).whole is False
    )  # MR1: one of two of a class is changed
    assert (
        judge_pair(STRICT, source_pool, changed_pool, draw_scene(source_pool), draw_scene(changed_pool)).whole is True
    )
    for follow in (EC, ER_R, ER_A):
        assert judge_pair(STRICT, SOURCE, follow, both, both).whole is False
    assert judge_pair(STRICT, SOURCE, EC, both, without).right["entities"] is False


def test_one_of_two_that_was_removed_is_missed_if_both_stay() -> None:
    source_pool = pool_of([entity("dog"), entity("dog"), entity("sofa"), entity("cat")], [(0, "on", 2), (1, "near", 3)])
    smaller = pool_of([entity("dog"), entity("sofa")], [(0, "on", 1)])
    right, unchanged_scene = (
        draw_scene(smaller),
        draw_scene(pool_of([*smaller.entities, entity("dog")], [(0, "on", 1)])),
    )
    assert judge_pair(STRICT, source_pool, smaller, draw_scene(source_pool), right).whole is True
    assert judge_pair(STRICT, source_pool, smaller, draw_scene(source_pool), unchanged_scene).right["entities"] is False
    assert judge_pair(PAPER, source_pool, smaller, draw_scene(source_pool), unchanged_scene).right["entities"] is True


def test_any_number_of_an_uncounted_class_may_go() -> None:
    some = pool_of([entity("dog"), entity("dog", None), entity("sofa")], [(0, "on", 2), (1, "near", 2)])
    smaller = pool_of([entity("dog"), entity("sofa")], [(0, "on", 1)])
    assert difference(some, smaller)["removed"]["uncounted"] == ["dog"]
    assert judge_pair(STRICT, some, smaller, draw_scene(some), draw_scene(smaller)).whole is True  # four dogs, then one
    for number in (0, 2, 4):
        wrong = Scene(entities=(SeenEntity(name="sofa"), *[SeenEntity(name="dog")] * number))
        assert judge_pair(STRICT, some, smaller, draw_scene(some), wrong).right["entities"] is False
    assert (
        judge_pair(STRICT, some, smaller, draw_scene(smaller), draw_scene(smaller)).right["entities"] is False
    )  # nothing was there to go
    more = pool_of([entity("dog", None), entity("sofa")], [(0, "near", 1)])
    assert "uncounted" not in difference(some, more)["removed"]


def test_errors_are_distinguished() -> None:
    def changed(**parts: object) -> Scene:
        scene = draw_scene(EC)
        return Scene(entities=parts.get("entities", scene.entities), triples=parts.get("triples", scene.triples))  # type: ignore[arg-type]

    entities = draw_scene(EC).entities
    plain = tuple(
        SeenEntity(name=drawn_entity.name, attributes=("red",) if drawn_entity.name == "zebra" else ())
        for drawn_entity in entities
    )
    cases = {
        "attributes": changed(entities=plain),
        "relations": changed(triples=draw_scene(EC).triples[:-1]),
        "entities": Scene(entities=entities[:-1], triples=draw_scene(EC).triples[:-1]),
    }
    for kind, after in cases.items():
        judgement = truth(EC, after, SOURCE)
        assert judgement.right[kind] is False and judgement.whole is False
        assert {error.kind for error in judgement.broken} <= {kind, "relations"}
    short = draw_scene(pool_of([entity("zebra", 1, "brown"), *EC.entities[1:]], [(0, "on", 1), (2, "left of", 3)]))
    judgement = truth(EC, short, SOURCE)
    assert (judgement.right["counts"], judgement.right["entities"]) == (False, True)
    (broken,) = judgement.broken
    assert broken.names == ("zebra",) and "2 times" in broken.words
    missing = truth(EC, Scene(entities=tuple(entity for entity in entities if entity.name != "zebra")))
    assert (missing.right["entities"], missing.right["attributes"], missing.right["counts"]) == (False, None, True)


def test_counts_of_what_did_not_change_are_apart_from_classes() -> None:
    before = draw_scene(SOURCE)
    after = draw_scene(
        pool_of([entity("dog", 1, "brown"), *ER_A.entities[1:]], [(0, "on", 1), (2, "left of", 3), (4, "on", 3)])
    )
    judgement = judge_pair(STRICT, SOURCE, ER_A, before, after)
    assert (judgement.right["counts"], judgement.right["entities"], judgement.whole) == (False, True, False)
    vague = pool_of([entity("dog", None), entity("sofa")], [(0, "on", 1)])
    few = Scene(entities=draw_scene(vague).entities[1:], triples=(Triple(subject=0, predicate="on", object=2),))
    assert judge_pair(STRICT, vague, vague, draw_scene(vague), few).whole is True  # no number was said


def test_unmentioned_content_is_free_for_relations_and_not_for_classes() -> None:
    swapped = Triple(subject=1, predicate="left of", object=0)
    other = Scene(entities=draw_scene(SOURCE).entities, triples=(*draw_scene(SOURCE).triples, swapped))
    assert judge_pair(STRICT, SOURCE, SOURCE, draw_scene(SOURCE), other).whole is True
    assert judge_pair(STRICT, SOURCE, SOURCE, other, draw_scene(SOURCE)).whole is True
    more = Scene(entities=(*draw_scene(SOURCE).entities, SeenEntity(name="tree")), triples=draw_scene(SOURCE).triples)
    assert judge_pair(STRICT, SOURCE, SOURCE, draw_scene(SOURCE), more).right["entities"] is False


def test_relations_follow_an_exchange_as_they_were_in_the_source() -> None:
    wrong = Scene(entities=draw_scene(SOURCE).entities)
    judgement = judge_pair(STRICT, SOURCE, EC, wrong, draw_scene(EC))
    assert judgement.right["relations"] is False
    assert ("zebra", "on", "sofa") in [error.names for error in judgement.broken]
    assert (
        judge_pair(STRICT, SOURCE, EC, wrong, Scene(entities=draw_scene(EC).entities)).whole is True
    )  # like with like


def test_a_case_is_skipped_only_if_its_change_is_beyond_the_reader() -> None:
    def judged_with(follow: Pool, **tells: object) -> JudgedPair:
        tells_ = Tells(**tells)  # type: ignore[arg-type]
        return judge_pair(STRICT, SOURCE, follow, draw_scene(SOURCE, tells_), draw_scene(follow, tells_))

    all_but = frozenset({"dog", "sofa", "zebra"})
    assert judged_with(EC, classes=all_but).whole is True
    assert judged_with(ER_R, classes=all_but).whole is None and judged_with(ER_R, classes=all_but).detectable is False
    assert judged_with(ER_A, predicates=frozenset({"left of"})).whole is None
    judgement = judged_with(ER_A, predicates=frozenset({"left of"}))
    assert judgement.right["entities"] is True and judgement.right["relations"] is None
    assert judged_with(EC, predicates=frozenset({"left of"})).whole is True  # the exchange is of classes
    assert judged_with(EC, counts=False).whole is True
    source_pool = pool_of([entity("dog"), entity("dog"), entity("sofa")], [(0, "on", 2), (1, "near", 2)])
    changed_pool = pool_of([entity("cat"), entity("dog"), entity("sofa")], [(0, "on", 2), (1, "near", 2)])
    blind = Tells(counts=False)
    assert (
        judge_pair(
            STRICT, source_pool, changed_pool, draw_scene(source_pool, blind), draw_scene(changed_pool, blind)
        ).whole
        is None
    )
    hidden = judge_pair(
        STRICT, SOURCE, EC, draw_scene(SOURCE, Tells(classes=all_but)), draw_scene(EC, Tells(classes=all_but))
    )
    assert not any("cat" in error.names for error in hidden.broken)


def test_a_reader_that_is_asked_about_a_pool_need_not_report_later_classes() -> None:
    source_tells = Tells(classes=frozenset(drawn_entity.name for drawn_entity in SOURCE.entities))
    both = Tells(classes=frozenset(drawn_entity.name for drawn_entity in (*SOURCE.entities, *EC.entities)))
    assert judge_pair(STRICT, SOURCE, EC, draw_scene(SOURCE, source_tells), draw_scene(EC, both)).whole is True
    gone = Scene(entities=draw_scene(EC).entities[2:], tells=both)
    assert judge_pair(STRICT, SOURCE, EC, draw_scene(SOURCE, source_tells), gone).right["entities"] is False


def test_the_released_code_looks_at_fewer_and_other_parts() -> None:
    both = draw_scene(SOURCE)
    other = Scene(entities=(*draw_scene(EC).entities, *both.entities), triples=draw_scene(EC).triples)
    assert judge_pair(RELEASED, SOURCE, EC, both, other).right["entities"] is True  # the old one may stay
    assert judge_pair(RELEASED, SOURCE, ER_R, both, both).right["entities"] is False  # the removed class is there
    assert judge_pair(RELEASED, SOURCE, ER_A, both, both).right["entities"] is False  # the new one is not
    far = [SeenEntity(name="tree", score=0.9)] * 20 + [
        SeenEntity(name=drawn_entity.name, score=0.5) for drawn_entity in EC.entities
    ]
    assert (
        judge_pair(RELEASED, SOURCE, EC, both, Scene(entities=tuple(far))).right["entities"] is False
    )  # the 20 surest
    turned = Scene(
        entities=draw_scene(EC).entities,
        triples=tuple(
            Triple(subject=triple.object, predicate=triple.predicate, object=triple.subject)
            for triple in draw_scene(EC).triples
        ),
    )
    assert judge_pair(RELEASED, SOURCE, EC, both, turned).right["relations"] is True  # predicates alone
    assert judge_pair(STRICT, SOURCE, EC, both, turned).right["relations"] is False


def test_missed_counts_by_each_rule() -> None:
    half = Scene(entities=draw_scene(SOURCE).entities[1:3], triples=(Triple(subject=0, predicate="on", object=1),))
    look, prompt = SceneLook.of(half), Said.of(SOURCE)  # one dog and the sofa
    assert missed(look, prompt, STRICT) == (2, 5, 1, 2)
    assert missed(look, prompt, PAPER) == (2, 4, 1, 2)
    assert missed(look, prompt, RELEASED) == (3, 5, 1, 2)
    blind = SceneLook.of(Scene(entities=half.entities, tells=Tells(classes=frozenset({"dog"}), predicates=frozenset())))
    assert missed(blind, prompt, PAPER) == (1, 1, 0, 0)


@st.composite
def pools(draw: st.DrawFn) -> Pool:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4))
    counts: Sequence[int | None] = draw(
        st.lists(st.sampled_from([1, 1, 2, 3, None]), min_size=len(names), max_size=len(names))
    )
    colours = draw(st.lists(st.sampled_from(["", "red", "blue"]), min_size=len(names), max_size=len(names)))
    entities = [entity(n, c, *([a] if a else [])) for n, c, a in zip(names, counts, colours, strict=True)]
    pairs = [(a, b) for a in range(len(names)) for b in range(len(names)) if a != b]
    chosen = draw(st.lists(st.sampled_from(pairs), max_size=3, unique=True)) if pairs else []
    return pool_of(entities, [(a, draw(st.sampled_from(PREDICATES)), b) for a, b in chosen])


@st.composite
def changed_pools(draw: st.DrawFn) -> tuple[Pool, Pool]:
    source = draw(pools())
    kind = draw(st.sampled_from(("same", "exchange", "removal", "addition")))
    entities, triples = list(source.entities), list(source.triples)
    if kind == "exchange":
        place = draw(st.integers(0, len(entities) - 1))
        old = entities[place]
        new = draw(st.sampled_from([name for name in (*NAMES, "zebra") if name != old.name]))
        entities[place] = entity(new, old.count, *old.attributes)
    elif kind == "removal" and len(triples) > 1:
        gone = triples.pop(draw(st.integers(0, len(triples) - 1)))
        used = {end for triple in triples for end in (triple.subject, triple.object)}
        remaining = [n for n in range(len(entities)) if n in used or n not in (gone.subject, gone.object)]
        places = {old: new for new, old in enumerate(remaining)}
        entities = [entities[n] for n in remaining]
        triples = [
            Triple(subject=places[triple.subject], predicate=triple.predicate, object=places[triple.object])
            for triple in triples
        ]
    elif kind == "addition":
        end = draw(st.integers(0, len(entities) - 1))
        entities.append(entity(draw(st.sampled_from(NAMES))))
        triples.append(Triple(subject=len(entities) - 1, predicate=draw(st.sampled_from(PREDICATES)), object=end))
    return source, Pool(entities=tuple(entities), triples=tuple(triples))


@settings(max_examples=150, deadline=None)
@given(changed_pools())
def test_right_pictures_pass_for_any_pools(pair: tuple[Pool, Pool]) -> None:
    source, follow = pair
    judgement = judge_pair(STRICT, source, follow, draw_scene(source), draw_scene(follow))
    assert judgement.whole is not False, judgement.broken
    assert truth(follow, draw_scene(follow), source).whole is not False
    assert truth(source, draw_scene(source)).whole is True
    empty = judge_pair(STRICT, source, follow, Scene(), Scene())
    change = PoolChange.of(difference(source, follow))
    # a removed relation that two other entities of these classes keep is invisible in every picture
    judged_changes = (change.removed, change.added, change.new, change.gone.keys() - Said.of(follow).triples.keys())
    assert (empty.whole is False) == any(judged_changes)
    assert truth(follow, Scene(), source).whole is False
    assert set(judgement.right) == set(KINDS)


@settings(max_examples=60, deadline=None)
@given(changed_pools(), st.sampled_from(RULES))
def test_a_pair_of_one_prompt_has_the_floor_of_every_relation(pair: tuple[Pool, Pool], rule: str) -> None:
    source, follow = pair
    scene, prompt = SceneLook.of(draw_scene(source)), Said.of(source)
    shape = PoolChange.of(difference(source, follow)).shape
    floor = against_source(rule, scene, scene, prompt, PoolChange.of({}), shape)
    assert floor.right["entities"] is True and floor.right["relations"] is True


@pytest.mark.parametrize(
    ("denied", "kind", "is_there"),
    [
        (("dog", "on", "table"), "relations", False),
        (("dog", "on", "sofa"), "relations", True),
        (("dog", "black"), "attributes", False),
        (("dog", "brown"), "attributes", True),
    ],
)
def test_denied_content_must_not_be_in_the_picture(denied: tuple[str, ...], kind: str, is_there: bool) -> None:
    picture = SceneLook.of(draw_scene(SOURCE))
    judgement = against_truth(picture, Said.of(replace(SOURCE, denied=(denied,))))
    assert judgement.right[kind] is not is_there
    assert [error.kind for error in judgement.broken] == ([kind] if is_there else [])
