"""SIGTERM and Ctrl-C in every phase of a run: exit code 130, one message on what is kept, no traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from forked_program import Program, command
from sqlalchemy import create_engine
from sqlalchemy.engine.interfaces import DBAPIConnection

from medtest.runner.reporting import signals

ROOT = Path(__file__).parents[2]
SUITE = """\
name: tiny
version: "1"
seed: 1
seeds: {phantoms: {count: 2}}
relations: {contrast: {severities: [1, 5]}}
systems: [pranet]
"""
NET = """\
import numpy as np

def all_of_it(image):
    return np.ones(image.shape[:2], dtype=bool)
"""
SYSTEM = ["suite=tiny.yaml", "model=callable", "target=net.py:all_of_it", "workers=1", "device=cpu"]
NOTHING, RUN, TABLES, TRACKING = (signals.PHASES[name] for name in ("start", "run", "tables", "tracking"))


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Return a working directory with a suite and a system in a file."""
    (tmp_path / "tiny.yaml").write_text(SUITE)
    (tmp_path / "net.py").write_text(NET)
    return tmp_path


def environment(work: Path) -> dict[str, str]:
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("MEDTEST", "MLFLOW"))}
    return variables | {"MEDTEST_HASH_KEY_FILE": str(work / "hash.key"), "OMP_NUM_THREADS": "1"}


def start(work: Path, *typed: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(ROOT / "run.py"), *SYSTEM, *typed],
        cwd=work,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=environment(work),
    )


def start_again(work: Path, *typed: str) -> Program:
    """Start the same command again; no signal reaches it while it imports."""
    return command(ROOT / "run.py", *SYSTEM, *typed, environment=environment(work), folder=work)


def wait_for(process: subprocess.Popen[str], condition: Callable[[], bool], seconds: float = 300.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.001)


