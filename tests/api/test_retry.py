"""Pauses between calls."""

from __future__ import annotations

import random

import pytest

from medtest.api.calls.retry import Retries


class Fixed(random.Random):
    """Random numbers that are all equal."""

    def __init__(self, number: float) -> None:
        super().__init__()
        self._number = number

    def random(self) -> float:
        return self._number


def test_pauses_double_up_to_the_longest_and_half_of_each_is_random() -> None:
    retries = Retries(first_pause=0.5, longest_pause=20.0)
    shortest = [retries.pause(failures, Fixed(0.0)) for failures in range(1, 9)]
    longest = [retries.pause(failures, Fixed(1.0)) for failures in range(1, 9)]
    assert longest == [0.5, 1, 2, 4, 8, 16, 20, 20]
    assert shortest == [0.25, 0.5, 1, 2, 4, 8, 10, 10]


@pytest.mark.parametrize("wrong", [{"attempts": 0}, {"throttled": -1}, {"first_pause": -0.1}, {"call_seconds": 0}])
def test_policies_that_make_no_call_or_no_pause_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"at least|positive"):
        Retries(**wrong)  # type: ignore[arg-type]
