"""The laboratory in another process: it starts, stops, and ends with its parent."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from simlab_parts import KEY, body, call

from medtest.api.faulty.faults import Faults
from medtest.cli.models.simlab import config_of
from medtest.core.errors import MedtestError, UserMistakes
from medtest.simlab.config import Config
from medtest.simlab.defects import Defects
from medtest.simlab.process import running, start

LOCKED = Config(faults=Faults(key=KEY), ocr="edges")
_PARENT = """
import sys, time
from medtest.simlab.config import Config
from medtest.simlab.process import start
server = start(Config(ocr="edges"))
print(server.pid, server.base_url, flush=True)
{then}
"""


def gone(pid: int, seconds: float = 20.0) -> bool:
    """Return whether a process ends in time; a zombie has ended."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.05)
    return False


def test_it_serves_until_the_block_ends_and_shows_its_key_nowhere() -> None:
    with running(LOCKED) as server:
        assert call(server.base_url, "/v1/chat/completions", body("Is there text?"))[0] == 200
        assert call(server.base_url, "/v1/models", key="other")[0] == 401
        shown = " ".join(psutil.Process(server.pid).cmdline())
        assert "medtest.simlab.serve" in shown
        assert KEY not in shown
        assert KEY not in repr(server)
    assert server.process.returncode is not None
    with pytest.raises(OSError, match="refused"):
        call(server.base_url, "/v1/models")
    server.stop()  # twice does no harm


def test_an_error_in_the_block_stops_it() -> None:
    with pytest.raises(ValueError, match="mine"), running(LOCKED) as server:
        raise ValueError("mine")
    assert gone(server.pid)


@pytest.mark.slow
def test_two_never_share_a_port() -> None:
    with running(LOCKED) as first, running(LOCKED) as second:
        assert first.base_url != second.base_url
        port = int(first.base_url.split(":")[2].split("/")[0])
        with pytest.raises(MedtestError, match="did not start"):
            start(Config(port=port))
        assert call(first.base_url, "/v1/models")[0] == 200


@pytest.mark.parametrize("ending", ["kill", "exit", "close"])
def test_it_ends_with_its_parent(ending: str) -> None:
    then = {"kill": "time.sleep(60)", "exit": "import os; os._exit(3)", "close": "sys.exit(0)"}[ending]
    parent = subprocess.Popen([sys.executable, "-c", _PARENT.format(then=then)], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline().split()[0])
    if ending == "kill":
        os.kill(parent.pid, signal.SIGKILL)
    parent.wait(20)
    parent.stdout.close()
    assert gone(pid)


def test_a_configuration_survives_the_way_to_the_process() -> None:
    config = Config(seed=3, defects=Defects(refusals=0.5, cap=2), styles=("terse",), faults=Faults(rate=3.0, key=KEY))
    assert Config.from_json(config.to_json()) == config


def test_the_command(tmp_path: Path) -> None:
    environment = {**os.environ, "LAB_KEY": KEY}
    line = [sys.executable, "-m", "medtest", "simlab", "--defect", "refusals=1", "--key-variable", "LAB_KEY"]
    earlier = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as shells do for what they start in the background
    process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env=environment, cwd=tmp_path)
    signal.signal(signal.SIGINT, earlier)
    assert process.stdout is not None
    try:
        address = ""
        while not address:
            text = process.stdout.readline()
            assert text, "it ended"
            address = text.split()[0] if text.startswith("http://") else ""
        assert call(address, "/v1/models")[0] == 200
        assert call(address, "/v1/models", key="other")[0] == 401
        assert call(address, "/v1/chat/completions", body("Is there text?"))[0] == 200
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(20)
        process.stdout.close()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"defects": ["refusal=1"]}, "refusals"),
        ({"defects": ["refusals=2"]}, "0 to 1"),
        ({"defects": ["cap=two"]}, "whole number"),
        ({"faults": ["latency=soon"]}, "a number"),
        ({"faults": ["key=mine"]}, "latency"),
        ({"ocr": "eyes"}, "rapidocr"),
        ({"key_variable": "NOT_SET_HERE"}, "not set"),
    ],
)
def test_mistakes_of_the_command_are_named(options: dict[str, Any], expected: str) -> None:
    with pytest.raises(UserMistakes, match=expected):
        config_of(**options)


def test_a_taken_port_is_one_message(tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        line = [sys.executable, "-m", "medtest", "simlab", "--port", str(listener.getsockname()[1])]
        done = subprocess.run(line, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert "cannot be used" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
