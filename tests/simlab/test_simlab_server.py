"""The laboratory over HTTP: the provider's format, key, errors, and faults."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from simlab_parts import KEY, body, call, laboratory, picture

from medtest.simlab.config import MODEL, TRUTH_DOOR, Config
from medtest.simlab.defects import Defects

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
TERSE = Config(styles=("terse",))


def words(answer: dict[str, object]) -> str:
    return answer["choices"][0]["message"]["content"]  # type: ignore[index,no-any-return]


def test_it_has_the_providers_format() -> None:
    with laboratory(TERSE) as server:
        assert call(server.base_url, "/v1/models")[1]["data"][0]["id"] == MODEL
        status, answer = call(server.base_url, CHAT, body("How many polyps are in the image?", seed=3))
        assert (status, words(answer), answer["model"]) == (200, "0", MODEL)
        assert answer["usage"]["total_tokens"] == sum(
            answer["usage"][k] for k in ("prompt_tokens", "completion_tokens")
        )
        content = [{"type": "input_image", "image_url": picture().data_url(), "detail": "auto"}]
        content.append({"type": "input_text", "text": "Is there text?"})
        status, answer = call(
            server.base_url, RESPONSES, {"model": MODEL, "input": [{"role": "user", "content": content}]}
        )
        assert (status, answer["output"][0]["content"][0]["text"]) == (200, "No")
        assert call(server.base_url, CHAT, {"model": MODEL, "messages": [{"role": "user", "content": "Hi"}]})[0] == 200


def test_structured_answers_have_the_requested_shape() -> None:
    schema = {"type": "object", "properties": {"answer": {"type": "boolean"}}, "required": ["answer"]}
    shape = {"type": "json_schema", "json_schema": {"name": "Answer", "schema": schema, "strict": True}}
    with laboratory(TERSE) as server:
        _, answer = call(server.base_url, CHAT, body("Is there text?", response_format=shape))
        assert json.loads(words(answer)) == {"answer": False}


@pytest.mark.parametrize(
    ("content", "status", "code"),
    [
        (body("?", model="gpt-4o"), 404, "not_found"),
        (body("?", seed="three"), 400, "invalid_request_error"),
        ({"model": MODEL, "messages": []}, 400, "invalid_request_error"),
        ({"model": MODEL}, 400, "invalid_request_error"),
        ([1], 400, "invalid_request_error"),
    ],
)
def test_wrong_requests_are_answered_in_the_providers_form(content: object, status: int, code: str) -> None:
    with laboratory() as server:
        actual, answer = call(server.base_url, CHAT, content)
        assert (actual, answer["error"]["code"]) == (status, code)
        assert answer["error"]["message"]


@pytest.mark.parametrize(
    "url", ["http://example.org/a.png", "data:image/png;base64,AAAA", "data:image/png;base64,=", ""]
)
def test_unreadable_pictures_are_errors_of_the_request(url: str) -> None:
    wrong = body("Is there text?")
    wrong["messages"][0]["content"][0]["image_url"]["url"] = url
    with laboratory() as server:
        status, answer = call(server.base_url, CHAT, wrong)
        assert (status, answer["error"]["code"][:13]) == (400, "invalid_image")
        assert call(server.base_url, CHAT, raw=b"{")[0] == 400


def test_without_the_key_nothing_is_answered() -> None:
    with laboratory(Config(reader="truth")) as server:
        for path in (CHAT, RESPONSES, "/v1/models"):
            assert call(server.base_url, path, body("Is there text?"), key="other")[0] == 401
        assert call(server.base_url, TRUTH_DOOR, {}, method="PUT", key="other")[0] == 401


def test_the_truth_is_accepted_only_by_a_reader_of_truth() -> None:
    truth = {"sha256": picture().sha256, "answers": {"Is there text?": ["Yes"]}}
    with laboratory(Config(reader="truth", styles=("terse",))) as server:
        assert call(server.base_url, TRUTH_DOOR, truth, method="PUT") == (200, {"learned": 1})
        assert words(call(server.base_url, CHAT, body("Is there text?"))[1]) == "Yes"
        assert words(call(server.base_url, CHAT, body("Is there text?", shown=picture(60)))[1]) == "No"
        assert call(server.base_url, TRUTH_DOOR, {"sha256": 3}, method="PUT")[0] == 400
    with laboratory(TERSE) as server:
        assert call(server.base_url, TRUTH_DOOR, truth, method="PUT")[0] == 403
        assert words(call(server.base_url, CHAT, body("Is there text?"))[1]) == "No"


def test_many_at_once_are_answered_as_one_by_one() -> None:
    config = Config(defects=Defects(nondeterminism=0.4, refusals=0.2))
    bodies = [
        body(text, seed=seed) for seed in range(12) for text in ("Is there text?", "What is the size of the polyp?")
    ]
    with laboratory(config) as server:
        one_by_one = [words(call(server.base_url, CHAT, content)[1]) for content in bodies]
    with laboratory(config) as server, ThreadPoolExecutor(8) as pool:
        at_once = list(pool.map(lambda content: words(call(server.base_url, CHAT, content)[1]), bodies))
    assert at_once == one_by_one
    assert len(set(one_by_one)) > 4


def test_faults_are_switched_while_it_runs() -> None:
    with laboratory(TERSE) as server:
        assert call(server.base_url, "/faults", {"too_many": 1.0}, method="PUT")[0] == 200
        assert call(server.base_url, CHAT, body("Is there text?"))[0] == 429
        call(server.base_url, "/faults", {"too_many": 0.0, "refusal": 1.0}, method="PUT")
        assert call(server.base_url, CHAT, body("Is there text?"))[1]["choices"][0]["message"]["refusal"]
        assert KEY not in json.dumps(call(server.base_url, "/v1/models")[1])
