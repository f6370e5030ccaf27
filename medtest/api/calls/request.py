"""Pictures, requests, parameters, outcomes, and content keys."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any

import cv2
import numpy as np
from pydantic import BaseModel

from medtest.core.cases import Image, Json

KEY_REVISION = 1
"""Part of every key; increase it whenever the same key would mean another request."""


class CallState(StrEnum):
    """State of an answer. Only ERROR means that there is none; no state is an exception."""

    ANSWERED = "answered"
    REFUSAL = "refusal"
    CONTENT_FILTER = "content_filter"
    LENGTH = "length"
    MALFORMED = "malformed"
    ERROR = "error"


class Source(StrEnum):
    """Source of an outcome."""

    CALL = "call"
    CACHE = "cache"
    LEDGER = "ledger"
    SHARED = "shared"
    """Another address sent the same content at the same time; one call answered both."""


@dataclass(frozen=True, slots=True)
class Picture:
    """Picture to send: PNG made from pixels only, hence without metadata.

    Attributes:
        png: The file's bytes; never shown.
        sha256: SHA-256 of shape and pixels (not of the file, whose bytes depend on the encoder), hexadecimal.
        height: Rows.
        width: Columns.
    """

    png: bytes = field(repr=False)
    sha256: str
    height: int
    width: int

    @classmethod
    def of(cls, pixels: Image) -> Picture:
        """Encode uint8 pixels, H×W×3 RGB or H×W.

        Raises:
            ValueError: The array is of another type or shape.
        """
        if pixels.dtype != np.uint8 or not (pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[2] == 3)):
            raise ValueError(f"a picture is uint8, H×W×3 or H×W; this is {pixels.dtype}, {pixels.shape}")
        whole = np.ascontiguousarray(pixels)
        digest = hashlib.sha256(repr(whole.shape).encode())
        digest.update(whole.data)
        done, png = cv2.imencode(".png", cv2.cvtColor(whole, cv2.COLOR_RGB2BGR) if whole.ndim == 3 else whole)
        if not done:
            raise ValueError(f"a picture of shape {pixels.shape} cannot be written as PNG")
        return cls(png.tobytes(), digest.hexdigest(), int(whole.shape[0]), int(whole.shape[1]))

    def data_url(self) -> str:
        """Return the picture as ``data:image/png;base64,…``."""
        return "data:image/png;base64," + base64.b64encode(self.png).decode("ascii")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Question to a model.

    Attributes:
        address: Text that identifies the case; one outcome is stored per address and content.
        prompt: The prompt.
        system: The system message, or "".
        pictures: Pictures before the prompt, in order.
        repeat: Number of the repetition, from 0: part of the content key, so that repeats are sent instead of cached.
        seed: The generation's seed, or None for the parameters' own.
        answer_model: Schema of a structured answer, or None for text.
        repeats: Numbers of all repetitions of this content that the run asks for, its own among them, if one call may
            answer several; empty otherwise. Not part of the content.
        most_together: Largest number of answers of one call.
        count: Answers that this call asks for.
        words_do: Whether plain words are accepted without the schema, because some servers accept schemas but ignore
            them. It does not change the request.
        most_likely: Number of likely tokens to return, with their log-probabilities, at the place where the answer says
            yes or no; 0 for none.
    """

    address: str
    prompt: str
    system: str = ""
    pictures: tuple[Picture, ...] = ()
    repeat: int = 0
    seed: int | None = None
    answer_model: type[BaseModel] | None = None
    words_do: bool = False
    repeats: tuple[int, ...] = ()
    most_together: int = 1
    count: int = 1
    most_likely: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """All parameters of a model that influence its answers. None is not sent: the server's own default applies.

    Attributes:
        model: Name on the server.
        temperature: 0 to 2.
        top_p: 0 to 1.
        max_tokens: Maximum tokens of an answer.
        max_tokens_name: Server's name of that field: ``max_tokens``, or ``max_completion_tokens`` if required.
        seed: Seed of every request without its own.
        detail: ``low``, ``high`` or ``auto``; "" omits it (some servers reject it).
        api: Name of the kind of endpoint (:mod:`medtest.api.wire`): ``chat``, ``responses``, ``images`` …
        extra: Further fields of the request body.
        options: Further options of an image generation service (size, quality, prompt rewriting), and the size to which
            its pictures are resized before they are stored (``kept_size``).
    """

    model: str
    temperature: float | None = 0.0
    top_p: float | None = None
    max_tokens: int | None = 512
    max_tokens_name: str = "max_tokens"
    seed: int | None = None
    detail: str = "auto"
    api: str = "chat"
    extra: Mapping[str, Json] = field(default_factory=dict)
    options: Mapping[str, Json] = field(default_factory=dict)


