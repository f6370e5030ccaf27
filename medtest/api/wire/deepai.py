"""DeepAI ``text2img``: a form, the key in the header ``api-key``, the picture as ``output_url``; no seed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from medtest.api.calls.request import CallState, Parameters, Request
from medtest.api.wire.answers import NotAnAnswer, ReplyContent, decoded, error_of
from medtest.api.wire.base import Received, Sending
from medtest.api.wire.drawing import DrawingWire, asked, mapping, nothing, words


class DeepAIWire(DrawingWire):
    """``/text2img``, or another generator by its name."""

    takes_seed: ClassVar[bool] = False

    def key_header(self, key: str) -> tuple[str, str]:
        """Return ``api-key``."""
        return "api-key", key

    def sending(self, request: Request, parameters: Parameters, *, plain: bool = False) -> Sending:
        """Return the form."""
        fields = {**asked(parameters), **parameters.extra}
        form = {"text": request.prompt, **{name: str(value) for name, value in fields.items()}}
        return Sending(path=f"/{parameters.model}", form=form)

    def read(
        self, received: Received, request: Request, parameters: Parameters, *, plain: bool = False
    ) -> ReplyContent:
        """Return the picture's URL."""
        body = mapping(decoded(received.content), "the body")
        if "output_url" not in body:
            raise NotAnAnswer(f"the body has no output_url{_error_suffix(body)}")
        if url := words(body["output_url"]):
            return ReplyContent(state=CallState.ANSWERED, url=url)
        return nothing("the service answered with an empty picture")

    def error(self, received: Received) -> tuple[str, str]:
        """Return the message of an error: ``{"err": …}`` or ``{"status": …}``."""
        body: Any = decoded(received.content)
        if isinstance(body, Mapping) and (message := words(body.get("err")) or words(body.get("status"))):
            return "", message
        return error_of(body)


def _error_suffix(body: Mapping[str, Any]) -> str:
    message = words(body.get("err")) or words(body.get("status"))
    return f": {message}" if message else ""
