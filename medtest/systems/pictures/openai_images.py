"""``images.generations``: OpenAI's image models, and servers that follow its API (LocalAI, vLLM-Omni, sd.cpp …)."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from medtest.core.cases import Json
from medtest.systems.pictures.service import DrawingService, DrawingSettings


class OpenAIImagesSettings(DrawingSettings):
    """Settings of ``images.generations``.

    Attributes:
        seed: ``case``, a number, or null: not sent, as OpenAI's own models take none.
        size: Size of the picture that is asked for, ``1024x1024``; null leaves it to the model.
        quality: What the model calls it: ``low``, ``medium``, ``high`` …; null leaves it to the model.
        style: ``vivid`` or ``natural``, where a model knows that; null is not sent.
        background: ``opaque``, ``transparent`` or ``auto``; null is not sent.
        moderation: ``auto`` or ``low``, of OpenAI's models; null is not sent.
        output_format: ``png``, ``jpeg`` or ``webp``; null is not sent.
        response_format: ``b64_json`` or ``url``, of servers that let one choose; null is not sent.
    """

    own_fields: ClassVar[frozenset[str]] = frozenset({"model", "prompt", "n", "stream", "partial_images", "seed"})

    seed: Literal["case"] | int | None = None
    size: str | None = Field(default="1024x1024", max_length=20)
    quality: str | None = Field(default=None, max_length=20)
    style: str | None = Field(default=None, max_length=20)
    background: Literal["opaque", "transparent", "auto"] | None = None
    moderation: Literal["auto", "low"] | None = None
    output_format: Literal["png", "jpeg", "webp"] | None = None
    response_format: Literal["b64_json", "url"] | None = None


class OpenAIImages(DrawingService):
    """OpenAI's image models, and whatever follows their API."""

    Settings: ClassVar[type[OpenAIImagesSettings]] = OpenAIImagesSettings
    settings: Any
    api: ClassVar[str] = "images"

    def options(self) -> dict[str, Json]:
        """Return size, quality and the like."""
        own = self.settings
        names = ("size", "quality", "style", "background", "moderation", "output_format", "response_format")
        return {name: getattr(own, name) for name in names}

    def rewrites(self) -> str:
        """Say what is known: of the prompt's rewriting the service itself tells, if it does."""
        return "what it says of a rewritten prompt is recorded"
