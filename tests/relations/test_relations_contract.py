"""What every relation promises, ours and those that other installed packages bring: one table, no names."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from relation_files import assert_every_key_is_documented
from relation_seeds import SUITE_SEED, synthetic_seed

from medtest.cases import Address, FollowUp, PreparedSeed
from medtest.errors import NotApplicable
from medtest.plugins import parts
from medtest.relations.base import PUBLISHED_SEVERITY, Relation, RelationSettings

NAMES = sorted(
    name
    for name, info in parts("relations").items()
    if info.load().group not in {"noise", "measured"} and ".corruptions." not in info.target
)
"""Relations of pictures; scales of uncertainty have no published mode and a contract of their own (test_noise), and so
have the perturbations (test_corruptions_contract)."""
MODES = ("levels", "published")
relaxed = settings(max_examples=8)


@cache
def relation_of(name: str, mode: str = "levels") -> Relation:
    info = parts("relations")[name]
    relation_class = info.load()
    given = {**info.defaults, "mode": mode} if "mode" in relation_class.Settings.model_fields else info.defaults
    relation: Relation = relation_class(relation_class.Settings(**given))
    return relation


@cache
def large_seed(number: int, labelled: bool = True, framed: bool = True) -> PreparedSeed:
    """A seed big enough for every relation to find room."""
    return synthetic_seed(number, height=288, width=320, labelled=labelled, framed=framed)


def address_of(seed: PreparedSeed, name: str, severity: int, repeat: int = 0) -> Address:
    ref = seed.ref
    return Address(dataset=ref.dataset, seed_id=ref.seed_id, relation=name, severity=severity, repeat=repeat)


def follow(relation: Relation, name: str, seed: PreparedSeed, severity: int, repeat: int = 0) -> FollowUp:
    return relation.follow_up(seed, severity, address_of(seed, name, severity, repeat).generator(SUITE_SEED))


def cases(name: str) -> list[tuple[Relation, int]]:
    return [(relation_of(name, mode), severity) for mode in MODES for severity in relation_of(name, mode).severities()]


def test_all_nine_relations_and_the_floor_are_there() -> None:
    assert set(NAMES) >= {
        "unchanged",
        "saturation",
        "contrast",
        "white_balance",
        "specularity",
        "blur",
        "instrument",
        "feces",
        "blood",
        "text",
    }


@pytest.mark.parametrize("name", NAMES)
def test_the_class_says_what_it_is(name: str) -> None:
    relation = relation_of(name)
    assert relation.group
    assert parts("relations")[name].summary
    assert isinstance(relation.revision, int)
    if relation.group != "floor":
        assert relation.scale_unit
        assert relation.severities() == (1, 2, 3, 4, 5)
    assert relation_of(name, "published").severities() == (PUBLISHED_SEVERITY,)


@pytest.mark.parametrize("name", NAMES)
def test_the_yaml_documents_every_key(name: str) -> None:
    assert_every_key_is_documented(name)


@pytest.mark.parametrize("name", NAMES)
def test_shape_dtype_and_untouched_seed(name: str) -> None:
    for labelled, framed in ((True, True), (False, True), (True, False)):
        seed = synthetic_seed(3, height=288, width=320, labelled=labelled, framed=framed)
        before = {key: value.copy() for key, value in vars(seed).items() if isinstance(value, np.ndarray)}
        for relation, severity in cases(name):
            try:
                made = follow(relation, name, seed, severity)
            except NotApplicable as reason:
                assert str(reason)
                continue
            assert made.image.dtype == np.uint8
            assert made.image.shape == seed.image.shape
            assert made.image is not seed.image
            assert not np.shares_memory(made.image, seed.image)
            assert np.isfinite(made.scale)
            assert made.scale >= 0.0
            assert made.effect.kind in {"none", "move", "add"}
            assert all(np.isfinite(value) for value in made.facts.values())
        for key, value in before.items():
            assert np.array_equal(value, getattr(seed, key)), key


@pytest.mark.parametrize("name", NAMES)
def test_nothing_changes_on_the_black_frame_but_text(name: str) -> None:
    made_any = False
    for number in range(3):
        seed = large_seed(number)
        for relation, severity in cases(name):
            assert relation.touches_frame == (name == "text")
            try:
                made = follow(relation, name, seed, severity)
            except NotApplicable:
                continue
            made_any = True
            if not relation.touches_frame:
                assert np.array_equal(made.image[seed.frame], seed.image[seed.frame])
    assert made_any


@pytest.mark.parametrize("name", NAMES)
def test_what_is_put_on_the_image_leaves_every_lesion_pixel_alone(name: str) -> None:
    if relation_of(name).group not in {"objects", "non_objects"}:
        pytest.skip("lighting and motion act on the whole image")
    made_any = False
    for number in range(6):
        seed = large_seed(number)
        assert seed.mask is not None
        for relation, severity in cases(name):
            try:
                made = follow(relation, name, seed, severity)
            except NotApplicable:
                continue
            made_any = True
            assert np.array_equal(made.image[seed.mask], seed.image[seed.mask])
            assert not np.array_equal(made.image, seed.image)
    assert made_any


@pytest.mark.parametrize("name", NAMES)
@relaxed
@given(data=st.data())
def test_one_address_gives_the_same_bytes_in_any_order(name: str, data: st.DataObject) -> None:
    wanted = [
        (mode, severity, repeat)
        for mode in MODES
        for severity in relation_of(name, mode).severities()
        for repeat in range(2)
    ]
    order = data.draw(st.permutations(wanted))
    number = data.draw(st.integers(0, 50))
    first, second = synthetic_seed(number), synthetic_seed(number)

    def run(seed: PreparedSeed, plan: list[tuple[str, int, int]]) -> dict[tuple[str, int, int], bytes | str]:
        found: dict[tuple[str, int, int], bytes | str] = {}
        for mode, severity, repeat in plan:
            try:
                made = follow(relation_of(name, mode), name, seed, severity, repeat)
                found[mode, severity, repeat] = made.image.tobytes()
            except NotApplicable as reason:
                found[mode, severity, repeat] = str(reason)
        return found

    assert run(first, wanted) == run(second, list(order))


@pytest.mark.parametrize("name", NAMES)
@relaxed
@given(number=st.integers(0, 1000), framed=st.booleans(), labelled=st.booleans())
def test_stored_parameters_replay_the_bytes(name: str, number: int, framed: bool, labelled: bool) -> None:
    seed = synthetic_seed(number, framed=framed, labelled=labelled)
    for relation, severity in cases(name):
        try:
            made = follow(relation, name, seed, severity)
        except NotApplicable:
            continue
        stored = json.loads(json.dumps(made.params, allow_nan=False))
        fresh = synthetic_seed(number, framed=framed, labelled=labelled)
        again = relation.apply(fresh, stored)
        assert again.image.tobytes() == made.image.tobytes()
        assert again.scale == made.scale
        assert dict(again.facts) == dict(made.facts)


@pytest.mark.parametrize("name", NAMES)
def test_scale_belongs_to_the_severity_and_grows(name: str) -> None:
    relation = relation_of(name)
    scales: list[float] = []
    for severity in relation.severities():
        found = set()
        for number in range(3):
            try:
                found.add(follow(relation, name, large_seed(number), severity).scale)
            except NotApplicable:
                continue
        assert len(found) == 1
        scales.append(found.pop())
    if relation.group == "floor":
        assert scales == [0.0]
    else:
        assert all(lower < upper for lower, upper in zip([0.0, *scales], scales, strict=False))


@pytest.mark.parametrize("name", NAMES)
def test_repeats_differ(name: str) -> None:
    relation = relation_of(name)
    if relation.group == "floor":
        pytest.skip("the floor is the image itself")
    seed = large_seed(1)
    images = {follow(relation, name, seed, 3, repeat).image.tobytes() for repeat in range(4)}
    assert len(images) > 1


@pytest.mark.parametrize("name", NAMES)
def test_wrong_settings_are_refused(name: str) -> None:
    info = parts("relations")[name]
    model: type[RelationSettings] = info.load().Settings
    for wrong in ({"unknown_key": 1}, {"mode": "hard"}, {"repeats": 0}, {"severities": ["one"]}, {"severities": []}):
        with pytest.raises(ValueError, match="validation error"):
            model(**{**info.defaults, **wrong})
    if "levels" in model.model_fields:
        for wrong in ({"severities": [9]}, {"severities": [1, 1]}, {"levels": {}}):
            with pytest.raises(ValueError, match="validation error"):
                model(**{**info.defaults, **wrong})
        shuffled = {1: info.defaults["levels"][2], 2: info.defaults["levels"][1]}
        with pytest.raises(ValueError, match=r"grow|levels"):
            model(**{**info.defaults, "levels": shuffled, "severities": [1, 2]})


@pytest.mark.parametrize("name", NAMES)
def test_an_image_that_is_all_frame_is_skipped_or_left_as_it_is(name: str) -> None:
    seed = synthetic_seed(0)
    blank = PreparedSeed(
        ref=seed.ref,
        image=np.zeros_like(seed.image),
        mask=np.zeros_like(seed.frame),
        original_mask=None,
        frame=np.ones_like(seed.frame),
        grey=np.zeros_like(seed.grey),
    )
    for relation, severity in cases(name):
        try:
            made = follow(relation, name, blank, severity)
        except NotApplicable:
            continue
        assert relation.touches_frame or not made.image.any()
