"""Protocol Buffers messages, parsed without their descriptors: field numbers and values."""

from __future__ import annotations

from collections.abc import Iterator
from mmap import mmap
from typing import TypeAlias

Span: TypeAlias = tuple[int, int]
"""Start and end of a byte range."""


Content: TypeAlias = bytes | mmap
"""Bytes, in memory or mapped."""


def fields(content: Content, span: Span) -> Iterator[tuple[int, int | Span]]:
    """Yield number and value of the fields of a message: an integer, or the span of anything else.

    Args:
        content: Bytes with the message.
        span: Its position.

    Raises:
        ValueError: Invalid message.
    """
    at, end = span
    while at < end:
        key, at = varint(content, at)
        wire = key & 7
        if wire == 0:
            value, at = varint(content, at)
            yield key >> 3, value
            continue
        if wire == 2:
            size, at = varint(content, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise ValueError(f"a field of kind {wire} in a protocol buffer")
        if at + size > end:
            raise ValueError("a field is longer than its message")
        yield key >> 3, (at, at + size)
        at += size


def varint(content: Content, at: int) -> tuple[int, int]:
    """Return a varint and the position after it.

    Raises:
        ValueError: It does not end.
    """
    value = shift = 0
    while at < len(content) and shift <= 63:
        byte = content[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
    raise ValueError("a number that does not end")
