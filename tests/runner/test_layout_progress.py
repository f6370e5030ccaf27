"""How work is spread, and what a terminal shows."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from medtest.runner import Count, progress
from medtest.runner.layout import Layout, choose_layout, device_is_certain, usable_cores


@pytest.mark.parametrize(
    ("device", "units", "workers", "threads", "expected"),
    [
        ("cpu", 100, None, None, Layout(workers=4, threads=1)),
        ("cpu", 3, None, None, Layout(workers=3, threads=1)),
        ("cpu", 0, None, None, Layout(workers=1, threads=1)),
        ("cpu", 100, None, 2, Layout(workers=2, threads=2)),
        ("cpu", 100, None, 8, Layout(workers=1, threads=8)),
        ("cpu", 100, 1, None, Layout(workers=1, threads=4)),
        ("cpu", 100, 3, None, Layout(workers=3, threads=1)),
        ("cpu", 100, 9, 1, Layout(workers=9, threads=1)),
        ("cuda:0", 100, None, None, Layout(workers=1, threads=4)),
        ("cuda:1", 100, 2, 1, Layout(workers=2, threads=1)),
    ],
)
def test_layout(
    monkeypatch: pytest.MonkeyPatch, device: str, units: int, workers: int | None, threads: int | None, expected: Layout
) -> None:
    monkeypatch.setattr("medtest.runner.layout.usable_cores", lambda: 4)
    assert choose_layout(device=device, units=units, workers=workers, threads=threads) == expected


def test_little_memory_means_fewer_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    class Memory:
        available = 2_500_000_000

    monkeypatch.setattr("medtest.runner.layout.usable_cores", lambda: 16)
    monkeypatch.setattr("psutil.virtual_memory", lambda: Memory)
    assert choose_layout(device="cpu", units=100, workers=None, threads=None).workers == 2


def test_cores_and_devices_are_told_without_torch() -> None:
    assert usable_cores() >= 1
    assert device_is_certain("auto", needed=False) == "cpu"
    assert device_is_certain("cuda:1", needed=True) == "cuda:1"


def test_the_line_says_cases_violations_errors_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    out = io.StringIO()
    monkeypatch.setattr("rich.console.Console", lambda **_: Console(file=out, force_terminal=True, width=120))
    line = progress.TerminalLine()
    line.update(Count(done=0, total=2000, reused=0, violations=0, errors=0))
    line.update(Count(done=100, total=2000, reused=0, violations=3, errors=0))
    now[0] += 10
    line.update(Count(done=600, total=2000, reused=0, violations=41, errors=2))
    line.close()
    shown = out.getvalue()
    assert "loading the systems" in shown
    for words in ("600/2,000 cases", "41 violations", "2 errors", "28 s left"):
        assert words in shown


def test_there_is_no_line_without_a_terminal() -> None:
    assert isinstance(progress.choose_progress(quiet=False), progress.Silence)
    assert isinstance(progress.choose_progress(quiet=True), progress.Silence)
