"""Material of one system's report: tables, ``run.json``, sample strips."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from medtest.core.files import read_object
from medtest.core.records import is_simulated
from medtest.report.charts.heat import EfrRows
from medtest.results.rates import efr
from medtest.results.records.judged import compared_records
from medtest.results.records.records_io import Records
from medtest.results.records.wanted import RUN_FILE, Wanted
from medtest.results.tables import Tables
from medtest.runner.folder import view_folder
from medtest.runner.records.case_set import CaseSet

SAMPLES = "samples"
INSIDE = "inside"
"""Folder of a run with the output of ``medtest inspect``."""
INDEX = "index.json"
_MAX_BYTES = 20_000_000
_MAX_PIXELS = 40_000_000
_WIDTH = 1200
_QUALITY = 70

SampleStrip: TypeAlias = tuple[Mapping[str, Any], dict[str, Any]]
"""Entry of a strip in ``samples/index.json``; its picture: ``data`` (JPEG as a ``data:`` address), width, height."""


@dataclass(frozen=True, kw_only=True)
class Material:
    """Content of one system's report.

    Attributes:
        folder: Folder of the results.
        wanted: Parts of the suite that are shown.
        tables: The tables.
        run: Content of ``run.json``.
        notices: Lines for the reader.
        command: The command line as typed.
        view: Digest of the view, "" for the folder's own tables and report.
        rejudged: Whether the records were judged by another oracle than the suite's, or answers read by another reader.
        asked: Cases covered by tables and report; None for all in the folder.
        browser: ``page``, or ``folder`` to show all cases in the browser, with pictures beside the page.
        read: Reads the records behind the tables again, for a comparison; None reads the folder's.
    """

    folder: Path
    wanted: Wanted
    tables: Tables
    run: Mapping[str, Any] = field(default_factory=dict)
    notices: Sequence[str] = ()
    command: str = ""
    view: str = ""
    browser: str = "page"
    read: Callable[[], Records] | None = None
    rejudged: bool = False
    asked: CaseSet | None = None

    @property
    def system(self) -> str:
        """The system's name in records."""
        return str(self.run.get("system") or self.tables.system)

    @cached_property
    def rates(self) -> EfrRows:
        """Rows of the EFR table, indexed once for all pages and outputs."""
        return EfrRows(self.tables.efr)

    def row(self, relation: str = efr.OVERALL, **keys: str) -> Mapping[str, Any] | None:
        """Return the rates of a relation under the primary criterion, or None.

        Args:
            relation: The relation; all of them by default.
            keys: ``dataset`` and ``severity``; all of them by default.
        """
        primary = self.wanted.primary
        return self.rates.get(
            relation=relation, score=primary.score, threshold=primary.threshold, against=primary.against, **keys
        )

    def records(self) -> Records:
        """Return the records that the tables were made of, with the images' hashes.

        Raises:
            OutputProblem: The folder holds no readable records.
        """
        return compared_records(self.folder, self.wanted) if self.read is None else self.read()

    @property
    def error_percent(self) -> float:
        """Percentage of failed cases, including sources, as used for the exit code."""
        return float(self.run.get("error_percent") or 0.0)

    @property
    def too_many_errors(self) -> bool:
        """True if more cases failed than the suite allows."""
        return self.error_percent > self.wanted.max_error_percent

    @property
    def simulated(self) -> bool:
        """True if the system simulates a product."""
        return is_simulated(self.system)

    @property
    def target(self) -> Path:
        """Folder of the tables, the report and the pictures drawn for them."""
        return view_folder(self.folder, self.view)

    @property
    def strips(self) -> Path:
        """Folder whose ``samples/`` hold the strips; another oracle's view of all cases uses the run's own."""
        return self.folder if self.asked is None else self.target

    @property
    def coverage(self) -> str:
        """Covered images of the suite, as ``3 of 30 images``; "" for all of them or if unknown."""
        seeds, images = int(self.run.get("seeds") or 0), self.tables.counts.images
        return f"{images:,} of {seeds:,} {self.wanted.task.report.case_input}s" if seeds and self.partial_cases else ""

    @property
    def partial_cases(self) -> str:
        """Covered cases of the suite, as ``63 of 630 cases``; "" for all of them."""
        finished, planned = int(self.run.get("cases_finished") or 0), int(self.run.get("cases_planned") or 0)
        return f"{finished:,} of {planned:,} cases" if finished < planned else ""

    @property
    def partial(self) -> str:
        """Covered part of the suite and its reason, as one sentence; "" for all of it."""
        cases, images = self.partial_cases, self.coverage
        if not cases:
            return ""
        covered = f"{images}: " if images else ""
        if self.asked is None:
            return f"{covered}{cases} of the suite are finished."
        requested, finished = self.asked.count, int(self.run.get("cases_finished") or 0)
        missing = f"; {requested - finished:,} more were requested and are not finished" if finished < requested else ""
        return f"{covered}the {cases} of the suite that were requested{missing}."


def read_run(folder: Path) -> dict[str, Any]:
    """Return ``run.json``, or an empty dict if it is missing or unreadable."""
    return read_object(folder / RUN_FILE)


def sample_index(folder: Path, name: str = INDEX, below: str = SAMPLES) -> list[dict[str, Any]]:
    """Return the entries of an index in ``samples/`` (or ``below``) whose picture exists beside it."""
    try:
        content = json.loads((folder / below / name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    entries = [entry for entry in content if isinstance(entry, dict)] if isinstance(content, list) else []
    return [entry for entry in entries if picture_of(folder, entry, below) is not None]


def picture_of(folder: Path, entry: Mapping[str, Any], below: str = SAMPLES) -> Path | None:
    """Return the picture of an entry: a regular file of bounded size inside ``samples/`` (``below``), or None."""
    name = str(entry.get("file", ""))
    path = folder / below / name
    if not name or Path(name).name != name or path.is_symlink() or not path.is_file():
        return None
    return path if path.stat().st_size <= _MAX_BYTES else None


def strips(folder: Path, entries: Sequence[Mapping[str, Any]], below: str = SAMPLES) -> list[SampleStrip]:
    """Return the entries of an index with their pictures as inline JPEG; undecodable ones are left out."""
    from PIL import Image, UnidentifiedImageError

    shown_strips: list[SampleStrip] = []
    for entry in entries:
        path = picture_of(folder, entry, below)
        if path is None:
            continue
        try:
            with Image.open(path) as picture:
                if picture.width * picture.height > _MAX_PIXELS:
                    continue
                shown = picture.convert("RGB")
        except (OSError, UnidentifiedImageError, Image.DecompressionBombError):
            continue
        if shown.width > _WIDTH:
            shown = shown.resize((_WIDTH, round(shown.height * _WIDTH / shown.width)), Image.Resampling.LANCZOS)
        buffer = io.BytesIO()
        shown.save(buffer, "JPEG", quality=_QUALITY, optimize=True)
        data = "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
        shown_strips.append((entry, {"data": data, "width": shown.width, "height": shown.height}))
    return shown_strips
