"""All tables on pictures of one run, and what its report says of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtest.core.errors import MedtestError
from medtest.core.records import PICTURES
from medtest.core.tasks.results import RunRecords, Section
from medtest.results.fidelity.cases import DrawnCases
from medtest.results.fidelity.duplicates.tables import duplicate_tables
from medtest.results.fidelity.embedded import EmbeddedRun, embedded_run
from medtest.results.fidelity.figures import fidelity_table
from medtest.results.fidelity.geneval_table import geneval_table
from medtest.results.fidelity.sections import sections
from medtest.results.fidelity.settings import FigureSettings

if TYPE_CHECKING:
    import pandas as pd

NAMES = ("fidelity.csv", "geneval.csv", "duplicates.csv", "duplicate_shares.csv")
"""Names of the tables."""


@dataclass(frozen=True, kw_only=True)
class PictureTables:
    """Tables on pictures.

    Attributes:
        frames: By file name; :data:`NAMES`.
        notices: What is missing from them and why, a line each.
    """

    frames: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    notices: tuple[str, ...] = ()

    def sections(self) -> Sequence[Section]:
        """Return their sections of the report."""
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
    """Return the tables on the pictures that the records of one system name.

    Pictures are embedded in a process of its own, those that are kept since an earlier call left out. What goes wrong
    with it is a notice: what needs no network is made in any case.

    Args:
        records: Records of one system.
        settings: What figures are made with.
        folder: The run's folder, which keeps the pictures; None makes what needs none.
        shared: The folder that all runs share, where features are kept; None for the run's own.
        hashed: Show no names of files of the training folder.
        progress: Is told how far the embedding is.
    """
    cases = DrawnCases.of(records)
    notices: list[str] = []
    if folder is not None and settings.pictures == "embedded" and cases.drawn.any():
        if not (folder / PICTURES).is_dir():
            notices = ["the run keeps no pictures, and so there is no figure that needs some"]
        else:
            try:
                with embedded_run(
                    cases, settings, folder=folder, shared=shared or folder, progress=progress
                ) as embedded:
                    made = _frames(cases, settings, embedded.without_names() if hashed else embedded)
                    return PictureTables(frames=made, notices=tuple(embedded.notices))
            except MedtestError as error:
                notices = [f"figures that need a network of pictures are missing: {error}"]
    return PictureTables(frames=_frames(cases, settings, None), notices=tuple(notices))


def _frames(cases: DrawnCases, settings: FigureSettings, embedded: EmbeddedRun | None) -> dict[str, Any]:
    duplicates = duplicate_tables(cases, embedded, settings.similarity)
    made = (
        fidelity_table(cases, settings, embedded),
        geneval_table(cases, settings, embedded),
        duplicates.pairs,
        duplicates.shares,
    )
    return dict(zip(NAMES, made, strict=True))
