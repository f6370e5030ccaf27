"""What a child run in MLflow holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class LoggedPicture:
    """A picture for ``log_image``.

    Attributes:
        key: Groups pictures in the UI; letters, digits, ``_-./`` and spaces.
        step: Its number within the group.
        path: The file.
    """

    key: str
    step: int
    path: Path


@dataclass(frozen=True, kw_only=True)
class Child:
    """What a child run holds: one system under one view.

    Attributes:
        name: Name of the run.
        run_id: The run of an earlier invocation, or None.
        begun: A word of its own, kept until the run's id is known: what an earlier attempt made is found by it.
        params: What the digest covers, flat.
        tags: Words to search and compare by.
        metrics: Numbers, each alone or by step.
        tables: Tables by artifact name (``tables/efr.json``).
        seeds: The seeds that were used, logged as a data set.
        seeds_name: Name of that data set.
        seeds_digest: Its digest, at most 36 characters.
        pictures: Few sample strips.
        artifacts: Files and the artifact folder each goes to.
        ended_well: False marks the run FAILED.
        model_id: MLflow's logged model that was tested, whose page then leads to the run; "" for none.
    """

    name: str
    run_id: str | None = None
    begun: str = ""
    params: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, float | Mapping[int, float]] = field(default_factory=dict)
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    seeds: pd.DataFrame | None = None
    seeds_name: str = "seeds"
    seeds_digest: str = ""
    pictures: Sequence[LoggedPicture] = ()
    artifacts: Sequence[tuple[Path, str]] = ()
    ended_well: bool = True
    model_id: str = ""
