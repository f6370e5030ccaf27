"""``images.generations``: OpenAI's image models, and compatible servers (LocalAI, vLLM-Omni, sd.cpp …)."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from medtest.systems.pictures.service import DrawingService, DrawingSettings


class OpenAIImagesSettings(DrawingSettings):
    """Settings of ``images.generations``.

    Attributes:
        seed: ``case``, a number, or null: not sent, because OpenAI's own models accept none.
        size: Requested size of the picture, ``1024x1024``; null leaves it to the model.
        quality: In the model's terms: ``low``, ``medium``, ``high`` …; null leaves it to the model.
        style: ``vivid`` or ``natural``, for models that support it; null is not sent.
        background: ``opaque``, ``transparent`` or ``auto``; null is not sent.
        moderation: ``auto`` or ``low``, for OpenAI's models; null is not sent.
        output_format: ``png``, ``jpeg`` or ``webp``; null is not sent.
        response_format: ``b64_json`` or ``url``, for servers that support both; null is not sent.
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
    """OpenAI's image models and compatible servers."""

    Settings: ClassVar[type[OpenAIImagesSettings]] = OpenAIImagesSettings
    settings: Any
    api: ClassVar[str] = "images"
    option_names = ("size", "quality", "style", "background", "moderation", "output_format", "response_format")

    def rewrites(self) -> str:
        """Return a notice on rewritten prompts, which only the service itself can report."""
        return "the rewritten prompt that it reports is recorded"
