"""Pillow's setting for truncated files, which any library in the process may change."""

from __future__ import annotations

import threading

from PIL import ImageFile


class _RefusingTruncated:
    """Context in which Pillow refuses truncated files, even if another library in this process allows them.

    WeasyPrint, for example, sets ``ImageFile.LOAD_TRUNCATED_IMAGES`` when it is imported, and Pillow then fills what is
    missing with black. The setting is restored when the last thread leaves the context.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._before = False

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._before, ImageFile.LOAD_TRUNCATED_IMAGES = ImageFile.LOAD_TRUNCATED_IMAGES, False
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                ImageFile.LOAD_TRUNCATED_IMAGES = self._before


refusing_truncated = _RefusingTruncated()
"""The context; reentrant."""
