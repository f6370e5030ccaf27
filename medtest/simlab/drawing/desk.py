"""Parsing of ``/v1/images/generations`` requests for the drawing product.

The shapes are those of the openai client's ``ImageGenerateParams`` and ``ImagesResponse`` (3.52).
"""

from __future__ import annotations

import base64
import io
import json
import secrets
import threading
from collections.abc import Mapping
from typing import Any

from PIL import Image

from medtest.api.faulty.answers import BadRequest
from medtest.core.recent import Recent
from medtest.simlab.config import MODEL
from medtest.simlab.drawing.artist import Artist, Drawing, Picture
from medtest.simlab.drawing.clinical.artist import ClinicalDrawing

SIZES: Mapping[str, int] = {f"{side}x{side}": side for side in (128, 256, 384, 512, 768, 1024)}
AUTO = 512
MOST_WORDS = 32_000
MOST_AT_ONCE = 10
FOLDER = "/simlab/pictures/"
"""Path of pictures requested as URLs, under random names and without a key."""
_LIE = 512
_SESSIONS = 65_536
_FORMATS = {"png": "PNG", "jpeg": "JPEG", "webp": "WEBP"}


class DrawingDesk:
    """Answers requests for pictures.

    Args:
        artist: The product.
    """

    def __init__(self, artist: Artist) -> None:
        self.artist = artist
        self.base_url = ""
        self._files: Recent[str, bytes] = Recent(_LIE)
        self._users: Recent[str, str] = Recent(_SESSIONS)
        self._before: Recent[tuple[str, int], str] = Recent(_SESSIONS)
        self._lock = threading.Lock()

    def answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the response to a request, as JSON values.

        Raises:
            BadRequest: It is malformed, has an unsupported size, or is refused by the policy.
        """
        if body.get("model") != MODEL:
            raise BadRequest(f"The model {str(body.get('model'))[:80]!r} does not exist.", status=404, code="not_found")
        prompt = body.get("prompt")
        if not isinstance(prompt, str) or not prompt.strip() or len(prompt) > MOST_WORDS:
            raise BadRequest(f"prompt must be a text of 1 to {MOST_WORDS} characters.")
        size, count, seed = _size(body.get("size")), _whole(body, "n", 1, 1, MOST_AT_ONCE), _whole(body, "seed", 0, 0)
        coded = _one_of(body, "response_format", ("b64_json", "url")) == "b64_json"
        form = _one_of(body, "output_format", tuple(_FORMATS))
        earlier = self._earlier(prompt, seed, body.get("user"))
        data = []
        for number in range(count):
            drawing = self.artist.draw(prompt, seed=seed + number, earlier=earlier)
            if drawing.refused == "policy":
                raise BadRequest("The safety system rejected this request.", code="moderation_blocked")
            if drawing.refused == "empty_list":
                return self._reply([], prompt, size, form)
            data.append(self._picture(drawing, size, form, coded=coded))
        return self._reply(data, prompt, size, form)

    def _reply(self, data: list[dict[str, Any]], prompt: str, size: int, form: str) -> dict[str, Any]:
        input_tokens, output_tokens = max(1, len(prompt) // 4), len(data) * max(1, (size * size) // 256)
        return {
            "created": 0,
            "data": data,
            "model": MODEL,
            "output_format": form,
            "size": f"{size}x{size}",
            "usage": {
                "input_tokens": input_tokens,
                "input_tokens_details": {"image_tokens": 0, "text_tokens": input_tokens},
                "output_tokens": output_tokens,
                "total_tokens": input_tokens + output_tokens,
            },
        }

    def _picture(self, drawing: Drawing | ClinicalDrawing, size: int, form: str, *, coded: bool) -> dict[str, Any]:
        more = {"revised_prompt": drawing.revised} if drawing.revised else {}
        if drawing.refused:
            return {"b64_json": ""} | more
        content = encoded(self.artist.paint(drawing, size), form)
        if coded:
            return {"b64_json": base64.b64encode(content).decode("ascii")} | more
        name = f"{secrets.token_urlsafe(18)}.{form}"
        with self._lock:
            self._files[name] = content
        return {"url": self.base_url.removesuffix("/v1") + FOLDER + name} | more

    def file(self, path: str) -> tuple[str, bytes] | None:
        """Return the media type and content of a URL path; None if it does not exist (any more)."""
        if not path.startswith(FOLDER):
            return None
        name = path.removeprefix(FOLDER)
        with self._lock:
            content = self._files.get(name)
        return None if content is None else (f"image/{name.rsplit('.', 1)[-1]}", content)

    # ------------------------------------------------------------------------------------------------------ sessions

    def _earlier(self, prompt: str, seed: int, user: object) -> str:
        """Return the previous prompt in a request's session: as registered, or the last one of this ``user``."""
        with self._lock:
            registered = self._before.get((prompt, seed))
            if registered is not None:
                return registered
            if not isinstance(user, str) or not user:
                return ""
            before = self._users.get(user, "")
            self._users[user] = prompt
            return before

    def session(self, content: bytes) -> object:
        """Register the prompt before a request: ``{"prompt": …, "seed": …, "earlier": …}``.

        Raises:
            BadRequest: It is malformed.
        """
        prompt, seed, earlier = _parsed_request(content, earlier=True)
        with self._lock:
            self._before[prompt, seed] = earlier
        return {"told": 1}

    def truth(self, content: bytes) -> object:
        """Return the content of a request's picture, for tests only; no suite can enable this endpoint.

        Raises:
            BadRequest: It is malformed.
        """
        prompt, seed, earlier = _parsed_request(content, earlier=False)
        drawing = self.artist.draw_scene(prompt, seed=seed, earlier=earlier)
        shown = drawing.truth()
        return {"things": shown.objects, "sides": shown.sides, "slips": drawing.slips.names, "refused": drawing.refused}


def encoded(picture: Picture, form: str) -> bytes:
    """Return the bytes of an image file: ``png``, ``jpeg`` or ``webp``, from uint8 H×W×3 RGB."""
    file = io.BytesIO()
    more: dict[str, Any] = {"compress_level": 1} if form == "png" else {"quality": 95}
    Image.fromarray(picture).save(file, _FORMATS[form], **more)
    return file.getvalue()


def _parsed_request(content: bytes, *, earlier: bool) -> tuple[str, int, str]:
    try:
        values = json.loads(content)
        before = values["earlier"] if earlier else values.get("earlier", "")
        return str(values["prompt"]), int(values.get("seed", 0)), str(before)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadRequest("Wanted: {prompt, seed, earlier}.") from error


def _size(size: object) -> int:
    if size is None or size == "auto":
        return AUTO
    if not isinstance(size, str) or size not in SIZES:
        raise BadRequest(f"Invalid size. Supported sizes are {', '.join(SIZES)}, and auto.", code="invalid_value")
    return SIZES[size]


def _whole(body: Mapping[str, Any], name: str, default: int, least: int, most: int = 2**63 - 1) -> int:
    value = body.get(name)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise BadRequest(f"{name} must be an integer from {least} to {most}.", code="invalid_value")
    return value


def _one_of(body: Mapping[str, Any], name: str, choices: tuple[str, ...]) -> str:
    value = body.get(name)
    if value is None:
        return choices[0]
    if value not in choices:
        raise BadRequest(f"{name} must be one of {', '.join(choices)}.", code="invalid_value")
    return str(value)
