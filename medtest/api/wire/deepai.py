"""DeepAI ``text2img``: a form, the key in the header ``api-key``, the picture as ``output_url``; no seed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from medtest.api.calls.request import CallState, Parameters, Request
from medtest.api.wire.answers import NotAnAnswer, ReplyContent, decoded, error_of, words
from medtest.api.wire.base import Received, Sending
from medtest.api.wire.drawing import DrawingWire, mapping, nothing, options_of


class DeepAIWire(DrawingWire):
    """``/text2img``, or another generator by its name."""

    takes_seed: ClassVar[bool] = False

    def key_header(self, key: str) -> tuple[str, str]:
        """Return ``api-key``."""
        return "api-key", key

    def sending(self, request: Request, parameters: Parameters, *, plain: bool = False) -> Sending:
        """Return the form."""
        fields = {**options_of(None, parameters), **parameters.extra}
        form = {"text": request.prompt, **{name: str(value) for name, value in fields.items()}}
        return Sending(path=f"/{parameters.model}", form=form)

    def read(self, received: Received, request: Request, parameters: Parameters, *, plain: bool) -> ReplyContent:
        """Return the picture's URL."""
        body = mapping(decoded(received.content), "the body")
        if "output_url" not in body:
            message = _message(body)
            raise NotAnAnswer("the body has no output_url" + (f": {message}" if message else ""))
        if url := words(body["output_url"]):
            return ReplyContent(state=CallState.ANSWERED, url=url)
        return nothing("the service answered with an empty picture")

    def error(self, received: Received) -> tuple[str, str]:
        """Return the message of an error: ``{"err": …}`` or ``{"status": …}``."""
        body: Any = decoded(received.content)
        message = _message(body) if isinstance(body, Mapping) else ""
        return ("", message) if message else error_of(body)


def _message(body: Mapping[str, Any]) -> str:
    return words(body.get("err")) or words(body.get("status"))
