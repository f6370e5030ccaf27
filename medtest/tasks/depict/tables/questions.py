"""Table ``depiction_questions.csv``: questions of prompts about their pictures, without those that depend on others.

See :mod:`medtest.tasks.depict.questions`. Intervals are over prompts; prompts drawn by density are weighted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from medtest.results.columns import columns_in
from medtest.tasks.depict.oracle import WHOLE
from medtest.tasks.depict.questions import QUESTION_KINDS, questions_about
from medtest.tasks.depict.tables.cases import DepictedCases
from medtest.tasks.depict.tables.errors import interval, made_rates, members_of, shown_relations
from medtest.tasks.depict.views import look_of, said_of

if TYPE_CHECKING:
    import pandas as pd

QUESTION_COLUMNS = columns_in(__file__, "depiction_questions")
_KINDS: Final = (WHOLE, *QUESTION_KINDS)
_ASKED, _RIGHT, _DEPENDENT, _UNTOLD = range(4)


def question_table(cases: DepictedCases) -> pd.DataFrame:
    """Return the share of questions that pictures answer rightly, with exactly :data:`QUESTION_COLUMNS`.

    Args:
        cases: Cases of one system.
    """
    import pandas as pd

    counts = _counts(cases)
    columns = range(len(_KINDS))
    shares = made_rates(
        cases,
        [counts[:, kind, _RIGHT] for kind in columns],
        [counts[:, kind, _ASKED] for kind in columns],
        independent=False,
    )
    rows: list[dict[str, Any]] = []
    for number, name in shown_relations(cases):
        members = members_of(cases, number)
        for column, kind in enumerate(_KINDS):
            answerable, right, dependent, untold = (int(value) for value in counts[members, column].sum(0))
            if not answerable + dependent + untold:
                continue
            rows.append(
                {
                    "relation": name,
                    "kind": kind,
                    "asked": answerable,
                    "right": right,
                    **interval(shares, number, column, "rate"),
                    "not_asked_depends_on": dependent,
                    "cannot_tell": untold,
                    "cannot_tell_rate": round(untold / (answerable + untold), 6)
                    if answerable + untold
                    else float("nan"),
                }
            )
    return pd.DataFrame(rows, columns=list(QUESTION_COLUMNS))


def _counts(cases: DepictedCases) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return numbers of questions, float64 cases × kinds × (asked, right, not asked, cannot tell)."""
    counts = np.zeros((len(cases.seed), len(_KINDS), 4))
    cache: dict[tuple[str, str, str], np.ndarray[Any, np.dtype[np.float64]]] = {}
    for row in np.flatnonzero(cases.has_scene).tolist():
        key = (cases.pool[row], cases.scene[row], cases.tells[row])
        if key not in cache:
            cache[key] = _of_picture(*key)
        counts[row] = cache[key]
    return counts


def _of_picture(pool: str, scene: str, tells: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    counts = np.zeros((len(_KINDS), 4))
    for question in questions_about(look_of(scene, tells), said_of(pool)):
        column = _KINDS.index(question.kind)
        if question.depends_on:
            counts[[0, column], _DEPENDENT] += 1
        elif question.right is None:
            counts[[0, column], _UNTOLD] += 1
        else:
            counts[[0, column], _ASKED] += 1
            counts[[0, column], _RIGHT] += question.right
    return counts
