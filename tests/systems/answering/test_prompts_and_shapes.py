"""Prompts and shapes: questions to a model, and structured answers as words that the parser reads."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from medtest.api.calls.request import CallState, Outcome, Source, schema_of
from medtest.api.wire.answers import parse_structured
from medtest.core.cases import Ask, Json
from medtest.language.questions.questions import official, question_of_ask
from medtest.language.questions.values import Kind
from medtest.systems.answering.outputs import words_of
from medtest.systems.answering.prompts import PromptSettings, prompt_of
from medtest.systems.answering.shapes import field_names, said, shape_of, shape_of_all

ASKS = tuple(
    Ask(item=question.name, text=question.text, kind=question.kind.value, id=question.id) for question in official()
)


def outcome(state: CallState = CallState.ANSWERED, text: str = "", parsed: Json = None) -> Outcome:
    return Outcome(address="a", key="k", state=state, text=text, parsed=parsed)


def test_templates_contain_only_the_question() -> None:
    settings = PromptSettings(prompt="Look. {question} {0} {question.text} {system_prompt}")
    prompt = prompt_of(settings, [ASKS[8]], together=False)
    assert prompt == "Look. How many polyps are in the image? {0} {question.text} {system_prompt}"
    listed = prompt_of(PromptSettings(), ASKS, together=True)
    assert "\n9. polyps: How many polyps are in the image?\n" in listed
    assert all(ask.text in listed for ask in ASKS)


@pytest.mark.parametrize("settings", [{"prompt": "no place"}, {"together_prompt": "{question}"}, {"temperature": 3.0}])
def test_templates_without_a_place_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        PromptSettings(**settings)


@pytest.mark.parametrize("ask", ASKS, ids=lambda ask: ask.item)
def test_schemas_are_strict_and_the_same_class_for_the_same_kind(ask: Ask) -> None:
    schema = schema_of(shape_of(ask))
    assert schema["additionalProperties"] is False
    assert schema["required"] == list(schema["properties"]) == ["answer"]
    assert shape_of(ask) is shape_of(ask)


def test_one_shape_for_all_questions() -> None:
    shape = shape_of_all(ASKS)
    schema = schema_of(shape)
    assert list(schema["properties"]) == [ask.item for ask in ASKS]
    assert all(ask.text in schema["properties"][ask.item]["description"] for ask in ASKS)
    assert shape_of_all(ASKS) is shape


def test_items_that_cannot_be_fields_are_numbered() -> None:
    items = ["polyps", "3-d", "copy", "model_x", "question_9", "json"]
    asks = [Ask(item=item, text="?", kind=Kind.TEXT.value) for item in items]
    assert field_names(asks) == ["polyps", *(f"question_{n}" for n in (2, 3, 4, 5, 6))]
    assert list(schema_of(shape_of_all(asks))["properties"]) == field_names(asks)


@pytest.mark.parametrize(
    ("item", "value", "expected"),
    [
        ("text", "no", "no"),
        ("text", "not relevant", "!not_relevant"),
        ("abnormalities", ["polyp", "ulcerative colitis"], "polyp;ulcerative_colitis"),
        ("abnormalities", [], "no"),
        ("polyps", 3, "3"),
        ("polyps", 0, "0"),
        ("polyps", None, "!not_relevant"),
        ("size", "11-20", "11..20"),
        ("size", None, "!not_relevant"),
        ("abnormality_colour", ["pink", "red"], "pink;red"),
        ("abnormality_colour", [], "!not_relevant"),
        ("abnormality_place", ["upper left", "center"], "center;upper-left"),
        ("polyp_type", "Is", "is"),
        ("procedure", "colonoscopy", "colonoscopy"),
    ],
)
def test_structured_answers_are_parsed(item: str, value: Json, expected: str) -> None:
    (ask,) = (ask for ask in ASKS if ask.item == item)
    parsed, wrong = parse_structured(json.dumps({"answer": value}), shape_of(ask))
    assert not wrong
    ((words, state),) = words_of([ask], outcome(parsed=parsed), together=False)
    assert state == CallState.ANSWERED
    assert str(question_of_ask(ask).parse(words)) == expected


@pytest.mark.parametrize("ask", ASKS, ids=[ask.item for ask in ASKS])
@pytest.mark.parametrize(
    ("value", "state"), [("not relevant", "not_relevant"), ("cannot tell", "refusal"), ("refused", "refusal")]
)
def test_every_shape_with_ways_out_takes_them_and_they_are_read_back(ask: Ask, value: str, state: str) -> None:
    parsed, wrong = parse_structured(json.dumps({"answer": value}), shape_of(ask, outs=True))
    assert not wrong
    ((words, reply),) = words_of([ask], outcome(parsed=parsed), together=False)
    assert reply == CallState.ANSWERED
    assert question_of_ask(ask).parse(words).state.value == state


def test_shapes_have_not_changed() -> None:
    """Content keys depend on them: another shape would ask finished folders again."""
    shapes = [schema_of(shape_of(ask)) for ask in ASKS] + [schema_of(shape_of_all(ASKS))]
    digest = hashlib.sha256(json.dumps(shapes, sort_keys=True).encode()).hexdigest()
    assert digest == "90217439525b7856c6d167afdc24dd6cc26a456050374b06ff196bfdf393df7b"


@given(st.integers(min_value=0, max_value=999))
def test_counts_round_trip(count: int) -> None:
    (ask,) = (ask for ask in ASKS if ask.item == "polyps")
    assert str(question_of_ask(ask).parse(said(count, ask.kind))) == str(count)


@pytest.mark.parametrize("state", [CallState.REFUSAL, CallState.CONTENT_FILTER, CallState.LENGTH])
def test_a_state_is_every_questions(state: CallState) -> None:
    assert words_of(ASKS, outcome(state, "I cannot"), together=True) == [("I cannot", state)] * 18


def test_a_text_for_all_questions_is_divided_and_the_rest_is_malformed() -> None:
    text = 'Here you are:\n{"polyps": 2, "text": "No", "9": "lost"}'
    words = dict(
        zip((ask.item for ask in ASKS), words_of(ASKS, outcome(CallState.MALFORMED, text), together=True), strict=True)
    )
    assert words["polyps"] == ("2", CallState.ANSWERED)
    assert words["text"] == ("No", CallState.ANSWERED)
    assert words["size"] == ("", CallState.MALFORMED)
    alone = words_of([ASKS[4]], outcome(CallState.MALFORMED, "No idea"), together=False)
    assert alone == [("No idea", CallState.MALFORMED)]


def test_shares_add_up_and_kept_answers_take_no_time() -> None:
    from medtest.core.cases import Address
    from medtest.systems.answering.asking import Asking
    from medtest.systems.answering.outputs import asked_of

    addresses = tuple(Address(dataset="d", seed_id="s", item=ask.item) for ask in ASKS)
    import numpy as np

    image = np.zeros((4, 4, 3), np.uint8)
    call = Asking(number=7, label="l", addresses=addresses, image=image, sha256="", asks=ASKS, together=True)
    whole = Outcome(
        address="l",
        key="k",
        state=CallState.LENGTH,
        prompt_tokens=1000,
        completion_tokens=90,
        cost_usd=0.5,
        seconds=2.0,
        attempts=3,
    )
    result = asked_of(call, whole)
    assert (result.number, result.seconds) == (7, 2.0)
    outputs = [output for output in result.outputs if not isinstance(output, str)]
    assert [output.address for output in outputs] == list(addresses)
    assert sum(output.prompt_tokens or 0 for output in outputs) == pytest.approx(1000)
    assert sum(output.cost_usd or 0 for output in outputs) == pytest.approx(0.5)
    stored = Outcome.from_json(whole.to_json(), address="l", key="k", source=Source.LEDGER)
    assert asked_of(call, stored).seconds is None
    assert asked_of(call, stored).outputs == result.outputs
    lost = Outcome(address="l", key="k", state=CallState.ERROR, reason="no answer after 6 calls")
    assert asked_of(call, lost).outputs == ("no answer after 6 calls",) * 18
