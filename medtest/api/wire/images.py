"""``/images/generations`` of OpenAI and compatible servers.

The formats are the openai client's own types (``ImagesResponse``, ``Image``, ``ImageGenerateParams``, version 3.52):
``data`` with ``b64_json`` or ``url``, ``revised_prompt`` for models that rewrite, ``usage`` in tokens. OpenAI's has no
field for a seed; other servers accept one, and it is sent if the settings include one.
"""

from __future__ import annotations

from medtest.api.calls.request import CallState, Parameters, Request
from medtest.api.wire.answers import NotAnAnswer, ReplyContent, decoded, model_and_usage, stated_error, words
from medtest.api.wire.base import Received, Sending
from medtest.api.wire.drawing import DrawingWire, coded, mapping, nothing, options_of


class ImagesWire(DrawingWire):
    """``/images/generations``."""

    def sending(self, request: Request, parameters: Parameters, *, plain: bool = False) -> Sending:
        """Return a request for one picture."""
        body = {"model": parameters.model, "prompt": request.prompt, "n": 1, **options_of(request, parameters)}
        return Sending(path="/images/generations", body=body | dict(parameters.extra))

    def read(self, received: Received, request: Request, parameters: Parameters, *, plain: bool) -> ReplyContent:
        """Return the first picture, as bytes or as a temporary URL."""
        body = mapping(decoded(received.content), "the body")
        data, common = body.get("data"), model_and_usage(body)
        if not isinstance(data, list):
            raise NotAnAnswer("the body has no data" + stated_error(body))
        if not data:
            return nothing("the service answered with an empty list", **common)
        first = mapping(data[0], "the picture")
        common["revised_prompt"] = words(first.get("revised_prompt"))
        text, url = words(first.get("b64_json")), words(first.get("url"))
        if text or url.startswith("data:"):
            return ReplyContent(state=CallState.ANSWERED, drawn=coded(text or url), **common)
        if url:
            return ReplyContent(state=CallState.ANSWERED, url=url, **common)
        return nothing("the service answered with an empty picture", **common)
