"""Stability AI models: Stable Image Core and Ultra, Stable Diffusion 3.5."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from medtest.systems.pictures.service import DrawingService, DrawingSettings


class StabilitySettings(DrawingSettings):
    """Settings of Stability AI's API v2beta.

    Attributes:
        model: ``core``, ``ultra``, or a model of Stable Diffusion 3 by its name.
        aspect_ratio: Aspect ratio of the picture.
        negative_prompt: Content to exclude from the picture; null is not sent.
        style_preset: A style of the service; null is not sent.
        output_format: ``png``, ``jpeg`` or ``webp``.
    """

    own_fields: ClassVar[frozenset[str]] = frozenset({"prompt", "model", "seed", "image", "mode"})

    aspect_ratio: str | None = Field(default="1:1", max_length=10)
    negative_prompt: str | None = Field(default=None, max_length=10_000)
    style_preset: str | None = Field(default=None, max_length=40)
    output_format: Literal["png", "jpeg", "webp"] = "png"


class Stability(DrawingService):
    """Stability AI model."""

    Settings: ClassVar[type[StabilitySettings]] = StabilitySettings
    settings: Any
    api: ClassVar[str] = "stability"
    option_names = ("aspect_ratio", "negative_prompt", "style_preset", "output_format")
