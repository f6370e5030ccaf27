"""Thumbnails of a run for its report: small pictures of sources, follow-ups and answers, and outlines of regions.

A worker makes them as it records a case, since records hold no pixels; ``thumbnails/`` of the run's folder keeps them
in packs, as :mod:`medtest.runner.records.answers` keeps answers. Reports need neither data nor systems for them.
Thumbnails are JPEG, for 160 × 160 pixels take libwebp 0.4 to 2 ms and libjpeg 0.06 ms. The report turns those that it
shows into WebP.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Mask
from medtest.core.records import ADDRESS, ANSWER

SIDE = 160
"""Shorter side of a thumbnail in pixels; smaller pictures keep their size."""
MOST_SIDE = 2 * SIDE
"""Longest side."""
PICTURE, MARKS, DRAWN = "picture", "marks", "drawn"
"""Forms: pictures named by the SHA-256 of their pixels; outlines and answered pictures, both named by their record."""
FORMS = (PICTURE, MARKS, DRAWN)
NAMED_BY = (ADDRESS, "followup_sha256", ANSWER)
"""Columns of a record that name its outlines and answer."""
_QUALITY = (cv2.IMWRITE_JPEG_QUALITY, 80)
_GRID = 240
"""Least points along the shorter side of the grid in which outlines are drawn, unless the picture has fewer pixels."""
_TOLERANCE = 0.8
"""Largest distance in grid points between an outline and the mask's edge."""
_MOST_POINTS = 400
"""Points of one path; of a mask with more, the smallest contours are left out."""


class Marks(NamedTuple):
    """Outlines of a case as paths in SVG's syntax, "" for none.

    Attributes:
        width: Width of the coordinate system.
        height: Its height.
        expected: Outline of the expected region.
        answered: Outline of the answered region.
    """

    width: int
    height: int
    expected: str
    answered: str

    def as_bytes(self) -> bytes:
        """Return the stored form."""
        return f"{self.width} {self.height}\n{self.expected}\n{self.answered}".encode()

    @classmethod
    def of_bytes(cls, data: bytes) -> Marks | None:
        """Return the outlines of stored bytes; None if they were not written by :meth:`as_bytes`."""
        lines = data.decode("ascii", "replace").split("\n")
        size = lines[0].split()
        if len(lines) != 3 or len(size) != 2 or not all(text.isdecimal() for text in size):
            return None
        if any(set(path) - set("MZ 0123456789") for path in lines[1:]):
            return None
        return cls(int(size[0]), int(size[1]), lines[1], lines[2])


def of_record(form: str, record: Mapping[str, Any]) -> str:
    """Return the name of a record's outlines or answer.

    Args:
        form: :data:`MARKS` or :data:`DRAWN`.
        record: The columns :data:`NAMED_BY` of the record.
    """
    parts = (form, *(str(record[name] or "") for name in NAMED_BY))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def names_of(records: Iterator[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the names of all thumbnails that records may have; some do not exist."""
    for record in records:
        yield from (str(record["source_sha256"]), str(record["followup_sha256"]))
        yield from (of_record(form, record) for form in (MARKS, DRAWN))


def size_of(height: int, width: int) -> tuple[int, int]:
    """Return height and width of a picture's thumbnail."""
    scale = min(1.0, SIDE / min(height, width), MOST_SIDE / max(height, width))
    return max(1, round(scale * height)), max(1, round(scale * width))


def encode(picture: NDArray[np.uint8]) -> bytes:
    """Return a picture's thumbnail as JPEG.

    Args:
        picture: uint8 H×W×3.
    """
    rows, columns = size_of(*picture.shape[:2])
    factor = 1 << max(0, (picture.shape[0] // rows).bit_length() - 1)
    if factor > 1:  # whole factors are averaged four times faster
        height, width = (side // factor for side in picture.shape[:2])
        picture = picture[: height * factor, : width * factor]
        picture = np.asarray(cv2.resize(picture, (width, height), interpolation=cv2.INTER_AREA), np.uint8)
    if picture.shape[:2] != (rows, columns):
        picture = np.asarray(cv2.resize(picture, (columns, rows), interpolation=cv2.INTER_LINEAR), np.uint8)
    encoded, data = cv2.imencode(".jpg", cv2.cvtColor(picture, cv2.COLOR_RGB2BGR), _QUALITY)
    if not encoded:
        raise ValueError(f"a picture of shape {picture.shape} could not be encoded")
    return data.tobytes()


def outlined(expected: Mask | None, answered: Mask | None) -> Marks | None:
    """Return the outlines of two regions of one shape, bool H×W; None without a region."""
    shapes = [region.shape for region in (expected, answered) if region is not None]
    if not shapes:
        return None
    rows, columns = (-(-side // grid_step(shapes[0])) for side in shapes[0])
    return Marks(columns, rows, *("" if region is None else path_of(region) for region in (expected, answered)))


def grid_step(shape: tuple[int, ...]) -> int:
    """Return the pixels per point of the grid in which the outlines of a region of some shape are drawn."""
    return max(1, min(shape) // _GRID)


def path_of(region: Mask) -> str:
    """Return the outlines of a region as a path in SVG's syntax, in points of the grid.

    Args:
        region: bool H×W.
    """
    step = grid_step(region.shape)
    small = np.ascontiguousarray(region[::step, ::step]).view(np.uint8)
    contours, _ = cv2.findContours(small, cv2.RETR_LIST, cv2.CHAIN_APPROX_NONE)
    lines = [cv2.approxPolyDP(contour, _TOLERANCE, closed=True) for contour in contours]
    path, points = "", 0
    for line in sorted(lines, key=len, reverse=True):
        points += len(line)
        if path and points > _MOST_POINTS:
            break
        path += f"M{' '.join(map(str, line.ravel().tolist()))}Z"
    return path
