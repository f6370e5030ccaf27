"""How a worker's C library hands out memory: blocks of every size stay with the process and are used again.

By default glibc maps each large block anew and gives it back at once, so that every activation of a network, every
resized map begins with page faults: measured at 13 % of a worker's processor time with the compact PraNet on 512 × 512
images in batches of eight. Told to keep freed memory, and to ask for huge pages, the same forwards take no page faults
and a tenth less time; a worker's resident memory is its peak either way, and no longer saws up and down. There is one
arena, for a worker computes in one thread at a time. Answers do not depend on it.

The settings are glibc's tunables (GNU C Library manual, "Memory Allocation Tunables"), set for workers alone. Where
the C library is another one they mean nothing; what the user sets stands.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

VARIABLE = "GLIBC_TUNABLES"

_MALLOC = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_ARENA_MAX", "MALLOC_MMAP_MAX_", "LD_PRELOAD")
_KEEP = 1 << 35
"""Free bytes at the heap's end above which it shrinks: never."""
_LARGEST = 1 << 30
"""Blocks above this many bytes are mapped on their own even so; they are rare and must not tear holes."""
_LARGEST_BEFORE_2_35 = 1 << 25
"""What older glibc takes as a threshold; it ignores a greater one."""


def keeping_memory(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables to set for a worker so that its allocator keeps memory, none where the user chose.

    Args:
        environment: The worker's environment so far.
    """
    version = _glibc_version()
    if version is None or any(name in environment for name in _MALLOC):
        return {}
    given = environment.get(VARIABLE, "")
    if "glibc.malloc." in given:
        return {}
    largest = _LARGEST if version >= (2, 35) else _LARGEST_BEFORE_2_35
    wanted = {"mmap_threshold": largest, "trim_threshold": _KEEP, "arena_max": 1, "hugetlb": 1}
    ours = [f"glibc.malloc.{name}={value}" for name, value in wanted.items()]
    return {VARIABLE: ":".join([*([given] if given else []), *ours])}


def _glibc_version() -> tuple[int, int] | None:
    """Return the version of glibc, or None where the C library is another one."""
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
        major, minor = version.split(".")[:2]
        return (int(major), int(minor)) if name == "glibc" else None
    except (ValueError, OSError, AttributeError):
        return None
