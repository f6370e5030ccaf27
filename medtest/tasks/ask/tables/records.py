"""What the records of systems that answer questions say: one judged row an answer, for the tables of answers.

Nothing is judged again: scores and texts are the oracle's (:mod:`medtest.tasks.ask.oracle`). Cases without an answer
(errors, follow-ups that could not be made) are no rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from medtest.core.cases import Verdict
from medtest.readers.base import JUDGE, READ_BY
from medtest.results.records.records_io import Records
from medtest.tasks.ask.tables.rows import COLUMNS

if TYPE_CHECKING:
    import pandas as pd

STATE, WORDS, SAID = "state", "answer", "said"
SCHEMA, RULES = "schema", "rules"
"""Who read an answer, where no judge did."""
STAGE = "stage"
_MARKS = (STATE, "rule", "reply", "source_state")
"""Columns that only records of answers have together."""


def has_answers(records: Records) -> bool:
    """Whether these are records of a system that was asked questions, and answered at all."""
    frames = (records.followups, records.sources)
    return any(all(name in frame.columns for name in _MARKS) and bool(frame[STATE].notna().any()) for frame in frames)


def answered(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the records that hold an answer."""
    there = frame[STATE].notna() & (frame["verdict"].astype(str) != Verdict.ERROR.value)
    return frame.loc[there.to_numpy(dtype=bool)]


def read_by(frame: pd.DataFrame) -> pd.Series[str]:
    """Return who read each record's answer: ``schema``, ``rules`` or ``judge``; "" where nobody found anything.

    Records of versions before name no stage: their words were parsed.
    """
    read = frame[STATE].notna() & (frame[STATE].astype(object) != "unparsed") & (frame["reply"] == "answered")
    known = frame[STAGE].astype(object) if STAGE in frame.columns else frame["reply"].map(lambda _: None)
    found = known.where(known.notna() & (known != ""), RULES).where(read, "")
    if READ_BY in frame.columns:
        found = found.where(frame[READ_BY].astype(object) != JUDGE, JUDGE)
    return found.astype(object)


def answer_rows(records: Records) -> pd.DataFrame:
    """Return one row an answer, with exactly the columns of :data:`medtest.tasks.ask.tables.rows.COLUMNS`.

    Args:
        records: Records of one system; ids may be hashed.
    """
    import pandas as pd

    frames = [_rows(answered(frame)) for frame in (records.sources, records.followups)]
    return pd.concat(frames, ignore_index=True)[list(COLUMNS)]


def independent(frame: pd.DataFrame) -> pd.Series[str]:
    """Return what intervals resample, for each record: the patient or video where metadata name one, else the image."""
    return frame["dataset"].astype(object).astype(str) + "/" + frame["cluster"].astype(object).astype(str)


def wordings(records: Records) -> Mapping[str, str]:
    """Return the wording of every question by its name."""
    found: dict[str, str] = {}
    for frame in (records.followups, records.sources):
        pairs = frame[["item", "question"]].dropna().drop_duplicates("item")
        found |= {str(row.item): str(row.question) for row in pairs.itertuples(index=False)}
    return found


def _rows(frame: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    text = {name: frame[name].astype(object).fillna("").astype(str) for name in _TEXTS}
    number = {name: pd.to_numeric(frame[name], errors="coerce").astype(float) for name in _NUMBERS}
    exact = (number["exact"] == 1).to_numpy()
    rules = {one: _rule(one) for one in text["rule"].unique()}
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
    """Return a rule without the value it asks for."""
    return "must become" if text.startswith("must become") else text
