"""Endpoints by the name that parameters give them."""

from __future__ import annotations

from medtest.api.wire.base import Wire
from medtest.api.wire.chat_images import ChatImages
from medtest.api.wire.dashscope import DashScope, DashScopeMessages
from medtest.api.wire.deepai import DeepAI
from medtest.api.wire.huggingface import HuggingFace
from medtest.api.wire.images import Images
from medtest.api.wire.stability import Stability
from medtest.api.wire.words import ChatCompletions, Responses

WIRES: dict[str, Wire] = {
    "chat": ChatCompletions(),
    "responses": Responses(),
    "images": Images(),
    "chat_images": ChatImages(),
    "stability": Stability(),
    "dashscope": DashScope(),
    "dashscope_messages": DashScopeMessages(),
    "deepai": DeepAI(),
    "huggingface": HuggingFace(),
}
"""Every endpoint, by :attr:`medtest.api.request.Parameters.api`."""


def wire_of(api: str) -> Wire:
    """Return an endpoint by its name.

    Raises:
        KeyError: There is none of this name.
    """
    return WIRES[api]
