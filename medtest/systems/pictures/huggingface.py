"""Text to image at Hugging Face: a dedicated inference endpoint, or a model behind the serverless router."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from medtest.core.cases import Json
from medtest.core.plugins import TRUSTED
from medtest.systems.pictures.service import DrawingService, DrawingSettings


class HuggingFaceImagesSettings(DrawingSettings):
    """Settings of Hugging Face.

    Attributes:
        router: Whether ``base_url`` serves many models under ``/models/NAME``; otherwise it is the endpoint of one
            model.
        width: Width in pixels; null leaves it to the model.
        height: Height in pixels; null leaves it to the model.
        num_inference_steps: Denoising steps; null leaves it to the model.
        guidance_scale: Guidance scale; null leaves it to the model.
        negative_prompt: Content to exclude from the picture; null is not sent.
        scheduler: Denoising scheduler; null is not sent.
    """

    own_fields: ClassVar[frozenset[str]] = frozenset({"inputs", "parameters"})

    router: bool = Field(default=False, json_schema_extra=TRUSTED)
    width: int | None = Field(default=512, ge=64, le=4096)
    height: int | None = Field(default=512, ge=64, le=4096)
    num_inference_steps: int | None = Field(default=None, ge=1, le=500)
    guidance_scale: float | None = Field(default=None, ge=0, le=100)
    negative_prompt: str | None = Field(default=None, max_length=2000)
    scheduler: str | None = Field(default=None, max_length=60)


class HuggingFaceImages(DrawingService):
    """Text to image at Hugging Face."""

    Settings: ClassVar[type[HuggingFaceImagesSettings]] = HuggingFaceImagesSettings
    settings: Any
    api: ClassVar[str] = "huggingface"
    option_names = ("width", "height", "num_inference_steps", "guidance_scale", "negative_prompt", "scheduler")

    def options(self) -> dict[str, Json]:
        """Return size, steps, guidance, and the model's path below the base URL."""
        own = self.settings
        return {**super().options(), "asked_path": f"/models/{own.model}" if own.router else None}
