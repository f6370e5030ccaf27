"""Records of classifiers as arrays: decisions, expected labels, probabilities.

Labels in records are text, joined by ``|`` in the order of the classes; ``probabilities`` is a JSON object from class
to number. Every answer counts, independent of the verdict: a flip needs no expected label.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Classes, Verdict
from medtest.core.deferred import pd
from medtest.results.records.records_io import Records

Bools: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]

SEPARATOR = "|"
LABEL, SOURCE_LABEL, EXPECTED, PROBABILITIES = "label", "source_label", "expected", "probabilities"
_SUM_SLACK = 0.01
"""Tolerance for the sum of rounded probabilities of exclusive classes; those of several findings rarely sum to 1."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Decisions:
    """Labels of N records over C classes.

    Attributes:
        classes: Classes of all data sets together; ``multi`` if several may be true at once.
        sizes: float64 N; number of classes of the record's data set.
        answer: bool N×C; decisions of the system.
        answered: bool N; True if there is an answer.
        source: bool N×C; decisions on the source.
        source_answered: bool N.
        expected: bool N×C.
        labelled: bool N; True if there is an expected answer, which may be that no class is true.
    """

    classes: Classes
    sizes: Floats
    answer: Bools
    answered: Bools
    source: Bools
    source_answered: Bools
    expected: Bools
    labelled: Bools

    @property
    def right(self) -> Bools:
        """Mask of the answers that match the expected one, label for label."""
        return np.asarray(self.answered & self.labelled & (self.answer == self.expected).all(1), dtype=bool)

    @property
    def source_right(self) -> Bools:
        """Mask of the answers to the source that match the expected one."""
        return np.asarray(self.source_answered & self.labelled & (self.source == self.expected).all(1), dtype=bool)

    @property
    def right_share(self) -> Floats:
        """Share of the decisions that are as expected; meaningless without an answer or expected label."""
        if not self.classes.multi:
            return self.right.astype(np.float64)
        wrong = (self.answer != self.expected).sum(1)
        return np.asarray(1.0 - wrong / np.maximum(self.sizes, 1.0), dtype=np.float64)


def has_labels(records: Records) -> bool:
    """Return True if these are records of a classifier that gave any answer."""
    return any(
        LABEL in frame.columns and bool(frame[LABEL].notna().any()) for frame in (records.followups, records.sources)
    )


def classes_of(records: Records) -> Classes:
    """Return the classes in records.

    These are the classes stored by the run (:attr:`Records.classes`), in its order, then those of the probabilities,
    then those of the texts in alphabetical order. Several may be true at once if the run says so, if any text has none
    or several of them, or if probabilities do not sum to 1.
    """
    names: dict[str, None] = {name: None for stored in records.classes.values() for name in stored.names}
    multi = any(stored.multi for stored in records.classes.values())
    for frame in (records.sources, records.followups):
        texts = _distinct(frame, PROBABILITIES)
        for text in texts[:1]:
            names |= dict.fromkeys(json.loads(text))
        multi = multi or any(abs(sum(json.loads(text).values()) - 1.0) > _SUM_SLACK for text in texts[:200])
    extra: set[str] = set()
    for frame in (records.sources, records.followups):
        answered = _known(frame)
        for column in (LABEL, EXPECTED):
            for text in _distinct(frame.loc[answered] if column == LABEL else frame, column, empty=True):
                labels = labels_of(text)
                multi = multi or len(labels) != 1
                extra |= set(labels)
    names |= dict.fromkeys(sorted(extra))
    return Classes(names=tuple(names), multi=multi)


def labels_of(text: str) -> tuple[str, ...]:
    """Return the labels in a joined text."""
    return tuple(part for part in text.split(SEPARATOR) if part)


