"""Pictures, keys of content, bodies of requests, and contents of replies."""

from __future__ import annotations

import base64
import hashlib
import io
import json
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
from api_parts import picture
from PIL import Image as Pillow
from pydantic import BaseModel

from medtest.api.calls.request import CallState, Outcome, Parameters, Picture, Request, Source, content_key, schema_of
from medtest.api.wire.answers import NotAnAnswer, parse_structured, read_body
from medtest.api.wire.words import request_body

PARAMETERS = Parameters(model="m")


class Colour(BaseModel):
    """An answer with two fields."""

    colour: Literal["red", "pink"]
    count: int = 0


def test_a_picture_is_its_pixels_without_metadata() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    encoded = Picture.of(pixels)
    with Pillow.open(io.BytesIO(encoded.png)) as opened:
        assert opened.format == "PNG"
        assert np.array_equal(np.asarray(opened), pixels)
        assert opened.info == {}
    chunks, at = [], 8
    while at < len(encoded.png):
        size = int.from_bytes(encoded.png[at : at + 4], "big")
        chunks.append(encoded.png[at + 4 : at + 8])
        at += size + 12
    assert set(chunks) == {b"IHDR", b"IDAT", b"IEND"}
    assert encoded.sha256 == hashlib.sha256(b"(20, 30, 3)" + pixels.tobytes()).hexdigest()
    assert base64.b64decode(encoded.data_url().split(",")[1]) == encoded.png


def test_grey_pictures_and_views() -> None:
    grey = np.arange(64, dtype=np.uint8).reshape(8, 8)
    with Pillow.open(io.BytesIO(Picture.of(grey[:, ::2]).png)) as opened:
        assert np.array_equal(np.asarray(opened), grey[:, ::2])
    assert Picture.of(grey).sha256 != Picture.of(grey.reshape(4, 16)).sha256


@pytest.mark.parametrize("pixels", [np.zeros((4, 4), np.float32), np.zeros((4, 4, 4), np.uint8), np.zeros(4, np.uint8)])
def test_other_arrays_are_refused(pixels: Any) -> None:
    with pytest.raises(ValueError, match="uint8"):
        Picture.of(pixels)


def test_pictures_do_not_show_their_bytes() -> None:
    request = Request(address="a", prompt="p", pictures=(picture(),))
    assert "png=" not in repr(request)
    assert "PNG" not in repr(request)


def test_every_part_of_the_content_changes_the_key() -> None:
    request = Request(address="a", prompt="p", pictures=(picture(),))
    keys = {content_key("https://h/v1", PARAMETERS, request)}
    for change in (
        {"prompt": "q"},
        {"system": "s"},
        {"pictures": (picture(seed=1),)},
        {"pictures": (picture(), picture())},
        {"repeat": 1},
        {"seed": 3},
        {"answer_model": Colour},
    ):
        keys.add(content_key("https://h/v1", PARAMETERS, replace(request, **change)))
    changes: list[dict[str, Any]] = [
        {"model": "n"},
        {"temperature": 0.5},
        {"top_p": 0.9},
        {"max_tokens": 9},
        {"max_tokens_name": "max_completion_tokens"},
        {"seed": 4},
        {"detail": "low"},
        {"api": "responses"},
        {"extra": {"top_k": 1}},
    ]
    for more in changes:
        keys.add(content_key("https://h/v1", replace(PARAMETERS, **more), request))
    keys.add(content_key("https://other/v1", PARAMETERS, request))
    assert len(keys) == 1 + 7 + 9 + 1


def test_the_address_is_no_content() -> None:
    first, second = (Request(address=name, prompt="p") for name in "ab")
    assert content_key("u", PARAMETERS, first) == content_key("u/", PARAMETERS, second)


