"""How a word falls into pieces under a sentencepiece model of the byte-pair kind, without that library.

Kudo and Richardson, "SentencePiece", EMNLP 2018. The model's file is a protocol buffer whose field 1 holds the pieces,
each with its text (field 1) and score (field 2). Splitting begins with single characters and joins, again and again,
the neighbouring pair that is a piece of the highest score, the leftmost of equals.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

MAX_BYTES = 100_000_000


def read_pieces(path: Path) -> dict[str, float]:
    """Return the pieces of a sentencepiece model and their scores.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is no such model.
    """
    if path.stat().st_size > MAX_BYTES:
        raise ValueError(f"{path.name} is larger than {MAX_BYTES // 1_000_000} MB")
    content = path.read_bytes()
    scores: dict[str, float] = {}
    for number, value in _fields(content):
        if number == 1 and isinstance(value, bytes):
            entry = dict(_fields(value))
            text, score = entry.get(1), entry.get(2, 0.0)
            if isinstance(text, bytes) and isinstance(score, float):
                scores[text.decode("utf-8", "replace")] = score
    if not scores:
        raise ValueError(f"{path.name} is no sentencepiece model")
    return scores


def split_word(word: str, scores: Mapping[str, float]) -> list[str]:
    """Return the pieces of a word.

    Args:
        word: With the mark of a word's beginning.
        scores: From :func:`read_pieces`.
    """
    parts = list(word)
    while True:
        pairs = [(scores[a + b], -i) for i, (a, b) in enumerate(zip(parts, parts[1:], strict=False)) if a + b in scores]
        if not pairs:
            return parts
        place = -max(pairs)[1]
        parts[place : place + 2] = [parts[place] + parts[place + 1]]


def _fields(content: bytes) -> Iterator[tuple[int, bytes | int | float]]:
    """Walk over a message's fields: number, and bytes, whole number or 32-bit float."""
    place = 0
    while place < len(content):
        key, place = _varint(content, place)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, place = _varint(content, place)
            yield number, value
        elif wire == 2:
            length, place = _varint(content, place)
            if place + length > len(content):
                raise ValueError("a field is longer than its message")
            yield number, content[place : place + length]
            place += length
        elif wire == 5 and place + 4 <= len(content):
            yield number, float(struct.unpack_from("<f", content, place)[0])
            place += 4
        elif wire == 1 and place + 8 <= len(content):
            yield number, float(struct.unpack_from("<d", content, place)[0])
            place += 8
        else:
            raise ValueError(f"a field of kind {wire} in a protocol buffer")


def _varint(content: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if place >= len(content) or shift > 63:
            raise ValueError("a number that does not end")
        byte = content[place]
        value |= (byte & 0x7F) << shift
        place += 1
        if byte < 0x80:
            return value, place
        shift += 7
