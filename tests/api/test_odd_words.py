"""No text of a server ends a run or is paid for twice: replies are recorded with any characters."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from api_parts import ask_all, questions
from pydantic import BaseModel

from medtest.api.calls.request import CallState
from medtest.api.faulty.answers import BadRequest, Refusal
from medtest.api.faulty.server import serving
from medtest.api.store.ledger import Ledger

ODD = "Two \ud83d polyps\x00 \x1b[31m\x9b2J \u202eliah\u2066 and Authorization: Bearer sk-abc12345"
SHOWN = "Two \\ud83d polyps\\x00 \\x1b[31m\\x9b2J \\u202eliah\\u2066 and Authorization: Bearer [hidden]"


class Shape(BaseModel):
    answer: str


def _refuses(body: Mapping[str, Any]) -> str:
    return Refusal(ODD)


def _fails(body: Mapping[str, Any]) -> str:
    raise BadRequest(ODD, code="half\ud83d")


CASES: dict[str, tuple[Any, dict[str, Any], CallState]] = {
    "words": (lambda body: ODD, {}, CallState.ANSWERED),
    "structured": (lambda body: json.dumps({"answer": ODD}), {"answer_model": Shape}, CallState.ANSWERED),
    "structured, escaped twice": (lambda body: '{"answer": "\ud83d"}', {"answer_model": Shape}, CallState.ANSWERED),
    "refusal": (_refuses, {}, CallState.REFUSAL),
    "error": (_fails, {}, CallState.ERROR),
}


@pytest.mark.parametrize("name", CASES)
def test_odd_signs_are_kept_and_asked_about_once(name: str, tmp_path: Path) -> None:
    answer, more, state = CASES[name]
    with serving(answer=answer) as server:
        outcomes = ask_all(tmp_path, server.base_url, questions(4, **more))
        sent = server.counts["received"]
        again = ask_all(tmp_path, server.base_url, questions(4, **more))
        asked_again = server.counts["received"] - sent
    assert [outcome.state for outcome in outcomes] == [state] * 4 == [outcome.state for outcome in again]
    for outcome in outcomes:
        text = json.dumps([outcome.text, outcome.parsed, outcome.reason], ensure_ascii=False)
        text.encode()
        assert not {"\x00", "\x1b", "\x9b", "\u202e"} & set(text) and "sk-abc" not in text
    if name == "words":
        assert outcomes[0].text == SHOWN
    assert (sent, asked_again) == (4, 0 if state != CallState.ERROR else 4)
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        assert ledger.totals().outcomes == (0 if state == CallState.ERROR else 4)
        assert ledger.totals().under_way == 0


def _odd_body(usage: Any) -> dict[str, Any]:
    """Return a completion with fields that no server should send, except for its text."""
    choice = {"message": {"content": "Two."}, "finish_reason": ["half \ud83d"]}
    return {"choices": [choice], "usage": usage, "model": ["half", "\ud83d" * 5000]}


@pytest.mark.parametrize("usage", [{"prompt_tokens": 10**30, "completion_tokens": 7}, {"prompt_tokens": True}, [], 7])
def test_fields_that_no_column_holds(usage: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("medtest.api.faulty.server.completion", lambda *_, **__: _odd_body(usage))
    with serving() as server:
        outcomes = ask_all(tmp_path, server.base_url, questions(2))
    assert [outcome.text for outcome in outcomes] == ["Two."] * 2
    assert all(outcome.prompt_tokens is None and 0 < len(outcome.model) <= 200 for outcome in outcomes)


@pytest.mark.parametrize(
    ("host", "status"),
    [("127.0.0.1:{}", 200), ("localhost:{}", 200), ("evil.example:{}", 421), ("127.0.0.1", 421), ("", 421)],
)
def test_a_foreign_host_name_is_refused(host: str, status: int) -> None:
    # A page in a browser can make its own name point to this machine; it cannot choose the Host header.
    with serving() as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        connection.putrequest("GET", "/v1/models", skip_host=True)
        connection.putheader("Host", host.format(server.port))
        connection.endheaders()
        assert connection.getresponse().status == status
        connection.close()
