"""What is asked of a node: which medtest it has, which libraries, whether it shares the run's folder; its cache."""

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
"""Through which pixels pass, or scores."""
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
    """Return the versions of :data:`LIBRARIES` that are installed here."""
    found = {}
    for name in LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def machine() -> str:
    """Return what tells this machine from others, for as long as it runs."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        boot = ""
    return f"{socket.gethostname()} {boot}"


class NodeCache:
    """A folder of this process alone on the node's disk, 0700; those of processes that died are removed by the next.

    Attributes:
        folder: Where it is.
    """

    def __init__(self) -> None:
        root = Path(tempfile.gettempdir())
        for other in root.glob(f"{_CACHES}{os.getuid()}-*"):
            with suppress(OSError), (other / _LOCK).open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # its owner holds it as long as it lives
                shutil.rmtree(other, ignore_errors=True)
        self.folder = Path(tempfile.mkdtemp(prefix=f"{_CACHES}{os.getuid()}-", dir=root))
        self._lock = (self.folder / _LOCK).open("wb")
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def remove(self) -> None:
        """Remove the folder and what is in it."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self._lock.close()
