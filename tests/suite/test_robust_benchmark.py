"""The suites of Robust-Benchmark: fourteen types under their bare names, as sequences and as levels."""

from __future__ import annotations

import pytest

from medtest.suite.compose import load_suite
from medtest.suite.plan import Plan

KINDS = {
    "melanoma": ("dermoscopy", "attnmel"),
    "retinopathy": ("fundus", "inceptionv3_dr"),
    "chest": ("chest", "chexnet"),
}
FOURTEEN = {
    "brightness",
    "gaussian_blur",
    "gaussian_noise",
    "motion_blur",
    "rotate",
    "scale",
    "shear",
    "shot_noise",
    "snow",
    "spatter",
    "speckle_noise",
    "tilt",
    "translate",
    "zoom_blur",
}


@pytest.mark.parametrize("kind", KINDS)
def test_sequences_have_ten_frames_of_difficulty_one(kind: str) -> None:
    suite = load_suite(f"robust_benchmark_{kind}")
    images, system = KINDS[kind]
    assert [(plan.info.name, plan.settings.what) for plan in suite.seeds] == [("label_phantoms", images)]
    assert [plan.info.name for plan in suite.systems] == [system]
    assert suite.systems[0].settings.input == "as_is"
    assert (suite.prepare.size, suite.prepare.resize) == (224, 256)
    relations = suite.build_relations()
    assert set(relations) == {*FOURTEEN, "unchanged"}
    for name in FOURTEEN:
        assert relations[name].severities() == (1,)
        assert relations[name].frames() == 10
        assert relations[name].settings.variant == "paper"
    refs = tuple(suite.build_seeds(None)[0].refs())
    assert Plan(refs, relations, 8).total == len(refs) * (2 + 14 * 10)


@pytest.mark.parametrize("kind", KINDS)
def test_levels_are_the_same_types_at_five_severities(kind: str) -> None:
    suite = load_suite(f"robust_benchmark_{kind}_levels")
    relations = suite.build_relations()
    assert set(relations) == {*FOURTEEN, "unchanged"}
    for name in FOURTEEN:
        assert relations[name].severities() == (1, 2, 3, 4, 5)
        assert relations[name].frames() == 1
