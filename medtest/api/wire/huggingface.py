"""Hugging Face text to image: inference endpoints, and the serverless router.

``{"inputs": prompt, "parameters": {…}}`` (the task's specification ``text-to-image``), answered by the picture's bytes;
custom containers also answer with base64 in JSON. A model that is being loaded is 503, which is retried.
"""

from __future__ import annotations

from typing import Any

from medtest.api.calls.request import CallState, Parameters, Request
from medtest.api.wire.answers import NotAnAnswer, ReplyContent, decoded, stated_error, words
from medtest.api.wire.base import Received, Sending
from medtest.api.wire.drawing import DrawingWire, coded, nothing, options_of

_IN_JSON = ("image", "b64_json", "blob", "generated_image")


class HuggingFaceWire(DrawingWire):
    """Endpoint (``asked_path`` empty), or the router, which serves models under ``/models/NAME``."""

    def sending(self, request: Request, parameters: Parameters, *, plain: bool = False) -> Sending:
        """Return prompt and parameters."""
        values = options_of(request, parameters)
        body: dict[str, Any] = {"inputs": request.prompt}
        if values:
            body["parameters"] = values
        path = words(parameters.options.get("asked_path"))
        return Sending(path=path, body=body | dict(parameters.extra), headers={"accept": "image/png"})

    def read(self, received: Received, request: Request, parameters: Parameters, *, plain: bool) -> ReplyContent:
        """Return the picture."""
        if "json" not in received.headers.get("content-type", ""):
            if not received.content:
                return nothing("the service answered with an empty picture")
            return ReplyContent(state=CallState.ANSWERED, drawn=received.content)
        body = decoded(received.content)
        first: Any = body
        if isinstance(first, dict) and isinstance(first.get("images"), list):
            first = first["images"]
        if isinstance(first, list):
            if not first:
                return nothing("the service answered with an empty list")
            first = {"image": first[0]} if isinstance(first[0], str) else first[0]
        if not isinstance(first, dict) or not any(name in first for name in _IN_JSON):
            raise NotAnAnswer("the body has no image" + stated_error(body))
        text = next((words(first[name]) for name in _IN_JSON if name in first), "")
        if not text:
            return nothing("the service answered with an empty picture")
        return ReplyContent(state=CallState.ANSWERED, drawn=coded(text))
