"""The matrix of expectations and the verdicts that follow from it."""

from __future__ import annotations

import pytest
from shipped_relations import effects_of

from medtest.core.cases import Verdict
from medtest.core.errors import UserMistakes
from medtest.core.files.paths import conf_folder
from medtest.core.plugins import parts
from medtest.core.tasks.base import PROMPT
from medtest.language.questions.expectations import REASONS, Inserted, judge_against_source, judge_against_truth
from medtest.language.questions.matrix import Expectation, Matrix, Rule, default_matrix, expectation, overridden
from medtest.language.questions.questions import Question, by_name, official, question_of

FORCEPS = Inserted(count=1, names=frozenset({"biopsy_forceps"}), cells=frozenset({"lower-right", "center-right"}))


def judge_both(
    name: str, relation: str, answer: str, source: str, truth: str | None, inserted: Inserted | None = None
) -> list[str]:
    question = by_name(name)
    assert question is not None
    expected = expectation(default_matrix(), relation, question, effects=effects_of(relation))
    value = question.parse(answer)
    true_value = None if truth is None else question.parse(truth)
    judged = [
        judge_against_source(expected, value, question.parse(source), inserted=inserted),
        judge_against_truth(expected, value, true_value, inserted=inserted),
    ]
    assert all(judgement.reason in REASONS for judgement in judged)
    return [f"{judgement.verdict.value} {judgement.reason}" for judgement in judged]


@pytest.mark.parametrize(
    ("name", "relation", "answer", "source", "truth", "verdicts"),
    [
        ("polyps", "contrast", "1", "1", "2", ["PASS same", "FAIL wrong"]),
        ("polyps", "contrast", "2", "1", "2", ["FAIL flip", "PASS right"]),
        ("size", "contrast", ">10mm", ">20mm", "11-20mm", ["PASS weaker", "PASS right"]),
        ("abnormality_colour", "contrast", "Red", "red, pink", "Pink, Red", ["FAIL flip", "PASS right"]),
        ("abnormality_colour", "white_balance", "Not applicable due to WB", "Red", "Red", ["SKIP skip", "SKIP skip"]),
        ("size", "white_balance", "Not applicable due to WB", ">10mm", ">20mm", ["FAIL refusal", "FAIL refusal"]),
        ("size", "contrast", "Small", ">10mm", ">20mm", ["SKIP unparsed", "SKIP unparsed"]),
        ("size", "contrast", ">10mm", "Small", None, ["SKIP source unparsed", "SKIP no truth"]),
        ("size", "contrast", ">10mm", "I'm sorry, I can't help", ">20mm", ["SKIP source refused", "PASS right"]),
        ("abnormalities", "blood", "Bleeding", "Polyp", "Polyp", ["SKIP may change", "SKIP may change"]),
        ("easy", "blur", "Difficult", "Yes", "Yes", ["SKIP may change", "SKIP may change"]),
        ("text", "text", "Yes", "No", "No", ["PASS became", "PASS right"]),
        ("text", "text", "No", "No", "No", ["FAIL did not become", "FAIL wrong"]),
        ("text", "text", "I cannot determine that", "No", "No", ["FAIL refusal", "FAIL wrong"]),
        ("abnormality_place", "corruption_rotate", "Center", "upper left", "upper left", ["SKIP skip", "SKIP skip"]),
        ("all_removed", "blood", "Not relevant", "No", "No", ["FAIL flip", "FAIL wrong"]),
        ("landmark_colour", "contrast", "Pink", "Not relevant", "Not relevant", ["FAIL flip", "FAIL wrong"]),
    ],
)
def test_verdicts(name: str, relation: str, answer: str, source: str, truth: str | None, verdicts: list[str]) -> None:
    assert judge_both(name, relation, answer, source, truth) == verdicts


@pytest.mark.parametrize(
    ("name", "answer", "source", "truth", "verdicts"),
    [
        ("instruments", "Biopsy forceps", "No", "No", ["PASS became", "PASS right"]),
        ("instruments", "Yes", "No", "No", ["PASS became", "PASS right"]),
        ("instruments", "Polyp snare", "No", "No", ["PASS became", "FAIL wrong"]),
        ("instruments", "No", "No", "No", ["FAIL did not become", "FAIL wrong"]),
        ("instrument_count", "1", "0", "0", ["PASS became", "PASS right"]),
        ("instrument_count", "0", "0", "0", ["FAIL did not become", "FAIL wrong"]),
        ("instrument_count", "2", "1", "0", ["PASS became", "FAIL wrong"]),
        ("instrument_count", "1", "not relevant", "none", ["PASS became", "PASS right"]),
        ("instrument_count", "1", "blue", None, ["SKIP source unparsed", "SKIP no truth"]),
        ("instrument_place", "bottom right", "none", "none", ["PASS became", "PASS right"]),
        ("instrument_place", "upper left", "none", "none", ["FAIL did not become", "FAIL wrong"]),
        ("instrument_place", "Not relevant", "none", "none", ["FAIL did not become", "FAIL wrong"]),
        ("polyps", "1", "1", "1", ["PASS same", "PASS right"]),
    ],
)
def test_an_inserted_instrument_has_to_be_seen(
    name: str, answer: str, source: str, truth: str | None, verdicts: list[str]
) -> None:
    assert judge_both(name, "instrument", answer, source, truth, FORCEPS) == verdicts


