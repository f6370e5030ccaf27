"""Workers keep freed memory, and settings of the user have priority."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from medtest.runner.pool.allocator import VARIABLE, _glibc_version, keeping_memory

_FAULTS = """
import ctypes, resource
c = ctypes.CDLL(None)
c.malloc.restype, c.malloc.argtypes, c.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
def use():
    block = c.malloc(24 << 20)
    ctypes.memset(block, 1, 24 << 20)
    c.free(block)
use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(8):
    use()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def _faults(extra: dict[str, str]) -> int:
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("GLIBC_", "MALLOC_"))}
    done = subprocess.run(
        [sys.executable, "-c", _FAULTS], env={**bare, **extra}, capture_output=True, text=True, check=True
    )
    return int(done.stdout)


@pytest.mark.skipif(_glibc_version() is None, reason="another C library")
def test_freed_blocks_are_used_again_without_page_faults() -> None:
    settings = keeping_memory({})
    assert VARIABLE in settings
    assert _faults(settings) < 100 < _faults({"GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=131072"})


@pytest.mark.parametrize(
    "chosen",
    [{"MALLOC_ARENA_MAX": "2"}, {"LD_PRELOAD": "libjemalloc.so"}, {VARIABLE: "glibc.malloc.trim_threshold=1000"}],
)
def test_settings_of_the_user_have_priority(chosen: dict[str, str]) -> None:
    assert keeping_memory(chosen) == {}


@pytest.mark.skipif(_glibc_version() is None, reason="another C library")
def test_other_tunables_are_kept() -> None:
    assert keeping_memory({VARIABLE: "glibc.pthread.rseq=0"})[VARIABLE].startswith("glibc.pthread.rseq=0:glibc.malloc.")
