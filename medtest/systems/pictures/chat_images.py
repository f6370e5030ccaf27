"""Pictures in chat answers: OpenRouter, the Gemini image models behind it, and compatible gateways."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field, field_validator

from medtest.core.cases import Json
from medtest.systems.answering.asking import Asking
from medtest.systems.pictures.base import prompt_of
from medtest.systems.pictures.service import DrawingService, DrawingSettings

PROMPT = "{prompt}"
"""Placeholder in the template."""


class ChatImagesSettings(DrawingSettings):
    """Settings of a chat model that generates pictures.

    Attributes:
        prompt: Text sent to the model; ``{prompt}`` is replaced by the prompt. It must ask for a picture.
        aspect_ratio: Aspect ratio of the picture, e.g. ``1:1``; null leaves it to the model.
        image_size: ``1K``, ``2K`` or ``4K``, for models that support it; null is not sent.
    """

    own_fields: ClassVar[frozenset[str]] = frozenset({"model", "messages", "n", "stream", "modalities", "seed"})

    prompt: str = "Draw a picture of: {prompt}"
    aspect_ratio: str | None = Field(default="1:1", max_length=10)
    image_size: str | None = Field(default=None, max_length=10)

    @field_validator("prompt")
    @classmethod
    def _check_template(cls, template: str) -> str:
        if PROMPT not in template:
            raise ValueError(f"text with {PROMPT} in place of the prompt")
        return template


class ChatImages(DrawingService):
    """Chat model that generates pictures."""

    Settings: ClassVar[type[ChatImagesSettings]] = ChatImagesSettings
    settings: Any
    api: ClassVar[str] = "chat_images"

    def options(self) -> dict[str, Json]:
        """Return aspect ratio and size as OpenRouter's ``image_config``."""
        own = self.settings
        config: dict[str, Json] = {"aspect_ratio": own.aspect_ratio, "image_size": own.image_size}
        sent: dict[str, Json] = {name: value for name, value in config.items() if value is not None}
        return {"image_config": sent} if sent else {}

    def words(self, call: Asking) -> str:
        """Return the prompt within the template."""
        return str(self.settings.prompt).replace(PROMPT, prompt_of(call).text)

    def rewrites(self) -> str:
        """Return a notice that the model may rewrite prompts."""
        return "the model may rewrite prompts without telling"
