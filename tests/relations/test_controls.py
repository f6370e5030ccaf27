"""Controls remove the evidence for an answer, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from relation_files import assert_every_key_is_documented

from medtest.core.cases import Ask, Image, PreparedSeed
from medtest.core.errors import NotApplicable, UserMistakes
from medtest.core.oracles.controls import EVIDENCE, SHAM, control_verdict
from medtest.core.oracles.moves import moved_mask
from medtest.core.plugins import parts
from medtest.phantoms.colon import colon_rng, make_colon
from medtest.relations.controls.erasing import LARGEST, erase, widened
from medtest.relations.controls.premise import asks_about
from medtest.suite.compose import load_suite
from medtest.testing import check_relation, load_relation, synthetic_prompt, synthetic_seed

PICTURES = ("image_removed", "lesion_erased", "lesion_swapped", "tissue_erased")
CONTROLS = (*PICTURES, "false_premise", "prompt_emptied")


@cache
def seed_of(task: str = "mask") -> PreparedSeed:
    return synthetic_seed(1, height=192, width=224, task=task)


def make_follow_up(name: str, seed: PreparedSeed, severity: int = 1, **settings: Any) -> Any:
    return load_relation(name, **settings).follow_up(seed, severity, np.random.default_rng(5))


@pytest.mark.parametrize("name", CONTROLS)
def test_every_key_of_a_control_is_documented(name: str) -> None:
    assert_every_key_is_documented(name)


@pytest.mark.slow
@pytest.mark.parametrize("task", ["mask", "label"])
@pytest.mark.parametrize("name", PICTURES)
def test_controls_of_pictures_keep_the_contract(name: str, task: str) -> None:
    follow_ups = check_relation(load_relation(name), seed_of(task))
    assert {follow.effect.kind for follow in follow_ups} == {"remove"}


def test_the_control_of_prompts_keeps_the_contract() -> None:
    empty, other = (make_follow_up("prompt_emptied", synthetic_prompt(2), severity) for severity in (1, 2))
    check_relation(load_relation("prompt_emptied"), synthetic_prompt(2))
    assert not empty.prompt.pool.entities and empty.prompt.text == "A picture."
    assert other.prompt.text == other.effect.other.prompt.text != synthetic_prompt(2).prompt.text


def test_one_control_is_a_sham_and_the_others_remove_evidence() -> None:
    roles = {name: info.load().control for name, info in parts("relations").items() if info.load().control}
    assert roles == {name: SHAM if name == "tissue_erased" else EVIDENCE for name in CONTROLS}
    assert {info.load().control for name, info in parts("relations").items() if name not in roles} == {""}


@pytest.mark.parametrize(
    ("share", "role", "verdict"),
    [(0.5, EVIDENCE, "FAIL"), (0.49, EVIDENCE, "PASS"), (1.0, SHAM, "PASS"), (0.2, SHAM, "FAIL")],
)
def test_half_of_the_answer_is_the_border(share: float, role: str, verdict: str) -> None:
    assert control_verdict(share, role) == verdict


# ------------------------------------------------------------------------------------------------------ image removed


def test_nothing_of_the_image_is_left_in_the_field_and_the_frame_stays() -> None:
    seed = seed_of()
    grey, mean, noise, other = (make_follow_up("image_removed", seed, severity) for severity in (1, 2, 3, 4))
    assert (grey.image[~seed.frame] == 127).all()
    for follow in (grey, mean, noise):
        assert np.array_equal(follow.image[seed.frame], seed.image[seed.frame])
    assert seed.peers is not None
    images = [seed.peers.case(number).image.astype(np.int64) for number in range(4)]
    expected = np.floor(np.mean(images, axis=0) + 0.5)
    assert np.array_equal(mean.image[~seed.frame], expected[~seed.frame])
    assert np.abs(noise.image[~seed.frame].mean() - 127.5) < 3
    assert np.array_equal(other.image, seed.peers.case(int(other.params["case"])).image)
    assert other.effect.other.ref.seed_id != seed.ref.seed_id
    assert not moved_mask(np.ones((2, 2), bool), grey.effect).any()


def test_another_image_is_of_another_patient() -> None:
    seed = seed_of()
    assert seed.peers is not None
    same = [replace(ref, cluster="one") for ref in seed.peers.refs]
    peers = type(seed.peers)(same, seed.peers.case)
    with pytest.raises(NotApplicable, match="another patient"):
        make_follow_up("image_removed", replace(seed, ref=same[0], peers=peers), 4)


def test_without_its_data_set_a_case_has_no_other() -> None:
    with pytest.raises(NotApplicable, match="another patient"):
        make_follow_up("image_removed", replace(seed_of(), peers=None), 4)
    with pytest.raises(NotApplicable, match="unknown"):
        make_follow_up("image_removed", replace(seed_of(), peers=None), 2)


# ------------------------------------------------------------------------------------------------------------ lesions


@cache
def phantom(index: int = 1) -> tuple[Image, np.ndarray]:
    drawn = make_colon(colon_rng(7, "controls", index), size=(192, 192), polyps=1)
    return drawn.image, drawn.mask


def test_the_lesion_is_gone_and_everything_else_stays() -> None:
    image, lesion = phantom()
    frame = image.max(axis=2) < 8
    gone = erase(image, lesion, frame, 0.25)
    assert gone is not None
    far = ~widened(lesion, 6)
    assert np.array_equal(gone[far], image[far])
    inside, before = gone[lesion].astype(float), image[lesion].astype(float)
    rim = image[widened(lesion, 12) & far & ~frame].astype(float)
    assert np.abs(inside.mean(0) - rim.mean(0)).max() < 0.6 * np.abs(before.mean(0) - rim.mean(0)).max() + 6
    assert np.array_equal(gone, erase(image, lesion, frame, 0.25))


def test_there_is_no_seam_where_tissue_was_erased() -> None:
    """The step across the outline of the erased region is no larger than steps of the tissue around it."""
    image, lesion = phantom()
    frame = image.max(axis=2) < 8
    gone = erase(image, lesion, frame, 0.25)
    assert gone is not None
    hole = widened(lesion, max(3, round(0.025 * 192)))
    edge = (widened(hole, 1) & ~hole) | (hole & widened(~hole, 1))
    steps = np.abs(np.diff(gone.astype(float), axis=0)).mean(2)
    own = steps[edge[1:] & ~frame[1:]]
    around = steps[(widened(hole, 20) & ~widened(hole, 4) & ~frame)[1:]]
    assert np.median(own) <= 1.5 * np.median(around) + 1


def test_a_lesion_of_more_than_a_fifth_of_the_field_is_not_erased() -> None:
    seed = seed_of()
    large = np.zeros_like(seed.frame)
    large[40:150, 50:180] = True
    assert large.sum() > LARGEST * (~seed.frame).sum()
    for name in ("lesion_erased", "tissue_erased", "lesion_swapped"):
        with pytest.raises(NotApplicable, match=r"covers \d+ % of the field, more than 20 %"):
            make_follow_up(name, replace(seed, mask=large))
    with pytest.raises(NotApplicable, match="no lesion"):
        make_follow_up("lesion_erased", replace(seed, mask=np.zeros_like(large)))
    with pytest.raises(NotApplicable, match="no mask"):
        make_follow_up("lesion_erased", replace(seed, mask=None))


def test_the_sham_erases_as_much_and_leaves_the_lesion() -> None:
    seed = seed_of()
    assert seed.mask is not None
    sham = make_follow_up("tissue_erased", seed)
    assert np.array_equal(sham.image[seed.mask], seed.image[seed.mask])
    assert np.array_equal(moved_mask(seed.mask, sham.effect), seed.mask)
    erased = make_follow_up("lesion_erased", seed)
    assert not np.array_equal(erased.image[seed.mask], seed.image[seed.mask])
    down, right = sham.params["shifts"][0]
    rows, columns = np.nonzero(seed.mask)
    assert not seed.mask[rows + down, columns + right].any() and not seed.frame[rows + down, columns + right].any()


def test_a_swapped_lesion_is_of_another_class_in_its_place_or_elsewhere() -> None:
    masks, labels = make_follow_up("lesion_swapped", seed_of()), make_follow_up("lesion_swapped", seed_of("label"))
    assert seed_of().mask is not None
    moved = np.abs(np.array(masks.params["shift"])).max()
    assert moved > 20
    assert labels.effect.data["becomes"] == ["healthy"] and seed_of("label").labels == ("lesion",)


# ---------------------------------------------------------------------------------------------------------- questions


@pytest.mark.parametrize(
    ("question", "changed"),
    [
        ("Where in the image is the polyp?", "Where in the image is the hip prosthesis?"),
        ("How many polyps are in the image?", "How many hip prostheses are in the image?"),
        ("What color is the abnormality?", "What color is the hip prosthesis?"),
        ("What colour is the anatomical landmark?", "What colour is the hip prosthesis?"),
        ("Is there text?", None),
        ("Are there any abnormalities in the image?", None),
        ("What type of procedure is the image taken from?", None),
    ],
)
def test_a_false_premise_takes_the_place_of_what_a_question_presumes(question: str, changed: str | None) -> None:
    premises = asks_about("hip prosthesis", (Ask(item="q", text=question, kind="count"),))
    assert (premises["q"].text if premises else None) == changed


def test_a_false_premise_changes_no_pixel_and_is_drawn_from_the_settings() -> None:
    seed = replace(seed_of("answer"), asks=(Ask(item="polyps", text="How many polyps are there?", kind="count"),))
    follow = make_follow_up("false_premise", seed, things=["sundial"])
    assert np.array_equal(follow.image, seed.image) and follow.asks["polyps"].text == "How many sundials are there?"
    with pytest.raises(NotApplicable, match="no question presumes"):
        make_follow_up("false_premise", replace(seed, asks=()))
    with pytest.raises(ValueError, match="words of letters"):
        load_relation("false_premise", things=["<b>"])


def test_a_gate_cannot_name_a_control() -> None:
    gate = "+gates=[{score: dice, threshold: 0.25, relation: image_removed, max_percent: 10}]"
    with pytest.raises(UserMistakes, match=r"gates\[0\]\.relation") as caught:
        load_suite("polyp_seg_controls", [gate])
    allowed = str(caught.value).split("allowed:")[1]
    assert "contrast" in allowed and "overall" in allowed and "lesion_erased" not in allowed
