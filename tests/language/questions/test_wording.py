"""Canonical values in words: sizes have their unit, counts have none."""

from __future__ import annotations

import pytest

from medtest.language.questions.values import Kind
from medtest.language.questions.wording import plain_value


@pytest.mark.parametrize(
    ("text", "kind", "shown"),
    [
        ("7", Kind.SIZE, "7 mm"),
        ("~7", Kind.SIZE, "about 7 mm"),
        ("5..10", Kind.SIZE, "5 to 10 mm"),
        ("..5", Kind.SIZE, "below 5 mm"),
        ("..=5", Kind.SIZE, "at most 5 mm"),
        ("20..", Kind.SIZE, "above 20 mm"),
        ("=20..", Kind.SIZE, "at least 20 mm"),
        ("3;12.5", Kind.SIZE, "3 mm, 12.5 mm"),
        ("not_relevant", Kind.SIZE, "not relevant"),
        ("", Kind.SIZE, ""),
        ("7", Kind.COUNT, "7"),
        ("2..3", Kind.COUNT, "2 to 3"),
        ("7", "", "7"),
        ("iia", Kind.POLYP_TYPE, "IIa"),
        ("7", "text", "7"),
    ],
)
def test_only_a_size_is_shown_in_millimetres(text: str, kind: str, shown: str) -> None:
    assert plain_value(text, kind) == shown
