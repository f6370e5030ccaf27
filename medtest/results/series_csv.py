"""Quality over scales as CSV: wide (a line an algorithm) or long (a line a measurement)."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from medtest.results.series import Series, SeriesSet, make_series
from medtest.results.series_file import Reading, Row, assemble, check_width

_ALGORITHM = ("algorithm", "system", "method")
_SCALE = ("scale", "sigma")
_IMAGE = ("image", "seed_id", "case")
_CLUSTER = ("cluster", "patient")
_QUALITY = "quality"


def read_csv(reading: Reading, text: str, *, title: str) -> SeriesSet:
    """Read a CSV file's text; commas, semicolons and tabs separate cells, whichever its first line holds most of.

    Raises:
        UserMistakes: It is neither of the two tables.
    """
    rows = _rows(text)
    if len(rows) < 2:
        raise reading.wrong(None, None, "no line of qualities", "a head and one line or more")
    head = [cell.lower() for cell in rows[0].cells]
    if _place(head, _ALGORITHM) is not None and _place(head, _SCALE) is not None:
        return _long(reading, rows, head, title=title)
    return _wide(reading, rows, title=title)


def _rows(text: str) -> list[Row]:
    first = next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), "")
    delimiter = max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows = []
    for cells in reader:
        kept = tuple(cell.strip() for cell in cells)
        if any(kept) and not kept[0].startswith("#"):
            rows.append(Row(reader.line_num, kept))
    return rows


def _place(head: Sequence[str], names: Sequence[str]) -> int | None:
    return next((head.index(name) for name in names if name in head), None)


def _wide(reading: Reading, rows: Sequence[Row], *, title: str) -> SeriesSet:
    head = rows[0]
    if not head.cells[0]:
        raise reading.wrong(head.line, 1, "no name", "the uncertainty's name before its scales")
    scales = [reading.number(cell, head.line, column) for column, cell in enumerate(head.cells[1:], start=2)]
    for row in rows[1:]:
        check_width(reading, row.line, row.cells, len(head.cells))
    return assemble(reading, title=title, quality=_QUALITY, head=head, scales=scales, rows=rows[1:])


def _long(reading: Reading, rows: Sequence[Row], head: Sequence[str], *, title: str) -> SeriesSet:
    line = rows[0].line
    algorithm, scale = _place(head, _ALGORITHM), _place(head, _SCALE)
    image, cluster = _place(head, _IMAGE), _place(head, _CLUSTER)
    rest = [n for n in range(len(head)) if n not in (algorithm, scale, image, cluster)]
    if algorithm is None or scale is None or len(rest) != 1:
        names = ", ".join(rows[0].cells[n] for n in rest) or "none"
        allowed = "one column of qualities beside algorithm, scale, image and cluster"
        raise reading.wrong(line, None, f"columns of qualities: {names}", allowed)
    found: dict[str, _Measured] = {}
    for row in rows[1:]:
        check_width(reading, row.line, row.cells, len(head))
        name = row.cells[algorithm]
        if not name:
            raise reading.wrong(row.line, algorithm + 1, "no name", "the algorithm's name")
        picture = "" if image is None else row.cells[image]
        group = picture if cluster is None else row.cells[cluster]
        sigma = reading.number(row.cells[scale], row.line, scale + 1)
        value = reading.number(row.cells[rest[0]], row.line, rest[0] + 1)
        found.setdefault(name, _Measured()).add(picture, group, sigma, row.cells[scale], value)
    series = tuple(one.series(name) for name, one in found.items())
    for one in series:
        if one.scales.size < 2:
            raise reading.wrong(None, None, f"{one.name} at one scale", "two different scales or more")
    if any(one.left_out for one in found.values()):
        reading.note("images that lack a scale were left out of an algorithm's curve")
    return SeriesSet(title=title, quality=rows[0].cells[rest[0]], scale=rows[0].cells[scale], series=series)


class _Measured:
    """The measurements of one algorithm: mean of repeats, then of the images that have every scale."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, float], list[float]] = {}
        self._labels: dict[float, str] = {}
        self._groups: dict[str, str] = {}
        self.left_out = 0

    def add(self, image: str, cluster: str, scale: float, label: str, value: float) -> None:
        """Take one measurement."""
        self._values.setdefault((image, scale), []).append(value)
        self._labels.setdefault(scale, label)
        self._groups.setdefault(image, cluster)

    def series(self, name: str) -> Series:
        """Return the curve."""
        scales = sorted(self._labels)
        labels = [self._labels[scale] for scale in scales]
        # Sorted, so that algorithms are compared image by image in whatever order their lines stand.
        whole = sorted(image for image in self._groups if all((image, scale) in self._values for scale in scales))
        if not whole:  # every image stands at a scale of its own
            means = [float(np.mean([v for (_, s), v in self._values.items() if s == scale])) for scale in scales]
            return make_series(name, scales, means, labels=labels)
        self.left_out = len(self._groups) - len(whole)
        images = np.array([[float(np.mean(self._values[image, scale])) for scale in scales] for image in whole])
        _, clusters = np.unique([self._groups[image] for image in whole], return_inverse=True)
        several = len(whole) > 1
        made = make_series(
            name,
            scales,
            images.mean(0),
            labels=labels,
            images=images if several else None,
            clusters=clusters.astype(np.int64) if several else None,
        )
        return replace(made, seeds=tuple(whole)) if several else made
