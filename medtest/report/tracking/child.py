"""What a child run in MLflow holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class Begun:
    """A word that a run is made under, kept on disk until its id is known.

    Attributes:
        word: The word.
        before: Whether an earlier attempt may have made the run.
    """

    word: str
    before: bool


@dataclass(frozen=True, kw_only=True)
class LoggedPicture:
    """A sample picture.

    Attributes:
        key: Groups pictures in the UI; letters, digits, ``_-./`` and spaces.
        path: The file.
    """

    key: str
    path: Path


@dataclass(frozen=True, kw_only=True)
class Child:
    """What a child run holds: one system under one view.

    Attributes:
        name: Name of the run.
        run_id: The run of an earlier invocation, or None.
        begun: The word by which a run is found whose making was never answered.
        params: What the digest covers, flat.
        tags: Words to search and compare by.
        metrics: Numbers, each alone or by step.
        tables: Tables by artifact name (``tables/efr.json``), which MLflow's pages show as such.
        seeds: The seeds that were used, logged as a data set.
        seeds_name: Name of that data set.
        seeds_digest: Its digest, at most 36 characters.
        pictures: Sample strips, which go on few sheets.
        artifacts: Files that people open one by one, and the artifact folder each goes to; those that are there when
            the run's id is known.
        archived: All other files and the folder of each within ``files.zip``.
        sent: What the run holds whole once its last batch arrived, a SHA-256; "" where nothing asks for it.
        ended_well: False marks the run FAILED.
        model_id: MLflow's logged model that was tested, whose page then leads to the run; "" for none.
    """

    name: str
    run_id: str | None = None
    begun: Begun | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, float | Mapping[int, float]] = field(default_factory=dict)
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    seeds: pd.DataFrame | None = None
    seeds_name: str = "seeds"
    seeds_digest: str = ""
    pictures: Sequence[LoggedPicture] = ()
    artifacts: Sequence[tuple[Path, str]] = ()
    archived: Sequence[tuple[Path, str]] = ()
    sent: str = ""
    ended_well: bool = True
    model_id: str = ""
