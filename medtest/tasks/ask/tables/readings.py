"""A judge's readings of records of answers: the table that shows each.

Records themselves stay as they are. What a judge read is laid over them (:mod:`medtest.results.records.rejudging`),
marked in the column ``read_by``, which no record holds, and counted apart in tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from medtest.readers.meaning import NEEDS, Reading, Unread, unread_of
from medtest.results.records.rejudging import contents_in

if TYPE_CHECKING:
    import pandas as pd

    from medtest.results.records.records_io import Records

JUDGED_COLUMNS = ("item", "question", "kind", "words", "state", "said", "quote", "doubt", "cases")
"""Columns of the table of readings."""


def judged_table(records: Records, readings: Mapping[Unread, Reading]) -> pd.DataFrame:
    """Return every reading with the number of cases whose answer it is: columns :data:`JUDGED_COLUMNS`.

    Args:
        records: The records that the words are from.
        readings: What was read.
    """
    import pandas as pd

    cases = contents_in(records, NEEDS, unread_of)
    rows = [
        (one.item, one.question, one.kind, one.words, read.state.value, read.said, read.quote, read.doubt, cases[one])
        for one, read in sorted(readings.items())
        if one in cases
    ]
    return pd.DataFrame(rows, columns=list(JUDGED_COLUMNS))
