"""Alibaba Cloud DashScope: Wan and related models, which run asynchronous tasks."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from medtest.systems.pictures.service import DrawingService, DrawingSettings

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
    settings: Any
    api: ClassVar[str] = "dashscope"
    option_names = ("size", "prompt_extend", "watermark", "negative_prompt")

    def wire_name(self) -> str:
        """Return the kind of endpoint of the protocol."""
        return _KINDS[self.settings.protocol]

    def rewrites(self) -> str:
        """Return a notice if prompts are rewritten."""
        return "prompt_extend: the rewritten prompt is recorded" if self.settings.prompt_extend else ""
