"""Alibaba Cloud's DashScope: Wan and its kin, asked for a task and then after it."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from medtest.core.cases import Json
from medtest.systems.pictures.service import DrawingService, DrawingSettings

_KINDS = {"prompt": "dashscope", "messages": "dashscope_messages"}


class DashScopeSettings(DrawingSettings):
    """Settings of DashScope.

    Attributes:
        protocol: ``prompt`` (models up to wan2.5) or ``messages`` (wan2.6 and later).
        size: ``WIDTH*HEIGHT``.
        prompt_extend: Let a language model rewrite the prompt before it is drawn: the service's own default, and off
            here, for what is drawn should be what was asked. What was drawn instead is recorded.
        watermark: Put the service's mark on pictures.
        negative_prompt: What shall not be in the picture; null is not sent.
    """

    own_fields: ClassVar[frozenset[str]] = frozenset({"n", "seed", "prompt_extend"})

    protocol: Literal["prompt", "messages"] = "prompt"
    size: str | None = Field(default="1024*1024", max_length=20)
    prompt_extend: bool = False
    watermark: bool = False
    negative_prompt: str | None = Field(default=None, max_length=500)


class DashScope(DrawingService):
    """Wan and its kin."""

    Settings: ClassVar[type[DashScopeSettings]] = DashScopeSettings
    settings: Any
    api: ClassVar[str] = "dashscope"

    def wire_name(self) -> str:
        """Return the kind of endpoint that the protocol is."""
        return _KINDS[self.settings.protocol]

    def options(self) -> dict[str, Json]:
        """Return size, rewriting, mark."""
        names = ("size", "prompt_extend", "watermark", "negative_prompt")
        return {name: getattr(self.settings, name) for name in names}

    def rewrites(self) -> str:
        """Say whether prompts are rewritten."""
        return "prompt_extend: it rewrites prompts, and what it drew is recorded" if self.settings.prompt_extend else ""
