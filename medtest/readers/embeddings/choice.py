"""Which networks figures are made with, from what a user chose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medtest.readers.embeddings.base import Embedder
from medtest.readers.embeddings.bundled import BundledEmbedding
from medtest.readers.embeddings.clip import Clip
from medtest.readers.embeddings.inception import Inception


def embedder_of(choice: Mapping[str, Any]) -> Embedder:
    """Return a network, not opened yet.

    Args:
        choice: ``net``: ``bundled``, ``inception`` or ``clip``; ``place``: the path of the latter two.

    Raises:
        ValueError: There is no such network.
    """
    net, place = str(choice.get("net")), str(choice.get("place", ""))
    if net == BundledEmbedding.name:
        return BundledEmbedding()
    if net == Inception.name:
        return Inception(place)
    if net == Clip.name:
        return Clip(place)
    raise ValueError(f"{net!r} is no network of pictures")
