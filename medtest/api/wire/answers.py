"""Conversion of response bodies to a state and words: chat.completions and Responses, structured or plain.

The formats follow OpenAI's API reference (chat completion object; response object). Compatible servers omit fields:
only the answer itself is required.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ValidationError

from medtest.api.calls.request import AnswerFields, CallState
from medtest.api.redact import redacted
from medtest.core.cases import Json

_MOST_TOKENS = 2**31 - 1
"""Larger counts are not tokens, and no column holds them."""
_HALF = re.compile(r"[\ud800-\udfff]|\\u[dD][89a-fA-F]")
_FENCE = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL | re.IGNORECASE)


class NotAnAnswer(Exception):
    """The body is JSON but no completion; the message gives the reason."""


class TaskEnded(NotAnAnswer):
    """A task has ended without an answer, for a reason that may not recur."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyContent(AnswerFields):
    """Content of a response body.

    Attributes:
        state: ANSWERED, REFUSAL, CONTENT_FILTER, LENGTH or MALFORMED.
        drawn: The file of a picture.
        url: Temporary URL of the picture.
        task: Id of an unfinished task.
        more: Contents of the answers to further repeats, if several were asked for.
    """

    state: CallState
    drawn: bytes = field(default=b"", repr=False)
    url: str = field(default="", repr=False)
    task: str = ""
    more: tuple[ReplyContent, ...] = ()


def read_body(body: Any, *, api: str, answer_model: type[BaseModel] | None, plain: bool) -> ReplyContent:
    """Return the content of a decoded body.

    Args:
        body: The JSON.
        api: ``chat`` or ``responses``.
        answer_model: Requested schema of the answer.
        plain: Whether it was requested by the prompt: an answer without JSON is then valid text.

    Raises:
        NotAnAnswer: It is not a completion.
    """
    if not isinstance(body, Mapping):
        raise NotAnAnswer(f"the body is {_kind(body)}, not an object")
    state, text = (_response if api == "responses" else _chat)(body)
    parsed: Json = None
    reason = ""
    if state == CallState.ANSWERED and not text.strip():
        state, reason = CallState.MALFORMED, "the answer is empty"
    elif state == CallState.ANSWERED and answer_model is not None:
        parsed, reason = parse_structured(text, answer_model)
        if reason and not plain:
            state = CallState.MALFORMED
    reason = reason if state == CallState.MALFORMED else ""
    return ReplyContent(state=state, text=text, parsed=parsed, reason=reason, **model_and_usage(body))


def model_and_usage(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of :class:`ReplyContent` for a body's ``model`` and ``usage``."""
    usage = body.get("usage")
    counts = usage if isinstance(usage, Mapping) else {}
    return {
        "model": str(body.get("model") or ""),
        "prompt_tokens": _count(counts, "prompt_tokens", "input_tokens"),
        "completion_tokens": _count(counts, "completion_tokens", "output_tokens"),
    }


def words(value: Any) -> str:
    """Return a string of a reply, "" for anything else."""
    return value if isinstance(value, str) else ""


def parse_structured(text: str, answer_model: type[BaseModel]) -> tuple[Json, str]:
    """Return the structured answer in a text and ""; or None and the reason why there is none.

    JSON may stand alone, in a Markdown fence, or between words.
    """
    candidates = [text.strip(), *(block.strip() for block in _FENCE.findall(text))]
    start, end = text.find("{"), text.rfind("}")
    if 0 <= start < end:
        candidates.append(text[start : end + 1])
    reason = "the answer is not a JSON"
    for candidate in candidates:
        try:
            return answer_model.model_validate_json(_whole(candidate)).model_dump(mode="json"), ""
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            if first["type"] != "json_invalid":
                place = ".".join(str(part) for part in first["loc"])
                reason = f"the answer does not fit its schema: {place}: {first['msg']}"
    return None, reason


def _whole(candidate: str) -> str:
    """Return JSON with halves of surrogate pairs, which pydantic rejects, escaped."""
    if not _HALF.search(candidate):
        return candidate
    try:
        return json.dumps(redacted(json.loads(candidate)))
    except (ValueError, RecursionError):
        return candidate


def _chat(body: Mapping[str, Any]) -> tuple[CallState, str]:
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        raise NotAnAnswer("the body has no choices" + stated_error(body))
    message = choices[0].get("message")
    if not isinstance(message, Mapping):
        raise NotAnAnswer("the choice has no message")
    text = _text(message.get("content"))
    finish = choices[0].get("finish_reason")
    if isinstance(message.get("refusal"), str) and message["refusal"]:
        return CallState.REFUSAL, message["refusal"]
    if finish == "content_filter":
        return CallState.CONTENT_FILTER, text
    if finish == "length":
        return CallState.LENGTH, text
    return CallState.ANSWERED, text


def _response(body: Mapping[str, Any]) -> tuple[CallState, str]:
    output = body.get("output")
    if not isinstance(output, list):
        raise NotAnAnswer("the body has no output" + stated_error(body))
    if body.get("status") == "failed":
        raise NotAnAnswer("the response failed" + stated_error(body))
    parts: list[Mapping[str, Any]] = []
    for item in output:
        if isinstance(item, Mapping) and item.get("type") == "message" and isinstance(item.get("content"), list):
            parts += [part for part in item["content"] if isinstance(part, Mapping)]
    text = "".join(str(part.get("text") or "") for part in parts if part.get("type") == "output_text")
    refusal = "".join(str(part.get("refusal") or "") for part in parts if part.get("type") == "refusal")
    if refusal:
        return CallState.REFUSAL, refusal
    details = body.get("incomplete_details")
    why = details.get("reason") if isinstance(details, Mapping) else None
    if why == "content_filter":
        return CallState.CONTENT_FILTER, text
    if body.get("status") == "incomplete" or why == "max_output_tokens":
        return CallState.LENGTH, text
    return CallState.ANSWERED, text


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, Mapping))
    return ""


def _count(usage: Mapping[str, Any], *names: str) -> int | None:
    """Return the first of these counts that is stated and plausible, or None."""
    for name in names:
        value = usage.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS:
            return value
    return None


def _kind(body: Any) -> str:
    return {list: "a list", str: "a text", type(None): "null"}.get(type(body), "a number")


def stated_error(body: Any) -> str:
    """Return the message of a provider's error body after a colon, "" if there is none."""
    message = error_of(body)[1]
    return f": {message}" if message else ""


def error_of(body: Any) -> tuple[str, str]:
    """Return code and message of a provider's error body, each "" if missing."""
    if not isinstance(body, Mapping):
        return "", ""
    error = body.get("error", body)
    if isinstance(error, str):
        return "", error
    if not isinstance(error, Mapping):
        return "", ""
    return str(error.get("code") or error.get("type") or ""), str(error.get("message") or "")


def decoded(content: bytes) -> Any:
    """Return the JSON of a body.

    Raises:
        ValueError: Invalid JSON (truncated, HTML, not UTF-8).
    """
    return json.loads(content.decode("utf-8"))