def decisions_of(frame: pd.DataFrame, classes: Classes, stored: Mapping[str, Classes] | None = None) -> Decisions:
    """Return the decisions of records.

    Args:
        frame: Follow-ups or sources.
        classes: Classes from :func:`classes_of` for all records.
        stored: :attr:`Records.classes`.
    """
    source, source_answered = _matrix(frame, SOURCE_LABEL, classes)
    answer, _ = _matrix(frame, LABEL, classes)
    expected, labelled = _matrix(frame, EXPECTED, classes)
    if not classes.multi:  # for exclusive classes "" is not an answer
        labelled, source_answered = labelled & expected.any(1), source_answered & source.any(1)
    return Decisions(
        classes=classes,
        sizes=_sizes(frame, classes, stored or {}),
        answer=answer,
        answered=_known(frame) & (answer.any(1) | classes.multi),
        source=source,
        source_answered=source_answered,
        expected=expected,
        labelled=labelled,
    )


def probabilities_of(frame: pd.DataFrame, classes: Classes) -> Floats:
    """Return the probabilities of records, float64 N×C, NaN if missing."""
    probabilities = np.full((len(frame), len(classes.names)), np.nan)
    if PROBABILITIES not in frame.columns:
        return probabilities
    texts = frame[PROBABILITIES].astype(object).fillna("").to_numpy(dtype=object)
    rows = np.flatnonzero(texts != "")
    parsed = json.loads("[" + ",".join(texts[rows]) + "]")
    place = {name: number for number, name in enumerate(classes.names)}
    for row, values in zip(rows, parsed, strict=True):
        for name, value in values.items():
            probabilities[row, place[name]] = value
    return probabilities


def _known(frame: pd.DataFrame) -> Bools:
    """Return a mask of the records with an answer: not those with an ERROR, nor a SKIP without any text."""
    if LABEL not in frame.columns:
        return np.zeros(len(frame), bool)
    verdict = frame["verdict"].astype(str).to_numpy(dtype=object)
    has_label = frame[LABEL].notna().to_numpy(dtype=bool)
    text = frame[LABEL].astype(object).fillna("").to_numpy(dtype=object)
    if PROBABILITIES in frame.columns:
        text = text + frame[PROBABILITIES].astype(object).fillna("").to_numpy(dtype=object)
    silent = (verdict == Verdict.SKIP.value) & (text == "")
    return np.asarray(has_label & (verdict != Verdict.ERROR.value) & ~silent, dtype=bool)


def _distinct(frame: pd.DataFrame, column: str, *, empty: bool = False) -> Sequence[str]:
    if column not in frame.columns:
        return []
    return [str(text) for text in frame[column].dropna().unique() if empty or text]


def _matrix(frame: pd.DataFrame, column: str, classes: Classes) -> tuple[Bools, Bools]:
    """Return a text column as bool N×C, and a mask of its non-missing values."""
    if column not in frame.columns:
        return np.zeros((len(frame), len(classes.names)), bool), np.zeros(len(frame), bool)
    codes, unique = pd.factorize(frame[column].astype(object))
    place = {name: number for number, name in enumerate(classes.names)}
    table = np.zeros((len(unique) + 1, len(classes.names)), bool)  # the last row is for missing values (code -1)
    for number, text in enumerate(unique):
        for name in labels_of(str(text)):
            if name in place:
                table[number, place[name]] = True
    return table[codes], codes >= 0


def _sizes(frame: pd.DataFrame, classes: Classes, stored: Mapping[str, Classes]) -> Floats:
    """Return the number of classes of each record's data set, from the run, its probabilities, or else all classes."""
    sizes = np.full(len(frame), float(len(classes.names)))
    datasets = frame["dataset"].astype(str).to_numpy(dtype=object)
    for name in dict.fromkeys(datasets):
        inside = datasets == name
        texts = [] if name in stored else _distinct(frame.loc[inside], PROBABILITIES)
        if name in stored:
            sizes[inside] = len(stored[name].names)
        elif texts:
            sizes[inside] = len(json.loads(texts[0]))
    return sizes
