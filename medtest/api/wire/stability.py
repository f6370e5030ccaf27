"""Stability AI REST API v2beta: ``/stable-image/generate/core``, ``ultra`` and ``sd3``.

A form with ``prompt``, ``aspect_ratio``, ``negative_prompt``, ``seed`` (0 for a random one), ``style_preset``,
``output_format``; answered by the picture's bytes with the headers ``finish-reason`` and ``seed``, or JSON with
``image``, ``finish_reason`` and ``seed`` (the API's reference). A picture whose reason is CONTENT_FILTERED is blurred
and counts as none; refusals before generation are 403 with the name ``content_moderation``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medtest.api.calls.request import CallState, Parameters, Request
from medtest.api.wire.answers import NotAnAnswer, ReplyContent, decoded, words
from medtest.api.wire.base import Received, Sending
from medtest.api.wire.drawing import DrawingWire, coded, mapping, nothing, options_of, seed_of

_MOST_SEED = 4294967294
_DONE = "success"


class StabilityWire(DrawingWire):
    """Stability AI model: ``core``, ``ultra``, or one of ``sd3`` by its name."""

    def sending(self, request: Request, parameters: Parameters, *, plain: bool = False) -> Sending:
        """Return the form."""
        name = parameters.model
        form = {"prompt": request.prompt, **{key: str(value) for key, value in options_of(None, parameters).items()}}
        if name.startswith("sd3"):
            form["model"] = name
        if (seed := seed_of(request, parameters)) is not None:
            form["seed"] = str(seed % _MOST_SEED or _MOST_SEED)  # 0 would make the service choose one
        form |= {key: str(value) for key, value in parameters.extra.items()}
        path = "/sd3" if name.startswith("sd3") else f"/{name}"
        return Sending(path=path, form=form, headers={"accept": "image/*"})

    def read(self, received: Received, request: Request, parameters: Parameters, *, plain: bool) -> ReplyContent:
        """Return the picture, unless it was filtered."""
        drawn, reason = received.content, received.headers.get("finish-reason", _DONE)
        if "json" in received.headers.get("content-type", ""):
            body = mapping(decoded(received.content), "the body")
            drawn, reason = coded(words(body.get("image"))), words(body.get("finish_reason")) or _DONE
        if reason.lower() == "content_filtered":
            return nothing(f"the service ended with finish_reason {reason}")
        if reason.lower() != _DONE:
            raise NotAnAnswer(f"the service ended with {reason}")
        if not drawn:
            return nothing("the service answered with an empty picture")
        return ReplyContent(state=CallState.ANSWERED, drawn=drawn, model=parameters.model)

    def error(self, received: Received) -> tuple[str, str]:
        """Return name and messages of an error: ``{"id": …, "name": …, "errors": […]}``."""
        body: Any = decoded(received.content)
        if not isinstance(body, Mapping):
            return "", ""
        errors = body.get("errors")
        return words(body.get("name")), " ".join(map(str, errors)) if isinstance(errors, list) else words(errors)
