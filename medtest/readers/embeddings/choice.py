"""Selects the network for metrics from the user's choice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medtest.readers.embeddings.base import Embedder
from medtest.readers.embeddings.bundled import BundledEmbedding
from medtest.readers.embeddings.clip import Clip
from medtest.readers.embeddings.inception import Inception


def embedder_of(choice: Mapping[str, Any]) -> Embedder:
    """Return a network that is not opened yet.

    Args:
        choice: ``net``: ``bundled``, ``inception`` or ``clip``; ``place``: the path for the latter two.

    Raises:
        ValueError: The network is unknown.
    """
    net, place = str(choice.get("net")), str(choice.get("place", ""))
    if net == BundledEmbedding.name:
        return BundledEmbedding()
    if net == Inception.name:
        return Inception(place)
    if net == Clip.name:
        return Clip(place)
    raise ValueError(f"{net!r} is not a network of pictures")