@functools.lru_cache(maxsize=64)
def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of an answer, closed to other fields as required by strict structured output."""
    schema: dict[str, Any] = _closed(model.model_json_schema())
    return schema


def _closed(node: Any) -> Any:
    if isinstance(node, list):
        return [_closed(item) for item in node]
    if not isinstance(node, dict):
        return node
    closed = {name: _closed(value) for name, value in node.items() if name != "default"}
    if closed.get("type") == "object" and isinstance(closed.get("properties"), dict):
        closed["additionalProperties"] = False
        closed["required"] = list(closed["properties"])
    return closed


def content_key(provider: str, parameters: Parameters, request: Request) -> str:
    """Return the SHA-256 of everything that influences an answer; the address is not part of it.

    Args:
        provider: The server's base URL, or its replacement.
        parameters: Model and generation parameters, all of them.
        request: Prompt, system message, pictures (by SHA-256), repeat, seed, schema of the answer.
    """
    shaping = {**asdict(parameters), "extra": dict(parameters.extra), "options": dict(parameters.options)}
    if not shaping["options"]:
        del shaping["options"]  # keeps the keys of requests from before options existed
    content = {
        "revision": KEY_REVISION,
        "provider": provider.rstrip("/"),
        "parameters": shaping,
        "prompt": request.prompt,
        "system": request.system,
        "pictures": [picture.sha256 for picture in request.pictures],
        "repeat": request.repeat,
        "seed": request.seed,
        "schema": None if request.answer_model is None else schema_of(request.answer_model),
        **({"most_likely": request.most_likely} if request.most_likely else {}),
    }
    text = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFields:
    """Fields of an answer that a body, a reply and an outcome have in common.

    Attributes:
        text: The model's words ("" if there are none); a refusal's words for a refusal.
        parsed: The structured answer, None if there is none.
        plain: Whether the server rejected the schema and JSON was requested by the prompt.
        reason: Reason why there is no answer, one redacted line.
        model: The model as named by the server.
        prompt_tokens: Tokens of the question as counted by the server; None if not reported.
        completion_tokens: Tokens of the answer as counted by the server; None if not reported.
        picture: SHA-256 of the generated pixels (:func:`medtest.core.cases.image_sha256`), under which they are stored;
            "" without a picture.
        revised_prompt: Prompt that the service reports to have used instead; "" if not reported.
        likely: Likely tokens with their log-probabilities where the answer says yes or no
            (:mod:`medtest.api.wire.likely`); None if not requested or not reported.
    """

    text: str = ""
    parsed: Json = None
    plain: bool = False
    reason: str = ""
    model: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    picture: str = ""
    revised_prompt: str = ""
    likely: Json = None

    def answer(self) -> dict[str, Any]:
        """Return these fields by name."""
        return {item.name: getattr(self, item.name) for item in fields(AnswerFields)}


_FURTHER = frozenset({"picture", "revised_prompt", "likely"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(AnswerFields):
    """Outcome of a request.

    Attributes:
        address: The request's address.
        key: The request's content key.
        state: State of the answer.
        cost_usd: Price of the request's calls, also of those that failed and may be billed, in earlier sessions of the
            run too; None without a price, or
            without a count of the answer.
        seconds: Duration of the call that answered.
        attempts: Number of calls sent, including this one.
        source: Source of the outcome.
    """

    address: str
    key: str
    state: CallState
    cost_usd: float | None = None
    seconds: float = 0.0
    attempts: int = 0
    source: Source = Source.CALL

    def to_json(self) -> str:
        """Return the outcome as one line of JSON, without address, key and source, and without empty further fields."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("address", "key", "source")}
        values = {name: value for name, value in values.items() if value or name not in _FURTHER}
        return json.dumps(values, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, line: str, *, address: str, key: str, source: Source) -> Outcome:
        """Return the outcome written by :meth:`to_json`, for this address."""
        values = json.loads(line)
        return cls(**{**values, "state": CallState(values["state"]), "address": address, "key": key, "source": source})

    @classmethod
    def read(cls, line: str, *, address: str, key: str, source: Source) -> Outcome | None:
        """Return the same, or None if the line is damaged."""
        try:
            return cls.from_json(line, address=address, key=key, source=source)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
