"""Quality over scales as CSV: wide (one line per algorithm) or long (one line per measurement)."""

from __future__ import annotations

import csv
import io
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import numpy as np

from medtest.results.series.series import Series, SeriesSet, make_series
from medtest.results.series.series_lines import Line, SeriesReading, assemble, check_width

_ALGORITHM = ("algorithm", "system", "method")
_SCALE = ("scale", "sigma")
_IMAGE = ("image", "seed_id", "case")
_CLUSTER = ("cluster", "patient")
_QUALITY = "quality"
_LINES_LOOKED_AT, _LOOKED_AT = 5, 1 << 20


def read_csv(reading: SeriesReading, text: str, *, title: str) -> SeriesSet:
    """Read the text of a CSV file with tabs, semicolons or commas as separators.

    Decimal commas are allowed unless commas separate cells.

    Raises:
        UserMistakes: The file has neither of the two layouts.
    """
    delimiter = _delimiter(text)
    reading.commas = delimiter != ","
    rows = _rows(text, delimiter)
    first, second = next(rows, None), next(rows, None)
    if first is None or second is None:
        raise reading.wrong(None, None, "no line with qualities", "a header and at least one line")
    head = [cell.lower() for cell in first.cells]
    if _place(head, _ALGORITHM) is not None and _place(head, _SCALE) is not None:
        return _long(reading, first, chain([second], rows), head, title=title)
    return _wide(reading, [first, second, *rows], title=title)


def _delimiter(text: str) -> str:
    """Return the cell separator: a character that occurs equally often in each of the first lines."""
    start = text[:_LOOKED_AT].splitlines()[: _LINES_LOOKED_AT + 1]
    lines = [line for line in start if line.strip() and not line.startswith("#")][:_LINES_LOOKED_AT]
    for sign in "\t;,":
        counts = {line.count(sign) for line in lines}
        if len(counts) == 1 and counts != {0}:
            return sign
    return max(",;\t", key=(lines or [""])[0].count)


def _rows(text: str, delimiter: str) -> Iterator[Line]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    for cells in reader:
        stripped = tuple(cell.strip() for cell in cells)
        if any(stripped) and not stripped[0].startswith("#"):
            yield Line(reader.line_num, stripped)


def _place(head: Sequence[str], names: Sequence[str]) -> int | None:
    return next((head.index(name) for name in names if name in head), None)


def _wide(reading: SeriesReading, rows: Sequence[Line], *, title: str) -> SeriesSet:
    head = rows[0]
    if not head.cells[0]:
        raise reading.wrong(head.line, 1, "no name", "the uncertainty's name before its scales")
    scales = [reading.number(cell, head.line, column) for column, cell in enumerate(head.cells[1:], start=2)]
    for row in rows[1:]:
        check_width(reading, row.line, row.cells, len(head.cells))
    return assemble(reading, title=title, quality=_QUALITY, head=head, scales=scales, rows=rows[1:])


def _long(reading: SeriesReading, first: Line, rows: Iterable[Line], head: Sequence[str], *, title: str) -> SeriesSet:
    line = first.line
    algorithm, scale = _place(head, _ALGORITHM), _place(head, _SCALE)
    image, cluster = _place(head, _IMAGE), _place(head, _CLUSTER)
    remaining = [n for n in range(len(head)) if n not in (algorithm, scale, image, cluster)]
    if algorithm is None or scale is None or len(remaining) != 1:
        names = ", ".join(first.cells[n] for n in remaining) or "none"
        allowed = "one column of qualities besides algorithm, scale, image and cluster"
        raise reading.wrong(line, None, f"columns of qualities: {names}", allowed)
    by_algorithm: dict[str, _Measured] = {}
    for row in rows:
        check_width(reading, row.line, row.cells, len(head))
        name = row.cells[algorithm]
        if not name:
            raise reading.wrong(row.line, algorithm + 1, "no name", "the algorithm's name")
        picture = "" if image is None else row.cells[image]
        group = picture if cluster is None else row.cells[cluster]
        sigma = reading.number(row.cells[scale], row.line, scale + 1)
        value = reading.number(row.cells[remaining[0]], row.line, remaining[0] + 1)
        by_algorithm.setdefault(name, _Measured()).add(picture, group, sigma, row.cells[scale], value)
    series = tuple(measured.series(name) for name, measured in by_algorithm.items())
    for curve in series:
        if curve.scales.size < 2:
            raise reading.wrong(None, None, f"{curve.name} at one scale", "at least two different scales")
    if any(measured.left_out for measured in by_algorithm.values()):
        reading.note("images without all scales are left out of an algorithm's curve")
    return SeriesSet(title=title, quality=first.cells[remaining[0]], scale=first.cells[scale], series=series)


class _Measured:
    """Measurements of one algorithm: repeats are averaged, then the images that have every scale."""

    def __init__(self) -> None:
        self._images: dict[str, int] = {}
        self._scales: dict[float, int] = {}
        self._labels: list[str] = []
        self._groups: list[str] = []
        # Arrays of numbers, since there may be a million measurements.
        self._at = (array("q"), array("q"))
        self._values = array("d")
        self.left_out = 0

    def add(self, image: str, cluster: str, scale: float, label: str, value: float) -> None:
        """Add one measurement."""
        if image not in self._images:
            self._images[image] = len(self._groups)
            self._groups.append(cluster)
        if scale not in self._scales:
            self._scales[scale] = len(self._labels)
            self._labels.append(label)
        self._at[0].append(self._images[image])
        self._at[1].append(self._scales[scale])
        self._values.append(value)

    def series(self, name: str) -> Series:
        """Return the curve."""
        scales = sorted(self._scales)
        labels = [self._labels[self._scales[scale]] for scale in scales]
        order = np.empty(len(scales), np.int64)
        order[[self._scales[scale] for scale in scales]] = np.arange(len(scales))
        place = order[np.array(self._at[1])]
        image, values = np.array(self._at[0]), np.array(self._values)
        cells, cell = np.unique(image * len(scales) + place, return_inverse=True)
        means = np.bincount(cell, weights=values) / np.bincount(cell)
        # np.unique sorts: the cells of a complete image are adjacent, in the order of scales.
        complete = np.bincount(cells // len(scales), minlength=len(self._groups)) == len(scales)
        if not complete.any():  # every image has its own scale
            return make_series(name, scales, np.bincount(place, weights=values) / np.bincount(place), labels=labels)
        self.left_out = int(np.count_nonzero(~complete))
        # Sorted, so that algorithms are compared image by image independent of line order.
        complete_images = sorted(image for image, number in self._images.items() if complete[number])
        numbers = np.array([self._images[image] for image in complete_images])
        images = means[np.searchsorted(cells, numbers[:, None] * len(scales) + np.arange(len(scales)))]
        _, clusters = np.unique([self._groups[number] for number in numbers], return_inverse=True)
        clustered = len(complete_images) > 1
        return make_series(
            name,
            scales,
            images.mean(0),
            labels=labels,
            images=images if clustered else None,
            clusters=clusters.astype(np.int64) if clustered else None,
            seeds=complete_images if clustered else (),
        )
