"""Number of workers, threads of each, and their device.

On a CPU the runner starts as many one-thread workers as there are cores: two one-thread processes were measured fastest
on two cores, one two-thread process plus a helper oversubscribes them and is slowest. On a GPU there is one worker.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import psutil

from medtest.core.deferred import torch

_WORKER_BYTES = 1_200_000_000
"""Expected memory of a worker with torch and a network of a few million parameters."""
_GPU_FILES = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/dxg", "/dev/kfd")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Distribution of the work.

    Attributes:
        workers: Number of processes.
        threads: Intra-op threads of each.
    """

    workers: int
    threads: int


def usable_cores() -> int:
    """Return the number of usable cores: the process's affinity, bounded by the control group's quota."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _quota()
    return max(1, min(cores, int(quota + 0.5)) if quota else cores)


def _quota() -> float | None:
    try:
        limit, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()[:2]
        return None if limit == "max" else float(limit) / float(period)
    except (OSError, ValueError):
        pass
    try:
        limit = Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us").read_text(encoding="ascii")
        period = Path("/sys/fs/cgroup/cpu/cpu.cfs_period_us").read_text(encoding="ascii")
        return float(limit) / float(period) if float(limit) > 0 else None
    except (OSError, ValueError):
        return None


def choose_layout(*, device: str, units: int, workers: int | None, threads: int | None) -> Layout:
    """Choose the layout.

    Args:
        device: Resolved device.
        units: Number of unfinished units.
        workers: The user's choice, or None.
        threads: The user's choice, or None.
    """
    cores = usable_cores()
    if device != "cpu":
        return Layout(workers=max(1, min(workers or 1, units)), threads=threads or cores)
    if workers is None:
        by_memory = max(1, int(psutil.virtual_memory().available // _WORKER_BYTES))
        chosen = min(max(1, cores // (threads or 1)), by_memory, max(1, units))
        # One thread even if cores stay idle: another number of threads may round sums differently, and a resumed run
        # with one unit left must give the records of an uninterrupted one.
        return Layout(workers=chosen, threads=threads or 1)
    return Layout(workers=max(1, min(workers, units)), threads=threads or max(1, cores // workers))


def device_is_certain(device: str, *, needed: bool) -> str | None:
    """Return the device if it can be determined without importing torch, else None.

    Args:
        device: The user's setting: ``cpu``, ``cuda:N`` or ``auto``.
        needed: True if any system depends on it.
    """
    if not needed:
        return "cpu"
    if device != "auto":
        return device
    if os.name == "posix" and Path("/proc").is_dir() and not any(Path(f).exists() for f in _GPU_FILES):
        return "cpu"
    return None


def resolve_device(device: str) -> str:
    """Return ``cuda:0`` for ``auto`` if torch sees a GPU, else ``cpu``; call it in a worker, as it imports torch."""
    if device != "auto":
        return device
    return "cuda:0" if torch.cuda.is_available() else "cpu"
