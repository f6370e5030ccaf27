"""Answers of the faulty server: words derived from the request, and replies of an image generator behind it."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol

Answer = Callable[[Mapping[str, Any]], str]
_WORDS = ("Yes.", "No.", "2", "None", "polyp", "upper left", "pink; red", "11-20mm", "Paris Is", "Not relevant")


class PictureEndpoint(Protocol):
    """Image generator behind ``/v1/images/generations``.

    Attributes:
        base_url: Set to the server's address once it listens.
    """

    base_url: str

    def answer(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the reply to a request as JSON values; raises :class:`BadRequest`."""

    def file(self, path: str) -> tuple[str, bytes] | None:
        """Return type and bytes of the file at a path, or None."""


class Refusal(str):
    """Words of a refusal, sent in the provider's field for them."""


class Weighed(str):
    """Words of an answer with the probabilities of the word that decides it.

    Attributes:
        chances: Probability by word, such as ``{"Yes": 0.9, "No": 0.1}``.
    """

    chances: Mapping[str, float]

    def __new__(cls, words: str, chances: Mapping[str, float]) -> Weighed:
        """Return the words with their probabilities."""
        weighed = super().__new__(cls, words)
        weighed.chances = chances
        return weighed


_TOKENS = re.compile(r"\s*(?:\w+|[^\w\s]+)|\s+")


def log_probabilities(words: str, most: int) -> list[dict[str, Any]] | None:
    """Return an entry for each token of an answer, in the provider's format; None for words without probabilities.

    Args:
        words: The answer; all tokens but the deciding one are certain.
        most: Largest number of likely tokens in an entry.
    """
    if not isinstance(words, Weighed):
        return None
    entries, decided = [], False
    for token in _TOKENS.findall(words):
        word = token.strip().lower()
        decides = not decided and any(name.lower() == word for name in words.chances)
        decided |= decides
        blank = token[: len(token) - len(token.lstrip())]
        chances = {token: 1.0}
        if decides:  # the word that is said is among them as it is written in the answer
            chances = {token if name.lower() == word else blank + name: p for name, p in words.chances.items()}
        ordered = sorted(chances.items(), key=lambda pair: -pair[1])
        top = [_entry(name, chance) for name, chance in ordered if chance > 0][:most]
        entries.append({**_entry(token, chances[token]), "top_logprobs": top})
    return entries


def _entry(token: str, chance: float) -> dict[str, Any]:
    return {"token": token, "logprob": math.log(max(chance, 1e-30)), "bytes": list(token.encode())}


class BadRequest(Exception):
    """Raised by an answer function if the request is invalid.

    Args:
        message: The problem.
        status: HTTP status, 400 to 499.
        code: The provider's code for it.
    """

    def __init__(self, message: str, *, status: int = 400, code: str = "invalid_request_error") -> None:
        super().__init__(message)
        self.status, self.code = status, code


def default_answer(body: Mapping[str, Any]) -> str:
    """Return an answer derived from the request's content: the same content has the same answer."""
    content = json.dumps([body.get(name) for name in ("model", "messages", "input", "seed")], sort_keys=True)
    digest = hashlib.sha256(content.encode()).digest()
    word = _WORDS[digest[0] % len(_WORDS)]
    shape = asked_schema(body)
    if shape is None:
        return f"{word} ({digest.hex()[:12]})"
    return json.dumps({name: _filled(part, word) for name, part in shape.get("properties", {}).items()})


def _filled(part: Mapping[str, Any], word: str) -> Any:
    kinds: dict[str, Any] = {"integer": len(word), "number": 0.5, "boolean": word == "Yes.", "array": []}
    return kinds.get(str(part.get("type")), word)


def drawn_reply(draws: PictureEndpoint, body: Mapping[str, Any], fault: str) -> bytes:
    """Return the reply of the image generator; its faults are the ways in which such services withhold a picture."""
    if fault == "refusal":
        raise BadRequest("The safety system rejected this request.", code="moderation_blocked")
    reply = draws.answer(body)
    return json.dumps({**reply, "data": []} if fault == "filtered" else reply).encode()


def asked_schema(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the JSON schema requested for the answer; None for free words."""
    response_format = body.get("response_format")  # for pictures it is a word
    shape = response_format if isinstance(response_format, dict) else {}
    schema = shape.get("json_schema") or (body.get("text") or {}).get("format")
    return schema.get("schema") if isinstance(schema, Mapping) else None
