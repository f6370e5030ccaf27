"""Items drawn from a stream."""

from __future__ import annotations

import pytest

from medtest.api import pool


def test_as_many_items_are_drawn_as_asked_for_and_none_past_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_SLICE_SECONDS", 60.0)
    items = iter([1, 2, 3, 4, None, 5])
    assert pool._draw(items, 3) == ([1, 2, 3], False)
    assert pool._draw(items, 3) == ([4], False)
    assert pool._draw(items, 3) == ([5], True)
