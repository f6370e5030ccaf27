"""Suites of questions from the command line against a server of faults: kills, budgets, secrets, trusted settings."""

from __future__ import annotations

import contextlib
import io
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import pytest
from forked_program import Program, command

from medtest.api.faulty.server import Faults, serving
from medtest.api.store.ledger import Ledger
from medtest.cli.run.launch import main
from medtest.core.records import UNEQUAL_COLUMNS

ROOT = Path(__file__).parents[2]
CANARY = "zq-canary-0123456789-secret"
IN_FLIGHT = 8
KILLS = int(os.environ.get("MEDTEST_KILLS", "3"))
RUN = ("suite=medvqa", "model=openai_compatible", "model_name=simulated", "limit=1", "relations=[unchanged,blur,text]")


def start_run(home: Path, *typed: str, fresh: bool = False, **environment: str) -> Program | subprocess.Popen[str]:
    """Start a run: a fork of a process that has its libraries, or a fresh interpreter."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "MEDTEST_HOME": str(home), **environment}
    line = [str(ROOT / "run.py"), *RUN, f"systems.openai_compatible.max_in_flight={IN_FLIGHT}", *typed]
    if not fresh:
        return command(*line, environment=env, folder=ROOT)
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, *line], stdout=pipe, stderr=pipe, text=True, env=env, cwd=ROOT)


def wait_for(process: Program | subprocess.Popen[str]) -> tuple[int | None, str]:
    out, err = process.communicate(timeout=280)
    assert "Traceback" not in err, err
    return process.returncode, out + err


def ledger_of(home: Path) -> Path | None:
    return next(iter(home.glob("outputs/medvqa/*/*/ledger.sqlite")), None)


def count_stored(home: Path) -> int:
    path = ledger_of(home)
    if path is None:
        return 0
    with (
        contextlib.suppress(sqlite3.OperationalError),
        contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db,
    ):
        return int(db.execute("SELECT COUNT(*) FROM outcomes").fetchone()[0])
    return 0


def records(home: Path) -> pd.DataFrame:
    (path,) = home.glob("outputs/medvqa/*/*/records.parquet")
    table = pd.read_parquet(path).drop(columns=list(UNEQUAL_COLUMNS))
    return table.sort_values(["relation", "repeat", "item"]).reset_index(drop=True)


@contextlib.contextmanager
def own_workers_end(process: Program | subprocess.Popen[str]) -> Iterator[None]:
    """After the block, wait until the workers of a killed run have ended; they follow their parent."""
    children = psutil.Process(process.pid).children(recursive=True)
    yield
    psutil.wait_procs(children, timeout=30)
    assert not [child for child in children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_killed_runs_resume_to_equal_records(tmp_path: Path) -> None:
    draw = random.Random(6)
    with serving(Faults(latency=0.05, jitter=0.05)) as server:
        where = (f"base_url={server.base_url}", "cache=off", "tracking=none")
        code, text = wait_for(start_run(tmp_path / "whole", *where))
        assert code in (0, 1), text
        whole = records(tmp_path / "whole")
        received = server.counts["received"]
        server.answered.clear()
        home = tmp_path / "killed"
        for _ in range(KILLS):
            goal = count_stored(home) + draw.randint(1, max(3, received // (2 * KILLS)))
            process = start_run(home, *where)
            until = time.monotonic() + 120
            while count_stored(home) < goal and process.poll() is None and time.monotonic() < until:
                time.sleep(0.02)
            assert process.poll() is None, "it ended before it was killed"
            time.sleep(0.1 * draw.random())
            with own_workers_end(process):
                process.send_signal(signal.SIGKILL)
                process.communicate()
        code, text = wait_for(start_run(home, *where))
        assert code in (0, 1), text
        answered = dict(server.answered)
    pd.testing.assert_frame_equal(records(home), whole, check_exact=True)
    path = ledger_of(home)
    assert path is not None
    with Ledger(path) as ledger:
        totals = ledger.totals()
    assert len(answered) == totals.outcomes == len(whole)
    assert sum(times - 1 for times in answered.values()) <= totals.lost <= KILLS * IN_FLIGHT
    assert totals.under_way == 0


def interrupt_run(home: Path, number: signal.Signals, *where: str, after: int = 12) -> tuple[int | None, str]:
    """Start a run, signal it after a number of stored answers, and return code and output."""
    process = start_run(home, *where)
    until = time.monotonic() + 120
    while count_stored(home) < after and process.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    assert process.poll() is None, "it ended before it was signalled"
    process.send_signal(number)
    return wait_for(process)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_interrupt_loses_no_call_and_the_next_run_goes_on(tmp_path: Path) -> None:
    with serving(Faults(latency=0.3)) as server:
        where = (f"base_url={server.base_url}", "cache=off", "tracking=none")
        code, text = wait_for(start_run(tmp_path / "whole", *where))
        assert code in (0, 1), text
        received = server.counts["received"]
        server.set(Faults(latency=0.3))
        server.counts.clear()
        server.answered.clear()
        home = tmp_path / "stopped"
        for number, after in ((signal.SIGINT, 12), (signal.SIGTERM, 40)):
            code, text = interrupt_run(home, number, *where, after=after)
            assert code == 130, text
            assert "interrupted after" in text
            assert "possibly billed" not in text
            path = ledger_of(home)
            assert path is not None
            with Ledger(path) as ledger:
                assert ledger.lost_before == 0, "a call was under way when the process ended"
                totals = ledger.totals()
            assert totals.lost == 0
            assert after <= totals.calls == totals.outcomes == server.counts["received"] < received
        code, text = wait_for(start_run(home, *where))
        assert code in (0, 1), text
        assert server.counts["received"] == received
        assert max(server.answered.values()) == 1
    pd.testing.assert_frame_equal(records(home), records(tmp_path / "whole"), check_exact=True)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_second_interrupt_ends_at_once_and_the_ledger_counts_lost_calls(tmp_path: Path) -> None:
    with serving(Faults()) as server:
        where = (f"base_url={server.base_url}", "cache=off", "tracking=none")
        process = start_run(tmp_path, *where)
        while count_stored(tmp_path) < 5 and process.poll() is None:
            time.sleep(0.02)
        server.set(Faults(latency=3600.0))
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        time.sleep(1.5)
        assert process.poll() is None, "the first one waits for what is under way"
        process.send_signal(signal.SIGINT)
        code, text = wait_for(process)
    assert code == 130, text
    assert re.search(r"[1-8] of \d+ calls without an answer, possibly billed", text)
    path = ledger_of(tmp_path)
    assert path is not None
    with Ledger(path) as ledger:
        assert 1 <= ledger.totals().lost <= IN_FLIGHT


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_budgets_end_a_run_with_their_own_code_and_are_raised(tmp_path: Path) -> None:
    price = "systems.openai_compatible.prices={simulated: {input: 1.0, output: 10.0}}"
    with serving() as server:
        where = (f"base_url={server.base_url}", "tracking=none", price)
        code, text = wait_for(start_run(tmp_path, *where, "budget.max_calls=20"))
        assert code == 5, text
        assert server.counts["received"] == 20
        assert re.search(r"budget\.max_calls=20 is reached", text)
        code, text = wait_for(start_run(tmp_path, *where, "budget.max_usd=0.001"))
        assert code == 5, text
        assert re.search(r"budget\.max_usd=0\.001 is reached", text)
        code, text = wait_for(start_run(tmp_path, *where, "budget.max_usd=5", "budget.max_calls=1000"))
        assert code in (0, 1), text
        assert server.counts["received"] == len(records(tmp_path))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_key_and_the_pictures_are_nowhere(tmp_path: Path) -> None:
    pictures: set[str] = set()

    def answer(body: Mapping[str, Any]) -> str:
        url = body["messages"][-1]["content"][0]["image_url"]["url"]
        pictures.add(url.split(",")[1][:80])
        return f"Yes. Authorization: Bearer {CANARY}; image {url}"

    shown: list[str] = []
    with serving(Faults(key=CANARY, latency=0.05), answer=answer) as server:
        where = (f"base_url={server.base_url}", "systems.openai_compatible.key_variable=OUR_MODEL_KEY")
        process = start_run(tmp_path, *where, fresh=True, OUR_MODEL_KEY=CANARY)
        while process.poll() is None and len(shown) < 2000:
            shown += [" ".join(p.info["cmdline"] or []) for p in psutil.process_iter(["cmdline"])]
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.5)
        code, text = wait_for(process)
        assert code in (0, 1), text
        wrong = wait_for(start_run(tmp_path, *where, "fresh=true", "cache=off", "limit=1", OUR_MODEL_KEY=CANARY + "x"))
    assert any("run.py" in line for line in shown)
    assert any(path.suffix == ".db" or "mlruns" in path.parts for path in tmp_path.rglob("*"))
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    contents = {str(path.relative_to(tmp_path)): path.read_bytes() for path in files}
    for secret in (CANARY, "base64,iVBOR", *pictures):
        assert not [name for name, content in contents.items() if secret.encode() in content]
        assert secret not in text + wrong[1]
        assert not [line for line in shown if secret in line]
    assert wrong[0] == 2, wrong[1]
    assert "Check the key" in " ".join(wrong[1].split())
    assert "Incorrect API key" in wrong[1] or any(b"Incorrect API key" in content for content in contents.values())


@pytest.mark.slow
@pytest.mark.parametrize(
    "typed",
    [
        "systems.vllm.key_variable=sk-proj-{}Abc0123456789def",
        "systems.vllm.key_variable={}0123456789abcdef",
        "systems.vllm.key_variable={}password",
        "systems.vllm.key_variable=[{}]",
        "systems.vllm.key_variable={{{}: 1}}",
        "systems.vllm={{key_variable: {}}}",
        "systems.vllm.base_url=https://user:{}@host.example/v1",
        "systems.vllm.base_url=https://host.example/v1?api_key={}",
        "base_url=https://{}@host.example/v1",
        "systems.vllm.extra={{api_key: {}0123456789}}",
        "systems.vllm.extra={{headers: {{Authorization: Bearer {}0123456789}}}}",
        "systems.vllm.api_key={}0123456789",
        "systems.vllm.key_variable={}+/12=34(5)",
        "systems.vllm.key_variable={}$12",
    ],
)
@pytest.mark.parametrize("sweep", [False, True])
def test_a_key_typed_in_the_wrong_place_is_shown_and_kept_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], typed: str, sweep: bool
) -> None:
    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path))
    canary = "zqcanaryzq"
    line = ["suite=medvqa", "model=vllm", "model_name=m", "limit=1", typed.format(canary)]
    assert main(["-m", *line] if sweep else line, command="python run.py") == 2
    output = capfd.readouterr()
    assert "fix" in output.out + output.err or "allowed" in output.out + output.err
    assert canary not in output.out + output.err
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in files if canary.encode() in path.read_bytes()]


@pytest.mark.slow
@pytest.mark.parametrize(
    "typed",
    [
        ("model=vllm", "judge.use={}"),
        ("model=vllm", "judge.use=[{}]"),
        ("model=vllm", "judge.use=vllm", "judge.model_name={}", "plan=true"),
        ("model=vllm", "judge.use=vllm", "judge.model_name={}"),
        ("model=vllm", "model_name={}", "plan=true"),
        ("model=vllm", "model_name={}"),
        ("model=vllm", "systems.vllm.model={}"),
        ("model={}",),
        ("model=vllm", "api={}"),
    ],
)
@pytest.mark.parametrize("sweep", [False, True])
def test_a_key_typed_as_a_name_is_shown_and_kept_nowhere(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    typed: tuple[str, ...],
    sweep: bool,
) -> None:
    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path))
    canary = "sk-proj-Zq12Canary34Zq56Gh78Ij90Kl12Mn34"
    line = ["suite=medvqa", "limit=1", *(word.format(canary) for word in typed)]
    assert main(["-m", *line] if sweep else line, command="python run.py") == 2
    output = capfd.readouterr()
    assert "found:" in output.out + output.err
    assert "Canary34" not in output.out + output.err
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in files if b"Canary34" in path.read_bytes()]


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("base_url", "elsewhere"),
        ("key_variable", "PATH"),
        ("send_images", "true"),
        ("prices", "{m: {input: 0.0, output: 0.0}}"),
        ("extra", "{tools: [{type: web_search}]}"),
    ],
)
def test_a_suite_does_not_decide_where_pictures_go(tmp_path: Path, setting: str, value: str) -> None:
    text = (ROOT / "suites" / "medvqa.yaml").read_text(encoding="utf-8")
    text = re.sub(r"(?m)^name: .*$", "name: strange", text)
    text = text.replace("  simlab: {}", f"  gpt_4o: {{{setting}: {value}}}")
    (tmp_path / "strange.yaml").write_text(text, encoding="utf-8")
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors):
        assert main([f"suite={tmp_path / 'strange.yaml'}", "plan=true"], command="python run.py") == 2
    assert f"systems.gpt_4o.{setting}" in errors.getvalue()
    assert "conf/ or the command line" in errors.getvalue()


@pytest.mark.parametrize("more", [[], ["plan=true"]])
def test_expectations_of_an_unknown_question_stop_a_run_and_a_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: list[str]
) -> None:
    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path))
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors):
        typed = ["suite=medvqa", "limit=1", "tracking=none", "oracles.expectations.blur.q_12345678=skip", *more]
        assert main(typed, command="python run.py") == 2
    assert "q_12345678, a question that no image asks" in errors.getvalue()
    assert not (tmp_path / "outputs").exists()
