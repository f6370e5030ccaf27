"""Disks that are full or read-only: real ones, where the system lets a test mount them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


def _mount(*words: str) -> None:
    try:
        subprocess.run(["mount", *words], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"nothing can be mounted here: {getattr(error, 'stderr', b'') or error}")


@contextmanager
def small_disk(folder: Path, kib: int) -> Iterator[SmallDisk]:
    """Mount a disk of so many KiB on an empty folder."""
    folder.mkdir(parents=True)
    _mount("-t", "tmpfs", "-o", f"size={kib}k", "none", str(folder))
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", str(folder)], check=True)


class SmallDisk:
    """A disk that can be filled to the last byte, and given room."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / "filler"

    def fill(self, but: int = 0) -> None:
        """Leave so many bytes."""
        with suppress(OSError), self._filler.open("wb", buffering=0) as file:
            while file.write(b"\0" * 4096):
                pass
        if but:
            with self._filler.open("r+b") as file:
                file.truncate(self._filler.stat().st_size - but)

    def free(self) -> None:
        """Delete the filler."""
        self._filler.unlink()

    def grow(self, kib: int) -> None:
        """Make the disk larger."""
        _mount("-o", f"remount,size={kib}k", str(self.folder))


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Make a folder read-only, for root too."""
    _mount("--bind", str(folder), str(folder))
    try:
        _mount("-o", "remount,ro,bind", str(folder))
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)
