"""Limits in replies of servers, and the buckets that keep them, with a simulated clock."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtest.api.pacing.quotas import LONGEST_PAUSE, Bucket, Quota, quotas, retry_after, seconds_of

NOW = 1_762_000_000.0  # Sat, 01 Nov 2025 12:26:40 GMT


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("6m0s", 360.0),  # the examples of OpenAI's guide "Rate limits": 1s and 6m0s
        ("1s", 1.0),
        ("120ms", 0.12),
        ("1m30.5s", 90.5),
        ("1h2m3s", 3723.0),
        ("20", 20.0),
        ("0.5", 0.5),
        (str(int(NOW) + 7), 7.0),
        (str(int(NOW * 1000) + 7500), 7.5),
        ("Sat, 01 Nov 2025 12:26:50 GMT", 10.0),
        ("2025-11-01T12:26:45Z", 5.0),
        ("Sat, 01 Nov 2025 12:00:00 GMT", 0.0),
        ("soon", None),
        ("-3", None),
        ("nan", None),
        ("", None),
        ("999999", LONGEST_PAUSE),
    ],
)
def test_durations_epochs_and_dates(text: str, seconds: float | None) -> None:
    assert seconds_of(text, NOW) == (None if seconds is None else pytest.approx(seconds, abs=1e-6))


@given(st.text(max_size=40))
def test_no_header_raises(text: str) -> None:
    for value in (seconds_of(text, NOW), retry_after({"retry-after": text, "retry-after-ms": text}, NOW)):
        assert value is None or 0 <= value <= LONGEST_PAUSE
    quotas({"x-ratelimit-remaining": text, "x-ratelimit-limit": text, "x-ratelimit-reset": text}, NOW)


def test_retry_after() -> None:
    assert retry_after({"retry-after": "3"}, NOW) == 3
    assert retry_after({"retry-after": "Sat, 01 Nov 2025 12:26:42 GMT"}, NOW) == 2
    assert retry_after({"retry-after-ms": "250", "retry-after": "1"}, NOW) == 0.25
    assert retry_after({}, NOW) is None


def test_quotas_of_three_families() -> None:
    openai = {
        "x-ratelimit-limit-requests": "60",
        "x-ratelimit-remaining-requests": "59",
        "x-ratelimit-reset-requests": "1s",
        "x-ratelimit-limit-tokens": "150000",
        "x-ratelimit-remaining-tokens": "149984",
        "x-ratelimit-reset-tokens": "6m0s",
    }
    assert quotas(openai, NOW) == {"requests": Quota(60, 59, 1), "tokens": Quota(150000, 149984, 360)}
    draft = {"ratelimit-limit": "100, 100;w=60", "ratelimit-remaining": "50", "ratelimit-reset": "30"}
    assert quotas(draft, NOW) == {"requests": Quota(100, 50, 30)}
    router = {"x-ratelimit-limit": "20", "x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(NOW * 1000 + 2000))}
    assert quotas(router, NOW) == {"requests": Quota(20, 0, 2)}
    assert quotas({"content-type": "x"}, NOW) == {}


def test_an_unknown_bucket_holds_nothing_back() -> None:
    bucket = Bucket()
    for now in range(5):
        assert bucket.ready_in(1, now) == 0
        bucket.take(1, now)


def test_a_bucket_learns_the_rate_and_waits_for_its_share() -> None:
    bucket = Bucket()
    # 10 a second, 10 at once: 8 used means 0.8 s until it is full.
    bucket.learn(Quota(10, 2, 0.8), sent_since=0, age=0, now=100.0)
    assert bucket.rate == pytest.approx(10, rel=0.1)
    assert bucket.ready_in(1, 100.0) == 0
    bucket.take(1, 100.0)
    bucket.take(1, 100.0)
    wait = bucket.ready_in(1, 100.0)
    assert 0.1 <= wait <= 0.25
    assert bucket.ready_in(1, 100.0 + wait + 1e-6) == 0


def test_calls_on_their_way_are_counted() -> None:
    bucket = Bucket()
    bucket.learn(Quota(10, 5, 0.5), sent_since=4, age=0.0, now=0.0)
    assert bucket.ready_in(1, 0.0) > 0


def test_a_window_refills_at_its_reset_only() -> None:
    bucket = Bucket()
    bucket.learn(Quota(60, 40, 59.0), sent_since=0, age=0, now=-29.0)  # a third of it used within a second
    bucket.learn(Quota(60, 0, 30.0), sent_since=0, age=0, now=0.0)
    assert bucket.ready_in(1, 0.0) < 5  # first taken for a steady refill
    bucket.surprised()
    bucket.surprised()
    assert bucket.windowed
    assert bucket.ready_in(1, 10.0) == pytest.approx(20.0)
    assert bucket.ready_in(1, 30.0) == 0


def test_a_limit_of_one_is_no_deadlock() -> None:
    bucket = Bucket()
    bucket.learn(Quota(1, 0, 2.0), sent_since=0, age=0, now=0.0)
    assert 0 < bucket.ready_in(1, 0.0) <= 2.0
    assert bucket.ready_in(1, 2.0) == 0


@given(
    st.lists(
        st.tuples(st.integers(1, 100), st.integers(0, 100), st.floats(0, 60), st.floats(0, 5)), min_size=1, max_size=30
    )
)
def test_a_call_leaves_in_finite_time_for_any_stated_limits(stated: list[tuple[int, int, float, float]]) -> None:
    bucket, now = Bucket(), 0.0
    for limit, remaining, reset, passed in stated:
        now += passed
        bucket.learn(Quota(limit, remaining, reset), sent_since=0, age=0.1, now=now)
        wait = bucket.ready_in(1, now)
        assert 0 <= wait <= max(reset, 61)
        assert bucket.ready_in(1, now + wait + 1e-6) <= 1e-5
