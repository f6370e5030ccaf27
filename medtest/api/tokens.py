"""Estimated tokens of a request before it is sent, corrected by the first answer."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from medtest.api.calls.request import Parameters, Picture, Request

ASSUMED_COMPLETION = 512
"""Tokens of an answer if ``max_tokens`` is not set."""

_SNAPSHOT = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8}|latest)$")


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of a question and the maximum of its answer.

    Attributes:
        prompt: Tokens of the question.
        completion: Maximum tokens of the answer.
        pictures: Generated pictures, if the service has a price per picture.
    """

    prompt: int
    completion: int
    pictures: int = 0


def without_snapshot(model: str) -> str:
    """Return a model's name without the date of its snapshot (``…-2024-08-06``)."""
    return _SNAPSHOT.sub("", model)


_TILES = {"gpt-4o-mini": (2833, 5667)}
"""Tokens of a picture and of each of its tiles, if not 85 and 170."""
_PATCHES = {"gpt-4.1-mini": 1.62, "gpt-4.1-nano": 2.46, "gpt-5-mini": 1.62, "gpt-5-nano": 2.46}
"""Tokens per 32×32 patch, for models that count patches."""
_MOST_PATCHES = 1536


def picture_tokens(picture: Picture, detail: str, model: str = "") -> int:
    """Return the estimated tokens of a picture.

    The tile rule of the gpt-4o family (OpenAI's guide "Images and vision", costs): 85 at low detail; otherwise the
    picture is fitted into 2048×2048, its shorter side into 768, and each tile of 512×512 costs 170 in addition to the
    85. Small models of OpenAI have more expensive tiles, or count patches of 32×32, at most 1536 (same guide). Other
    families differ: this is an estimate, which the first answer corrects.
    """
    family = without_snapshot(model)
    if family in _PATCHES:
        patches = math.ceil(picture.height / 32) * math.ceil(picture.width / 32)
        return math.ceil(_PATCHES[family] * min(patches, _MOST_PATCHES))
    base, tile = _TILES.get(family, (85, 170))
    if detail == "low":
        return base
    scale = min(1.0, 2048 / max(picture.height, picture.width))
    scale = min(scale, 768 / min(picture.height, picture.width))
    tiles = math.ceil(picture.height * scale / 512) * math.ceil(picture.width * scale / 512)
    return base + tile * tiles


def asked_tokens(request: Request, parameters: Parameters) -> int:
    """Return the estimated tokens of a question: one per four characters, pictures by tiles, ten for the format."""
    text = (len(request.prompt) + len(request.system) + 3) // 4 + 10
    return text + sum(picture_tokens(picture, parameters.detail, parameters.model) for picture in request.pictures)
