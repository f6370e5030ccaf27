"""Promises of every relation, bundled or of other installed packages: one table, no names."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from relation_files import assert_every_key_is_documented

from medtest.core.cases import Address, FollowUp, Params, PreparedSeed
from medtest.core.errors import NotApplicable
from medtest.core.plugins import parts
from medtest.relations.base import PUBLISHED_SEVERITY, Relation, RelationSettings
from medtest.testing import SUITE_SEED, check_relation, load_relation, synthetic_seed

NAMES = sorted(
    name
    for name, info in parts("relations").items()
    if info.load().group not in {"library", "noise", "measured", "adversarial", "prompts", "controls"}
    and ".corruptions." not in info.target
)
"""Relations of pictures; scales of uncertainty have no published mode and a contract of their own (test_noise), and so
have the perturbations (test_corruptions_contract), relations of prompts (prompts/) and controls (test_controls).
Attacks are made on a system, and their tests are theirs."""
MODES = ("levels", "published")
relaxed = settings(max_examples=4)


@cache
def relation_of(name: str, mode: str = "levels") -> Relation:
    return load_relation(name, **({"mode": mode} if has_ranges(name) else {}))


@cache
def large_seed(number: int, labelled: bool = True, framed: bool = True) -> PreparedSeed:
    """Return a seed with room for every relation."""
    return synthetic_seed(number, height=288, width=320, labelled=labelled, framed=framed)


def address_of(seed: PreparedSeed, name: str, severity: int, repeat: int = 0) -> Address:
    ref = seed.ref
    return Address(dataset=ref.dataset, seed_id=ref.seed_id, relation=name, severity=severity, repeat=repeat)


def follow(relation: Relation, name: str, seed: PreparedSeed, severity: int, repeat: int = 0) -> FollowUp:
    return relation.follow_up(seed, severity, relation.generator(address_of(seed, name, severity, repeat), SUITE_SEED))


def cases(name: str) -> list[tuple[Relation, int]]:
    return [(relation_of(name, mode), severity) for mode in MODES for severity in relation_of(name, mode).severities()]


def has_ranges(name: str) -> bool:
    """Return whether the relation can draw from published ranges."""
    return "mode" in parts("relations")[name].load().Settings.model_fields


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
    if has_ranges(name):
        assert relation_of(name, "published").severities() == (PUBLISHED_SEVERITY,)


@pytest.mark.parametrize("name", NAMES)
def test_the_yaml_documents_every_key(name: str) -> None:
    assert_every_key_is_documented(name)


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(((0, True, True), (2, True, False)), id="labelled"),
        pytest.param(((1, False, True), (3, True, True)), id="more", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("name", NAMES)
def test_bundled_relations_pass_the_public_check(name: str, seeds: tuple[tuple[int, bool, bool], ...]) -> None:
    assert relation_of(name).touches_frame == (name == "text")
    follow_ups = []
    for number, labelled, framed in seeds:
        seed = large_seed(number, labelled, framed)
        for mode in MODES:
            of_mode = check_relation(relation_of(name, mode), seed, may_skip=True)
            assert relation_of(name).group not in {"objects", "non_objects"} or not any(
                np.array_equal(follow_up.image, seed.image) for follow_up in of_mode
            )
            follow_ups += of_mode
    assert follow_ups


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=4)
@given(number=st.integers(0, 1000), framed=st.booleans(), labelled=st.booleans())
def test_it_holds_on_any_small_seed(name: str, number: int, framed: bool, labelled: bool) -> None:
    for mode in MODES:
        check_relation(relation_of(name, mode), synthetic_seed(number, framed=framed, labelled=labelled), may_skip=True)


@pytest.mark.parametrize("name", NAMES)
@relaxed
@given(data=st.data())
def test_one_address_gives_the_same_bytes_in_any_order(name: str, data: st.DataObject) -> None:
    wanted_cases = [
        (mode, severity, repeat)
        for mode in MODES
        for severity in relation_of(name, mode).severities()
        for repeat in range(2)
    ]
    order = data.draw(st.permutations(wanted_cases))
    number = data.draw(st.integers(0, 50))
    first, second = synthetic_seed(number), synthetic_seed(number)

    def run(seed: PreparedSeed, plan: list[tuple[str, int, int]]) -> dict[tuple[str, int, int], bytes | str]:
        results: dict[tuple[str, int, int], bytes | str] = {}
        for mode, severity, repeat in plan:
            try:
                result = follow(relation_of(name, mode), name, seed, severity, repeat)
                results[mode, severity, repeat] = result.image.tobytes()
            except NotApplicable as reason:
                results[mode, severity, repeat] = str(reason)
        return results

    assert run(first, wanted_cases) == run(second, list(order))


@pytest.mark.parametrize("name", NAMES)
def test_scale_belongs_to_the_severity_and_grows(name: str) -> None:
    relation = relation_of(name)
    scales: list[float] = []
    for severity in relation.severities():
        of_severity = set()
        for number in range(3):
            try:
                of_severity.add(follow(relation, name, large_seed(number), severity).scale)
            except NotApplicable:
                continue
        assert len(of_severity) == 1
        scales.append(of_severity.pop())
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
def test_an_image_that_is_all_frame_is_skipped_or_stays_unchanged(name: str) -> None:
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
            result = follow(relation, name, blank, severity)
        except NotApplicable:
            continue
        assert relation.touches_frame or not result.image.any()


class _Careless(Relation):
    """Keeps its promises, except for one that it is set to break."""

    scale_unit = "steps"
    broken = ""

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        draw = np.random.default_rng() if self.broken == "drawn elsewhere" else rng
        if self.broken == "no room":
            raise NotApplicable("no room")
        return {"severity": severity, "value": int(draw.integers(1, 200))}

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        image = seed.image.copy()
        value = int(np.random.default_rng().integers(200)) if self.broken == "drawn in apply" else params["value"]
        image[40, 60:70, 0] = value
        if self.broken == "frame":
            image[0, 0] = 255
        if self.broken == "same memory":
            image = seed.image
        if self.broken == "floats":
            image = image.astype(np.float32)  # type: ignore[assignment]
        if self.broken == "source":
            seed.image.setflags(write=True)
            seed.image[50, 50] += 1
        scale = 1.0 if self.broken == "scale" else float(params["severity"])
        return FollowUp(image=image, params={} if self.broken == "parameters" else params, scale=scale)


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ("drawn elsewhere", "draw from rng alone"),
        ("drawn in apply", "other bytes"),
        ("no room", "has no room on this seed: no room"),
        ("frame", "the black frame changed"),
        ("same memory", "return a copy"),
        ("floats", "float32; .* uint8 is expected"),
        ("source", "it wrote to the seed"),
        ("scale", "scales do not grow"),
    ],
)
def test_a_promise_that_is_broken_is_named(broken: str, words: str) -> None:
    relation = _Careless(RelationSettings(severities=[1, 2]))
    assert len(check_relation(relation, synthetic_seed(1))) == 4
    relation.broken = broken
    with pytest.raises(AssertionError, match=words):
        check_relation(relation, synthetic_seed(2))
