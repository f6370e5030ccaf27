"""Tables on the pictures of one run, and their report sections."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from medtest.core.deferred import pd
from medtest.core.errors import MedtestError
from medtest.core.records import PICTURES
from medtest.core.tasks.results import RunRecords, Section
from medtest.results.fidelity.cases import DrawnCases
from medtest.results.fidelity.duplicates.tables import duplicate_tables
from medtest.results.fidelity.embedded import EmbeddedRun, embedded_run
from medtest.results.fidelity.figures import fidelity_table
from medtest.results.fidelity.geneval.table import geneval_table
from medtest.results.fidelity.sections import sections
from medtest.results.fidelity.settings import FigureSettings

NAMES = ("fidelity.csv", "geneval.csv", "duplicates.csv", "duplicate_shares.csv")
"""File names of the tables."""


@dataclass(frozen=True, kw_only=True)
class PictureTables:
    """Tables on pictures.

    Attributes:
        frames: Tables by file name; :data:`NAMES`.
        notices: Notices on missing figures, one line each.
    """

    frames: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    notices: tuple[str, ...] = ()

    def sections(self) -> Sequence[Section]:
        """Return the report sections of the tables."""
        return sections(self.frames, self.notices)


def picture_tables(
    records: RunRecords,
    settings: FigureSettings,
    *,
    folder: Path | None,
    shared: Path | None = None,
    hashed: bool = False,
    progress: Callable[[str], None] = lambda line: None,
) -> PictureTables:
    """Return the tables on the recorded pictures of one system.

    Pictures that are not cached are embedded in a separate process. If that fails, a notice says so; figures that need
    no network are computed in any case.

    Args:
        records: Records of one system.
        settings: Settings of the figures.
        folder: Folder of the run with its pictures; None to compute only figures that need no pictures.
        shared: Folder shared by all runs, for features; None for the run's own.
        hashed: If True, hide the file names of the training folder.
        progress: Called with progress messages.
    """
    cases = DrawnCases.of(records)
    notices: list[str] = []
    if folder is not None and settings.pictures == "embedded" and cases.drawn.any():
        if not (folder / PICTURES).is_dir():
            notices = ["the run keeps no pictures, so figures of pictures are missing"]
        else:
            try:
                run = embedded_run(cases, settings, folder=folder, shared=shared or folder, progress=progress)
                with closing(run) as embedded:
                    frames = _frames(cases, settings, embedded.without_names() if hashed else embedded)
                    return PictureTables(frames=frames, notices=tuple(embedded.notices))
            except MedtestError as error:
                notices = [f"figures that need a network are missing: {error}"]
    return PictureTables(frames=_frames(cases, settings, None), notices=tuple(notices))


def _frames(cases: DrawnCases, settings: FigureSettings, embedded: EmbeddedRun | None) -> dict[str, Any]:
    frames = (
        fidelity_table(cases, settings, embedded),
        geneval_table(cases, settings, embedded),
        *duplicate_tables(cases, embedded, settings.similarity),
    )
    return dict(zip(NAMES, frames, strict=True))
