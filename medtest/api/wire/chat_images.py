"""Pictures in the answers of chat.completions: OpenRouter, the Gemini models behind it, compatible gateways.

A picture comes as ``message.images[].image_url.url`` (OpenRouter's guide "Image Generation"), as a part of
``message.content``, or as a data URL within its words; as a data URL or as an address.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from medtest.api.calls.request import CallState, Parameters, Request
from medtest.api.wire.answers import NotAnAnswer, ReplyContent, decoded, error_of, model_and_usage, stated_error, words
from medtest.api.wire.base import Received, Sending
from medtest.api.wire.drawing import DrawingWire, coded, mapping, nothing, options_of

_FILTERED = frozenset(
    {"content_filter", "safety", "image_safety", "prohibited_content", "image_prohibited_content", "blocklist", "spii"}
)
"""Finish reasons that indicate moderation: OpenAI's, and Gemini's FinishReason."""
_IN_WORDS = re.compile(r"data:image/[a-z0-9.+-]+;base64,[A-Za-z0-9+/=]+")
_MOST_WORDS = 200


class ChatImagesWire(DrawingWire):
    """``/chat/completions`` of models that answer with pictures."""

    def sending(self, request: Request, parameters: Parameters, *, plain: bool = False) -> Sending:
        """Return a single message that requests a picture."""
        body: dict[str, Any] = {
            "model": parameters.model,
            "messages": [{"role": "user", "content": request.prompt}],
            "modalities": ["image", "text"],
            **options_of(request, parameters),
        }
        return Sending(path="/chat/completions", body=body | dict(parameters.extra))

    def read(self, received: Received, request: Request, parameters: Parameters, *, plain: bool) -> ReplyContent:
        """Return the first picture of the message; words without a picture are a refusal."""
        body = mapping(decoded(received.content), "the body")
        choices = body.get("choices")
        if not isinstance(choices, list):
            raise NotAnAnswer("the body has no choices" + stated_error(body))
        common = model_and_usage(body)
        if not choices:
            return nothing("the service answered with an empty list", **common)
        choice = mapping(choices[0], "the choice")
        for name in ("native_finish_reason", "finish_reason"):
            if words(choice.get(name)).lower() in _FILTERED:
                return nothing(f"the service ended with {name} {choice[name]}", **common)
        if isinstance(choice.get("error"), Mapping):
            code, message = error_of(choice)
            if self.filtered(403, code.lower(), f"{code} {message}".lower()):
                return nothing(f"the service ended with an error of its policy ({code})", **common)
            raise NotAnAnswer(f"the choice is an error: {message or code}")
        message_body = mapping(choice.get("message"), "the message")
        if refusal := words(message_body.get("refusal")):
            return ReplyContent(state=CallState.REFUSAL, text=refusal, reason=refusal[:_MOST_WORDS], **common)
        for picture in _pictures(message_body):
            if not picture:
                return nothing("the service answered with an empty picture", **common)
            if picture.startswith("data:"):
                return ReplyContent(state=CallState.ANSWERED, drawn=coded(picture), **common)
            return ReplyContent(state=CallState.ANSWERED, url=picture, **common)
        text = " ".join(_text(message_body.get("content")).split())
        why = f"the model answered in words alone: {text[:_MOST_WORDS]}" if text else "the model answered with nothing"
        return ReplyContent(state=CallState.REFUSAL, text=text, reason=why, **common)


def _pictures(message: Mapping[str, Any]) -> Iterator[str]:
    """Yield the addresses of a message's pictures."""
    content, images = message.get("content"), message.get("images")
    for part in [*(images if isinstance(images, list) else []), *(content if isinstance(content, list) else [])]:
        if not isinstance(part, Mapping):
            continue
        address = part.get("image_url")
        if isinstance(address, Mapping):
            yield words(address.get("url"))
        elif isinstance(address, str):
            yield address
        elif isinstance(part.get("b64_json"), str):
            yield f"data:image/png;base64,{part['b64_json']}"
    yield from _IN_WORDS.findall(_text(content))


def _text(content: Any) -> str:
    if isinstance(content, list):
        return " ".join(words(part.get("text")) for part in content if isinstance(part, Mapping))
    return words(content)
