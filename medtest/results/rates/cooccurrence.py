"""Co-occurrence of labels on sources and follow-ups, for multi-label classifiers.

Figure 8 of Xu et al., "Towards evaluating the robustness of deep diagnostic models by adversarial attack", Medical
Image Analysis 2021, shows CheXNet's labels on ChestX-ray14 as a chord diagram: pairs that occur in at least 3,000 of
its 22,433 test images.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medtest.core.deferred import pd

PUBLISHED_SHARE = 3000 / 22433
"""Smallest share of images for which the paper draws a pair."""
JOINT = "|"
"""Separator of labels in records (:mod:`medtest.tasks.classify.oracle`)."""


def cooccurrences(answers: Iterable[str | None], names: Sequence[str]) -> tuple[NDArray[np.int64], int]:
    """Return the number of answers with each pair of labels, int64 C×C, and the number of answers.

    Args:
        answers: Labels joined by ``|``, "" for no label; None, which is not counted, without an answer.
        names: The classes.

    Returns:
        Symmetric counts, on the diagonal those of single labels; the number of answers.
    """
    place = {name: number for number, name in enumerate(names)}
    counts = np.zeros((len(names), len(names)), np.int64)
    number = 0
    for text, times in Counter(answer for answer in answers if isinstance(answer, str)).items():
        number += times
        labels = sorted({place[name] for name in text.split(JOINT) if name in place})
        for label in labels:
            counts[label, label] += times
        for label, other in combinations(labels, 2):
            counts[label, other] += times
            counts[other, label] += times
    return counts, number


def cooccurrence_table(records: Any, names: Sequence[str]) -> pd.DataFrame:
    """Return the pairs of labels in a run's records, one row each.

    Args:
        records: :class:`medtest.results.records.records_io.Records` with ``label``, ``relation`` and ``severity``.
        names: The classes.

    Returns:
        ``relation`` ("source" for the clean images), ``severity``, ``one``, ``other``, ``count``, ``answers``,
            ``share`` of
        the answers; pairs that never occur are left out.
    """
    groups: list[tuple[str, int, Any]] = [("source", 0, records.sources)]
    if len(records.followups):
        grouped = records.followups.groupby(["relation", "severity"], observed=True, sort=False)
        groups += [(str(relation), int(severity), rows) for (relation, severity), rows in grouped]
    pairs: list[dict[str, Any]] = []
    for relation, severity, rows in groups:
        texts = [None if value is None or value != value else str(value) for value in rows["label"].tolist()]
        counts, number = cooccurrences(texts, names)
        pairs += [
            {
                "relation": relation,
                "severity": severity,
                "one": names[first],
                "other": names[second],
                "count": int(counts[first, second]),
                "answers": number,
                "share": int(counts[first, second]) / number,
            }
            for first, second in combinations(range(len(names)), 2)
            if counts[first, second]
        ]
    columns = ["relation", "severity", "one", "other", "count", "answers", "share"]
    return pd.DataFrame(pairs, columns=columns)


def counts_of(table: pd.DataFrame, names: Sequence[str], relation: str, severity: int) -> NDArray[np.int64]:
    """Return the pairs of one group of a table as symmetric counts, int64 C×C with a zero diagonal."""
    place = {name: number for number, name in enumerate(names)}
    counts = np.zeros((len(names), len(names)), np.int64)
    for row in table.to_dict("records"):
        if (row["relation"], int(row["severity"])) == (relation, severity):
            first, second = place[str(row["one"])], place[str(row["other"])]
            counts[first, second] = counts[second, first] = int(row["count"])
    return counts
