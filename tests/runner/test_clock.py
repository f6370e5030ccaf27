"""A system clock that is set back an hour during a run: a preloaded library gives the program the other time."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from runner_helpers import assert_equal_records, go, records
from runner_parts import make_suite

from medtest.api.pacing.quotas import quotas, retry_after
from medtest.runner.sharding.joining import join

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static long back(void) {
    const char *file = getenv("CLOCK_SET_BACK");
    return file && access(file, F_OK) == 0 ? 3600 : 0;
}
int clock_gettime(clockid_t id, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(id, now);
    if (code == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) now->tv_sec -= back();
    return code;
}
int gettimeofday(struct timeval *now, void *zone) {
    static int (*real)(struct timeval *, void *);
    if (!real) real = dlsym(RTLD_NEXT, "gettimeofday");
    int code = real(now, zone);
    if (code == 0) now->tv_sec -= back();
    return code;
}
time_t time(time_t *to) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (to) *to = now.tv_sec;
    return now.tv_sec;
}
"""
PROGRAM = """
import sys
from pathlib import Path
from runner_parts import *
from medtest.runner.reporting.outcome import Limits
from medtest.runner.run import run_suite
from medtest.suite.model import Invocation
from medtest.suite.sharding import Shard
if __name__ == "__main__":
    home, back, shard = sys.argv[1:4]
    chosen = {"shard": Shard(of=2, number=int(shard))} if shard.isdecimal() else {}
    made = run_suite(
        make_suite(seeds=6), Invocation(home=Path(home), quiet=True, workers=1, **chosen),
        limits=Limits(samples=0, shard_rows=4), progress=Watcher(back) if shard == "during" else None,
    )
    one = made.systems[0]
    print(one.cases_executed, one.cases_reused)
"""
WATCHER = """
class Watcher:
    def __init__(self, back): self._back = Path(back)
    def update(self, count):
        if count.done: self._back.touch()
    def phase(self, name): pass
    def reading(self, line): pass
    def close(self): pass
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a library that gives programs an hour less once a file exists."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("no C compiler here, or no Linux: another clock cannot be given to a program")
    folder = tmp_path_factory.mktemp("clock")
    (folder / "clock.c").write_text(SHIM)
    command = [compiler, "-shared", "-fPIC", "-o", str(folder / "clock.so"), str(folder / "clock.c"), "-ldl"]
    subprocess.run(command, check=True)
    return folder / "clock.so"


def environment(shim: Path, back: Path) -> Mapping[str, str]:
    parts = os.pathsep.join(path for path in sys.path if path)
    return {**os.environ, "LD_PRELOAD": str(shim), "CLOCK_SET_BACK": str(back), "PYTHONPATH": parts}


def run(shim: Path, home: Path, back: Path, when: str) -> tuple[int, int]:
    """Run a suite and return the numbers of executed and reused cases."""
    body = WATCHER + PROGRAM
    done = subprocess.run(
        [sys.executable, "-c", f"from pathlib import Path\n{body}", str(home), str(back), when],
        env=environment(shim, back),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    executed, reused = done.stdout.split()[-2:]
    return int(executed), int(reused)


def clock(shim: Path, back: Path) -> datetime:
    done = subprocess.run(
        [sys.executable, "-c", "import time; print(time.time())"],
        env=environment(shim, back),
        capture_output=True,
        text=True,
        check=True,
    )
    return datetime.fromtimestamp(float(done.stdout), UTC)


@pytest.mark.slow
def test_a_clock_that_is_set_back_costs_no_record(shim: Path, tmp_path: Path) -> None:
    """Set back during the run, before its second call, and forward again before the third."""
    back = tmp_path / "back"
    assert abs(clock(shim, back) - datetime.now(UTC)) < timedelta(minutes=5)
    home = tmp_path / "home"
    assert run(shim, home, back, "during") == (66, 0)
    assert back.exists() and datetime.now(UTC) - clock(shim, back) > timedelta(minutes=55)
    local = go(make_suite(seeds=6), tmp_path / "other")
    (folder,) = home.glob("outputs/*/*/*/")
    table = pq.read_table(folder / "records.parquet").to_pandas()
    assert_equal_records(table, records(local))
    assert (table.elapsed_ms.dropna() >= 0).all() and table.elapsed_ms.max() < 600_000
    assert run(shim, home, back, "again") == (0, 66)
    back.unlink()
    assert run(shim, home, back, "again") == (0, 66)


@pytest.mark.slow
def test_shards_of_two_clocks_are_merged_again_and_again(shim: Path, tmp_path: Path) -> None:
    back, home = tmp_path / "back", tmp_path / "home"
    run(shim, home, back, "1")
    back.touch()
    run(shim, home, back, "2")
    shards = sorted(home.glob("outputs/*/*/*/shards/*-of-2"))
    done = join(shards, home=home)
    assert join(shards, home=home) == done
    assert_equal_records(
        pq.read_table(done.folder / "records.parquet").to_pandas(), records(go(make_suite(seeds=6), tmp_path / "other"))
    )
    assert run(shim, home, back, "again") == (0, 66)
    assert join(shards, home=home) == done  # a later call at an earlier hour is no later run


def test_dates_of_a_server_are_read_by_its_own_clock() -> None:
    """Our clock is an hour late: "wait until" is not an hour longer."""
    server_time = datetime(2026, 11, 27, 12, 0, 0, tzinfo=UTC)
    local_time = (server_time - timedelta(hours=1)).timestamp()
    dated = {"date": format_datetime(server_time, usegmt=True)}
    until = format_datetime(server_time + timedelta(seconds=20), usegmt=True)
    assert retry_after({**dated, "retry-after": until}, local_time) == 20
    assert retry_after({"retry-after": until}, local_time) == 3620  # the server does not state its time
    assert retry_after({**dated, "retry-after": "7"}, local_time) == 7
    reset = str(int((server_time.timestamp() + 30) * 1000))
    stated = {"x-ratelimit-remaining": "0", "x-ratelimit-limit": "9", "x-ratelimit-reset": reset}
    assert quotas({**dated, **stated}, local_time)["requests"].reset == 30
