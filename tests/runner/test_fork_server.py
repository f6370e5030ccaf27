"""Workers are forked by a server that holds only modules; they behave as fresh interpreters do."""

from __future__ import annotations

import os
import queue
import signal
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from runner_helpers import assert_equal_records, go, records, script, wait_for, workers_of
from runner_parts import make_suite

from medtest.runner.pool import fork_server, processes
from medtest.runner.pool.messages import Gone
from medtest.runner.pool.process_worker import ProcessWorker
from medtest.runner.pool.worker import Inbox, Worker

pytestmark = pytest.mark.skipif(not processes._has_descriptors_of_processes(), reason="needs Linux 5.3 or later")


class Code:
    """A job that runs when it is read: it writes to the log and ends its process."""

    threads = 1
    session = "medtest.runner.units.session:Session"

    def __init__(self, code: str, threads: int = 1) -> None:
        self.code = f"import os, sys\n{code}\nsys.stdout.flush()\nos._exit(0)"
        self.threads = threads

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return exec, (self.code,)


def run_code(code: str, threads: int = 1) -> tuple[str, str]:
    """Run code in a worker; return the end of its process and its output."""
    inbox: Inbox[tuple[Worker, Any]] = queue.SimpleQueue()
    worker = ProcessWorker(Code(code, threads), inbox)
    try:
        assert isinstance(inbox.get(timeout=120)[1], Gone)
        return worker.death(), worker.last_words()
    finally:
        worker.end()


def server_of(code: str = "", threads: int = 1) -> int:
    """Return the process id of the server that forks a worker."""
    return int(run_code(f"{code}\nprint(os.getppid())", threads)[1])