def test_without_knowing_what_was_inserted_nothing_is_judged() -> None:
    assert judge_both("instrument_place", "instrument", "upper left", "none", "none") == ["SKIP nothing inserted"] * 2


SHIPPED = sorted(
    file.stem
    for file in (conf_folder() / "relations").glob("*.yaml")
    if parts("relations")[file.stem].load().takes != {PROMPT}
)

OF_RELATIONS = {
    **dict.fromkeys(("contrast", "saturation", "corruption_brightness", "bias_field"), {"easy": "may change"}),
    **dict.fromkeys(("unchanged", "specularity", "measured", "lesion_swapped"), {}),
    "image_removed": {question.name: "must change" for question in official()},
    "false_premise": {question.name: "must deny" for question in official()},
    **dict.fromkeys(
        ("lesion_erased", "tissue_erased"),
        {
            **{question.name: "must change" for question in official()},
            **dict.fromkeys(("procedure", "easy", "all_removed"), "may change"),
        },
    ),
    **dict.fromkeys(("fgsm", "foolbox_attack", "gap", "pgd", "square", "strongest"), {}),
    "white_balance": {"abnormality_colour": "skip", "landmark_colour": "skip", "easy": "may change"},
    "instrument": {
        "instruments": "must become yes",
        "instrument_count": "must become +inserted",
        "instrument_place": "must become @inserted",
    },
    "text": {"text": "must become yes"},
    **dict.fromkeys(
        ("blood", "feces"),
        dict.fromkeys(
            ("abnormality_colour", "findings", "abnormalities", "abnormality_place", "easy"),
            "may change",
        ),
    ),
    **dict.fromkeys(
        [f"corruption_{name}" for name in ("rotate", "shear", "tilt", "translate")],
        dict.fromkeys(("abnormality_place", "instrument_place", "landmark_place"), "skip"),
    ),
    **dict.fromkeys(
        ("corruption_scale", "breathing", "elastic", "lens_distortion"),
        {
            **dict.fromkeys(("abnormality_place", "instrument_place", "landmark_place"), "skip"),
            "size": "may change",
        },
    ),
    # A transform of another library may do all that a transform can: move, resize, recolour, relight, hide.
    "perturb": {
        **dict.fromkeys(("abnormality_place", "instrument_place", "landmark_place"), "skip"),
        **dict.fromkeys(("abnormality_colour", "landmark_colour"), "skip"),
        **dict.fromkeys(("easy", "size"), "may change"),
    },
}
"""What differs from ``invariant``; all other relations blur or add noise: "easy to detect?" may change."""


@pytest.mark.parametrize("relation", SHIPPED)
def test_what_the_relations_that_ship_may_do_to_answers(relation: str) -> None:
    expected = OF_RELATIONS.get(relation, {"easy": "may change"})
    rules = {question.name: rule(default_matrix(), relation, question) for question in official()}
    assert {name: cell for name, cell in rules.items() if cell != "invariant"} == expected
    assert parts("relations")[relation].load().effects is not None
    assert effects_of(relation) <= set(default_matrix().shipped)


def test_a_third_party_relation_is_judged_by_its_effects() -> None:
    """A hue shift takes colours away as white balance does, whatever its name; unknown effects are not judged."""
    plain = default_matrix()
    expected = {"abnormality_colour": "skip", "landmark_colour": "skip", "easy": "may change", "polyps": "invariant"}
    for name, cell in expected.items():
        question = by_name(name)
        assert question is not None
        assert str(expectation(plain, "hue_shift", question, effects={"recolour"})) == cell
        assert str(expectation(plain, "sharpen", question, effects={"sharpen"})) == "may change"
        gravest = "skip" if cell == "skip" else "may change"
        assert str(expectation(plain, "both", question, effects={"recolour", "sharpen"})) == gravest
        own = overridden({"sharpen": {"all": "invariant"}})
        assert str(expectation(own, "sharpen", question, effects={"sharpen"})) == "invariant"


@pytest.mark.parametrize("text", ["invariant", "may change", "skip", "must become yes", "must become +inserted"])
def test_an_expectation_is_read_from_the_text_that_records_hold(text: str) -> None:
    assert str(Expectation.read(text)) == text
    with pytest.raises(ValueError, match="no rule"):
        Expectation.read(f"un{text}")


