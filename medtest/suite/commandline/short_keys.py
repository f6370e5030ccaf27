"""Short and misspelled forms of keys and devices."""

from __future__ import annotations

import ctypes
import re
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from medtest.core.deferred import torch
from medtest.core.errors import Mistake, typed_mistake
from medtest.suite.reading.safety import short

_DEVICE = re.compile(r"auto|cpu|(cuda)(?::(\d{1,3}))?")

_WHOLE = {
    "threshold": "oracles.primary.threshold",
    "score": "oracles.primary.score",
    "against": "oracles.primary.against",
    "size": "prepare.size",
    "weights": "checkpoint",
    "gpu": "device",
    "cuda": "device",
}
_PARTS = {
    "relation": "only=relation:ID",
    "severity": "only=severity:N",
    "severities": "only=severity:N, or relations.ID.severities=[1,3]",
    "dataset": "only=dataset:ID",
    "question": "only=question:ID",
    "system": "model=NAME",
    "images": "limit=N",
}


def whole_key(key: str) -> str:
    """Return the full form of a short key; other keys are unchanged."""
    return _WHOLE.get(key, key)


def keeps_meaning(key: str) -> bool:
    """Return True if a short key means one of the suite, even if a system has a setting of that name."""
    return "." in whole_key(key)


def meaning_of(key: str) -> str:
    """Return the correction for a key that no suite and no option has, or ""."""
    if key in _WHOLE:
        return f"type {_WHOLE[key]}=\N{HORIZONTAL ELLIPSIS}"
    return f"type {_PARTS[key]}" if key in _PARTS else ""


def device_meant(typed: str, cuda: int | None = None) -> tuple[str | None, str]:
    """Return the device meant by ``gpu``, ``GPU:1``, ``nvidia`` or ``cuda1``, and advice.

    Args:
        typed: What was typed.
        cuda: CUDA devices of this machine; None to detect them.

    Returns:
        An existing device, None if none is meant; advice if there is no such device, else "".
    """
    match = re.fullmatch(r"(?:gpu|nvidia|cuda)[ :]?(\d{0,3})|(auto|cpu)", typed.strip().lower())
    if match is None or match[2]:
        return (match[2] if match else None), ""
    devices = cuda_devices() if cuda is None else cuda
    if int(match[1] or 0) < devices:
        return (f"cuda:{match[1]}" if match[1] else "cuda"), ""
    inventory = f"{devices} CUDA device{'' if devices == 1 else 's'}, from cuda:0" if devices else "no CUDA device"
    return "auto", f"this machine has {inventory}; auto uses a GPU if there is one, else the CPU"


def device_mistake(typed: str, *, elsewhere: bool = False, cuda: int | None = None) -> Mistake | None:
    """Return the mistake in ``device=``: it is invalid, or this machine has no such device.

    Args:
        typed: What was typed.
        elsewhere: True if other machines compute, whose devices are unknown.
        cuda: CUDA devices of this machine; None to detect them if needed.
    """
    match = _DEVICE.fullmatch(typed)
    if match and (elsewhere or match[1] is None):
        return None
    devices = cuda_devices() if cuda is None else cuda
    if match and int(match[2] or 0) < devices:
        return None
    nearest, fix = device_meant(typed, 1000 if elsewhere else devices)
    names = ["auto", "cpu", *(["cuda:N"] if elsewhere else [f"cuda:{number}" for number in range(devices)])]
    return typed_mistake("device", short(typed), ", ".join(names), fix, nearest=nearest)


def cuda_devices() -> int:
    """Return the number of CUDA devices available to torch: 0 without a driver, or if torch was built without CUDA.

    The driver is asked, which loads no computing library; torch itself is asked only if another driver than CUDA's
    shows a device (ROCm).
    """
    with suppress(PackageNotFoundError):
        if version("torch").endswith("+cpu"):
            return 0
    driver_devices = _shown_by_driver()
    if driver_devices == 0 and Path("/dev/kfd").exists():
        return torch.cuda.device_count()
    return driver_devices


def _shown_by_driver() -> int:
    count = ctypes.c_int(0)
    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        if driver.cuInit(0) == 0:
            driver.cuDeviceGetCount(ctypes.byref(count))
    except (OSError, AttributeError):
        return 0
    return count.value
