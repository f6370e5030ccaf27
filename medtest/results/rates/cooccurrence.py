"""How often labels are given together, on sources and on follow-ups: of classifiers where several may be true.

Figure 8 of Xu et al., "Towards evaluating the robustness of deep diagnostic models by adversarial attack", Medical
Image Analysis 2021, shows CheXNet's labels on ChestX-ray14 as a chord diagram: pairs that 3,000 of its 22,433 test
images have or more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

PUBLISHED_SHARE = 3000 / 22433
"""Least share of images at which the paper draws a pair."""
JOINT = "|"
"""Stands between labels in records (:mod:`medtest.tasks.classify.oracle`)."""


def cooccurrences(answers: Iterable[str | None], names: Sequence[str]) -> tuple[NDArray[np.int64], int]:
    """Return how many answers hold each pair of labels, int64 C×C, and how many answers there are.

    Args:
        answers: Labels joined by ``|``, "" for none; None, which counts for nothing, where there is no answer.
        names: The classes.

    Returns:
        Symmetric counts, on the diagonal those of single labels; the number of answers.
    """
    place = {name: number for number, name in enumerate(names)}
    counts = np.zeros((len(names), len(names)), np.int64)
    number = 0
    for text, times in Counter(answer for answer in answers if isinstance(answer, str)).items():
        number += times
        given = sorted({place[name] for name in text.split(JOINT) if name in place})
        for one in given:
            counts[one, one] += times
        for one, other in combinations(given, 2):
            counts[one, other] += times
            counts[other, one] += times
    return counts, number


def cooccurrence_table(records: Any, names: Sequence[str], column: str = "label") -> pd.DataFrame:
    """Return the pairs of labels of a run's records, a row each.

    Args:
        records: :class:`medtest.results.records.records_io.Records` with ``label``, ``relation`` and ``severity``.
        names: The classes.
        column: ``label`` for what was answered.

    Returns:
        ``relation`` ("source" for the clean images), ``severity``, ``one``, ``other``, ``count``, ``answers``,
        ``share`` of the answers; pairs that never occur are left out.
    """
    import pandas as pd

    groups: list[tuple[str, int, Any]] = [("source", 0, records.sources)]
    if len(records.followups):
        found = records.followups.groupby(["relation", "severity"], observed=True, sort=False)
        groups += [(str(relation), int(severity), rows) for (relation, severity), rows in found]
    made: list[dict[str, Any]] = []
    for relation, severity, rows in groups:
        texts = [None if value is None or value != value else str(value) for value in rows[column].tolist()]
        counts, number = cooccurrences(texts, names)
        made += [
            {
                "relation": relation,
                "severity": severity,
                "one": names[one],
                "other": names[other],
                "count": int(counts[one, other]),
                "answers": number,
                "share": int(counts[one, other]) / number,
            }
            for one, other in combinations(range(len(names)), 2)
            if counts[one, other]
        ]
    columns = ["relation", "severity", "one", "other", "count", "answers", "share"]
    return pd.DataFrame(made, columns=columns)


def counts_of(table: pd.DataFrame, names: Sequence[str], relation: str, severity: int) -> NDArray[np.int64]:
    """Return the pairs of one group of a table as symmetric counts, int64 C×C with a zero diagonal."""
    place = {name: number for number, name in enumerate(names)}
    counts = np.zeros((len(names), len(names)), np.int64)
    for row in table.to_dict("records"):
        if (row["relation"], int(row["severity"])) == (relation, severity):
            one, other = place[str(row["one"])], place[str(row["other"])]
            counts[one, other] = counts[other, one] = int(row["count"])
    return counts
