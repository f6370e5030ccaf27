"""Which values of a mask are lesion, as suites and command lines write them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, TypeAlias

from pydantic import AfterValidator

from medtest.core.files.masks import LabelValue

_HEX = re.compile(r"#?([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})", re.I)
_FORM = "a level or index (1), a colour as [255, 0, 0] in a list of its own, or '#ff0000'"
_LARGEST = 2**31


def _checked(given: list[int | str | list[int]]) -> list[int | str | list[int]]:
    if len(given) == 3 and 0 in given and all(isinstance(value, int) for value in given):
        shown = ", ".join(str(value) for value in given)
        raise ValueError(f"[{shown}] are three levels, background among them; a colour is [[{shown}]]")
    label_values(given)
    return given


LabelValues: TypeAlias = Annotated[list[int | str | list[int]], AfterValidator(_checked)]
"""A list of levels of grey masks and volumes, indices of palettes, and colours."""


def label_values(given: Sequence[int | str | list[int]]) -> tuple[LabelValue, ...]:
    """Return values as :func:`medtest.core.files.masks.decode_mask` takes them.

    Raises:
        ValueError: One is no level, no index and no colour.
    """
    return tuple(_value(one) for one in given)


def _value(given: int | str | list[int]) -> LabelValue:
    if isinstance(given, int):
        if not 0 <= given <= _LARGEST:
            raise ValueError(f"{given} is no level; expected {_FORM}")
        return given
    if isinstance(given, str):
        match = _HEX.fullmatch(given.strip())
        if match is None:
            raise ValueError(f"{given[:40]!r} is no colour; expected {_FORM}")
        return int(match[1], 16), int(match[2], 16), int(match[3], 16)
    if len(given) != 3 or not all(0 <= channel <= 255 for channel in given):
        raise ValueError(f"{given!r:.60} is no colour; expected {_FORM}")
    return given[0], given[1], given[2]
