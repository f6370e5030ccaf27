"""Relations that would change the diagnosis are refused in suites of labels, unless the suite wants them."""

from __future__ import annotations

import pytest

from medtest.core.cases import Classes
from medtest.core.errors import UserMistakes
from medtest.core.plugins import parts
from medtest.phantoms.classes import CAPSULE, CHEST, DERMOSCOPY, FUNDUS
from medtest.suite.checking.misfits.altering import altered
from medtest.suite.compose import load_suite
from medtest.suite.composed import plain_settings

BASE = ["model=callable", "target=nets.py:look"]


def wrong(*overrides: str, suite: str = "wce") -> str:
    with pytest.raises(UserMistakes) as caught:
        load_suite(suite, [*BASE, *overrides])
    return str(caught.value)


def test_blood_alters_vascular_diagnoses_and_nothing_else_does() -> None:
    blood = parts("relations")["blood"].load()
    assert altered(blood, CAPSULE) == ("vascular",)
    kvasir = Classes(names=("Normal clean mucosa", "Blood - fresh", "Erosion", "Angiectasia"))
    assert altered(blood, kvasir) == ("Blood - fresh",)
    assert all(altered(blood, classes) == () for classes in (DERMOSCOPY, FUNDUS, CHEST))
    for name, info in parts("relations").items():
        if name != "blood":
            assert all(altered(info.load(), classes) == () for classes in (CAPSULE, DERMOSCOPY, FUNDUS, CHEST)), name


def test_the_capsule_suite_leaves_blood_out_and_refuses_it() -> None:
    suite = load_suite("wce", BASE)
    assert "blood" not in {plan.id for plan in suite.relations} and len(suite.relations) == 9
    text = wrong("relations.blood={}")
    assert "alters the diagnosis vascular" in text and "a separate finding" in text and "may_alter: [blood]" in text
    assert wrong("+relations.spots={relation: blood}").count("alters the diagnosis") == 1


def test_a_suite_may_want_it_and_no_case_changes_by_that() -> None:
    suite = load_suite("wce", [*BASE, "relations.blood={}", "may_alter=[blood]"])
    assert suite.may_alter == ("blood",) and suite.composed["may_alter"] == ["blood"]
    assert "blod" in wrong("relations.blood={}", "may_alter=[blod]")
    assert "may_alter" not in load_suite("wce", BASE).composed
    assert plain_settings(next(plan for plan in suite.relations if plan.id == "blood"))


def test_a_suite_of_masks_keeps_its_blood() -> None:
    assert "blood" in {plan.id for plan in load_suite("polyp_seg", BASE).relations}


def test_classes_that_seeds_bring_are_looked_at_before_a_run(tmp_path) -> None:
    """Class folders are only known with the user's data: the run is refused then, before any system loads."""
    import cv2
    import numpy as np

    from medtest.runner.run import run_suite
    from medtest.suite.model import Invocation

    for name in ("normal", "fresh bleeding"):
        (tmp_path / "data" / name).mkdir(parents=True)
        cv2.imwrite(str(tmp_path / "data" / name / f"{name[:3]}.png"), np.full((80, 80, 3), 90, np.uint8))
    (tmp_path / "nets.py").write_text("def look(image):\n    return [0.5, 0.5]\n")
    (tmp_path / "mine.yaml").write_text(
        "name: mine\nversion: '1'\nseed: 1\nseeds: {folder: {source: label_folder}}\nrelations: {blood: {}}\n"
        "systems: {callable: {}}\nprepare: {size: 64}\n"
    )
    suite = load_suite(tmp_path / "mine.yaml", [f"target={tmp_path / 'nets.py'}:look"])
    with pytest.raises(UserMistakes, match="alters the diagnosis fresh bleeding"):
        run_suite(suite, Invocation(home=tmp_path, data=tmp_path / "data", quiet=True))