def looks_after(process: subprocess.Popen[str], number: signal.Signals) -> bool:
    """Return whether a process catches a signal, from the kernel's mask of caught signals."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    caught = next(line for line in lines if line.startswith("SigCgt")).split()[1]
    return bool(int(caught, 16) >> (number - 1) & 1)


def ended(process: subprocess.Popen[str], number: signal.Signals, *words: str) -> str:
    """Send a signal; return the output, which has one message and no traceback."""
    os.kill(process.pid, number)
    return last_message(process, *process.communicate(timeout=300), *words)


def last_message(process: subprocess.Popen[str], out: str, err: str, *words: str) -> str:
    assert process.returncode == 130, out + err
    assert "Traceback" not in out + err and "Error" not in err and "Exception" not in err, err
    messages = [line for line in (out + err).splitlines() if "nterrupted" in line]
    assert len(messages) == 1 and messages[0] in words, out + err
    return messages[0]


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="needs /proc to know when a signal is looked after")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_in_the_first_lines(work: Path, number: signal.Signals) -> None:
    process = start(work, "tracking=none")
    wait_for(process, lambda: looks_after(process, signal.SIGTERM) and looks_after(process, signal.SIGINT))
    ended(process, number, NOTHING)
    assert not (work / "outputs").exists()


@pytest.mark.slow
@pytest.mark.parametrize("part", [0.15, 0.3, 0.45, 0.6, 0.75, 0.9])
def test_while_it_starts_and_composes(work: Path, part: float) -> None:
    began = time.monotonic()
    process = start(work, "tracking=none", "plan=true")
    process.communicate(timeout=300)
    whole = time.monotonic() - began
    process = start(work, "tracking=none", "plan=true")
    wait_for(process, lambda: looks_after(process, signal.SIGTERM))
    time.sleep(part * whole)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=300)
    if process.returncode == 0:  # it had written all its output
        assert "8 in all" in out
        assert "nterrupted" not in out + err
    else:
        last_message(process, out, err, NOTHING)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_while_tables_and_reports_are_made(work: Path, number: signal.Signals) -> None:
    process = start(work, "tracking=none")
    wait_for(process, lambda: any(work.glob("outputs/tiny/*/*/manifest.sha256")))  # the runner's last file
    ended(process, number, RUN, TABLES)
    (folder,) = (path.parent for path in work.glob("outputs/tiny/*/*/run.json"))
    again = start_again(work, "tracking=none", "only=severity:5")
    out, err = again.communicate(timeout=300)
    assert again.returncode == 0, err
    assert "No case to run" in out
    assert (folder / "report.html").is_file() and (folder / "tables" / "efr.csv").is_file()  # of all finished cases
    assert subprocess.run(["sha256sum", "--quiet", "-c", "manifest.sha256"], cwd=folder, check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.0, 1.0, 2.0])
def test_while_results_are_sent_to_mlflow(work: Path, seconds: float) -> None:
    process = start(work)
    wait_for(process, lambda: any(work.glob("outputs/tiny/*/*/report.html")))
    time.sleep(seconds)
    if process.poll() is not None:
        pytest.skip("it was over by then")
    os.kill(process.pid, signal.SIGTERM)
    out, err = process.communicate(timeout=300)
    if seconds and process.returncode == 0:  # it came between the last record in MLflow and the end of the process
        assert "Exit code 0" in out and "Traceback" not in err
        pytest.skip("it was over when the signal came")
    last_message(process, out, err, TABLES, TRACKING)
    again = start_again(work)
    assert again.communicate(timeout=300)[0] and again.returncode == 0
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{work}/mlruns/mlflow.db")
    runs = client.search_runs([experiment.experiment_id for experiment in client.search_experiments()])
    assert {run.info.status for run in runs} <= {"FINISHED", "FAILED"}  # none is left RUNNING


def test_a_signal_waits_for_what_must_not_be_cut_and_for_imports() -> None:
    with signals.handled():
        signals.phase("run")  # before it, a signal ends the process at once
        with pytest.raises(KeyboardInterrupt), signals.held():
            os.kill(os.getpid(), signal.SIGTERM)
            reached = True
        assert reached and signals.given()
        with pytest.raises(
            KeyboardInterrupt
        ):  # a library that swallowed it does not swallow the check of the next phase
            signals.phase("tables")
    assert signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN


def test_a_signal_of_an_ended_command_interrupts_nothing_later() -> None:
    with pytest.raises(KeyboardInterrupt), signals.handled():
        signals.phase("run")
        os.kill(os.getpid(), signal.SIGTERM)
    signals.phase("run")  # of a call from a notebook, without handlers
    with signals.held():
        assert not signals.given()


def test_no_import_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cut_short.py").write_text(
        "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\nfor n in range(1000): pass\nwhole = True\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with signals.handled():
        signals.phase("tables")
        with pytest.raises(KeyboardInterrupt):
            import cut_short

            assert cut_short.whole
            time.sleep(3600)  # a waiting call is woken
    assert "cut_short" in sys.modules
    del sys.modules["cut_short"]


def test_a_signal_that_waited_for_an_import_is_raised_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "signalled.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with signals.handled():
        signals.phase("tables")
        with pytest.raises(KeyboardInterrupt):
            import signalled

            signals.phase("tracking")  # checks before the deferred one comes
            assert signalled
        time.sleep(4 * signals._LATER_SECONDS)  # it comes here, where the message is written
        assert signals.report_interrupt() == 130
    sys.modules.pop("signalled")
    assert TRACKING in capsys.readouterr().err


def test_no_closing_of_a_connection_is_cut(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = create_engine("sqlite://")
    engine.connect().close()
    close = engine.dialect.do_close
    closed = []

    def close_when_signalled(connection: DBAPIConnection) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        close(connection)
        closed.append(connection)

    monkeypatch.setattr(engine.dialect, "do_close", close_when_signalled)
    with signals.handled():
        signals.phase("tracking")
        with pytest.raises(KeyboardInterrupt):
            engine.dispose()
            time.sleep(3600)
    assert closed and not caplog.records  # SQLAlchemy would log the interruption with its traceback
