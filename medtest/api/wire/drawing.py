"""Base class of image generation endpoints: one picture per request, its formats, and wording that shows moderation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from medtest.api.calls.request import CallState, Parameters, Request
from medtest.api.tokens import Tokens, asked_tokens
from medtest.api.wire.answers import NotAnAnswer, ReplyContent
from medtest.api.wire.base import FILTERED, MIB, Wire
from medtest.core.cases import Json

MOST_BYTES = 32 * MIB
"""Largest accepted picture file."""
CODED = b"base64:"
"""Prefix of a picture file that is still in base64."""
OURS = ("kept_", "asked_")
"""Prefixes of options that are medtest's own instead of fields of a request."""
_FILTERED = (
    *FILTERED,
    "safety system",
    "safety_system",
    "safety filter",
    "safety_violation",
    "image_safety",
    "prohibited_content",
    "blocked_reason",
    "unsafe_generation",
    "datainspection",
    "data_inspection",
    "data inspection",
    "content_moderated",
    "content safety",
    "content policy",
    "responsible ai",
    "responsibleai",
    "infringement",
    "inappropriate content",
    "nsfw",
)


class DrawingWire(Wire):
    """Endpoint that generates one picture for a prompt."""

    draws: ClassVar[bool] = True
    most_bytes: ClassVar[int] = MOST_BYTES * 4 // 3 + MIB
    filtered_words: ClassVar[tuple[str, ...]] = _FILTERED
    filtered_statuses: ClassVar[frozenset[int]] = frozenset({400, 403, 422, 451, 500, 502})

    def tokens(self, request: Request, parameters: Parameters) -> Tokens:
        """Return the prompt's tokens, the maximum of the pictures if those are charged, and their number."""
        most = (parameters.max_tokens or 0) * request.count
        return Tokens(asked_tokens(request, parameters), most, pictures=request.count)


def options_of(request: Request | None, parameters: Parameters) -> dict[str, Json]:
    """Return the options that are fields of a request, and the request's seed if one is given, without None values."""
    options = {name: value for name, value in parameters.options.items() if not name.startswith(OURS)}
    if request is not None:
        options["seed"] = seed_of(request, parameters)
    return {name: value for name, value in options.items() if value is not None}


def seed_of(request: Request, parameters: Parameters) -> int | None:
    """Return the seed of a request, its own before the parameters'."""
    return request.seed if request.seed is not None else parameters.seed


def nothing(why: str, **more: Any) -> ReplyContent:
    """Return the content of a success without a picture, a form of moderation."""
    return ReplyContent(state=CallState.CONTENT_FILTER, reason=why, **more)


def picture(*, drawn: bytes = b"", url: str = "", **more: Any) -> ReplyContent:
    """Return the content of a success with a picture file or its address; an empty one is a form of moderation."""
    if not drawn and not url:
        return nothing("the service answered with an empty picture", **more)
    return ReplyContent(state=CallState.ANSWERED, drawn=drawn, url=url, **more)


def coded_picture(text: str, **more: Any) -> ReplyContent:
    """Return the content of a success with a picture in base64 or in a data URL; see :func:`coded`."""
    return ReplyContent(state=CallState.ANSWERED, drawn=coded(text), **more) if text else picture(**more)


def picture_at(address: str, **more: Any) -> ReplyContent:
    """Return the content of a success with a picture at an address, possibly a data URL."""
    if address.startswith("data:"):
        return coded_picture(address, **more)
    return picture(url=address, **more)


def coded(text: str) -> bytes:
    """Return base64, or a data URL in base64, as a still encoded picture file (with the prefix :data:`CODED`).

    Decoding base64 would block everything else in the process, so it is left to the picture store
    (:func:`medtest.api.drawn.store.file_of`).

    Returns:
        Empty bytes for an empty text.

    Raises:
        NotAnAnswer: It is another kind of data URL, or larger than :data:`MOST_BYTES`.
    """
    if text.startswith("data:"):
        head, comma, text = text.partition(",")
        if not comma or not head.endswith(";base64"):
            raise NotAnAnswer("the picture is a data URL without base64")
    if len(text) * 3 // 4 > MOST_BYTES:
        raise NotAnAnswer(f"the picture is larger than {MOST_BYTES // MIB} MB")
    return CODED + text.encode("ascii", "replace") if text else b""


def mapping(value: Any, name: str) -> Mapping[str, Any]:
    """Return a value that must be a JSON object.

    Raises:
        NotAnAnswer: It is something else; the message names the expected object.
    """
    if not isinstance(value, Mapping):
        raise NotAnAnswer(f"{name} is not an object")
    return value
