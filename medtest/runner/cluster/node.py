"""Facts about a node: its medtest and libraries, whether it shares the run's folder; its cache."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import socket
import tempfile
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path

from medtest.core.files.paths import package_folder

LIBRARIES = ("numpy", "opencv-python", "scikit-image", "scipy", "torch", "torchvision", "onnxruntime")
"""Libraries that affect pixels or scores."""
_CACHES = "medtest-node-"
_LOCK = "lock"


@cache
def code_sha256() -> str:
    """Return the SHA-256 of medtest's modules on this machine: their names and texts."""
    total = hashlib.sha256()
    root = package_folder()
    for path in sorted(root.rglob("*.py")):
        total.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()


@cache
def versions() -> dict[str, str]:
    """Return the versions of the installed :data:`LIBRARIES`."""
    installed = {}
    for name in LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            installed[name] = metadata.version(name)
    return installed


def machine() -> str:
    """Return an identifier of this machine, constant while it runs."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        boot = ""
    return f"{socket.gethostname()} {boot}"


class NodeCache:
    """Private folder of this process on the node's disk (0700); folders of dead processes are removed by the next one.

    Attributes:
        folder: Its path.
    """

    def __init__(self) -> None:
        root = Path(tempfile.gettempdir())
        for candidate in root.glob(f"{_CACHES}{os.getuid()}-*"):
            with suppress(OSError), (candidate / _LOCK).open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # its owner holds the lock as long as it lives
                shutil.rmtree(candidate, ignore_errors=True)
        self.folder = Path(tempfile.mkdtemp(prefix=f"{_CACHES}{os.getuid()}-", dir=root))
        self._lock = (self.folder / _LOCK).open("wb")
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def remove(self) -> None:
        """Remove the folder and its content."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self._lock.close()
