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
from medtest.api.wire.words import ChatCompletions, Responses

WIRES: dict[str, Wire] = {
    "chat": ChatCompletions(),
    "responses": Responses(),
    "images": ImagesWire(),
    "chat_images": ChatImagesWire(),
    "stability": StabilityWire(),
    "dashscope": DashScopeWire(),
    "dashscope_messages": DashScopeMessages(),
    "deepai": DeepAIWire(),
    "huggingface": HuggingFaceWire(),
}
"""Every kind of endpoint, by :attr:`medtest.api.calls.request.Parameters.api`."""


def wire_of(api: str) -> Wire:
    """Return a kind of endpoint by its name.

    Raises:
        KeyError: Unknown name.
    """
    return WIRES[api]
