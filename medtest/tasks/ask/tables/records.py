"""Records of systems that answer questions as rows for the tables, one judged row for each answer.

Nothing is judged again: scores and texts are the oracle's (:mod:`medtest.tasks.ask.oracle`). Cases without an answer
(errors, follow-ups that could not be made) have no row.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from medtest.core.cases import Verdict
from medtest.core.deferred import pd
from medtest.readers.base import JUDGE, READ_BY
from medtest.results.records.records_io import Records
from medtest.tasks.ask.tables.rows import COLUMNS

STATE, WORDS, SAID = "state", "answer", "said"
SCHEMA, RULES = "schema", "rules"
"""Reader of an answer, if not a judge."""
STAGE = "stage"
_MARKS = (STATE, "rule", "reply", "source_state")
"""Columns that only records of answers have together."""


def has_answers(records: Records) -> bool:
    """Return True if these are records of a system that answered questions."""
    frames = (records.followups, records.sources)
    return any(all(name in frame.columns for name in _MARKS) and bool(frame[STATE].notna().any()) for frame in frames)


def answered(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the records with an answer."""
    has_answer = frame[STATE].notna() & (frame["verdict"].astype(str) != Verdict.ERROR.value)
    return frame.loc[has_answer.to_numpy(dtype=bool)]


def read_by(frame: pd.DataFrame) -> pd.Series[str]:
    """Return the reader of each record's answer: ``schema``, ``rules`` or ``judge``; "" if nothing was read."""
    is_read = frame[STATE].notna() & (frame[STATE].astype(object) != "unparsed") & (frame["reply"] == "answered")
    stage = frame[STAGE].astype(object)
    readers = stage.where(stage.notna() & (stage != ""), RULES).where(is_read, "")
    if READ_BY in frame.columns:
        readers = readers.where(frame[READ_BY].astype(object) != JUDGE, JUDGE)
    return readers.astype(object)


def answer_rows(records: Records) -> pd.DataFrame:
    """Return one row for each answer, with exactly the columns of :data:`medtest.tasks.ask.tables.rows.COLUMNS`.

    Args:
        records: Records of one system; ids may be hashed.
    """
    frames = [_rows(answered(frame)) for frame in (records.sources, records.followups)]
    return pd.concat(frames, ignore_index=True)[list(COLUMNS)]


def independent(frame: pd.DataFrame) -> pd.Series[str]:
    """Return the resampling unit of each record: the patient or video if metadata name one, else the image."""
    return frame["dataset"].astype(object).astype(str) + "/" + frame["cluster"].astype(object).astype(str)


def wordings(records: Records) -> Mapping[str, str]:
    """Return the wording of every question by its name."""
    by_name: dict[str, str] = {}
    for frame in (records.followups, records.sources):
        pairs = frame[["item", "question"]].dropna().drop_duplicates("item")
        by_name |= {str(row.item): str(row.question) for row in pairs.itertuples(index=False)}
    return by_name


def _rows(frame: pd.DataFrame) -> pd.DataFrame:
    text = {name: frame[name].astype(object).fillna("").astype(str) for name in _TEXTS}
    number = {name: pd.to_numeric(frame[name], errors="coerce").astype(float) for name in _NUMBERS}
    exact = (number["exact"] == 1).to_numpy()
    rules = {text_value: _rule(text_value) for text_value in text["rule"].unique()}
    return pd.DataFrame(
        {
            "image": independent(frame),
            "item": text["item"],
            "relation": text["relation"],
            "severity": frame["severity"].astype(int),
            "repeat": frame["repeat"].astype(int),
            "state": text["state"],
            "said": np.where(exact, text["truth"], text["said"]),
            "true": text["truth"],
            "rule": text["rule"].map(rules),
            "flip": 1.0 - number["self_agreement"],
            "change": text["change"],
            "reason": text["why"],
            "right": number["agreement"],
            "exact": number["exact"],
            "source_right": number["source_agreement"],
            "distance": pd.to_numeric(frame["distance"], errors="coerce").astype(float),
        }
    )


_TEXTS = ("item", "relation", "state", "said", "truth", "rule", "change", "why")
_NUMBERS = ("self_agreement", "agreement", "exact", "source_agreement")


def _rule(text: str) -> str:
    """Return a rule without its required value."""
    return "must become" if text.startswith("must become") else text
