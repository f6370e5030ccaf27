"""Re-evaluation of records by an oracle with other settings, for views and without running systems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import yaml

from medtest.core.cases import SOURCE
from medtest.core.deferred import pd
from medtest.core.errors import MedtestError, OutputProblem
from medtest.core.oracles.base import Oracle
from medtest.core.oracles.controls import roles_of
from medtest.core.plugins import parts
from medtest.readers.base import JUDGE, READ_BY, BatchReader, Readings
from medtest.results.records.records_io import Records
from medtest.suite.model import Criterion
from medtest.suite.reading.library import deep_merge

Content = TypeVar("Content", bound=Hashable)

_SEED = ("dataset", "seed_id", "item")
"""Columns shared by the records of a follow-up and its source."""
_SUITE_FILE = "suite.yaml"
_SHOWN = ("oracle", "primary", "reader", "scores", "thresholds", "against")
"""Keys of a suite's ``oracles`` that are not settings of the oracle."""


def oracle_in(folder: Path) -> Oracle:
    """Return the oracle described by the ``suite.yaml`` of a run's folder or of a view in it.

    Args:
        folder: Folder with ``suite.yaml``.

    Raises:
        OutputProblem: The file cannot be read, or names an oracle that is not installed.
    """
    try:
        content = yaml.safe_load((folder / _SUITE_FILE).read_text(encoding="utf-8"))
        block = content["oracles"]
        info = parts("oracles")[str(block["oracle"])]
        settings = {name: value for name, value in block.items() if name not in _SHOWN}
        defaults = {name: value for name, value in dict(info.defaults).items() if name not in _SHOWN}
        loaded = info.load()
        oracle: Oracle = loaded(
            loaded.Settings(**deep_merge(defaults, settings)), primary=Criterion(**block["primary"])
        )
        oracle.relations = {name: str(entry["relation"]) for name, entry in content["relations"].items()}
        oracle.effects = _effects(oracle.relations)
        oracle.controls = roles_of(oracle.relations)
    except OSError as error:
        raise OutputProblem(f"{folder.name}/{_SUITE_FILE} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise OutputProblem(f"{folder.name}/{_SUITE_FILE} names an oracle that is not installed: {error!r}") from error
    return oracle


def reader_in(folder: Path) -> BatchReader[Any, Any] | None:
    """Return the reader named in the ``suite.yaml`` of a run's folder or of a view in it, or None.

    Args:
        folder: Folder with ``suite.yaml``.

    Raises:
        KeyError: The reader is not installed.
    """
    block = yaml.safe_load((folder / _SUITE_FILE).read_text(encoding="utf-8"))["oracles"]
    settings = dict(block.get("reader") or {})
    name = str(settings.pop("use", parts("oracles")[str(block["oracle"])].load().reads))
    if not name:
        return None
    info = parts("readers")[name]
    part = info.load()
    reader: BatchReader[Any, Any] = part(name, part.Settings(**deep_merge(info.defaults, settings)))
    return reader


def _effects(relations: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """Return the declared effects of relations on a picture, by id, for relations that can be loaded."""
    installed = parts("relations")
    effects: dict[str, frozenset[str]] = {}
    for name, part in relations.items():
        with suppress(KeyError, MedtestError):
            effects[name] = installed[part].load().effects
    return effects


def rejudged_records(records: Records, oracle: Oracle, readings: Readings | None = None) -> Records:
    """Return records as judged by an oracle; unchanged if its scores depend on no setting.

    Args:
        records: Records with the oracle's scores and texts.
        oracle: The oracle, with the new settings.
        readings: Readings that replace those in the records; None keeps them.
    """
    texts_there = set(oracle.texts) <= set(records.followups.columns)
    if not oracle.judging() or not texts_there:
        return records
    sources: dict[tuple[Any, ...], dict[str, Any]] = {}
    return Records(  # sources first: follow-ups use the readings of their sources
        sources=_frame(records.sources, oracle, readings, sources),
        followups=_frame(records.followups, oracle, readings, sources),
        classes=records.classes,
        reader=records.reader if readings is None or readings.marks else readings.about,
        searched=None if records.searched is None else _frame(records.searched, oracle, readings, sources),
    )


def rows_of(frame: pd.DataFrame, names: Iterable[str]) -> list[dict[str, Any]]:
    """Return records as dictionaries of the available columns, None for missing values."""
    plain = frame[[name for name in dict.fromkeys(names) if name in frame.columns]].astype(object)
    rows: list[dict[str, Any]] = plain.where(plain.notna(), None).to_dict("records")  # type: ignore[assignment]
    return rows


def contents_in(
    records: Records, needs: Iterable[str], recorded: Callable[[Mapping[str, Any]], Content | None]
) -> Counter[Content]:
    """Return the contents that a reader can read in records, each with its number of records.

    Args:
        records: Records of one system.
        needs: Columns that ``recorded`` uses.
        recorded: Returns the content of a record, or None.
    """
    names = tuple(needs)
    frames = (records.sources, records.followups)
    contents = (recorded(row) for frame in frames if names[0] in frame.columns for row in rows_of(frame, names))
    return Counter(content for content in contents if content is not None)


def _frame(
    frame: pd.DataFrame,
    oracle: Oracle,
    readings: Readings | None,
    sources: dict[tuple[Any, ...], dict[str, Any]],
) -> pd.DataFrame:
    """Return re-evaluated records; readings of sources are stored for their follow-ups."""
    if frame.empty:
        return frame if readings is None or not readings.marks else frame.assign(**{READ_BY: ""})
    scores = oracle.judged_columns
    columns = (*scores, *oracle.texts, "relation", "item", "verdict", "reason_code", "reason")
    names = [name for name in columns if name in frame.columns]
    rows, marks = rows_of(frame, (*names, *_SEED)), [""] * len(frame)
    if readings is not None:
        for number, row in enumerate(rows):
            reading = readings.of(row)
            row.update(reading)
            seed = tuple(row[name] for name in _SEED)
            if row["relation"] != SOURCE:
                row.update(sources.get(seed, {}))
            elif reading:
                sources[seed] = oracle.of_source(row)
            marks[number] = JUDGE if reading else ""
    judged = [{**row, **oracle.judged_again(row)} for row in rows]
    new = frame.copy()
    if readings is not None and readings.marks:
        new[READ_BY] = marks
    for name in names:
        if name in scores:
            new[name] = [float("nan") if row[name] is None else float(row[name]) for row in judged]
        elif name not in ("relation", "item"):
            new[name] = [row[name] for row in judged]
    return new
