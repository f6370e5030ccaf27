"""Answers by content, shared by runs, so that the same question to the same model is paid for once.

One SQLite file for any number of processes. The key covers provider, model, every generation parameter, prompt,
pictures, seed and repeat (:func:`medtest.api.calls.request.content_key`). Only answers are stored: an error, a refusal,
a content filter's stop, a length stop or a malformed answer is never reused.
"""

from __future__ import annotations

from pathlib import Path

from medtest.api.calls.request import CallState, Outcome, Source
from medtest.api.store.answers import CacheMode, KeptTexts

__all__ = ["Cache", "CacheMode"]


class Cache(KeptTexts):
    """Cache in one file.

    Args:
        path: The file; created with its folder if missing and needed by the mode.
        mode: ``use``, ``refresh`` (request again and store the new answer) or ``off``.

    Raises:
        OutputProblem: The file cannot be used.
    """

    def __init__(self, path: Path | None, mode: CacheMode | str = CacheMode.USE) -> None:
        super().__init__(path, mode, "the cache")

    def get(self, key: str, address: str) -> Outcome | None:
        """Return the undamaged answer stored for this content, as the outcome of this address.

        Raises:
            OutputProblem: The file cannot be read.
        """
        line = self.text(key)
        return None if line is None else Outcome.read(line, address=address, key=key, source=Source.CACHE)

    def put(self, outcome: Outcome) -> None:
        """Store an answer; other outcomes are ignored.

        Raises:
            OutputProblem: The file cannot be written.
        """
        if outcome.state == CallState.ANSWERED:
            self.keep(outcome.key, outcome.to_json())
