"""A judge's readings laid over records: answers in which the parser found no value are judged by what a model read.

So are those that deny one thing and name several, where the parser may have taken the wrong one. What was said by
schema is not put to a judge.

Records themselves stay as they are. What was read so is marked in the column ``read_by``, which no record holds, and is
counted apart in tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from medtest.oracles.base import Oracle
from medtest.readers.meaning import Reading, Unread, contested
from medtest.results.answers.answer_records import JUDGE, READ_BY, SCHEMA, STAGE, STATE, has_answers
from medtest.results.records.records_io import Records
from medtest.results.records.rejudging import rejudged_records
from medtest.vqa.answers.answer import State

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("item", "kind", "question", "answer", STATE, "reply", "source_state", "said", "source_said", "evidence")
"""Columns of records on which readings rest, or that they change."""
JUDGED_COLUMNS = ("item", "question", "kind", "words", STATE, "said", "quote", "doubt", "cases")
"""Columns of the table of readings."""

_OFFERED = (State.UNPARSED.value, State.REFUSAL.value)
"""States of answers that a judge is asked about: a refusal may be a disclaimer that medtest does not know."""
_ANSWERED = "answered"
_SEED = ("dataset", "seed_id", "item")


def unread_in(records: Records) -> tuple[Unread, ...]:
    """Return the words in which the parser found no value, refusals among them, each once, in a fixed order.

    Replies that the server itself refused or cut off, malformed and empty ones are left out: nothing is to be read.

    Args:
        records: Records of one system.
    """
    if not has_answers(records):
        return ()
    return tuple(sorted({one for frame in (records.sources, records.followups) for _, one in _unread(frame)}))


def with_readings(records: Records, readings: Mapping[Unread, Reading], oracle: Oracle) -> Records:
    """Return records as they are judged with a judge's readings in the place of ``unparsed``.

    Args:
        records: Records of one system, as the runner wrote them.
        readings: What was read; what the judge left unparsed changes nothing, a refusal stays one.
        oracle: Judges them.
    """
    known = {one: reading for one, reading in readings.items() if reading.state != State.UNPARSED}
    sources = _read(records.sources, known)
    followups = _with_sources(_read(records.followups, known), sources)
    laid = Records(followups=followups, sources=sources, classes=records.classes)
    return rejudged_records(laid, oracle)


def judged_table(records: Records, readings: Mapping[Unread, Reading]) -> pd.DataFrame:
    """Return every reading with the number of cases whose answer it is: columns :data:`JUDGED_COLUMNS`.

    Args:
        records: The records that the words are from.
        readings: What was read.
    """
    import pandas as pd

    cases: dict[Unread, int] = {}
    for frame in (records.sources, records.followups):
        for _, one in _unread(frame):
            cases[one] = cases.get(one, 0) + 1
    rows = [
        (one.item, one.question, one.kind, one.words, read.state.value, read.said, read.quote, read.doubt, cases[one])
        for one, read in sorted(readings.items())
        if one in cases
    ]
    return pd.DataFrame(rows, columns=list(JUDGED_COLUMNS))


def _unread(frame: pd.DataFrame) -> Iterator[tuple[Any, Unread]]:
    """Yield the index of every record in whose words no value was found, and the words."""
    if frame.empty:
        return
    chosen = frame[frame[STATE].notna() & (frame["reply"] == _ANSWERED)]
    if STAGE in chosen.columns:  # what was said by schema is no matter of words
        chosen = chosen[(chosen[STAGE].astype(object) != SCHEMA) | (chosen[STATE] == State.UNPARSED.value)]
    offered = chosen[STATE].isin(_OFFERED).to_numpy()
    columns = [chosen[name].astype(object) for name in ("item", "kind", "question", "answer")]
    for index, sure, item, kind, question, words in zip(chosen.index, offered, *columns, strict=True):
        if isinstance(words, str) and words.strip() and (sure or contested(words, str(kind), str(item))):
            yield index, Unread(item=str(item), kind=str(kind), question=str(question or ""), words=words)


def _read(frame: pd.DataFrame, readings: Mapping[Unread, Reading]) -> pd.DataFrame:
    found = {index: readings[one] for index, one in _unread(frame) if one in readings}
    changed = {
        STATE: {index: one.state.value for index, one in found.items()},
        "said": {index: one.said for index, one in found.items()},
        "evidence": {index: one.quote for index, one in found.items()},
    }
    new = frame.assign(**{READ_BY: [JUDGE if index in found else "" for index in frame.index]})
    for name, values in changed.items():
        if found and name in frame.columns:
            before = frame[name].astype(object)
            new[name] = [values.get(index, old) for index, old in zip(frame.index, before, strict=True)]
    return new


def _with_sources(followups: pd.DataFrame, sources: pd.DataFrame) -> pd.DataFrame:
    """Give follow-ups the readings of their sources."""
    read = sources[sources[READ_BY] == JUDGE]
    if read.empty or followups.empty:
        return followups
    keys = zip(*(read[name].astype(object) for name in _SEED), strict=True)
    found = dict(zip(keys, zip(read[STATE], read["said"], strict=True), strict=True))
    new = followups.copy()
    own = list(zip(*(followups[name].astype(object) for name in _SEED), strict=True))
    for column, part in (("source_state", 0), ("source_said", 1)):
        new[column] = [
            found[key][part] if key in found else before for key, before in zip(own, new[column], strict=True)
        ]
    return new
