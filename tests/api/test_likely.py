"""Log-probabilities in replies: both forms, the place of yes or no in an answer, and the probability of yes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import pytest

from medtest.api.calls.request import CallState, Outcome, Parameters, Request, Source, content_key
from medtest.api.wire import WIRES
from medtest.api.wire.base import Received
from medtest.api.wire.likely import MOST_LIKELY, place_of, yes_or_no

ASKED = Request(address="a", prompt="Is there a dog?", most_likely=5)
MODEL = Parameters(model="m")


def _entry(token: str, logprob: float, **others: float) -> dict[str, Any]:
    top = [{"token": token, "logprob": logprob, "bytes": None}]
    top += [{"token": name, "logprob": value, "bytes": None} for name, value in others.items()]
    return {"token": token, "logprob": logprob, "bytes": list(token.encode()), "top_logprobs": top}


def _read(body: Mapping[str, Any], *, api: str = "chat", request: Request = ASKED) -> Any:
    received = Received(status=200, headers={}, content=json.dumps(body).encode())
    return WIRES[api].read(received, request, MODEL, plain=False).likely


def _chat(text: str, logprobs: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return {"model": "m", "choices": [{**choice, "logprobs": logprobs}]}


def test_the_form_of_chat_completions() -> None:
    # as in OpenAI's reference of the chat completion object, with top_logprobs
    content = [_entry("Yes", -0.1, No=-2.5, yes=-4.0), _entry(",", -0.01), _entry(" no", -0.2)]
    assert _read(_chat("Yes, no", {"content": content, "refusal": None})) == [
        ["Yes", -0.1],
        ["No", -2.5],
        ["yes", -4.0],
    ]


def test_the_form_of_completions_that_older_servers_send_for_chats() -> None:
    # github.com/vllm-project/vllm/issues/3179, github.com/abetlen/llama-cpp-python/issues/1787
    lists = {"tokens": [" ", "No", "."], "token_logprobs": [-0.1, -0.3, None], "text_offset": [0, 1, 3]}
    tops = [{" ": -0.1, "\n": -3.0}, {"Yes": -1.5, "NO": -5.0}, None]
    assert _read(_chat(" No.", {**lists, "top_logprobs": tops})) == [["No", -0.3], ["Yes", -1.5], ["NO", -5.0]]
    assert _read(_chat(" No.", {**lists, "top_logprobs": None})) == [["No", -0.3]]


def test_the_form_of_responses() -> None:
    part = {"type": "output_text", "text": "no", "logprobs": [_entry("no", -0.2, yes=-1.8)]}
    body = {"model": "m", "status": "completed", "output": [{"type": "message", "content": [part]}]}
    assert _read(body, api="responses") == [["no", -0.2], ["yes", -1.8]]


@pytest.mark.parametrize(
    "logprobs",
    [
        *(None, {}, {"content": None}, {"content": []}, [], "no", {"content": ["Yes"]}, {"tokens": ["Yes"]}),
        {"content": [{"token": "Yes", "logprob": None, "top_logprobs": None}]},
        {"content": [{"token": "Yes", "logprob": "high", "top_logprobs": [3]}]},
        {"content": [{"token": "Yes", "logprob": True}]},
        {"content": [_entry("Nobody", -0.1)]},
    ],
)
def test_a_reply_without_usable_log_probabilities_has_none(logprobs: Any) -> None:
    assert _read(_chat("Yes", logprobs)) is None


def test_stored_log_probabilities_are_bounded() -> None:
    tops = {f"token number {n} that is very long indeed": -float(n) for n in range(1, 400)}
    stored = _read(_chat("Yes", {"content": [_entry("Yes", 0.5, **{**tops, "-inf": -9999.0})]}))
    assert len(stored) == MOST_LIKELY
    assert stored[0] == ["Yes", 0.0]
    assert max(len(token) for token, _ in stored) == 24
    low = _read(_chat("Yes", {"content": [_entry("Yes", -0.5, No=-9999.0)]}))
    assert low == [["Yes", -0.5], ["No", -100.0]]


def test_nothing_is_read_that_was_not_requested() -> None:
    body = _chat("Yes", {"content": [_entry("Yes", -0.1)]})
    assert _read(body, request=Request(address="a", prompt="p")) is None


@pytest.mark.parametrize(
    ("tokens", "text", "place"),
    [
        (["Yes"], "Yes", 0),
        (["\u2581Yes", "</s>"], "Yes", 0),
        (["\u2581no"], "\u2581no", 0),
        (["\u010a\u010a", "\u0120no", "."], "no.", 1),
        (["**", "Yes", "**"], "**Yes**", 1),
        (['{"', "answer", '":', ' "', "no", '"}'], '{"answer": "no"}', 4),
        (["Thanks", "!", " Yes", "."], "Thanks! Yes.", 2),
        (["cannot", " tell"], "cannot tell", 0),
        (["<think>", "no", " dog", "?", " yes", "</think>", "\n\n", "Yes"], "Yes", 7),
        (["Not", " relevant"], "Not relevant", 0),
        (["I", " see"], "something else", None),
        ([], "Yes", None),
        (["...", "?"], "...?", None),
    ],
)
def test_the_place_where_an_answer_says_yes_or_no(tokens: list[str], text: str, place: int | None) -> None:
    assert place_of(tokens, text) == place


def test_the_probability_of_yes_is_over_all_tokens_that_mean_yes_or_no() -> None:
    masses = {
        "Yes": 0.4,
        " yes": 0.1,
        "\u2581YES": 0.05,
        '"yes"': 0.05,
        "No": 0.15,
        "\u0120no": 0.05,
        "Not": 0.1,
        "Y": 0.05,
    }
    chance = yes_or_no([(token, math.log(mass)) for token, mass in masses.items()])
    assert chance is not None
    assert chance[0] == pytest.approx(0.6 / 0.8)
    assert chance[1] == pytest.approx(0.2)  # "Not", "Y" and unlisted tokens
    assert yes_or_no([("Not", math.log(0.97)), ("no", math.log(0.03))]) is None
    assert yes_or_no([]) is None


def test_requests_have_the_fields_of_each_kind_of_endpoint() -> None:
    chat = WIRES["chat"].sending(ASKED, MODEL).body or {}
    assert (chat["logprobs"], chat["top_logprobs"]) == (True, 5)
    responses = WIRES["responses"].sending(ASKED, Parameters(model="m", api="responses")).body or {}
    assert (responses["include"], responses["top_logprobs"]) == (["message.output_text.logprobs"], 5)
    plain = WIRES["chat"].sending(Request(address="a", prompt="p"), MODEL).body or {}
    assert not {"logprobs", "top_logprobs", "include"} & set(plain)


def test_keys_of_other_requests_stay_and_outcomes_keep_log_probabilities() -> None:
    request = Request(address="a", prompt="Is there a dog?")
    # the key of the time before requests with log-probabilities: stored answers stay usable
    assert content_key("http://127.0.0.1/v1", MODEL, request) == KEY
    assert content_key("http://127.0.0.1/v1", MODEL, ASKED) != KEY
    with_likely = Outcome(
        address="a", key="k", state=CallState.ANSWERED, text="Yes", likely=[["Yes", -0.1], ["No", -2.5]]
    )
    assert Outcome.from_json(with_likely.to_json(), address="a", key="k", source=Source.CALL) == with_likely
    silent = Outcome(address="a", key="k", state=CallState.ANSWERED, text="Yes")
    assert "likely" not in silent.to_json()


KEY = "fa4a70de168f5daf0a7736c084577c6062528bb254a741e39f22f7b467c5e94b"
