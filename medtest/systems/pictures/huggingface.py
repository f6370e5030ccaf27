"""Text to image at Hugging Face: an inference endpoint of one's own, or a model through the serverless router."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from medtest.core.cases import Json
from medtest.core.plugins import TRUSTED
from medtest.systems.pictures.service import DrawingService, DrawingSettings


class HuggingFaceImagesSettings(DrawingSettings):
    """Settings of Hugging Face.

    Attributes:
        router: ``base_url`` knows many models by ``/models/NAME``; else it is the endpoint of one.
        width: Of the picture in pixels; null leaves it to the model.
        height: The same.
        num_inference_steps: Steps of denoising; null leaves it to the model.
        guidance_scale: How closely the prompt is kept to; null leaves it to the model.
        negative_prompt: What shall not be in the picture; null is not sent.
        scheduler: Of the denoising; null is not sent.
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

    def options(self) -> dict[str, Json]:
        """Return size, steps and guidance, and where below the address the model is."""
        own = self.settings
        names = ("width", "height", "num_inference_steps", "guidance_scale", "negative_prompt", "scheduler")
        path = f"/models/{own.model}" if own.router else None
        return {**{name: getattr(own, name) for name in names}, "asked_path": path}
