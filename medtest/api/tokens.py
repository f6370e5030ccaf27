"""How many tokens a request will need, before it is sent: an estimate, which the first answer corrects."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from medtest.api.calls.request import Parameters, Picture, Request

ASSUMED_COMPLETION = 512
"""Tokens of an answer where ``max_tokens`` is not set."""

_SNAPSHOT = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8}|latest)$")


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of a question and the most that its answer may have.

    Attributes:
        prompt: Of the question.
        completion: Most of the answer.
        pictures: Pictures that are drawn, where the service has a price for each.
    """

    prompt: int
    completion: int
    pictures: int = 0


def without_snapshot(model: str) -> str:
    """Return a model's name without the date of its snapshot (``…-2024-08-06``)."""
    return _SNAPSHOT.sub("", model)


_TILES = {"gpt-4o-mini": (2833, 5667)}
"""Tokens of a picture and of each of its tiles, where they are not 85 and 170."""
_PATCHES = {"gpt-4.1-mini": 1.62, "gpt-4.1-nano": 2.46, "gpt-5-mini": 1.62, "gpt-5-nano": 2.46}
"""Tokens of a patch of 32×32, of models that count those."""
_MOST_PATCHES = 1536


def picture_tokens(picture: Picture, detail: str, model: str = "") -> int:
    """Return the estimated tokens of a picture.

    The tile rule of the gpt-4o family (OpenAI's guide "Images and vision", costs): 85 at low detail; else the picture
    is fitted into 2048×2048, its shorter side into 768, and each tile of 512×512 costs 170 beside the 85. Small models
    of OpenAI count higher tiles, or patches of 32×32, 1536 of them at most (same guide). Other families count
    otherwise: it is an estimate, which the first answer corrects.
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
    """Return the estimated tokens of a question: four characters to a token, pictures by tiles, ten for the form."""
    text = (len(request.prompt) + len(request.system) + 3) // 4 + 10
    return text + sum(picture_tokens(picture, parameters.detail, parameters.model) for picture in request.pictures)
