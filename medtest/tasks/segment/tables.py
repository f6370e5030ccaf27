"""Tables of masks and their sections of the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from medtest.core.deferred import pd
from medtest.core.tasks.base import RunRecords, Section, TaskReport, TaskTables
from medtest.tasks.segment import false_positives, visibility

_SECTIONS = {
    false_positives.FILE: false_positives.false_positive_section,
    visibility.FILE: visibility.visibility_section,
}


class MaskTables(TaskTables):
    """False positives, where the oracle ``lesion_free`` judged, and visibility, where masks are expected."""

    names: ClassVar[tuple[str, ...]] = (false_positives.TABLE, visibility.TABLE)

    def frames(self, records: RunRecords) -> Mapping[str, pd.DataFrame]:
        """Return the tables by file name, without empty ones."""
        tables = {
            false_positives.FILE: (false_positives.false_positive_rows(records), false_positives.COLUMNS),
            visibility.FILE: (visibility.visibility_rows(records.followups), visibility.COLUMNS),
        }
        return {name: pd.DataFrame(rows, columns=list(columns)) for name, (rows, columns) in tables.items() if rows}


class MaskReport(TaskReport):
    """A section for each table of masks."""

    def sections(self, tables: Mapping[str, pd.DataFrame]) -> Sequence[Section]:
        """Return the sections of the tables that have rows."""
        return [make(tables[name]) for name, make in _SECTIONS.items() if name in tables and not tables[name].empty]
