"""Byte-pair splitting of words by a sentencepiece model, without that library.

Kudo and Richardson, "SentencePiece", EMNLP 2018. The model's file is a protocol buffer whose field 1 holds the pieces,
each with its text (field 1) and score (field 2). Splitting starts with single characters and repeatedly merges the
neighbouring pair that is a piece with the highest score, the leftmost among equals.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

from medtest.systems.checkpoints.protobuf import fields

MAX_BYTES = 100_000_000


def read_pieces(path: Path) -> dict[str, float]:
    """Return the pieces of a sentencepiece model and their scores.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is no sentencepiece model.
    """
    if path.stat().st_size > MAX_BYTES:
        raise ValueError(f"{path.name} is larger than {MAX_BYTES // 1_000_000} MB")
    content = path.read_bytes()
    scores: dict[str, float] = {}
    for number, entry in fields(content, (0, len(content))):
        if number != 1 or isinstance(entry, int):
            continue
        held = {inner: content[slice(*span)] for inner, span in fields(content, entry) if isinstance(span, tuple)}
        if 1 in held and len(held.get(2, bytes(4))) == 4:
            scores[held[1].decode("utf-8", "replace")] = float(struct.unpack("<f", held.get(2, bytes(4)))[0])
    if not scores:
        raise ValueError(f"{path.name} is no sentencepiece model")
    return scores


def split_word(word: str, scores: Mapping[str, float]) -> list[str]:
    """Split a word into pieces.

    Args:
        word: Including the mark of a word's beginning.
        scores: From :func:`read_pieces`.
    """
    parts = list(word)
    while True:
        pairs = [(scores[a + b], -i) for i, (a, b) in enumerate(zip(parts, parts[1:], strict=False)) if a + b in scores]
        if not pairs:
            return parts
        place = -max(pairs)[1]
        parts[place : place + 2] = [parts[place] + parts[place + 1]]
