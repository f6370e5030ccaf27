"""DeepAI text2img."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from medtest.core.cases import Json
from medtest.systems.pictures.service import DrawingService, DrawingSettings


class DeepAISettings(DrawingSettings):
    """Settings of DeepAI.

    Attributes:
        model: The generator, the last part of its URL: ``text2img``.
        seed: Always null: the service accepts none.
        width: Width in pixels; null leaves it to the service.
        height: Height in pixels; null leaves it to the service.
        version: ``standard``, ``hd`` or ``genius``; null is not sent.
    """

    own_fields: ClassVar[frozenset[str]] = frozenset({"text", "grid_size"})

    seed: None = None
    width: int | None = Field(default=512, ge=128, le=1536)
    height: int | None = Field(default=512, ge=128, le=1536)
    version: str | None = Field(default=None, max_length=20)


class DeepAI(DrawingService):
    """DeepAI text2img."""

    Settings: ClassVar[type[DeepAISettings]] = DeepAISettings
    settings: Any
    api: ClassVar[str] = "deepai"
    option_names = ("width", "height")

    def options(self) -> dict[str, Json]:
        """Return size, version, and a request for one picture instead of a sheet of four."""
        return {**super().options(), "grid_size": 1, "image_generator_version": self.settings.version}
