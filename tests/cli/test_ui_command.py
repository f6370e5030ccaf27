"""``medtest ui``: a viewer whose first link shows every system's figures."""

from __future__ import annotations

import os
import queue
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import psutil
import pytest
from rich.console import Console

from medtest.cli.team.ui import serve_ui
from medtest.core.errors import UserMistakes
from medtest.report import tracking

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def leave_runs(home: Path) -> None:
    """Write two suites' runs: one invocation of two systems, one of one."""
    tracker = tracking.Tracker(home)
    for suite, systems in (("polyps", {"net-a": 12.5, "net-b": 3.0}), ("chests", {"net-c": 40.0})):
        parents = tracker.parent(suite, f"{suite} 1", {"suite": suite})
        for name, rate in systems.items():
            metrics = {"efr": rate, "efr_low": 1.0, "efr_high": 50.0, "floor": 0.0, "source_score": 0.75}
            tags = {"system": name, "weakest_relation": "blur, 20 %", "gate": "failed"}
            child = tracking.Child(name=name, tags=tags, metrics=metrics, params={"suite": suite})
            tracker.child(suite, parents, child)
        tracker.close(parents)


def lines_of(process: subprocess.Popen[str]) -> queue.Queue[str]:
    """Return a queue of a process's output lines, filled by a thread."""
    lines: queue.Queue[str] = queue.Queue()

    def read() -> None:
        for line in process.stdout or ():
            lines.put(line)

    threading.Thread(target=read, daemon=True).start()
    return lines


def test_a_taken_port_is_one_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path))
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        port = other.getsockname()[1]
        with pytest.raises(UserMistakes, match=f"{port}, which is in use"):
            serve_ui(host="127.0.0.1", port=port, console=Console())
    assert not (tmp_path / "mlruns").exists()


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_one_link_shows_every_system_with_its_figures(tmp_path: Path) -> None:
    (tmp_path / "cwd").mkdir()
    leave_runs(tmp_path / "home")
    environment = {**os.environ, "MEDTEST_HOME": str(tmp_path / "home"), "PYTHONUNBUFFERED": "1"}
    environment.pop("MLFLOW_TRACKING_URI", None)
    port = free_port()
    command = [sys.executable, "-m", "medtest", "ui", "--port", str(port)]
    process = subprocess.Popen(
        command, cwd=tmp_path / "cwd", env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        lines, shown, end = lines_of(process), "", time.monotonic() + 600
        while "  chests: " not in shown and time.monotonic() < end:
            shown += lines.get(timeout=600)
        link = next(word for word in shown.split() if "/#/compare-experiments/" in word)
        with closing(socket.create_connection(("127.0.0.1", port), timeout=5)):
            pass  # the link was printed when the server answered
        started = psutil.Process(process.pid).children(recursive=True)
        assert not [child for child in started if "jobs" in " ".join(child.cmdline())]
        assert len(started) <= 4, [child.cmdline() for child in started]
        remote = {**environment, "MLFLOW_TRACKING_URI": f"http://127.0.0.1:{port}"}
        other = subprocess.run(
            [*command[:-1], str(free_port())], env=remote, capture_output=True, text=True, timeout=300, check=False
        )
        assert (other.returncode, link in other.stdout) == (0, True)
        if CHROMIUM is not None:
            _look(link)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
    assert list((tmp_path / "cwd").iterdir()) == []  # artifacts follow MEDTEST_HOME


def _look(link: str) -> None:
    """Open the link as a user's browser does, and read the table."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(link, timeout=240_000)
        page.get_by_text("net-c").first.wait_for(timeout=240_000)
        assert {"efr", "gate", "weakest_relation", "efr_low"} <= _in_view(page)  # beside MLflow's open assistant
        page.set_viewport_size({"width": 2400, "height": 900})  # columns out of view are not in the page
        page.get_by_text("source_score").first.wait_for(timeout=240_000)
        page.locator("[role=columnheader][col-id='params.`date`']").wait_for(timeout=60_000)  # the last one drawn
        place = "e => [e.getBoundingClientRect().left, e.getAttribute('col-id')]"
        heads = page.evaluate(f"[...document.querySelectorAll('[role=columnheader]')].map({place})")
        heads = [name for _, name in sorted(heads, key=lambda head: head[0])]
        expected = [
            "metrics.`efr`",
            "tags.`gate`",
            "tags.`weakest_relation`",
            "metrics.`efr_low`",
            "metrics.`efr_high`",
        ]
        expected += ["metrics.`floor`", "metrics.`source_score`", "params.`suite`", "params.`date`"]
        assert [head for head in heads if head in expected] == expected
        text = page.inner_text("body")
        for word in ("net-a", "net-b", "net-c", "polyps", "chests", "12.5", "blur, 20 %", "failed"):
            assert word in text
        assert "3 matching runs" in text
        assert "polyps 1" not in text  # the invocations are no rows of this table
        browser.close()


def _in_view(page) -> set[str]:
    """Return the columns whose heads no edge of the table cuts."""
    whole = """() => {
      const table = document.querySelector('.ag-header-viewport').getBoundingClientRect();
      return [...document.querySelectorAll('.ag-header-viewport [role=columnheader][col-id]')]
        .filter(e => e.getBoundingClientRect().right <= table.right + 1).map(e => e.getAttribute('col-id'));
    }"""
    return {name.split("`")[1] for name in page.evaluate(whole) if "`" in name}
