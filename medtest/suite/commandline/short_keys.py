"""Keys and devices as people type them: which is meant."""

from __future__ import annotations

import ctypes
import re
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from medtest.core.errors import Mistake
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
    """Return the whole key that a short one means; any other as it is."""
    return _WHOLE.get(key, key)


def keeps_meaning(key: str) -> bool:
    """Whether a short key means one of the suite, though a system may have a setting of that name."""
    return "." in whole_key(key)


def meaning_of(key: str) -> str:
    """Return what to type in the place of a key that no suite and no option has, or ""."""
    if key in _WHOLE:
        return f"type {_WHOLE[key]}=\N{HORIZONTAL ELLIPSIS}"
    return f"type {_PARTS[key]}" if key in _PARTS else ""


def device_meant(typed: str, cuda: int | None = None) -> tuple[str | None, str]:
    """Return the device that is meant by ``gpu``, ``GPU:1``, ``nvidia`` or ``cuda1``, and how to mend it.

    Args:
        typed: What was typed.
        cuda: CUDA devices of this machine; None looks.

    Returns:
        A device that is there, None where nothing is meant; a sentence where there is no such device, else "".
    """
    found = re.fullmatch(r"(?:gpu|nvidia|cuda)[ :]?(\d{0,3})|(auto|cpu)", typed.strip().lower())
    if found is None or found[2]:
        return (found[2] if found else None), ""
    there = cuda_devices() if cuda is None else cuda
    if int(found[1] or 0) < there:
        return (f"cuda:{found[1]}" if found[1] else "cuda"), ""
    seen = f"{there} CUDA device{'' if there == 1 else 's'}, from cuda:0" if there else "no CUDA device"
    return "auto", f"this machine shows {seen}; auto takes one where there is one, else the processor"


def device_mistake(typed: str, *, elsewhere: bool = False, cuda: int | None = None) -> Mistake | None:
    """Return what is wrong with ``device=``: it is none, or this machine has no such device.

    Args:
        typed: What was typed.
        elsewhere: Whether other machines compute, so that nothing is known of their devices.
        cuda: CUDA devices of this machine; None looks, where it matters.
    """
    asked = _DEVICE.fullmatch(typed)
    if asked and (elsewhere or asked[1] is None):
        return None
    there = cuda_devices() if cuda is None else cuda
    if asked and int(asked[2] or 0) < there:
        return None
    nearest, fix = device_meant(typed, 1000 if elsewhere else there)
    names = ["auto", "cpu", *(["cuda:N"] if elsewhere else [f"cuda:{number}" for number in range(there)])]
    return Mistake(
        where="command line",
        key="device",
        found=short(typed),
        allowed=", ".join(names),
        nearest=nearest,
        fix=fix,
    )


def cuda_devices() -> int:
    """Return how many CUDA devices torch can have here: 0 without a driver, or where torch was built without CUDA.

    The driver is asked, which loads no library that computes; torch itself is asked only where another driver than
    CUDA's shows a device (ROCm).
    """
    with suppress(PackageNotFoundError):
        if version("torch").endswith("+cpu"):
            return 0
    shown = _shown_by_driver()
    if shown == 0 and Path("/dev/kfd").exists():
        import torch

        return torch.cuda.device_count()
    return shown


def _shown_by_driver() -> int:
    count = ctypes.c_int(0)
    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        if driver.cuInit(0) == 0:
            driver.cuDeviceGetCount(ctypes.byref(count))
    except (OSError, AttributeError):
        return 0
    return count.value
