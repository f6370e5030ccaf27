"""Log-probabilities in replies: the tokens that were likely at the place where an answer says yes or no.

Servers send them in two forms. In chat.completions, ``logprobs.content`` has an entry for each token with its
``top_logprobs``; Responses has the same list in the part of the text. Completions has three parallel lists, which some
servers send for chats too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

MOST_LIKELY: Final = 20
"""Largest number of tokens that chat.completions returns for a place."""
Likely: TypeAlias = list[list[str | float]]
"""Tokens with their log-probabilities, as JSON values."""
YES, NO = "yes", "no"
_LEAST_MASS: Final = 0.05
"""Smallest probability of yes and no together from which their ratio is taken."""
_MOST_TOKEN: Final = 24
_LEAST_LOG: Final = -100.0
_MARKS: Final = str.maketrans({"\u2581": " ", "\u0120": " ", "\u010a": "\n"})
"""Marks of spaces and line ends in vocabularies of SentencePiece and of byte-level tokenizers."""
_HEAD: Final = re.compile(r"[ -~]{1,16}")


def yes_or_no(likely: Sequence[Sequence[str | float]]) -> tuple[float, float] | None:
    """Return the probability of yes, renormalised over the tokens that mean yes or no, and that of neither.

    Args:
        likely: Tokens with their log-probabilities. A token that is not among them has none.

    Returns:
        None if yes and no are too improbable for a ratio.
    """
    mass = {YES: 0.0, NO: 0.0}
    for token, logarithm in likely:
        if meaning := _meaning(str(token)):
            mass[meaning] += math.exp(float(logarithm))
    both = mass[YES] + mass[NO]
    return None if both < _LEAST_MASS else (mass[YES] / both, max(0.0, 1.0 - both))


def place_of(tokens: Sequence[str], text: str) -> int | None:
    """Return the index of the token by which an answer says yes or no, else of its first word.

    Args:
        tokens: All tokens, which may include thoughts before the answer and marks of its end.
        text: The answer.
    """
    pieces = [token.translate(_MARKS) for token in tokens]
    head = _HEAD.match(text.translate(_MARKS).strip())
    start = -1 if head is None else "".join(pieces).rfind(head[0].rstrip())
    if start < 0:
        return None
    first, end = None, 0
    for index, piece in enumerate(pieces):
        end += len(piece)
        if end > start and any(sign.isalnum() for sign in piece):
            if _meaning(piece):
                return index
            first = index if first is None else first
    return first


def likely_in(body: Any, *, api: str, text: str) -> Likely | None:
    """Return the likely tokens at the place where a reply says yes or no; None if it has none.

    Args:
        body: Decoded body of a reply with an answer.
        api: ``chat`` or ``responses``.
        text: The answer.
    """
    steps = list(_steps(_of_response(body) if api == "responses" else body["choices"][0].get("logprobs")))
    index = place_of([token for token, _ in steps], text)
    return None if index is None else listed(steps[index][1].items())


def listed(pairs: Iterable[tuple[str, Any]]) -> Likely | None:
    """Return tokens with their log-probabilities in falling order, cut to what is kept; None without any."""
    valid = [
        (token[:_MOST_TOKEN], min(0.0, max(_LEAST_LOG, float(value))))
        for token, value in pairs
        if isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)
    ]
    ordered = sorted(valid, key=lambda pair: -pair[1])[:MOST_LIKELY]
    return [[token, round(value, 6)] for token, value in ordered] or None


def _meaning(token: str) -> str:
    """Return the yes or no of a token, in any case and with any signs around it; "" for another token."""
    word = token.translate(_MARKS).strip(" \t\r\n\"'`*_.,:;!?()[]{}").lower()
    return word if word in (YES, NO) else ""


def _of_response(body: Mapping[str, Any]) -> dict[str, Any]:
    parts = (part for item in body["output"] for part in _entries(item, "content"))
    return {"content": [entry for part in parts for entry in _entries(part, "logprobs")]}


def _steps(logprobs: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each token of an answer with the log-probabilities of tokens at its place."""
    for entry in _entries(logprobs, "content"):
        if isinstance(entry, Mapping) and isinstance(entry.get("token"), str):
            others = [other for other in _entries(entry, "top_logprobs") if isinstance(other, Mapping)]
            named = {str(other.get("token")): other.get("logprob") for other in others}
            yield entry["token"], {entry["token"]: entry.get("logprob"), **named}
    tokens, own, tops = (_entries(logprobs, name) for name in ("tokens", "token_logprobs", "top_logprobs"))
    for index, token in enumerate(tokens):
        top = tops[index] if index < len(tops) and isinstance(tops[index], Mapping) else {}
        yield str(token), {str(token): own[index] if index < len(own) else None, **top}


def _entries(holder: Any, name: str) -> list[Any]:
    entries = holder.get(name) if isinstance(holder, Mapping) else None
    return entries if isinstance(entries, list) else []
