"""Endpoint kinds by their name in the parameters."""

from __future__ import annotations

from medtest.api.wire.base import Wire
from medtest.api.wire.services import (
    ChatImagesWire,
    DashScopeMessages,
    DashScopeWire,
    DeepAIWire,
    HuggingFaceWire,
    ImagesWire,
    StabilityWire,
)
from medtest.api.wire.words import WordsWire

WIRES: dict[str, Wire] = {
    "chat": WordsWire("chat", "/chat/completions"),
    "responses": WordsWire("responses", "/responses"),
    "images": ImagesWire(),
    "chat_images": ChatImagesWire(),
    "stability": StabilityWire(),
    "dashscope": DashScopeWire(),
    "dashscope_messages": DashScopeMessages(),
    "deepai": DeepAIWire(),
    "huggingface": HuggingFaceWire(),
}
"""Every kind of endpoint, by :attr:`medtest.api.calls.request.Parameters.api`."""
