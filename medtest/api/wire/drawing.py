"""What endpoints that draw have in common: one picture a request, how one comes, and how moderation is worded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from medtest.api.calls.request import CallState, Parameters, Request
from medtest.api.tokens import Tokens, asked_tokens
from medtest.api.wire.answers import NotAnAnswer, ReplyContent
from medtest.api.wire.base import FILTERED, MIB, Wire
from medtest.core.cases import Json

MOST_BYTES = 32 * MIB
"""Largest file of a picture that is taken."""
CODED = b"base64:"
"""How the file of a picture begins that is still base64."""
OURS = ("kept_", "asked_")
"""How options begin that are medtest's own and no field of a request."""
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
    """An endpoint that draws one picture for a prompt."""

    draws: ClassVar[bool] = True
    most_bytes: ClassVar[int] = MOST_BYTES * 4 // 3 + MIB
    filtered_statuses: ClassVar[frozenset[int]] = frozenset({400, 403, 422, 451, 500, 502})

    def tokens(self, request: Request, parameters: Parameters) -> Tokens:
        """Return the prompt's tokens, the most that a picture may have where those are charged, and one picture."""
        return Tokens(asked_tokens(request, parameters), parameters.max_tokens or 0, pictures=1)

    def filtered(self, status: int, code: str, words: str) -> bool:
        """Say whether an error tells of moderation: 400s do by code or words, 500s by words that name a policy."""
        return status in self.filtered_statuses and any(word in words for word in _FILTERED)


def asked(parameters: Parameters) -> dict[str, Json]:
    """Return the options that are fields of a request, those that are None left out."""
    return {
        name: value for name, value in parameters.options.items() if value is not None and not name.startswith(OURS)
    }


def seed_of(request: Request, parameters: Parameters) -> int | None:
    """Return the seed of a request, its own before the parameters'."""
    return request.seed if request.seed is not None else parameters.seed


def nothing(why: str, **more: Any) -> ReplyContent:
    """Return the reading of a success that brings no picture: moderation in one of its forms."""
    return ReplyContent(state=CallState.CONTENT_FILTER, reason=why, **more)


def coded(text: str) -> bytes:
    """Return base64, or a data URL in base64, as the file of a picture that is still coded (:data:`CODED` in front).

    Taking base64 apart holds up everything else in a process: it is left to whoever keeps the picture
    (:func:`medtest.api.drawn.store.file_of`).

    Returns:
        Nothing where there is nothing.

    Raises:
        NotAnAnswer: It is a data URL of another kind, or more than :data:`MOST_BYTES`.
    """
    if text.startswith("data:"):
        head, comma, text = text.partition(",")
        if not comma or not head.endswith(";base64"):
            raise NotAnAnswer("the picture is a data URL without base64")
    if len(text) * 3 // 4 > MOST_BYTES:
        raise NotAnAnswer(f"the picture is larger than {MOST_BYTES // MIB} MB")
    return CODED + text.encode("ascii", "replace") if text else b""


def mapping(value: Any, what: str) -> Mapping[str, Any]:
    """Return a JSON object.

    Raises:
        NotAnAnswer: It is something else; the message names what it should be.
    """
    if not isinstance(value, Mapping):
        raise NotAnAnswer(f"{what} is no object")
    return value


def words(value: Any) -> str:
    """Return a text of a reply, "" for anything else."""
    return value if isinstance(value, str) else ""