def test_bodies() -> None:
    request = Request(address="a", prompt="p", system="s", pictures=(picture(),), seed=5, answer_model=Colour)
    chat = request_body(request, replace(PARAMETERS, detail="low", extra={"top_k": 3}))
    assert chat["seed"] == 5
    assert chat["max_tokens"] == 512
    assert chat["extra_body"] == {"top_k": 3}
    assert [part["type"] for part in chat["messages"][1]["content"]] == ["image_url", "text"]
    assert chat["messages"][1]["content"][0]["image_url"]["detail"] == "low"
    assert chat["response_format"]["json_schema"]["strict"] is True
    plain = request_body(request, PARAMETERS, plain=True)
    assert "response_format" not in plain
    assert '"colour"' in plain["messages"][1]["content"][1]["text"]
    other = request_body(request, replace(PARAMETERS, api="responses", temperature=None))
    assert "temperature" not in other
    assert "seed" not in other  # Responses has none
    assert other["max_output_tokens"] == 512
    assert other["store"] is False  # else servers of Responses keep requests, pictures included
    assert [part["type"] for part in other["input"][1]["content"]] == ["input_image", "input_text"]


def test_schemas_are_closed() -> None:
    schema = schema_of(Colour)
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["colour", "count"]


def chat(content: Any = "Yes", finish: str = "stop", **message: Any) -> dict[str, Any]:
    return {"model": "m", "choices": [{"message": {"content": content, **message}, "finish_reason": finish}]}


def response(parts: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"output": [{"type": "reasoning"}, {"type": "message", "content": parts}], "status": "completed", **more}


SAID = {"type": "output_text", "text": "Yes"}


@pytest.mark.parametrize(
    ("api", "body", "state", "text"),
    [
        ("chat", chat(), CallState.ANSWERED, "Yes"),
        ("chat", chat([{"type": "text", "text": "Ye"}, {"type": "text", "text": "s"}]), CallState.ANSWERED, "Yes"),
        ("chat", chat(None, refusal="I can't"), CallState.REFUSAL, "I can't"),
        ("chat", chat("", "content_filter"), CallState.CONTENT_FILTER, ""),
        ("chat", chat("Yes, bec", "length"), CallState.LENGTH, "Yes, bec"),
        ("chat", chat("  "), CallState.MALFORMED, "  "),
        ("chat", chat(None), CallState.MALFORMED, ""),
        ("responses", response([SAID]), CallState.ANSWERED, "Yes"),
        ("responses", response([{"type": "refusal", "refusal": "No."}]), CallState.REFUSAL, "No."),
        (
            "responses",
            response([SAID], status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
            CallState.LENGTH,
            "Yes",
        ),
        (
            "responses",
            response([], status="incomplete", incomplete_details={"reason": "content_filter"}),
            CallState.CONTENT_FILTER,
            "",
        ),
    ],
)
def test_states(api: str, body: dict[str, Any], state: CallState, text: str) -> None:
    reply = read_body(body, api=api, answer_model=None, plain=False)
    assert (reply.state, reply.text) == (state, text)


@pytest.mark.parametrize(
    "body",
    [[], "x", None, 3, {}, {"choices": []}, {"choices": [{}]}, {"choices": ["x"]}, {"error": {"message": "bad"}}],
)
def test_other_bodies_are_no_answers(body: Any) -> None:
    for api in ("chat", "responses"):
        with pytest.raises(NotAnAnswer):
            read_body(body, api=api, answer_model=None, plain=False)


def test_structured_answers() -> None:
    fine = {"colour": "red", "count": 2}
    for text in (json.dumps(fine), f"Sure:\n```json\n{json.dumps(fine)}\n```", f"It is {json.dumps(fine)}."):
        assert parse_structured(text, Colour) == (fine, "")
    assert parse_structured("red", Colour)[0] is None
    wrong = read_body(chat('{"colour": "blue"}'), api="chat", answer_model=Colour, plain=False)
    assert wrong.state == CallState.MALFORMED
    assert "colour" in wrong.reason
    spoken = read_body(chat("It is red."), api="chat", answer_model=Colour, plain=True)
    assert (spoken.state, spoken.parsed) == (CallState.ANSWERED, None)


def test_tokens_that_are_counted() -> None:
    body = {**chat(), "usage": {"prompt_tokens": 5, "completion_tokens": True}}
    reply = read_body(body, api="chat", answer_model=None, plain=False)
    assert (reply.prompt_tokens, reply.completion_tokens) == (5, None)


def test_outcomes_survive_json() -> None:
    outcome = Outcome(
        address="a", key="k", state=CallState.LENGTH, text='ä "x"\n', parsed={"n": [1, None]}, cost_usd=0.25
    )
    again = Outcome.from_json(outcome.to_json(), address="a", key="k", source=Source.CALL)
    assert again == outcome
