"""Random numbers that depend on what is asked alone, so that a request asked again is answered alike."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
_WHOLE = float(2**32)


class Draws:
    """Even numbers from the SHA-256 of some texts, one for each use that is named.

    Args:
        parts: What the numbers depend on.
    """

    __slots__ = ("_head",)

    def __init__(self, *parts: object) -> None:
        self._head = "\n".join(str(part) for part in parts)

    def share(self, use: str) -> float:
        """Return a number in [0, 1) for a use."""
        digest = hashlib.sha256(f"{self._head}\n{use}".encode()).digest()
        return int.from_bytes(digest[:4], "big") / _WHOLE

    def one_of(self, use: str, choices: Sequence[T]) -> T:
        """Return one of some choices, each as likely."""
        return choices[int(self.share(use) * len(choices))]
