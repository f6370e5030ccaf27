"""The language model as a parser: requests over a real socket, and checks of the reply."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest

from medtest.core.errors import UserMistakes
from medtest.language.captions.language_model import SYSTEM_PROMPT, pool_of_reply
from medtest.language.captions.parsers import NoParser, parser_of

DOG = {"name": "dog", "count": 2, "attributes": ["Brown"]}
BED = {"name": "bed", "count": 1, "attributes": []}
REPLY = {"entities": [DOG, BED], "triples": [{"subject": 0, "predicate": "laying on", "object": 1}]}
CAPTION = "Two brown dogs lie on a bed next to lamps."


def test_predicates_become_the_vocabularys_and_names_singular():
    pool = pool_of_reply(REPLY, CAPTION)
    assert pool.named() == (("dog", "lying on", "bed"),)
    assert (pool.entities[0].count, pool.entities[0].attributes) == (2, ("brown",))


def test_parts_of_a_reply_that_are_absent_from_the_caption_are_dropped():
    cat = {"name": "cat", "count": 1, "attributes": []}
    lamps = {"name": "lamps", "count": None, "attributes": []}
    triples = [(0, "near", 1), (1, "near", 2), (0, "and", 2), (0, "near", 9), (2, "near", 2), (0, "being good to", 2)]
    reply = {
        "entities": [DOG, cat, lamps],
        "triples": [
            {"subject": a, "predicate": predicate, "object": b} for a, predicate, b in [*triples, (0, "chasing", 2)]
        ],
    }
    pool = pool_of_reply(reply, CAPTION)
    assert [entity.name for entity in pool.entities] == ["dog", "lamp"]
    assert pool.named() == (("dog", "chasing", "lamp"),)


class Server(BaseHTTPRequestHandler):
    """Replies like a chat server, with the answers of the test."""

    protocol_version = "HTTP/1.1"
    requests: ClassVar[list[dict[str, Any]]] = []
    reply: ClassVar[str] = ""

    def log_message(self, *_: Any) -> None:
        """Keep quiet."""

    def do_POST(self) -> None:
        self.requests.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": self.reply}}
        usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
        sent = json.dumps(
            {"id": "x", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}
        ).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)


@pytest.fixture
def server() -> Iterator[str]:
    Server.requests.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as http_server:
        http_server.daemon_threads = True
        thread = threading.Thread(target=http_server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{http_server.server_address[1]}/v1"
        http_server.shutdown()
        thread.join()


def test_a_caption_is_asked_about_once_by_schema(server, tmp_path):
    Server.reply = json.dumps(REPLY)
    settings = {"base_url": server, "model": "m", "folder": str(tmp_path)}
    first = parser_of("language_model", **settings).parse(CAPTION)
    again = list(parser_of("language_model", **settings).parse_all([CAPTION, CAPTION]))
    assert [pool.named() for pool in (first, *again)] == [(("dog", "lying on", "bed"),)] * 3
    assert len(Server.requests) == 1
    (body,) = Server.requests
    assert body["messages"][0]["content"] == SYSTEM_PROMPT
    assert CAPTION in json.dumps(body["messages"][1])
    assert body["response_format"]["json_schema"]["schema"]["required"] == ["entities", "triples"]


def test_an_invalid_reply_is_one_sentence(server):
    Server.reply = "I see two dogs."
    with pytest.raises(NoParser, match="language_model got no pool"):
        parser_of("language_model", base_url=server, model="m").parse(CAPTION)


def test_captions_are_sent_to_other_machines_only_with_permission():
    with pytest.raises(UserMistakes) as refused:
        parser_of("language_model", base_url="https://model.invalid/v1", model="m")
    assert any("send_prompts" in str(mistake) for mistake in refused.value.mistakes)
