"""Helpers of the runner's tests."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import pyarrow.parquet as pq
from forked_program import Program
from runner_parts import make_suite

from medtest.core.records import UNEQUAL_COLUMNS
from medtest.runner.pool import child as worker
from medtest.runner.pool.messages import Job
from medtest.runner.reporting.outcome import Limits, RunOutcome
from medtest.runner.run import run_suite
from medtest.suite.model import Invocation, Suite

QUICK = Limits(samples=0)


def go(suite: Suite, home: Path, *, limits: Limits = QUICK, **options: Any) -> RunOutcome:
    """Run quietly, with one worker by default."""
    return run_suite(suite, Invocation(home=home, quiet=True, **{"workers": 1, **options}), limits=limits)


def records(outcome: RunOutcome, number: int = 0) -> pd.DataFrame:
    """Return the merged records of a system."""
    return pq.read_table(outcome.systems[number].folder / "records.parquet").to_pandas()


def comparable(frame: pd.DataFrame) -> pd.DataFrame:
    """Return records without the columns that may differ between equal runs."""
    return frame.drop(columns=list(UNEQUAL_COLUMNS), errors="ignore")


def assert_equal_records(first: pd.DataFrame, second: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(comparable(first), comparable(second), check_exact=True)


def script(body: str, home: Path, **options: Any) -> Program:
    """Start a program that runs a suite; ``body`` has make_suite, run_suite, Invocation, Limits, home."""
    head = (
        "from pathlib import Path\n"
        "from runner_parts import *\n"
        "from medtest.core.errors import MedtestError\n"
        "from medtest.runner.reporting.outcome import Limits\n"
        "from medtest.runner.run import run_suite\n"
        "from medtest.suite.model import Invocation\n"
        f"home = Path({str(home)!r})\n"
    )
    return Program(head + body, modules=("medtest.runner", "medtest.runner.units.session"), **options)


def wait_for(condition: Callable[[], Any], seconds: float = 30.0) -> Any:
    """Wait until a condition is true, and return its value."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        result = condition()
        if result:
            return result
        time.sleep(0.02)
    raise AssertionError("it did not happen in time")


def workers_of(pid: int) -> list[psutil.Process]:
    """Return the worker processes of a run, without the server that forks them."""
    children = psutil.Process(pid).children(recursive=True)
    return [child for child in children if sys.platform != "linux" or child.name() == worker.NAME]


def job_of(tmp_path: Path, **more: Any) -> Job:
    """Return the job of a worker of one system."""
    folder = tmp_path / "outputs" / "suite" / "system" / "abc"
    invocation = Invocation(home=tmp_path)
    return Job.of(make_suite(), invocation, hash_key=None, device="cpu", folders=(str(folder),), **more)
