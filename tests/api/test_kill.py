"""SIGKILL at random moments: no call lost, none doubled, and calls in flight are reported."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from api_parts import ask_all, questions
from forked_program import Program, command

from medtest.api.faulty.server import Faults, FaultServer, serving
from medtest.api.store.ledger import Ledger

IN_FLIGHT = 8
CHILD = Path(__file__).with_name("campaign_child.py")


def started(folder: Path, server: FaultServer, count: int) -> Program:
    return command(CHILD, folder, server.base_url, str(count))


def outcome_count(ledger: Path) -> int:
    if not ledger.exists():
        return 0
    try:
        with sqlite3.connect(f"file:{ledger}?mode=ro", uri=True) as db:
            return int(db.execute("SELECT COUNT(*) FROM outcomes").fetchone()[0])
    except sqlite3.OperationalError:
        return 0


def killed_at(folder: Path, server: FaultServer, count: int, more: int, draw: random.Random) -> None:
    """Let a child answer ``more`` requests and kill it after a random time."""
    ledger = folder / "ledger.sqlite"
    goal = outcome_count(ledger) + more
    child = started(folder, server, count)
    until = time.monotonic() + 120
    while outcome_count(ledger) < goal and child.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(0.05 * draw.random())
    child.send_signal(signal.SIGKILL)
    child.communicate()


def resumed(folder: Path, server: FaultServer, count: int) -> list[dict[str, Any]]:
    child = started(folder, server, count)
    out, _ = child.communicate(timeout=240)
    assert child.returncode == 0
    return [json.loads(line) for line in out.splitlines()]


def campaign_survives(folder: Path, kills: int, count: int, faults: Faults) -> None:
    draw = random.Random(kills)
    with serving(faults) as server:
        whole = ask_all(folder / "whole", server.base_url, questions(count))
        server.answered.clear()
        run = folder / "killed"
        for _ in range(kills):
            killed_at(run, server, count, draw.randint(1, max(1, count // (2 * kills))), draw)
        first, *outcomes, last = resumed(run, server, count)
        answered = dict(server.answered)
    expected = sorted((o.address, str(o.state), o.text) for o in whole)
    assert sorted((o["address"], o["state"], o["text"]) for o in outcomes) == expected
    # Content with several whole answers was in flight at a kill, and the ledger has each of these calls as lost.
    doubled = sum(times - 1 for times in answered.values())
    assert len(answered) == count
    assert doubled <= last["lost"] <= kills * IN_FLIGHT
    assert last["under_way"] == 0
    assert first["lost_before"] <= IN_FLIGHT
    with Ledger(run / "ledger.sqlite") as ledger:
        assert ledger.lost_before == 0
        totals = ledger.totals()
        assert totals.outcomes == len(list(ledger.outcomes())) == count
        assert totals.calls == totals.answered + totals.lost


@pytest.mark.slow
def test_two_kills(tmp_path: Path) -> None:
    campaign_survives(tmp_path, kills=2, count=80, faults=Faults(latency=0.03))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_ten_kills_under_faults(tmp_path: Path) -> None:
    mix = Faults(latency=0.02, jitter=0.02, too_many=0.03, error=0.02, retry_after="none", seed=5)
    campaign_survives(tmp_path, kills=10, count=400, faults=mix)


def test_calls_of_a_dead_session_are_found(tmp_path: Path) -> None:
    """A child enters two calls, answers none and dies without closing anything."""
    code = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from medtest.api.store.ledger import Ledger\n"
        "ledger = Ledger(Path(sys.argv[1]))\n"
        "for name in 'ab': ledger.send(address=name, key='k', attempt=1, expected_usd=0.5)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    path = tmp_path / "ledger.sqlite"
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", code, str(path)], env=env, check=False)
    assert done.returncode == -signal.SIGKILL
    with Ledger(path) as ledger:
        assert ledger.lost_before == 2
        totals = ledger.totals()
    assert (totals.calls, totals.lost, totals.doubtful, totals.billable) == (2, 2, 2, 2)
    assert totals.cost_usd == 1.0  # their possible cost counts against the budget