def test_a_suite_may_override() -> None:
    matrix = overridden({"blood": {"abnormalities": "invariant"}, "mine": {"all": "skip", "polyps": "must become +2"}})
    polyps = by_name("polyps")
    abnormalities = by_name("abnormalities")
    assert polyps is not None
    assert abnormalities is not None
    assert expectation(matrix, "blood", abnormalities, effects=effects_of("blood")).rule == Rule.INVARIANT
    assert str(expectation(matrix, "mine", polyps)) == "must become +2"
    assert expectation(matrix, "mine", abnormalities).rule == Rule.SKIP
    assert expectation(default_matrix(), "blood", abnormalities, effects=effects_of("blood")).rule == Rule.MAY_CHANGE
    judged = judge_against_source(expectation(matrix, "mine", polyps), polyps.parse("3"), polyps.parse("1"))
    assert judged.verdict == Verdict.PASS


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"blood": {"abnormalitys": "skip"}}, "did you mean: abnormalities"),
        ({"blood": {"abnormality colour": "skip"}}, "did you mean: abnormality_colour"),
        ({"blood": {"all_counts": "skip"}}, "did you mean: all_count"),
        ({"blood": {"q_12": "skip"}}, "eight digits"),
        ({"blood": {"all_count": "must become yes"}}, "+N or +inserted"),
        ({"blood": {"all": "must become yes"}}, "a value of the type"),
        ({"blood": {"q_0123abcd": "must become +1"}}, "a value of the type yes_no"),
        ({"blood": {"polyps": "may chance"}}, "did you mean: may change"),
        ({"blood": {"polyps": "must become"}}, "must become VALUE"),
        ({"blood": {"polyps": "must become red"}}, "+N or +inserted"),
        ({"blood": {"text": "must become maybe"}}, "a value of the type yes_no"),
        ({"blood": {"abnormality_place": "must become centre"}}, "upper-left"),
        ({"blood": {"size": "must become +1"}}, "a value of the type size"),
        ({"blood": "skip"}, "question: rule"),
        ([], "a mapping"),
    ],
)
def test_a_wrong_override_is_one_message(overrides: object, message: str) -> None:
    with pytest.raises(UserMistakes) as caught:
        overridden(overrides, "suites/mine.yaml")
    assert message in str(caught.value)
    assert "suites/mine.yaml" in str(caught.value)


ORGAN = question_of("Which organ is shown?")
SHARP = question_of("Is the picture sharp?", ("yes",))


def rule(matrix: Matrix, relation: str, question: Question | str, relations: dict[str, str] | None = None) -> str:
    resolved = by_name(question) if isinstance(question, str) else question
    assert resolved is not None
    effects = effects_of((relations or {}).get(relation, relation))
    return str(expectation(matrix, relation, resolved, effects=effects, relations=relations))


def test_rules_for_own_questions_go_by_name_and_by_type() -> None:
    named = overridden({"blur": {ORGAN.name: "may change"}})
    assert ORGAN.name.startswith("q_")
    assert rule(named, "blur", ORGAN) == "may change"
    assert rule(named, "blur", SHARP) == "invariant"
    typed = overridden({"blur": {"all_text": "may change", "all_yes_no": "skip", SHARP.name: "must become no"}})
    assert rule(typed, "blur", ORGAN) == "may change"
    assert rule(typed, "blur", SHARP) == "must become no"
    assert rule(typed, "blur", "box") == "skip"
    assert rule(typed, "blur", "easy") == "skip"  # what a suite says of a type wins over medtest's own cell
    assert rule(typed, "blur", "polyps") == "invariant"


def test_all_covers_own_questions_too() -> None:
    matrix = overridden({"mine": {"all": "skip", "all_text": "invariant", "polyps": "may change"}})
    questions: list[Question | str] = ["polyps", "text", SHARP, ORGAN]
    assert [rule(matrix, "mine", question) for question in questions] == ["may change", "skip", "skip", "invariant"]


def test_must_become_is_judged_for_own_questions() -> None:
    expected = expectation(overridden({"blur": {ORGAN.name: "must become stomach"}}), "blur", ORGAN)
    judged = [
        judge_against_source(expected, ORGAN.parse(answer), ORGAN.parse("colon"))
        for answer in ("The stomach.", "Colon")
    ]
    assert [judgement.verdict for judgement in judged] == [Verdict.PASS, Verdict.FAIL]


def test_an_id_that_is_the_name_of_another_part() -> None:
    """A contrast that a suite calls "blood" has no effect of blood; rules for it do not apply to the relation blood."""
    relations = {"blood": "contrast", "much_blood": "blood", "text": "text"}
    plain = default_matrix()
    assert rule(plain, "blood", "findings", relations) == "invariant"
    assert rule(plain, "much_blood", "findings", relations) == "may change"
    assert rule(plain, "text", "text", relations) == "must become yes"
    stated = overridden({"blood": {"polyps": "skip"}})
    assert rule(stated, "blood", "polyps", relations) == "skip"
    assert rule(stated, "much_blood", "polyps", relations) == "invariant"


def test_a_part_is_named_for_all_relations_of_it_and_an_id_wins() -> None:
    relations = {"blood": "blood", "much_blood": "blood", "more_blood": "blood"}
    stated = overridden({"blood": {"polyps": "skip", "all_colour": "skip"}, "much_blood": {"all": "invariant"}})
    assert [rule(stated, name, "polyps", relations) for name in relations] == ["skip", "invariant", "skip"]
    assert [rule(stated, name, "findings", relations) for name in relations] == [
        "may change",
        "invariant",
        "may change",
    ]
