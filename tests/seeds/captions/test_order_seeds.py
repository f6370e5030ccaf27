"""Seeds of orders: generated ones, and those of a user's file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from medtest.core.errors import UserMistakes
from medtest.core.plugins import part
from medtest.language.orders import read_order
from medtest.runner.prepared import prepare_run
from medtest.seeds.base import SeedSource
from medtest.suite.compose import load_suite
from medtest.suite.model import Invocation

PROMPTS = """CXR: left pleural effusion, no PTX
A dog on a mat
Normal chest radiograph
Chest film with no effusion and pneumothorax
colonoscopy image, polyp 8 mm, Paris Is
"""


def source(name: str, root: Path | None = None, **settings: Any) -> SeedSource:
    info = part("seeds", name)
    values = info.load().Settings(**{**info.defaults, **settings})
    return info.load()(dataset="d", settings=values, root=root, suite_seed=5)


def test_made_orders_are_read_and_of_every_case() -> None:
    seeds = source("order_phantoms", count=120)
    cases, modalities = Counter(), Counter()
    for ref in seeds.refs():
        strata = dict(ref.strata)
        cases[strata["case"]] += 1
        modalities[strata["modality"]] += 1
        prompt = seeds.load(ref).prompt
        assert read_order(prompt.text).order.kind == strata["case"]
    assert set(cases) == {"plain", "negated", "uncertain", "normal", "contradictory"}
    assert modalities == {"chest film": 48, "endoscopy": 48, "capsule": 24}
    assert not seeds.notices()


def test_an_order_does_not_depend_on_how_many_are_made() -> None:
    few, many = source("order_phantoms", count=4).refs(), source("order_phantoms", count=9).refs()
    assert few == many[:4]
    plain = source("order_phantoms", count=60, special=False, modalities=["capsule"]).refs()
    assert {dict(ref.strata)["case"] for ref in plain} <= {"plain", "negated"}


def test_a_file_of_prompts_is_read_and_what_is_not_read_is_counted_by_reason(tmp_path: Path) -> None:
    (tmp_path / "prompts.txt").write_text(PROMPTS, encoding="utf-8")
    orders = source("orders", tmp_path)
    assert [orders.load(ref).prompt.text for ref in orders.refs()] == [PROMPTS.splitlines()[at] for at in (0, 2, 4)]
    assert list(orders.notices()) == [
        "1 of 5 prompts not sent: each does not say how far a negation or a doubt reaches.",
        "1 of 5 prompts not sent: each names no kind of picture.",
    ]
    assert ["row 2" in str(problem.file) for problem in orders.problems()] == [True, False]
    assert 'leaves open whether "pneumothorax" is negated' in orders.problems()[1].reason


def test_several_prompts_of_an_image_are_seeds_of_one_cluster(tmp_path: Path) -> None:
    lines = [
        "image,caption",
        "a,CXR: left effusion",
        "b/x.png,CXR: edema",
        "a,CXR: hernia",
        "b_x.png,CXR: mass",
        "a_2,CXR: mass",
    ]
    (tmp_path / "prompts.csv").write_text("\n".join([*lines, ""]), encoding="utf-8")
    refs = source("orders", tmp_path).refs()
    assert len({ref.seed_id for ref in refs}) == 5
    assert refs[0].seed_id == "a"
    assert [ref.cluster for ref in refs] == ["a", refs[1].seed_id, "a", refs[3].seed_id, refs[4].seed_id]
    (tmp_path / "prompts.csv").write_text("\n".join([*lines[:3], "a,", *lines[3:], ""]), encoding="utf-8")
    assert source("orders", tmp_path, on_bad_seed="skip").refs() == refs
    with pytest.raises(UserMistakes, match="line 4"):
        source("orders", tmp_path).refs()


def test_unread_prompts_may_stop_a_run(tmp_path: Path) -> None:
    (tmp_path / "prompts.txt").write_text("a cat\na dog\n", encoding="utf-8")
    with pytest.raises(UserMistakes, match="names no kind of picture"):
        source("orders", tmp_path, unread="stop").refs()
    with pytest.raises(UserMistakes, match="no prompt that can be used"):
        source("orders", tmp_path).refs()


@pytest.mark.parametrize("prompts", ["plain", "none"])
def test_reasons_quote_words_of_prompts_only_where_prompts_may_be_shown(prompts: str, tmp_path: Path) -> None:
    (tmp_path / "prompts.txt").write_text(PROMPTS, encoding="utf-8")
    suite = load_suite("t2i_medical_folder", [f"privacy.prompts={prompts}"])
    notices = "\n".join(prepare_run(suite, Invocation(home=tmp_path / "home", data=tmp_path)).notices)
    assert "names no kind of picture" in notices
    assert ("prompts.txt, row 2 names no kind of picture" in notices) == (prompts == "plain")
    assert ("pneumothorax" in notices) == (prompts == "plain")
