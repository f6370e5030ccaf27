"""Content of a child run in MLflow, and names that every MLflow store accepts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from medtest.core.deferred import pd

VALUE_LENGTH = 5900
_KEY_LENGTH = 240
NOT_ALLOWED = re.compile(r"[^A-Za-z0-9_\-./ ]")


@dataclass(frozen=True, kw_only=True)
class Begun:
    """A word recorded before a run is created, kept on disk until the run's id is known.

    Attributes:
        word: The word.
        before: Whether an earlier attempt may have created the run.
    """

    word: str
    before: bool


@dataclass(frozen=True, kw_only=True)
class Child:
    """A child run: one system under one view.

    Attributes:
        name: Name of the run.
        run_id: Run of an earlier invocation, or None.
        begun: Word that identifies a run whose creation was never confirmed.
        params: Content covered by the digest, flat.
        tags: Tags for search and comparison.
        metrics: Numbers, single or by step.
        tables: Tables by artifact name (``tables/efr.json``), shown by MLflow's pages.
        seeds: The used seeds, logged as a data set.
        seeds_name: Name of that data set.
        seeds_digest: Digest of that data set, at most 36 characters.
        pictures: Sample strips, combined on a few sheets: the group of each in the UI (letters, digits, ``_-./`` and
            spaces), and its file.
        artifacts: Files that people open one by one, with the artifact folder of each; only those that exist once the
            run's id is known.
        archived: All other files, with the folder of each within ``files.zip``.
        sent: SHA-256 of the content, set once the last batch arrived; "" if it is not needed.
        ended_well: False marks the run FAILED.
        model_id: The tested logged model in MLflow, whose page then links to the run; "" for none.
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
    pictures: Sequence[tuple[str, Path]] = ()
    artifacts: Sequence[tuple[Path, str]] = ()
    archived: Sequence[tuple[Path, str]] = ()
    sent: str = ""
    ended_well: bool = True
    model_id: str = ""


def metric_name(name: str) -> str:
    """Return a metric's name restricted to the characters that every MLflow store accepts."""
    return NOT_ALLOWED.sub("_", name)[:_KEY_LENGTH]


def flat_params(covers: Mapping[str, Any]) -> dict[str, str]:
    """Return the content covered by a digest as flat params: ``relations.blur``, ``system.fingerprint.weights``.

    Settings of relations and other parts stay JSON text, so that a run has tens of params instead of hundreds.
    """
    return {
        name: text for key, value in covers.items() for name, text in _flat(key, value, 2 if key == "system" else 1)
    }


def _flat(name: str, value: Any, depth: int) -> Iterator[tuple[str, str]]:
    if depth and isinstance(value, Mapping):
        for inner, entry in value.items():
            yield from _flat(f"{name}.{inner}", entry, depth - 1)
    else:
        yield name, value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)


def clean_params(params: Mapping[str, str]) -> dict[str, str]:
    """Return params with keys and value lengths that every store accepts."""
    return {NOT_ALLOWED.sub("_", key)[:_KEY_LENGTH]: value[:VALUE_LENGTH] for key, value in params.items()}
