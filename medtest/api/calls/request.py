"""What is asked and what came of it: pictures, requests, parameters, outcomes, and the key of their content."""

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
"""Raise it whenever the same key would stand for another request: it is part of every key."""


class CallState(StrEnum):
    """What an answer is. Only ERROR means that there is none; no state is an exception."""

    ANSWERED = "answered"
    REFUSAL = "refusal"
    CONTENT_FILTER = "content_filter"
    LENGTH = "length"
    MALFORMED = "malformed"
    ERROR = "error"


class Source(StrEnum):
    """Where an outcome was taken from."""

    CALL = "call"
    CACHE = "cache"
    LEDGER = "ledger"
    SHARED = "shared"
    """Another address asked the same thing at the same time; one call answered both."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture as it is sent: PNG made from pixels alone, hence without metadata.

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
    """One question to a model.

    Attributes:
        address: Text that names the case; one outcome is kept per address and content.
        prompt: What is asked.
        system: The system message, or "".
        pictures: What is shown, in order, before the prompt.
        repeat: Number of the asking, from 0: part of the content key, so that repeats are asked, not remembered.
        seed: The generation's seed, or None for the parameters' own.
        answer_model: Shape of a structured answer, or None for text.
        words_do: Whether an answer without the shape is an answer too, in words: some servers take a schema and heed
            it not. It shapes no request.
    """

    address: str
    prompt: str
    system: str = ""
    pictures: tuple[Picture, ...] = ()
    repeat: int = 0
    seed: int | None = None
    answer_model: type[BaseModel] | None = None
    words_do: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """Everything of a model that shapes its answers. None is not sent: the server's own default holds.

    Attributes:
        model: Name as the server knows it.
        temperature: 0 to 2.
        top_p: 0 to 1.
        max_tokens: Most tokens of an answer.
        max_tokens_name: What the server calls that: ``max_tokens``, or ``max_completion_tokens`` where it insists.
        seed: Seed of every request that has none of its own.
        detail: ``low``, ``high`` or ``auto``; "" leaves it out (some servers refuse it).
        api: Name of the endpoint's kind (:mod:`medtest.api.wire`): ``chat``, ``responses``, ``images`` …
        extra: Further fields of the request's body.
        options: What a service that draws is asked for besides (size, quality, whether it may rewrite the prompt), and
            to which size its pictures are made before they are kept (``kept_size``).
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
    """Return the JSON schema of an answer, closed to other fields, as strict structured output wants it."""
    schema: dict[str, Any] = _closed(model.model_json_schema())
    return schema


def _closed(node: Any) -> Any:
    if isinstance(node, list):
        return [_closed(item) for item in node]
    if not isinstance(node, dict):
        return node
    found = {name: _closed(value) for name, value in node.items() if name != "default"}
    if found.get("type") == "object" and isinstance(found.get("properties"), dict):
        found["additionalProperties"] = False
        found["required"] = list(found["properties"])
    return found


def content_key(provider: str, parameters: Parameters, request: Request) -> str:
    """Return SHA-256 of all that an answer depends on; the address is no part of it.

    Args:
        provider: The server's base URL, or the name that stands for it.
        parameters: Model and generation parameters, all of them.
        request: Prompt, system message, pictures (by SHA-256), repeat, seed, shape of the answer.
    """
    shaping = {**asdict(parameters), "extra": dict(parameters.extra), "options": dict(parameters.options)}
    if not shaping["options"]:
        del shaping["options"]  # what was asked before there were any keeps its key
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
    }
    text = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a request.

    Attributes:
        address: The request's.
        key: The request's content key.
        state: What the answer is.
        text: The model's words ("" where there are none); a refusal's words for a refusal.
        parsed: The structured answer, None where there is none.
        plain: Whether the server took no schema and was asked for JSON in words.
        reason: Why there is no answer, one redacted line.
        model: The model as the server named it.
        prompt_tokens: Tokens of the question as the server counted them; None where it does not say.
        completion_tokens: The same of the answer.
        cost_usd: Price of the call that answered; None without a price or a count.
        seconds: Duration of the call that answered.
        attempts: Calls sent for it, this one included.
        picture: SHA-256 of the pixels that were drawn (:func:`medtest.core.cases.image_sha256`), under which they are
            kept; "" where nothing was drawn.
        revised_prompt: What the service says that it drew instead of the prompt; "" where it says nothing.
        source: Where it was taken from.
    """

    address: str
    key: str
    state: CallState
    text: str = ""
    parsed: Json = None
    plain: bool = False
    reason: str = ""
    model: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost_usd: float | None = None
    seconds: float = 0.0
    attempts: int = 0
    picture: str = ""
    revised_prompt: str = ""
    source: Source = Source.CALL

    def to_json(self) -> str:
        """Return it as one line of JSON, without address, key and source; of words, without what pictures have."""
        kept = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("address", "key", "source")}
        kept = {name: value for name, value in kept.items() if value or name not in ("picture", "revised_prompt")}
        return json.dumps(kept, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, line: str, *, address: str, key: str, source: Source) -> Outcome:
        """Return what :meth:`to_json` wrote, for this address."""
        kept = json.loads(line)
        return cls(**{**kept, "state": CallState(kept["state"]), "address": address, "key": key, "source": source})

    @classmethod
    def read(cls, line: str, *, address: str, key: str, source: Source) -> Outcome | None:
        """Return the same; None where the line is not what was written (a file of the version before has no seal)."""
        try:
            return cls.from_json(line, address=address, key=key, source=source)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
