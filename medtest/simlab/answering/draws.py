"""Random numbers that depend only on the request, so that a repeated request gets the same answer."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
_WHOLE = float(2**32)


class Draws:
    """Uniform numbers from the SHA-256 of some texts, one for each named use.

    Args:
        parts: Texts that determine the numbers.
    """

    __slots__ = ("_head",)

    def __init__(self, *parts: object) -> None:
        self._head = "\n".join(str(part) for part in parts)

    def share(self, use: str) -> float:
        """Return a number in [0, 1) for a use."""
        digest = hashlib.sha256(f"{self._head}\n{use}".encode()).digest()
        return int.from_bytes(digest[:4], "big") / _WHOLE

    def one_of(self, use: str, choices: Sequence[T]) -> T:
        """Return one of the choices, with equal probability."""
        return choices[int(self.share(use) * len(choices))]
