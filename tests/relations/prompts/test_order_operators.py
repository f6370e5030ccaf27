"""ACTesting's operators on orders of medical pictures: findings exchanged, removed, added and renamed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from prompt_pools import ordered_seed

from medtest.core.cases import Address, FollowUp
from medtest.core.errors import NotApplicable
from medtest.core.plugins import part
from medtest.core.scenes import Pool
from medtest.language.orders import order_pool, read_order, vocabulary
from medtest.preparation.prepare import prepare
from medtest.simlab.drawing.clinical.reading import understood_order
from medtest.suite.compose import load
from medtest.testing import load_relation

OPERATORS = ("ec", "er_r", "er_a", "ec_er_r", "ec_er_a", "ss")
FILM = "Chest film showing a left pleural effusion, two right lung nodules of 8 mm and cardiomegaly; no pneumothorax."


def words(name: str, text: str, draws: int = 60, **settings: Any) -> set[str]:
    """Return the changed words of some draws; the reason if a draw has none."""
    relation, seed, changed = load_relation(name, **settings), ordered_seed(text), set()
    for draw in range(draws):
        try:
            changed.add(relation.follow_up(seed, 0, np.random.default_rng(draw)).prompt.text)
        except NotApplicable as reason:
            changed.add(f"SKIP: {reason}")
    return changed


def test_ec_names_another_finding_that_can_have_the_same_side() -> None:
    assert words("ec", "CXR showing a left pleural effusion.") == {
        f"CXR showing {phrase}."
        for phrase in (
            "left atelectasis",
            "a left consolidation",
            "a left lung mass",
            "a left lung nodule",
            "left pneumonia",
            "a left pneumothorax",
        )
    }
    assert words("ec", "CXR: bilateral effusions") == {
        "SKIP: no other finding can have the side, number, size and colour of one that is ordered"
    }
    assert words("ec", "Left pneumonia on a CXR", among=["effusion", "dog"]) == {"A left pleural effusion on a CXR"}


def test_ec_exchanges_instruments_for_instruments_and_keeps_to_the_region() -> None:
    text = "Colonoscopy image of a sessile red polyp and a tube."
    tools = ("biopsy forceps", "a polyp snare", "an injection needle", "a metal clip")
    assert words("ec", text) == {text.replace("a tube", tool) for tool in tools}
    assert words("ec", "Gastroscopy image of the oesophagus: oesophagitis") == {
        f"Gastroscopy image of the oesophagus: {noun}"
        for noun in ("Barrett's oesophagus", "short-segment Barrett's oesophagus")
    }
    assert words("ec", "Colonoscopy: two polyps, 8 mm") == {
        "SKIP: no other finding can have the side, number, size and colour of one that is ordered"
    }


def test_er_r_takes_one_finding_out_of_the_list() -> None:
    head, tail = "Chest film showing ", "; no pneumothorax."
    assert words("er_r", FILM) == {
        f"{head}two right lung nodules of 8 mm and cardiomegaly{tail}",
        f"{head}a left pleural effusion and cardiomegaly{tail}",
        f"{head}a left pleural effusion and two right lung nodules of 8 mm{tail}",
    }
    assert words("er_r", "CXR: effusion, no PTX") == {
        "SKIP: the prompt needs two or more ordered findings to remove one"
    }


def test_er_a_puts_a_finding_or_an_instrument_beside_the_others() -> None:
    scope = "Gastroscopy image of the oesophagus showing oesophagitis and biopsy forceps; no tube."
    tools = ("a polyp snare", "an injection needle", "a metal clip")
    assert words("er_a", scope) == {
        scope.replace(" and biopsy forceps", f", biopsy forceps and {tool}") for tool in tools
    }
    assert words("er_a", "CXR: L effusion", among=["pneumothorax"]) == {
        "CXR: L effusion and a left pneumothorax",
        "CXR: L effusion and a right pneumothorax",
    }
    assert words("er_a", "CXR: no effusion") == {"SKIP: no finding is ordered that another one could be beside"}


def test_two_findings_on_two_sides_do_not_become_one_on_both() -> None:
    assert words("er_a", "CXR: PTX on the left", among=["pleural_thickening"]) == {
        "CXR: PTX on the left and left pleural thickening",
        "CXR: PTX on the left, and right pleural thickening",
    }


def test_ss_uses_other_words_and_abbreviations() -> None:
    assert words("ss", "CXR: two L nodules, no PTX") == {
        "CXR: two L lung nodules, no PTX",
        "CXR: two L pulmonary nodules, no PTX",
        "CXR: two L nodules, no pneumothorax",
        "CXR: two L nodules, no air in the pleural space",
    }
    (both,) = words("ss", "CXR: PNA, no effusion", draws=1, words="all")
    assert "PNA" not in both and "no effusion" not in both


@pytest.mark.parametrize("name", ["ec", "er_r", "er_a"])
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Normal CXR", "without findings|two or more"),
        ("CXR: left effusion on the right and a nodule", "the prompt contradicts itself"),
    ],
)
def test_orders_without_findings_or_sense_are_skipped(name: str, text: str, reason: str) -> None:
    with pytest.raises(NotApplicable, match=reason):
        load_relation(name).follow_up(ordered_seed(text), 0, np.random.default_rng(0))


@pytest.fixture(scope="module")
def suite_cases() -> dict[str, list[tuple[Pool, FollowUp | str]]]:
    """Return pool and follow-up, or the reason for none, of every order of ``t2i_medical`` under every operator."""
    suite = load("t2i_medical", []).suite
    info = part("seeds", "order_phantoms")
    settings = info.load().Settings(**{**info.defaults, "count": 80})
    source = info.load()(dataset="orders", settings=settings, root=None, suite_seed=suite.seed)
    cases: dict[str, list[tuple[Pool, FollowUp | str]]] = {name: [] for name in OPERATORS}
    for ref in source.refs():
        seed = prepare(source.load(ref), size=None)
        assert seed.prompt is not None
        for name in OPERATORS:
            address = Address(dataset="orders", seed_id=ref.seed_id, relation=name)
            try:
                case: FollowUp | str = load_relation(name).follow_up(seed, 0, address.generator(suite.seed))
            except NotApplicable as reason:
                case = str(reason)
            cases[name].append((seed.prompt.pool, case))
    return cases


def test_the_share_of_skipped_orders_is_that_of_the_page(suite_cases: dict[str, list[Any]]) -> None:
    skipped = {name: Counter(case for _, case in cases if isinstance(case, str)) for name, cases in suite_cases.items()}
    assert {name: sum(reasons.values()) for name, reasons in skipped.items()} == {
        "ec": 26,
        "er_r": 57,
        "er_a": 18,
        "ec_er_r": 57,
        "ec_er_a": 26,
        "ss": 6,
    }
    first = {name: sum(isinstance(case, str) for _, case in cases[:25]) for name, cases in suite_cases.items()}
    assert {name: first[name] for name in ("ec", "er_a", "ss")} == {"ec": 6, "er_a": 5, "ss": 3}


def test_changed_prompts_say_the_changed_pool_and_the_simulated_product_reads_it(
    suite_cases: dict[str, list[Any]],
) -> None:
    for name, cases in suite_cases.items():
        for before, case in cases:
            if isinstance(case, str):
                continue
            text, after = case.prompt.text, case.prompt.pool
            assert order_pool(read_order(text).order) == after
            exchanged, removed = name.startswith("ec"), "er_r" in name
            gone = [entity.name for entity in before.entities if entity not in after.entities]
            new = [entity.name for entity in after.entities if entity not in before.entities]
            assert len(gone) == exchanged + removed and len(new) == exchanged + ("er_a" in name)
            assert (before.absent, before.uncertain) == (after.absent, after.uncertain)
            drawn = understood_order(text)
            assert drawn is not None
            if read_order(text).order.contradictions:
                continue
            present = [finding.name for finding in drawn.findings if finding.presence == "wanted"]
            assert sorted(present) == sorted(entity.name for entity in after.entities)


def test_no_new_finding_resembles_one_of_the_prompt(suite_cases: dict[str, list[Any]]) -> None:
    for name in ("ec", "er_a"):
        for before, case in suite_cases[name]:
            if isinstance(case, str):
                continue
            named = {entity.name for entity in before.entities} | set(before.absent) | set(before.uncertain)
            modality = next(words for words in vocabulary().modalities.values() if named <= words.findings.keys())
            (new,) = [entity.name for entity in case.prompt.pool.entities if entity.name not in named]
            assert not any(modality.are_alike(new, other) for other in named)
            present = [entity.name for entity in case.prompt.pool.entities]
            assert not any(len(group.intersection(present)) > 1 for group in modality.apart)
