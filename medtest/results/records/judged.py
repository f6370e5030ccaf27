"""Records for tables and comparisons: the columns that are needed, judged by the requested oracle."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from medtest.core.oracles.base import Oracle
from medtest.core.records import ANSWER, CASE_FACTORS, FIXED_COLUMNS, KEY_COLUMNS, SEED_FACTORS, VISIBILITY_COLUMNS
from medtest.results.records.exclusion import leave_out
from medtest.results.records.records_io import REPEATED, SEARCH, Records, column_names
from medtest.results.records.rejudging import rejudged_records
from medtest.results.records.wanted import Wanted
from medtest.runner.records.case_set import CaseSet

if TYPE_CHECKING:
    from medtest.readers.base import Readings

_FACTORS = (*SEED_FACTORS, *CASE_FACTORS, *VISIBILITY_COLUMNS)
_KEYS = tuple(name for name, _ in FIXED_COLUMNS if name in {*REPEATED, *KEY_COLUMNS, "scale"})


def make_columns(folder: Path) -> list[str]:
    """Return the columns that tables need, without hashes and times.

    Parameters are read only where tables need them: for attacks, and for calibrated relations.
    """
    present = column_names(folder)
    unread = {"followup_sha256", ANSWER, "elapsed_ms", *_KEYS, *_FACTORS}
    unread |= set() if "crafted_on" in present or _calibrates(folder) else {"params"}
    if SEARCH in present:  # identify the pictures of searches
        unread -= {"followup_sha256", ANSWER}
    if "picture" in present:  # identifies the prompt if records have no text
        unread.discard("followup_sha256")
    needed = [name for name in present if name not in unread]
    return [*_KEYS, *_FACTORS, *needed]


def _calibrates(folder: Path) -> bool:
    """Return True if the suite of a run has calibrated relations."""
    try:
        suite = yaml.safe_load((folder / "suite.yaml").read_text(encoding="utf-8"))
        return any("calibrate" in settings for settings in suite["relations"].values())
    except (OSError, UnicodeDecodeError, yaml.YAMLError, LookupError, TypeError, AttributeError):
        return False


def compared_records(
    folder: Path,
    wanted: Wanted,
    oracle: Oracle | None = None,
    readings: Readings | None = None,
    asked: CaseSet | None = None,
) -> Records:
    """Read the records for a comparison of systems: the columns of tables and those that identify cases.

    Args:
        folder: ``outputs/<suite>/<system>/<digest>``.
        wanted: Display settings of the suite; follow-ups that people judged unfit, and controls, are left out.
        oracle: As in :func:`make_tables`.
        readings: As in :func:`make_tables`.
        asked: Selection of cases; None for all.

    Raises:
        OutputProblem: The folder has no readable records.
    """
    records = Records.read(folder, [*make_columns(folder), "source_sha256", "followup_sha256", "question"], asked)
    remaining = records if wanted.exclude is None else leave_out(records, wanted.exclude)[0]
    records = remaining.parted()[0]
    return records if oracle is None else rejudged_records(records, oracle, readings)
