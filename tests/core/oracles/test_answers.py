"""The oracle of answers in words, compared with scores, states, verdicts and texts by hand; and bad settings."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from question_seeds import ask_of, seed_of
from shipped_relations import effects_of

from medtest.core.cases import Address, AnswerOutput, Ask, Effect, Json, ReasonCode, Verdict
from medtest.core.oracles import criteria
from medtest.core.oracles.criteria import Against
from medtest.language.questions.questions import question_of
from medtest.readers.typed import clean
from medtest.suite.model import Criterion
from medtest.systems.answering.shapes import said
from medtest.tasks.ask.oracle import MOST_WORDS, WHY, Answers


def output(item: str, text: str, relation: str = "source", state: str = "answered", **rest: Any) -> AnswerOutput:
    address = Address(dataset="d", seed_id="s", relation=relation, severity=0 if relation == "source" else 3, item=item)
    return AnswerOutput(address=address, text=text, state=state, **rest)


def oracle(
    score: str = "answer", against: Against = "source", relations: dict[str, str] | None = None, **settings: Any
) -> Answers:
    judge = Answers(Answers.Settings(**settings), primary=Criterion(score=score, threshold=0.0, against=against))
    judge.relations = relations or {}
    named = {**{name: name for name in ("instrument", "white_balance", "blood", "text", "blur")}, **judge.relations}
    judge.effects = {name: effects_of(part) for name, part in named.items()}
    return judge


def case(
    ask: Ask,
    source: str,
    answer: str,
    *,
    relation: str = "blur",
    state: str = "answered",
    source_state: str = "answered",
    effect: Effect | None = None,
    judge: Answers | None = None,
) -> dict[str, Any]:
    """Return the row of a follow-up as the runner does, with its verdict."""
    judge = judge or oracle()
    seed = seed_of(ask)
    before = output(ask.item, source, state=source_state)
    after = output(ask.item, answer, relation, state)
    done = effect or Effect()
    at_source = judge.score(answer=before, source=before, seed=seed, effect=Effect())
    row: dict[str, Any] = {
        **judge.score(answer=after, source=before, seed=seed, effect=done),
        **{f"source_{name}": at_source[name] for name in judge.scores},
        **judge.describe(answer=after, source=before, seed=seed, effect=done),
    }
    assert set(judge.texts) <= set(row)
    row["verdict"], reason = judge.verdict(row)
    row |= {"reason_code": reason.code, "reason": reason.text}
    return row


def test_a_flip_of_a_set_is_any_difference_and_accuracy_is_any_hit() -> None:
    row = case(ask_of("abnormality_colour", "Red", "White"), "Pink and red.", "It is pink.")
    assert row["verdict"] == Verdict.FAIL
    assert (row["self_agreement"], row["self_any_hit"], row["self_exact"], row["self_jaccard"]) == (0, 1, 0, 0.5)
    assert (row["source_agreement"], row["agreement"], row["jaccard"]) == (1, 0, 0)
    assert (row["said"], row["source_said"], row["truth"], row["wanted"]) == (
        "pink",
        "pink;red",
        "red;white",
        "pink;red",
    )
    assert (row["rule"], row["change"], row["why"], row["evidence"]) == ("invariant", "flip", "flip", "pink")
    assert case(ask_of("abnormality_colour"), "Pink and red", "red, pink")["verdict"] == Verdict.PASS


def test_intervals_that_do_not_exclude_one_another_are_no_flip() -> None:
    ask = ask_of("size", "11-20mm")
    assert case(ask, "15 mm", "11-20mm")["change"] == "weaker"
    assert case(ask, "15 mm", "11-20mm")["verdict"] == Verdict.PASS
    row = case(ask, "15 mm", "<5mm")
    assert (row["verdict"], row["agreement"], row["source_agreement"]) == (Verdict.FAIL, 0, 1)


@pytest.mark.parametrize("state", ["refusal", "content_filter"])
def test_a_refusal_where_the_source_was_answered_fails(state: str) -> None:
    row = case(ask_of("text", "No"), "No", "Yes", state=state)
    assert (row["verdict"], row["state"], row["reply"], row["why"]) == (Verdict.FAIL, "refusal", state, "refusal")
    assert (row["self_agreement"], row["self_jaccard"], row["agreement"], row["said"]) == (0, 0, 0, "")
    words = case(ask_of("text", "No"), "No", "I'm sorry, but I can't help with that.")
    assert (words["verdict"], words["state"], words["reply"]) == (Verdict.FAIL, "refusal", "answered")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"answer": "Yes", "state": "length"}, "length"),
        ({"answer": "Yes", "state": "malformed"}, "malformed"),
        ({"answer": "bananas"}, "unparsed"),
        ({"answer": "Yes", "source_state": "length"}, "source unparsed"),
        ({"answer": "Yes", "source": "bananas"}, "source unparsed"),
        ({"answer": "Yes", "source_state": "refusal"}, "source refused"),
        ({"answer": "Yes", "relation": "white_balance"}, "skip"),
        ({"answer": "Yes", "relation": "blood"}, "may change"),
    ],
)
def test_unjudged_cases_are_skipped_with_the_reason(change: dict[str, str], why: str) -> None:
    name = {"skip": "landmark_colour", "may change": "findings"}.get(why, "text")
    given_ = {"source": "1" if name == "findings" else "red" if name == "landmark_colour" else "No", **change}
    row = case(ask_of(name), **given_)  # type: ignore[arg-type]
    assert (row["verdict"], row["why"], row["reason_code"]) == (Verdict.SKIP, why, WHY[why].code)
    assert row["self_agreement"] is None


def test_against_the_truth_an_answer_is_made_wrong() -> None:
    ask, judge = ask_of("text", "No"), oracle(against="truth")
    assert case(ask, "No", "Yes", judge=judge)["verdict"] == Verdict.FAIL
    assert case(ask, "No", "No.", judge=judge)["verdict"] == Verdict.PASS
    row = case(ask, "Yes", "Yes", judge=judge)
    assert (row["verdict"], row["reason_code"]) == (Verdict.SKIP, ReasonCode.SOURCE_WRONG)
    assert case(ask_of("text"), "No", "Yes", judge=judge)["reason_code"] == ReasonCode.NO_TRUTH
    assert case(ask, "No", "bananas", judge=judge)["reason_code"] == ReasonCode.ANSWER_UNPARSED


def grid(*cells: int) -> Effect:
    shares: list[Json] = [1 / len(cells) if number in cells else 0.0 for number in range(9)]
    return Effect(kind="add", data={"what": "instrument", "count": 1, "grid": shares})


def test_an_inserted_instrument_must_be_seen() -> None:
    add = grid(5, 8)
    place = ask_of("instrument_place", "not relevant")
    row = case(place, "Not relevant", "lower right", relation="instrument", effect=add)
    assert (row["verdict"], row["wanted"], row["why"]) == (Verdict.PASS, "center-right;lower-right", "became")
    row = case(place, "Not relevant", "upper left", relation="instrument", effect=add)
    assert (row["verdict"], row["self_any_hit"], row["agreement"]) == (Verdict.FAIL, 0, 0)
    assert case(place, "Not relevant", "center", relation="instrument", effect=add, judge=oracle(tolerance=1))[
        "verdict"
    ] == (Verdict.PASS)
    count = ask_of("instrument_count", "1")
    assert case(count, "2", "3", relation="instrument", effect=add)["verdict"] == Verdict.PASS
    row = case(count, "2", "2", relation="instrument", effect=add)
    assert (row["verdict"], row["wanted"], row["rule"]) == (Verdict.FAIL, "3", "must become +inserted")
    instruments = ask_of("instruments", "none")
    assert case(instruments, "No", "Yes, biopsy forceps", relation="instrument", effect=add)["verdict"] == Verdict.PASS
    assert case(instruments, "No", "No", relation="instrument", effect=add)["verdict"] == Verdict.FAIL
    nothing = case(place, "Not relevant", "lower right", relation="instrument")
    assert (nothing["verdict"], nothing["why"], nothing["wanted"]) == (Verdict.SKIP, "nothing inserted", "")


def test_expectations_follow_the_part_and_may_be_overridden_by_id() -> None:
    ask = ask_of("text", "No")
    named = {"much_text": "text"}
    assert case(ask, "No", "Yes", relation="much_text", judge=oracle(relations=named))["verdict"] == Verdict.PASS
    assert case(ask, "No", "Yes", relation="much_text")["verdict"] == Verdict.FAIL
    own = oracle(relations=named, expectations={"much_text": {"text": "skip"}})
    assert case(ask, "No", "Yes", relation="much_text", judge=own)["why"] == "skip"
    every = oracle(expectations={"blur": {"all": "may change", "text": "invariant"}})
    assert case(ask, "No", "Yes", judge=every)["verdict"] == Verdict.FAIL
    assert case(ask_of("box"), "No", "Yes", judge=every)["verdict"] == Verdict.SKIP


def test_wrong_expectations_are_one_message() -> None:
    with pytest.raises(ValidationError, match=r"blur\.txet: 'txet'.*did you mean text.*blur\.box: 'must vary'"):
        Answers.Settings(expectations={"blur": {"txet": "skip", "box": "must vary"}})
    with pytest.raises(ValidationError):
        Answers.Settings(tolerance=3)


def test_the_source_itself_and_a_lost_source() -> None:
    ask = ask_of("text", "No")
    judge, seed, own = oracle(), seed_of(ask), output("text", "No text.")
    row = judge.score(answer=own, source=own, seed=seed, effect=Effect())
    assert (row["agreement"], row["self_agreement"]) == (1, None)
    texts = judge.describe(answer=own, source=own, seed=seed, effect=Effect())
    assert (texts["said"], texts["source_said"], texts["wanted"], texts["why"]) == ("no", None, "", "right")
    after = output("text", "Yes", "blur")
    row = judge.score(answer=after, source=None, seed=seed, effect=Effect())
    assert (row["agreement"], row["self_agreement"]) == (0, None)
    assert set(judge.describe(answer=None, source=own, seed=seed, effect=Effect()).values()) == {None}


def test_measures_are_no_scores() -> None:
    measures = oracle().measure(
        output("text", "No", prompt_tokens=90.0, completion_tokens=2.0, cost_usd=0.01, attempts=2)
    )
    assert measures == {"prompt_tokens": 90, "completion_tokens": 2, "cost_usd": 0.01, "seconds": None, "attempts": 2}
    assert not set(Answers.measures) & set(Answers.scores)


@given(st.text(max_size=900), st.sampled_from(["text", "polyps", "size", "abnormality_place", "instruments"]))
def test_any_words_give_a_row_that_a_file_takes(text: str, name: str) -> None:
    row = case(ask_of(name, "No"), text, text)
    assert row["verdict"] in (Verdict.PASS, Verdict.SKIP)
    for value in row.values():
        if isinstance(value, str):
            value.encode()
            assert len(value) <= MOST_WORDS
            assert "\x00" not in value


def test_words_from_outside_are_cleaned() -> None:
    assert clean("a\ud83d\x00b", 20) == "a? b"
    assert clean("x" * 700, 600) == "x" * 599 + "…"


def test_the_criterion_has_no_threshold() -> None:
    assert criteria.criterion_name("answer", 0.0) == "answer"
    assert criteria.columns_needed("answer", "source") == ("self_agreement",)
    assert criteria.columns_needed("answer", "truth") == ("agreement", "source_agreement")


def test_expectations_of_questions_that_are_not_asked_are_mistakes() -> None:
    own = question_of("Which organ is shown?").name
    judge = oracle(expectations={"blur": {own: "skip", "polyps": "skip"}})
    assert judge.unknown_items([own, "text"]) == []
    near = own[:-1] + ("0" if own[-1] != "0" else "1")
    (wrong,) = judge.unknown_items([near, "text"])
    assert (wrong.key, wrong.nearest) == (f"oracles.expectations.blur.{own}", near)
    (wrong,) = judge.unknown_items(["text"])
    assert "ask no other" in wrong.allowed


_ALIKE: tuple[tuple[str, Json, str], ...] = (
    ("text", "yes", "Yes, there is text in the image."),
    ("text", "no", "No, there is no text."),
    ("text", "cannot tell", "I cannot tell whether there is any text."),
    ("polyps", 0, "There are no polyps."),
    ("polyps", 3, "There are three polyps."),
    ("polyps", "refused", "I cannot answer this question."),
    ("polyps", "not relevant", "This question is not relevant."),
    ("size", "5-10 mm", "It measures 5 to 10 mm."),
    ("abnormality_colour", ["pink", "red"], "It is pink and red."),
    ("abnormality_colour", "not relevant", "Not relevant."),
    ("abnormality_place", ["upper left"], "It lies in the upper left."),
    ("abnormalities", ["polyp"], "A polyp is visible."),
    ("abnormalities", [], "None."),
    ("procedure", "colonoscopy", "The image was taken during a colonoscopy."),
)


@pytest.mark.parametrize("item", sorted({item for item, _, _ in _ALIKE}))
def test_a_value_by_schema_is_judged_as_the_same_value_in_plain_english(item: str) -> None:
    """Sources and follow-ups of every pair of values: verdicts, flips, states and scores are the same."""
    pairs = [(said(value, ask_of(item).kind), words) for name, value, words in _ALIKE if name == item]
    for before_shaped, before in pairs:
        for after_shaped, after in pairs:
            for truth in ((), ("Yes",) if item == "text" else ()):
                ask = ask_of(item, *truth)
                shaped, plain = case(ask, before_shaped, after_shaped), case(ask, before, after)
                for name in ("answer", "evidence"):  # the words alone differ
                    shaped.pop(name), plain.pop(name)
                assert shaped == plain


def test_a_record_names_the_form_of_the_request_and_the_reader() -> None:
    judge, ask = oracle(), ask_of("polyps")
    for shaped, mode, state, stage in (
        (True, "schema", "answered", "schema"),
        (False, "schema", "answered", "rules"),  # the server accepted the schema and ignored it
        (True, "json", "answered", "schema"),
        (False, "words", "answered", "rules"),
        (False, "schema", "refusal", ""),
        (False, "words", "length", ""),
    ):
        answer = output("polyps", "3", state=state, mode=mode, shaped=shaped)
        row = judge.describe(answer=answer, source=answer, seed=seed_of(ask), effect=Effect())
        assert (row["mode"], row["stage"]) == (mode, stage)


def test_unknown_facts_of_a_relation_are_reported() -> None:
    judge = oracle(
        relations={"mine": "mine", "hue": "hue_shift", "sharp": "sharpen", "own": "sharpen"},
        expectations={"own": {"all": "skip"}},
    )
    judge.effects = {"mine": None, "hue": frozenset({"recolour"}), "sharp": frozenset({"sharpen"}), "own": None}
    silent, unknown = judge.notices()
    assert "mine" in silent and "effects" in silent
    assert "sharp has the effect sharpen" in unknown
    assert "oracles.expectations.sharp" in unknown


def test_a_relation_that_is_not_installed_keeps_the_rule_of_its_records() -> None:
    ask = ask_of("abnormality_colour", "red")
    row = case(ask, "Red", "Green", relation="white_balance")
    full = {"relation": "white_balance", "item": ask.item, **row}
    judge = oracle(relations={"white_balance": "hue_shift"})
    judge.effects = {}
    assert judge.rejudged(full)["rule"] == "skip"
    stated = oracle(relations={"white_balance": "hue_shift"}, expectations={"hue_shift": {"all": "invariant"}})
    stated.effects = {}
    assert stated.rejudged(full)["change"] == "flip"
