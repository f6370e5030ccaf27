"""Mask values that mark the lesion, as written in suites and on command lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, TypeAlias

from pydantic import AfterValidator

from medtest.core.files.masks import LabelValue

_HEX = re.compile(r"#?([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})", re.I)
_FORM = "a level or index (1), a colour as a list [255, 0, 0], or '#ff0000'"
_LARGEST = 2**31


def _checked(values: list[int | str | list[int]]) -> list[int | str | list[int]]:
    if len(values) == 3 and 0 in values and all(isinstance(value, int) for value in values):
        shown = ", ".join(str(value) for value in values)
        raise ValueError(f"[{shown}] gives three levels, background among them; write a colour as [[{shown}]]")
    label_values(values)
    return values


LabelValues: TypeAlias = Annotated[list[int | str | list[int]], AfterValidator(_checked)]
"""List of grey levels (also of volumes), palette indices and colours."""


def label_values(values: Sequence[int | str | list[int]]) -> tuple[LabelValue, ...]:
    """Return values as :func:`medtest.core.files.masks.decode_mask` takes them.

    Raises:
        ValueError: A value is neither a level, an index nor a colour.
    """
    return tuple(_value(value) for value in values)


def _value(value: int | str | list[int]) -> LabelValue:
    if isinstance(value, int):
        if not 0 <= value <= _LARGEST:
            raise ValueError(f"{value} is not a level; expected {_FORM}")
        return value
    if isinstance(value, str):
        match = _HEX.fullmatch(value.strip())
        if match is None:
            raise ValueError(f"{value[:40]!r} is not a colour; expected {_FORM}")
        return int(match[1], 16), int(match[2], 16), int(match[3], 16)
    if len(value) != 3 or not all(0 <= channel <= 255 for channel in value):
        raise ValueError(f"{value!r:.60} is not a colour; expected {_FORM}")
    return value[0], value[1], value[2]
