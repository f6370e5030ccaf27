"""Answers by content, shared by runs: the same question to the same model is paid for once.

One SQLite file for any number of processes. The key covers provider, model, every generation parameter, prompt,
pictures, seed and repeat (:func:`medtest.api.calls.request.content_key`). Only answers are kept: an error, a refusal, a
content filter's stop, a length stop or a malformed answer is never given out again as if it were one.
"""

from __future__ import annotations

from pathlib import Path

from medtest.api.calls.request import CallState, Outcome, Source
from medtest.api.store.answers import CacheMode, KeptTexts

__all__ = ["Cache", "CacheMode"]


class Cache(KeptTexts):
    """The cache in one file.

    Args:
        path: The file; made with its folder where it does not exist and the mode needs it.
        mode: ``use``, ``refresh`` (ask anew and keep the new answer) or ``off``.

    Raises:
        OutputProblem: The file cannot be used.
    """

    def __init__(self, path: Path | None, mode: CacheMode | str = CacheMode.USE) -> None:
        super().__init__(path, mode, "the cache")

    def get(self, key: str, address: str) -> Outcome | None:
        """Return the answer kept whole for this content, as the outcome of this address; it costs nothing now.

        Raises:
            OutputProblem: The file cannot be read.
        """
        line = self.text(key)
        return None if line is None else Outcome.read(line, address=address, key=key, source=Source.CACHE)

    def put(self, outcome: Outcome) -> None:
        """Keep an answer; whatever is no answer is left out.

        Raises:
            OutputProblem: The file cannot be written.
        """
        if outcome.state == CallState.ANSWERED:
            self.keep(outcome.key, outcome.to_json())
