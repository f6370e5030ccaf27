"""Table of a judge's readings of recorded answers.

The records themselves do not change. The readings are applied on top of them
(:mod:`medtest.results.records.rejudging`), marked in the column ``read_by``, which no stored record has, and counted
separately in tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from medtest.core.deferred import pd
from medtest.readers.meaning import NEEDS, Reading, Unread, unread_of
from medtest.results.records.rejudging import contents_in

if TYPE_CHECKING:
    from medtest.results.records.records_io import Records

JUDGED_COLUMNS = ("item", "question", "kind", "words", "state", "said", "quote", "doubt", "cases")
"""Columns of the table of readings."""


def judged_table(records: Records, readings: Mapping[Unread, Reading]) -> pd.DataFrame:
    """Return every reading with its number of cases: columns :data:`JUDGED_COLUMNS`.

    Args:
        records: Records with the texts.
        readings: The readings.
    """
    cases = contents_in(records, NEEDS, unread_of)
    rows = [
        (
            unread.item,
            unread.question,
            unread.kind,
            unread.words,
            reading.state.value,
            reading.said,
            reading.quote,
            reading.doubt,
            cases[unread],
        )
        for unread, reading in sorted(readings.items())
        if unread in cases
    ]
    return pd.DataFrame(rows, columns=list(JUDGED_COLUMNS))
