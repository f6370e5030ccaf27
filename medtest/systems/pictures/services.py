"""Image generation services as systems under test."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, field_validator

from medtest.core.cases import Json
from medtest.core.plugins import TRUSTED
from medtest.systems.answering.asking import Asking
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
    settings: OpenAIImagesSettings
    api: ClassVar[str] = "images"
    option_names = ("size", "quality", "style", "background", "moderation", "output_format", "response_format")

    def rewrites(self) -> str:
        """Return a notice on rewritten prompts, which only the service itself can report."""
        return "the rewritten prompt that it reports is recorded"


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
    settings: ChatImagesSettings
    api: ClassVar[str] = "chat_images"

    def options(self) -> dict[str, Json]:
        """Return aspect ratio and size as OpenRouter's ``image_config``."""
        own = self.settings
        config: dict[str, Json] = {"aspect_ratio": own.aspect_ratio, "image_size": own.image_size}
        sent: dict[str, Json] = {name: value for name, value in config.items() if value is not None}
        return {"image_config": sent} if sent else {}

    def words(self, call: Asking) -> str:
        """Return the prompt within the template."""
        return self.settings.prompt.replace(PROMPT, call.required_prompt.text)

    def rewrites(self) -> str:
        """Return a notice that the model may rewrite prompts."""
        return "the model may rewrite prompts without telling"


_KINDS = {"prompt": "dashscope", "messages": "dashscope_messages"}


class DashScopeSettings(DrawingSettings):
    """Settings of DashScope.

    Attributes:
        protocol: ``prompt`` (models up to wan2.5) or ``messages`` (wan2.6 and later).
        size: ``WIDTH*HEIGHT``.
        prompt_extend: Let a language model rewrite the prompt first: the service's default, but off here, because the
            picture should follow the original prompt. The rewritten prompt is recorded.
        watermark: Put the service's watermark on pictures.
        negative_prompt: Content to exclude from the picture; null is not sent.
    """

    own_fields: ClassVar[frozenset[str]] = frozenset({"n", "seed", "prompt_extend"})

    protocol: Literal["prompt", "messages"] = "prompt"
    size: str | None = Field(default="1024*1024", max_length=20)
    prompt_extend: bool = False
    watermark: bool = False
    negative_prompt: str | None = Field(default=None, max_length=500)


class DashScope(DrawingService):
    """Wan and related models."""

    Settings: ClassVar[type[DashScopeSettings]] = DashScopeSettings
    settings: DashScopeSettings
    api: ClassVar[str] = "dashscope"
    option_names = ("size", "prompt_extend", "watermark", "negative_prompt")

    def wire_name(self) -> str:
        """Return the kind of endpoint of the protocol."""
        return _KINDS[self.settings.protocol]

    def rewrites(self) -> str:
        """Return a notice if prompts are rewritten."""
        return "prompt_extend: the rewritten prompt is recorded" if self.settings.prompt_extend else ""


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
    settings: DeepAISettings
    api: ClassVar[str] = "deepai"
    option_names = ("width", "height")

    def options(self) -> dict[str, Json]:
        """Return size, version, and a request for one picture instead of a sheet of four."""
        return {**super().options(), "grid_size": 1, "image_generator_version": self.settings.version}


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
    settings: HuggingFaceImagesSettings
    api: ClassVar[str] = "huggingface"
    option_names = ("width", "height", "num_inference_steps", "guidance_scale", "negative_prompt", "scheduler")

    def options(self) -> dict[str, Json]:
        """Return size, steps, guidance, and the model's path below the base URL."""
        own = self.settings
        return {**super().options(), "asked_path": f"/models/{own.model}" if own.router else None}


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
    settings: StabilitySettings
    api: ClassVar[str] = "stability"
    option_names = ("aspect_ratio", "negative_prompt", "style_preset", "output_format")
