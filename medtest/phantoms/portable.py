"""OpenCV that gives the same bytes on every processor of one architecture."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import cv2


@contextmanager
def portable_opencv() -> Iterator[None]:
    """Keep OpenCV from Intel's IPP, which rounds differently on different processors of one architecture."""
    before = cv2.ipp.useIPP()
    cv2.ipp.setUseIPP(False)
    try:
        yield
    finally:
        cv2.ipp.setUseIPP(before)
