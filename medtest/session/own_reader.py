"""Reader of a run's own records: the one that the first call names; every other reader makes a view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from medtest.core.errors import typed_error
from medtest.core.files import read_object
from medtest.core.plugins import PartInfo
from medtest.readers.recorded import RecordedReader, RecordedSettings
from medtest.runner.folder import RUN_FILE
from medtest.runner.prepared import run_folders
from medtest.runner.records.shards import judging_in
from medtest.runner.reporting.finish import SUITE_FILE
from medtest.suite.compose import Loaded
from medtest.suite.composed import with_composed
from medtest.suite.digest import oracle_digest
from medtest.suite.model import Invocation, PartPlan, Suite

Entry = Mapping[str, Any]
"""Fingerprint of a reader, as in the metadata of records."""


def with_own_reader(loaded: Loaded, invocation: Invocation) -> tuple[Loaded, str]:
    """Return the call with the reader of its records, and that reader's name if the call cannot open it.

    In a folder without records the reader of the call, named on the command line or the suite's, reads the records.
    Later calls keep it: another reader makes a view. A reader that the call does not name can read no further case,
    because paths, addresses and permissions come from the command line alone.

    Args:
        loaded: The checked suite.
        invocation: Options of the run.

    Raises:
        UserMistakes: Records of the suite's systems were read by different readers.
    """
    named, usual = loaded.suite.build_reader(), loaded.own.build_reader()
    if named is None or usual is None or named.of_oracle or usual.of_oracle:
        return loaded, ""
    folders = _folders(loaded.own, invocation)
    entries = [entry for folder in folders if (entry := _entry_in(folder)) is not None]
    if all(_same(entry, named.fingerprint()) for entry in entries):
        return _read_by_named(loaded), ""
    if all(_kind(entry) == _kind(usual.fingerprint()) for entry in entries):
        return loaded, ""
    if not all(_same(entry, entries[0]) for entry in entries):
        raise typed_error(
            "oracles.reader",
            "systems whose records were read by different readers",
            "one reader",
            "run them one by one (model=NAME)",
        )
    folder = next(folder for folder in folders if _entry_in(folder) is not None)
    plan = _recorded_plan(entries[0], folder)
    own = replace(loaded.own, oracle=replace(loaded.own.oracle, reader=plan))
    oracles = {**loaded.own.composed.get("oracles", {}), "reader": _block(entries[0], folder)}
    own = replace(own, composed={**own.composed, "oracles": oracles})
    return replace(loaded, own=own, view=oracle_digest(loaded.suite).value, reader=named), plan.id


def _folders(suite: Suite, invocation: Invocation) -> Sequence[Path]:
    """Return the folders of the run, none if they are moved aside."""
    if invocation.fresh:
        return ()
    return run_folders(suite, invocation, suite.build_seeds(invocation.data), suite.build_relations())


def _read_by_named(loaded: Loaded) -> Loaded:
    """Return the call with the reader of its judgement as that of the records."""
    if loaded.own is loaded.suite:
        return loaded
    oracle = replace(loaded.own.oracle, reader=loaded.suite.oracle.reader)
    own = with_composed(replace(loaded.own, oracle=oracle))
    if oracle_digest(own).value == oracle_digest(loaded.suite).value:
        return replace(loaded, own=loaded.suite, view="", reader=None)
    return replace(loaded, own=own, reader=None)


def _entry_in(folder: Path) -> Entry | None:
    """Return the reader of a folder's records; None without records, or if they name none."""
    entry = judging_in(folder).get("reader")
    return entry if isinstance(entry, dict) else None


def _kind(entry: Entry) -> tuple[Any, Any]:
    """Return a reader's name and settings, which stay when its weights, card or revision change."""
    return entry.get("reader"), entry.get("settings")


def _same(first: Entry, second: Entry) -> bool:
    """Return True if two entries are of one reader with the same files; card and revision may differ."""
    return _kind(first) == _kind(second) and first.get("weights") == second.get("weights")


def _recorded_plan(entry: Entry, folder: Path) -> PartPlan:
    description = read_object(folder / RUN_FILE).get("reader")
    name = str(_block(entry, folder)["use"])
    target = f"{RecordedReader.__module__}:{RecordedReader.__name__}"
    settings = RecordedSettings(entry=dict(entry), told=dict(description) if isinstance(description, dict) else {})
    return PartPlan(id=name, info=PartInfo(family="readers", name=name, target=target), settings=settings)


def _block(entry: Entry, folder: Path) -> dict[str, Any]:
    """Return the reader's block in the suite of a folder; an interrupted first run has none."""
    try:
        block = yaml.safe_load((folder / SUITE_FILE).read_text(encoding="utf-8"))["oracles"]["reader"]
    except (OSError, UnicodeDecodeError, yaml.YAMLError, KeyError, TypeError):
        block = None
    return dict(block) if isinstance(block, dict) and "use" in block else {"use": str(entry.get("reader"))}
