"""Training of classifiers: recipes, splits, changes, batches, and resumed trainings."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtest.core.cases import Classes
from medtest.core.errors import MedtestError, UserMistakes
from medtest.training.classification.batches import LabelledBatches
from medtest.training.classification.cases import LabelledCase, held_out, keep, squared, squared_mask
from medtest.training.classification.changes import centred, changed
from medtest.training.classification.options import ClassificationOptions
from medtest.training.classification.recipe import FOLDER, Changes, load_recipe
from medtest.training.classification.scores import accuracy, areas, mean_area
from medtest.training.run import train
from medtest.training.settings.recipe_files import names_in, typed_changes

TWO = Classes(names=("benign", "melanoma"))


def small_set(folder, count=12, side=64, classes=TWO, clusters=None):
    rng = np.random.default_rng(3)
    cases = []
    for index in range(count):
        image = rng.integers(0, 120, (side, side, 3), dtype=np.uint8)
        mask = np.zeros((side, side), bool)
        label = classes.names[index % len(classes.names)]
        if label == "melanoma":
            mask[20:40, 20:40] = True
            image[mask] = 220
        cluster = str(index) if clusters is None else clusters[index]
        cases.append(LabelledCase(image=image, labels=(label,), mask=mask, cluster=cluster))
    return keep(iter(cases), folder, classes=classes, side=side, origin="small")


# --- recipes ----------------------------------------------------------------------------------------------------


def test_every_recipe_can_be_read():
    assert set(names_in(FOLDER)) == {"agdn", "attnmel", "chexnet", "compact", "defended", "dsinet", "inceptionv3_dr"}
    for name in names_in(FOLDER):
        assert load_recipe(name).name == name


@pytest.mark.parametrize(
    ("name", "changes", "expected"),
    [
        ("compactt", (), "did you mean: compact"),
        ("compact", ("optimizer.rate",), "KEY=VALUE"),
        ("compact", ("stepz=3",), "did you mean: steps"),
        ("compact", ("batch=1",), "greater than or equal to 2"),
        ("compact", ("epochs=null", "steps=null"), "give epochs or steps"),
        ("nowhere.yaml", (), "can be read"),
    ],
)
def test_mistakes_in_recipes_are_messages(name, changes, expected):
    with pytest.raises(UserMistakes) as caught:
        load_recipe(name, typed_changes(changes))
    assert expected in str(caught.value)


def test_numbers_typed_as_text_are_numbers():
    recipe = load_recipe("compact", {**typed_changes(["optimizer.rate=1e-4"]), "steps": 7})
    assert recipe.optimizer.rate == pytest.approx(1e-4)
    assert load_recipe("agdn", {"steps": 7}).epochs is None


# --- cases ------------------------------------------------------------------------------------------------------


def test_cases_are_kept_and_found_again(tmp_path):
    first = small_set(tmp_path)
    again = keep(iter(()), tmp_path, classes=TWO, side=64, origin="small")
    assert len(again) == 12 and again.digest == first.digest
    np.testing.assert_array_equal(again.images, first.images)
    np.testing.assert_array_equal(again.truth.argmax(axis=1), np.arange(12) % 2)
    with pytest.raises(MedtestError, match="no case"):
        keep(iter(()), tmp_path, classes=TWO, side=64, origin="other")


def test_an_unknown_label_is_refused(tmp_path):
    case = LabelledCase(image=np.zeros((8, 8, 3), np.uint8), labels=("naevus",), mask=None, cluster="a")
    with pytest.raises(MedtestError, match="naevus"):
        keep(iter([case]), tmp_path, classes=TWO, side=64, origin="x")


def test_the_middle_of_an_image_is_kept():
    image = np.zeros((60, 100, 3), np.uint8)
    image[:, 20:80] = 200
    mask = np.zeros((60, 100), bool)
    mask[:, 20:50] = True
    assert (squared(image, 30) == 200).all()
    np.testing.assert_array_equal(squared_mask(mask, 30)[7] > 0, np.arange(30) < 15)


@given(st.integers(0, 10_000), st.floats(0.05, 0.6), st.integers(2, 9))
def test_no_patient_is_split(tmp_path_factory, seed, share, patients):
    names = [f"p{index % patients}" for index in range(12)]
    cases = small_set(tmp_path_factory.mktemp("cases"), side=64, clusters=names)
    inside, outside = held_out(cases, share=share, seed=seed)
    assert {names[i] for i in inside}.isdisjoint({names[i] for i in outside})
    assert sorted([*inside, *outside]) == list(range(12)) and len(inside) and len(outside)


# --- changes and batches ----------------------------------------------------------------------------------------


def test_no_change_is_the_image_in_the_middle(tmp_path):
    cases = small_set(tmp_path)
    image, mask = np.array(cases.images[1]), np.array(cases.masks[1])
    rng = np.random.default_rng(0)
    for got, expected in zip(changed(rng, image, mask, 64, Changes()), (image, mask), strict=True):
        np.testing.assert_array_equal(got, expected)
    cropped, _ = changed(rng, image, mask, 32, Changes(zoom=(1, 1)))
    middle, _ = centred(image, mask, 1.0, 32)
    np.testing.assert_array_equal(cropped, middle)


@given(st.integers(0, 2**31))
def test_image_and_mask_move_together(seed):
    image = np.zeros((96, 96, 3), np.uint8)
    mask = np.zeros((96, 96), np.uint8)
    image[30:50, 40:70] = 255
    mask[30:50, 40:70] = 255
    settings_of_change = Changes(
        flip=0.5, flip_vertical=0.5, quarter_turns=0.5, angle=90, shear=6, zoom=(0.8, 1.2), crop=0.9
    )
    moved, moved_mask = changed(np.random.default_rng(seed), image, mask, 96, settings_of_change)
    inner = moved_mask > 0
    # The frame of the image is mirrored where it comes in and the mask's is not: the middle is compared.
    apart = (moved[..., 0] > 127) ^ inner
    assert apart[24:72, 24:72].sum() <= 90


def test_an_epoch_passes_every_case_once(tmp_path):
    cases = small_set(tmp_path)
    members = np.arange(12)
    recipe = load_recipe("compact", {"small": 0, "balanced": False, "steps": 10, "batch": 4})
    batches = LabelledBatches(cases, members, recipe, side=64, shown=1.0, steps=10, seed=1)
    chosen = [batches._index(position) for position in range(12)]
    assert sorted(chosen) == list(range(12))
    first, again = batches.batch(2), batches.batch(2)
    np.testing.assert_array_equal(first.images, again.images)


def test_balanced_batches_hold_both_classes_equally(tmp_path):
    cases = small_set(tmp_path)
    members = np.array([0, 2, 4, 6, 8, 1])  # five benign, one melanoma
    recipe = load_recipe("compact", {"balanced": True, "small": 0.5, "steps": 10, "batch": 4})
    batches = LabelledBatches(cases, members, recipe, side=128, shown=1.0, steps=10, seed=1)
    for step in range(4):
        assert batches.batch(step).truth.sum(axis=0).tolist() == [2, 2]
    assert [batches.side_at(step) for step in (0, 4, 5, 9)] == [64, 64, 128, 128]


# --- scores -----------------------------------------------------------------------------------------------------


@given(st.integers(0, 10_000), st.integers(1, 5))
def test_areas_count_ordered_pairs(seed, levels):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, levels, (25, 2)).astype(np.float32)
    truth = (rng.random((25, 2)) < 0.4).astype(np.float32)
    result = areas(scores, truth)
    for number in range(2):
        yes, no = scores[truth[:, number] > 0, number], scores[truth[:, number] == 0, number]
        if len(yes) and len(no):
            pairs = (yes[:, None] > no[None]) + 0.5 * (yes[:, None] == no[None])
            assert result[number] == pytest.approx(pairs.mean())
        else:
            assert np.isnan(result[number])


def test_accuracy_of_one_label_and_of_several():
    logits = np.array([[2.0, 1.0], [0.0, 3.0], [1.0, 0.0]], np.float32)
    truth = np.array([[1, 0], [0, 1], [0, 1]], np.float32)
    assert accuracy(logits, truth, multi=False) == pytest.approx(2 / 3)
    assert accuracy(np.array([[1.0, -1.0], [1.0, 1.0]]), np.array([[1, 0], [0, 1]]), multi=True) == pytest.approx(0.75)
    assert mean_area(logits, truth, multi=False) == pytest.approx(0.75)  # 3 > -1, and a tie


# --- a training -------------------------------------------------------------------------------------------------


def options(**more):
    return ClassificationOptions(
        network="attnmel",
        phantoms=10,
        steps=4,
        batch=2,
        side=64,
        change=["watching.every_steps=2", "small=0", "watching.held_out=0.2"],
        mlflow=False,
        threads=1,
        **more,
    )


@pytest.mark.slow
def test_stopped_and_resumed_gives_the_same_weights(tmp_path):
    whole = train(options(), tmp_path / "whole")
    parted = train(options(), tmp_path / "parted", stop=lambda step: step == 3)
    assert parted.step == 3
    done = train(options(), tmp_path / "parted")
    assert done.step == whole.step == 4
    assert done.weights.read_bytes() == whole.weights.read_bytes()
    history = json.loads((tmp_path / "parted" / "history.json").read_text())
    assert [entry["step"] for entry in history] == [2, 4]
    with pytest.raises(MedtestError, match="other options"):
        train(options(seed=1), tmp_path / "parted")


def test_trained_weights_answer_as_a_system(tmp_path):
    from medtest.core.plugins import part

    trained = train(options(), tmp_path / "out")
    kind = part("systems", "attnmel").load()
    system = kind("attnmel", kind.Settings(checkpoint=str(trained.weights), input="as_is"))
    system.open(device="cpu", threads=1)
    scores = np.asarray(system.predict([np.full((64, 64, 3), 90, np.uint8)], []))
    assert scores.shape == (1, 2) and np.isfinite(scores).all()
    assert system.record_name == "attnmel-compact-trained"


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"phantoms": 0}, "nothing to train on"),
        ({"suite": "wce"}, "both"),
        ({"network": "agdnn"}, "did you mean: agdn"),
    ],
)
def test_impossible_trainings_are_mistakes(tmp_path, more, expected):
    given_options = options().model_copy(update=more)
    with pytest.raises(UserMistakes) as caught:
        train(given_options, tmp_path / "out")
    assert expected in str(caught.value)


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_a_smaller_side_keeps_the_centre_and_samples_evenly(share: float) -> None:
    ramp = np.repeat(np.arange(0, 240, 6, dtype=np.uint8)[None, :, None], 40, axis=0).repeat(3, axis=2)
    shown, _ = centred(ramp, np.zeros((40, 40), np.uint8), share, 20)
    columns = 19.5 + (np.arange(20) - 9.5) * (40 * share / 20)  # positions about the centre of 40 columns
    assert shown[10, 1:-1, 0] == pytest.approx(6 * columns[1:-1], abs=1)