@pytest.fixture(params=["forked", "fresh"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Set one of the two ways in which workers are started."""
    monkeypatch.setenv(processes.FRESH_VARIABLE, "1" if request.param == "fresh" else "")
    return str(request.param)


@pytest.mark.parametrize(
    ("number", "fresh"),
    [(signal.SIGSEGV, ""), (signal.SIGKILL, ""), (signal.SIGTERM, ""), (signal.SIGSEGV, "1")],
)
def test_a_killed_worker_is_reported_with_its_signal(
    number: signal.Signals, fresh: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(processes.FRESH_VARIABLE, fresh)
    assert run_code(f"import signal; signal.raise_signal({int(number)})")[0] == f"was killed by {number.name}"


@pytest.mark.slow
def test_output_and_end_of_a_worker_do_not_depend_on_its_start(way: str) -> None:
    assert run_code("print('last'); sys.stdout.flush(); os._exit(7)") == ("ended with exit code 7", "last")
    end, words = run_code("raise ValueError('the plan is torn')")
    assert end == "ended with exit code 1" and words.endswith("ValueError: the plan is torn")


FACTS = (
    "os.getcwd(), os.path.realpath('/proc/self/fd/0'), os.getsid(0) == os.getpgrp() == os.getpid()",
    "[k for k, v in os.environb.items() if k not in (b'PYTEST_CURRENT_TEST', b'MEDTEST_FRESH_WORKERS')]",
    "[*map(signal.getsignal, (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE))]",
    "sys.path[:3], len(sys.path), sys.flags, sys.argv[0], len(os.listdir('/proc/self/fd'))",
    "threading.enumerate()[0].name, threading.active_count()",
    "open('/proc/self/oom_score_adj').read(), open('/proc/self/comm').read()",
)
"""What a worker can see of how it was started."""


def test_a_forked_worker_finds_what_a_fresh_one_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # one checksum each, since a worker's last words are cut
    code = "import signal, threading, zlib\n"
    code += "\n".join(f"print({number}, zlib.crc32(repr(({fact})).encode()))" for number, fact in enumerate(FACTS))
    monkeypatch.setenv(processes.FRESH_VARIABLE, "")
    forked = run_code(code)
    monkeypatch.setenv(processes.FRESH_VARIABLE, "1")
    assert run_code(code) == forked and forked[0] == "ended with exit code 0"
    assert len(forked[1].splitlines()) == len(FACTS)


@pytest.mark.slow
def test_variables_that_libraries_read_while_loading_get_another_server(
    own_servers: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = server_of()
    assert server_of() == first
    monkeypatch.setenv("MEDTEST_HOME", "/elsewhere")
    monkeypatch.setenv("SOME_VENDOR_KEY", "canary")
    code = "print(os.environ['MEDTEST_HOME'], os.environ['SOME_VENDOR_KEY'], os.getppid())"
    assert run_code(code)[1] == f"/elsewhere canary {first}"
    monkeypatch.setenv("NPY_DISABLE_CPU_FEATURES", "AVX512F")
    other = server_of("assert os.environ['NPY_DISABLE_CPU_FEATURES'] == 'AVX512F'")
    assert other != first
    monkeypatch.delenv("NPY_DISABLE_CPU_FEATURES")
    assert run_code("print(os.environ.get('NPY_DISABLE_CPU_FEATURES'), os.getppid())")[1] == f"None {first}"
    now = processes._inherited(dict(os.environ))
    mask = os.umask(0o027)
    try:
        assert processes._inherited(dict(os.environ)) != now
    finally:
        os.umask(mask)
    assert processes._inherited(dict(os.environ)) == now
    for threads in (3, 4):
        assert server_of(threads=threads) not in (first, other)
    assert len(processes._servers) == processes._SERVERS


def test_numbers_of_the_legacy_generators_differ_between_workers() -> None:
    code = "import random, numpy; print(random.random(), numpy.random.random())"
    first, second = run_code(code)[1].split(), run_code(code)[1].split()
    assert len(first) == 2 and not set(first) & set(second)


def test_a_worker_begins_with_what_another_came_to_load(own_servers: None, tmp_path: Path) -> None:
    ask = "print('medtest.runner.units.session' in sys.modules, 'scipy.ndimage' in sys.modules, 'wave' in sys.modules)"
    assert run_code(ask)[1] == "True False False"
    (server,) = processes._servers.values()
    server.loaded(["scipy.ndimage", "no.such.module", "wave"])
    assert run_code(ask)[1] == "True True True"


@pytest.mark.slow
def test_a_run_passes_on_what_its_workers_loaded_and_nothing_of_the_users(own_servers: None, tmp_path: Path) -> None:
    go(make_suite(seeds=1), tmp_path)
    (server,) = processes._servers.values()
    assert "medtest.tasks.segment.oracle" in server._modules
    assert not any(name.startswith(("runner_parts", "tests")) for name in server._modules)


@pytest.mark.slow
def test_a_server_has_no_thread_and_no_worker_more_than_its_own(own_servers: None) -> None:
    code = "import os\nprint(len(os.listdir('/proc/%d/task' % os.getppid())), len(os.listdir('/proc/self/task')))"
    run_code("", threads=3)
    (server,) = processes._servers.values()
    server.loaded(["scipy.linalg", "pyarrow.parquet", "pandas"])
    assert run_code(code, threads=3)[1] == "1 2"  # the worker's second one reads its tasks


@pytest.mark.slow
def test_no_package_of_those_that_are_shared_starts_a_thread_or_opens_a_device(own_servers: None) -> None:
    from medtest.runner.pool.child import _SHARED

    run_code("")
    (server,) = processes._servers.values()
    server.loaded(sorted(_SHARED))
    code = (
        "print(len(os.listdir('/proc/%d/task' % os.getppid())), 'torch' in sys.modules)\n"
        "import torch; assert not torch.cuda.is_initialized()"
    )
    assert run_code(code) == ("ended with exit code 0", "1 True")


@pytest.mark.slow
def test_a_module_that_starts_a_thread_makes_workers_fresh_interpreters(
    own_servers: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "medtest_thready.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    code = "print('medtest_thready' in sys.modules, b'fork_server' in open('/proc/self/cmdline', 'rb').read())"
    assert run_code(code) == ("ended with exit code 0", "False True")
    next(reversed(processes._servers.values())).loaded(["medtest_thready"])
    assert run_code(code) == ("ended with exit code 0", "False False")
    assert run_code("import signal; signal.raise_signal(11)")[0] == "was killed by SIGSEGV"


def test_a_process_id_is_not_reused_until_the_worker_is_released() -> None:
    inbox: Inbox[tuple[Worker, Any]] = queue.SimpleQueue()
    worker = ProcessWorker(Code("import subprocess; subprocess.Popen(['sleep', '600'])"), inbox)
    assert isinstance(inbox.get(timeout=60)[1], Gone)
    assert worker.death() == "ended with exit code 0"
    pid = worker.pid
    assert psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    group = [p for p in psutil.process_iter(["name"]) if p.info["name"] == "sleep" and os.getpgid(p.pid) == pid]
    assert len(group) == 1
    worker.end()
    psutil.wait_procs(group, timeout=10)
    wait_for(lambda: not psutil.pid_exists(pid))
    assert not [process for process in group if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]


def test_a_worker_that_is_killed_at_once_leaves_nothing(own_servers: None) -> None:
    inbox: Inbox[tuple[Worker, Any]] = queue.SimpleQueue()
    for pause in (0.0, 0.0, 0.05, 0.2, 0.5):
        worker = ProcessWorker(Code("import time; time.sleep(600)"), inbox)
        time.sleep(pause)
        worker.kill()
        worker.end()
        assert worker.death() == "was killed by SIGKILL"
    server = server_of()
    wait_for(lambda: not psutil.Process(server).children())


@pytest.mark.slow
def test_a_server_that_was_killed_takes_its_workers_along_and_is_replaced(own_servers: None) -> None:
    inbox: Inbox[tuple[Worker, Any]] = queue.SimpleQueue()
    server = server_of()
    worker = ProcessWorker(Code("import time; time.sleep(600)"), inbox)
    running = psutil.Process(worker.pid)
    wait_for(lambda: running.num_threads() > 1)  # by now it has asked to end with its parent
    os.kill(server, signal.SIGKILL)
    assert isinstance(inbox.get(timeout=60)[1], Gone)
    assert worker.death() == "was killed by SIGKILL"
    worker.end()
    assert server_of() != server


def test_a_server_that_cannot_start_says_why(own_servers: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [path for path in sys.path if "lib-dynload" in path])
    end, words = run_code("")
    assert end == "ended with exit code 1" and "Error" in words


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_neither_server_nor_worker_outlives_the_run(tmp_path: Path, number: signal.Signals) -> None:
    process = script(
        "run_suite(make_suite(systems={'bright': {'fault': 'hang'}}),\n"
        "    Invocation(home=home, workers=2, quiet=True), limits=Limits(samples=0))\n",
        tmp_path,
        lend=False,
    )
    wait_for(lambda: len(workers_of(process.pid)) == 2, 60)
    everyone = psutil.Process(process.pid).children(recursive=True)
    assert len(everyone) == 3 and fork_server.NAME in [member.name() for member in everyone]
    process.send_signal(number)
    process.communicate()
    _, alive = psutil.wait_procs(everyone, timeout=10)
    assert not alive


@pytest.mark.slow
def test_records_are_equal_either_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = make_suite(seeds=3, systems={"bright": {}, "dark": {"level": 150}})
    monkeypatch.setenv(processes.FRESH_VARIABLE, "")
    forked = go(suite, tmp_path / "forked", workers=2)
    monkeypatch.setenv(processes.FRESH_VARIABLE, "1")
    fresh = go(suite, tmp_path / "fresh", workers=2)
    for number in range(2):
        assert_equal_records(records(forked, number), records(fresh, number))
