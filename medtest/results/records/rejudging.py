"""Records judged anew by an oracle under other settings than they were made with: for views, from records alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import yaml

from medtest.core.cases import SOURCE
from medtest.core.errors import MedtestError, OutputProblem
from medtest.core.oracles.base import Oracle
from medtest.core.plugins import parts
from medtest.readers.base import JUDGE, READ_BY, BatchReader, Readings
from medtest.results.records.records_io import Records
from medtest.suite.model import Criterion
from medtest.suite.reading.library import deep_merge

if TYPE_CHECKING:
    import pandas as pd


Content = TypeVar("Content", bound=Hashable)

_SEED = ("dataset", "seed_id", "item")
"""Columns that a follow-up's record and its source's have in common."""
_SUITE_FILE = "suite.yaml"
_SHOWN = ("oracle", "primary", "reader", "scores", "thresholds", "against")
"""Keys of a suite's ``oracles`` that are no settings of the oracle."""


def oracle_in(folder: Path) -> Oracle:
    """Return the oracle that the ``suite.yaml`` of a run's folder, or of a view in it, describes.

    Args:
        folder: Where ``suite.yaml`` lies.

    Raises:
        OutputProblem: It cannot be read, or names an oracle that is not installed.
    """
    try:
        content = yaml.safe_load((folder / _SUITE_FILE).read_text(encoding="utf-8"))
        block = content["oracles"]
        info = parts("oracles")[str(block["oracle"])]
        given = {name: value for name, value in block.items() if name not in _SHOWN}
        defaults = {name: value for name, value in dict(info.defaults).items() if name not in _SHOWN}
        loaded = info.load()
        oracle: Oracle = loaded(loaded.Settings(**deep_merge(defaults, given)), primary=Criterion(**block["primary"]))
        oracle.relations = {name: str(one["relation"]) for name, one in content["relations"].items()}
        oracle.effects = _effects(oracle.relations)
    except OSError as error:
        raise OutputProblem(f"{folder.name}/{_SUITE_FILE} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise OutputProblem(f"{folder.name}/{_SUITE_FILE} describes no oracle that is installed: {error!r}") from error
    return oracle


def reader_in(folder: Path) -> BatchReader[Any, Any] | None:
    """Return the reader that the ``suite.yaml`` of a run's folder, or of a view in it, names; None where it names none.

    Args:
        folder: Where ``suite.yaml`` lies.

    Raises:
        KeyError: It is not installed.
    """
    block = yaml.safe_load((folder / _SUITE_FILE).read_text(encoding="utf-8"))["oracles"]
    given = dict(block.get("reader") or {})
    name = str(given.pop("use", parts("oracles")[str(block["oracle"])].load().reads))
    if not name:
        return None
    info = parts("readers")[name]
    part = info.load()
    reader: BatchReader[Any, Any] = part(name, part.Settings(**deep_merge(info.defaults, given)))
    return reader


def _effects(relations: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """Return what relations say that they do to a picture, by id; those that cannot be loaded here are left out."""
    there = parts("relations")
    found: dict[str, frozenset[str]] = {}
    for name, part in relations.items():
        with suppress(KeyError, MedtestError):
            found[name] = there[part].load().effects
    return found


def rejudged_records(records: Records, oracle: Oracle, readings: Readings | None = None) -> Records:
    """Return records as an oracle judges them; those of an oracle whose scores depend on no setting as they are.

    Args:
        records: Records with the oracle's scores and texts.
        oracle: The oracle, under the settings that are wanted.
        readings: What a reader made of what they hold, in the place of what stands in them; None leaves that.
    """
    texts_there = set(oracle.texts) <= set(records.followups.columns)
    if not oracle.judging() or not texts_there:
        return records
    sources: dict[tuple[Any, ...], dict[str, Any]] = {}
    return Records(  # sources first: follow-ups take over what was read of theirs
        sources=_frame(records.sources, oracle, readings, sources),
        followups=_frame(records.followups, oracle, readings, sources),
        classes=records.classes,
        reader=records.reader if readings is None or readings.marks else readings.about,
    )


def rows_of(frame: pd.DataFrame, names: Iterable[str]) -> list[dict[str, Any]]:
    """Return records as dictionaries of the columns that are there, None for what is missing."""
    plain = frame[[name for name in dict.fromkeys(names) if name in frame.columns]].astype(object)
    rows: list[dict[str, Any]] = plain.where(plain.notna(), None).to_dict("records")  # type: ignore[assignment]
    return rows


def contents_in(
    records: Records, needs: Iterable[str], recorded: Callable[[Mapping[str, Any]], Content | None]
) -> Counter[Content]:
    """Return what a reader finds to read in records, each content with the number of records that hold it.

    Args:
        records: Records of one system.
        needs: Columns that ``recorded`` looks at.
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
    """Return records judged anew; what was read of sources is noted for their follow-ups."""
    if frame.empty:
        return frame if readings is None or not readings.marks else frame.assign(**{READ_BY: ""})
    scores = oracle.judged_columns
    names = [
        name for name in (*scores, *oracle.texts, "relation", "item", "verdict", "reason") if name in frame.columns
    ]
    rows, marks = rows_of(frame, (*names, *_SEED)), [""] * len(frame)
    if readings is not None:
        for number, row in enumerate(rows):
            read = readings.of(row)
            row.update(read)
            seed = tuple(row[name] for name in _SEED)
            if row["relation"] != SOURCE:
                row.update(sources.get(seed, {}))
            elif read:
                sources[seed] = oracle.of_source(row)
            marks[number] = JUDGE if read else ""
    made = [{**row, **oracle.judged_again(row)} for row in rows]
    new = frame.copy()
    if readings is not None and readings.marks:
        new[READ_BY] = marks
    for name in names:
        if name in scores:
            new[name] = [float("nan") if row[name] is None else float(row[name]) for row in made]
        elif name not in ("relation", "item"):
            new[name] = [row[name] for row in made]
    return new
