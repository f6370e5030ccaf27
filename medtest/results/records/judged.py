"""Records as tables and comparisons take them: the columns they need, under the oracle that is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from medtest.core.oracles.base import Oracle
from medtest.core.records import ANSWER, CASE_FACTORS, FIXED_COLUMNS, KEY_COLUMNS, SEED_FACTORS
from medtest.results.records.exclusion import leave_out
from medtest.results.records.records_io import REPEATED, Records, column_names
from medtest.results.records.rejudging import rejudged_records
from medtest.results.records.wanted import Wanted
from medtest.runner.records.case_set import CaseSet

if TYPE_CHECKING:
    from medtest.readers.base import Readings

_KEYS = tuple(name for name, _ in FIXED_COLUMNS if name in {*REPEATED, *KEY_COLUMNS, "scale"})


def make_columns(folder: Path) -> list[str]:
    """Return the columns that tables need; hashes and times are not read, nor parameters but those of attacks."""
    there = column_names(folder)
    unread = {"followup_sha256", ANSWER, "elapsed_ms", *_KEYS, *SEED_FACTORS, *CASE_FACTORS}
    unread |= set() if "crafted_on" in there else {"params"}
    if "picture" in there:  # what tells prompts apart where records hold no words
        unread.discard("followup_sha256")
    rest = [name for name in there if name not in unread]
    return [*_KEYS, *SEED_FACTORS, *CASE_FACTORS, *rest]


def judged_records(records: Records, oracle: Oracle | None = None, readings: Readings | None = None) -> Records:
    """Return records as an oracle judges them, with what another reader read laid over.

    Args:
        records: Records of one system.
        oracle: The oracle; None leaves them as they are.
        readings: What it read; needs ``oracle``.
    """
    if oracle is None:
        return records
    return rejudged_records(records, oracle, readings)


def compared_records(
    folder: Path,
    wanted: Wanted,
    oracle: Oracle | None = None,
    readings: Readings | None = None,
    asked: CaseSet | None = None,
) -> Records:
    """Read what a comparison of systems needs: the records that tables are made of, with what tells cases apart.

    Args:
        folder: ``outputs/<suite>/<system>/<digest>``.
        wanted: What is wanted of the suite; follow-ups that people judged unfit are left out.
        oracle: As in :func:`make_tables`.
        readings: As in :func:`make_tables`.
        asked: The cases; None for all.

    Raises:
        OutputProblem: The folder holds no readable records.
    """
    records = Records.read(folder, [*make_columns(folder), "source_sha256", "followup_sha256", "question"], asked)
    kept = records if wanted.exclude is None else leave_out(records, wanted.exclude)[0]
    return judged_records(kept, oracle, readings)
