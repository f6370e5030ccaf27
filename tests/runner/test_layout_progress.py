"""Layout of work over processes, and the progress line of a terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from medtest.runner.pool.layout import Layout, choose_layout, device_is_certain, usable_cores
from medtest.runner.reporting import progress
from medtest.runner.reporting.outcome import Count


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
    monkeypatch.setattr("medtest.runner.pool.layout.usable_cores", lambda: 4)
    assert choose_layout(device=device, units=units, workers=workers, threads=threads) == expected


def test_little_memory_means_fewer_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    class Memory:
        available = 2_500_000_000

    monkeypatch.setattr("medtest.runner.pool.layout.usable_cores", lambda: 16)
    monkeypatch.setattr("psutil.virtual_memory", lambda: Memory)
    assert choose_layout(device="cpu", units=100, workers=None, threads=None).workers == 2


def test_cores_and_devices_are_found_without_torch() -> None:
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


def test_a_log_gets_a_line_every_half_minute_and_the_phases() -> None:
    now, written = [50.0], []
    log = progress.LogLines(written.append, lambda: now[0])
    for second in range(0, 100, 5):
        now[0] = 50.0 + second
        done = 0 if second < 10 else 10 * (second - 10)  # ten cases a second, after ten seconds of loading
        log.update(Count(done=100 + done, total=8100, reused=100, violations=second, errors=second // 60))
    now[0] = 950.0
    log.update(Count(done=8100, total=8100, reused=100, violations=99, errors=1, calls="$0.31"))
    now[0] = 951.0
    for phase in ("tables", "report", "tracking"):
        log.phase(phase)
    log.close()
    assert written == [
        "0:00:30  300 of 8,100 cases, 10.0 a second, 13 min left, 30 violations",
        "0:01:00  600 of 8,100 cases, 10.0 a second, 12 min left, 60 violations, 1 error",
        "0:01:30  900 of 8,100 cases, 10.0 a second, 12 min left, 90 violations, 1 error",
        "0:15:00  8,100 of 8,100 cases, finishing, 99 violations, 1 error, $0.31",
        "0:15:01  tables",
        "0:15:01  report",
        "0:15:01  tracking",
    ]


def test_a_log_says_every_few_seconds_how_far_a_reader_of_records_is() -> None:
    now, written = [100.0], []
    log = progress.LogLines(written.append, lambda: now[0])
    for second in range(13):
        now[0] = 100.0 + second
        log.reading(f"{second} answered")
    assert written == ["0:00:05  reading: 5 answered", "0:00:10  reading: 10 answered"]
    progress.Silence().reading("1 answered")


def test_a_slow_run_is_counted_by_the_minute_and_loading_is_shown() -> None:
    now, written = [0.0], []
    log = progress.LogLines(written.append, lambda: now[0])
    now[0] = 31.0
    log.update(Count(done=0, total=9, reused=0, violations=0, errors=0))
    now[0] = 60.0
    log.update(Count(done=1, total=9, reused=0, violations=0, errors=0))
    now[0] = 180.0
    log.update(Count(done=3, total=9, reused=0, violations=0, errors=0))
    assert written == [
        "0:00:31  0 of 9 cases, loading the systems, 0 violations",
        "0:03:00  3 of 9 cases, 1.0 a minute, 6 min left, 0 violations",
    ]


def test_without_a_terminal_lines_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert isinstance(progress.choose_progress(quiet=True), progress.Silence)
    log = progress.choose_progress(quiet=False)
    assert isinstance(log, progress.LogLines)
    log.phase("tables of [net]")
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "0:00:00  tables of [net]\n")
