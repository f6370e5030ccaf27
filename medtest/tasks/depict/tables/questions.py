"""Table ``depiction_questions.csv``: questions of prompts about their pictures, without those that depend on others.

See :mod:`medtest.tasks.depict.questions`. ``soft`` is the mean probability of the right answers, over the
``soft_asked`` questions for which the reader's model tells one, and ``neither`` that of neither yes nor no. The
question of the kind ``prompt`` is whether a picture shows its whole prompt: ``right`` counts pictures that show all
things as ordered, ``soft`` is VQAScore. Intervals are over prompts; prompts drawn by density are weighted.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from medtest.core.deferred import pd
from medtest.results.columns import columns_in
from medtest.tasks.depict.oracle import PROMPT, WHOLE
from medtest.tasks.depict.questions import QUESTION_KINDS, questions_about
from medtest.tasks.depict.tables.cases import DepictedCases
from medtest.tasks.depict.tables.errors import interval, made_rates, members_of, shown_relations
from medtest.tasks.depict.views import look_of, said_of

QUESTION_COLUMNS = columns_in(__file__, "depiction_questions")
_KINDS: Final = (WHOLE, *QUESTION_KINDS, PROMPT)
_ASKED, _RIGHT, _DEPENDENT, _UNTOLD, _TOLD, _SOFT, _NEITHER = range(7)


def question_table(cases: DepictedCases) -> pd.DataFrame:
    """Return the share of questions that pictures answer rightly, with exactly :data:`QUESTION_COLUMNS`.

    Args:
        cases: Cases of one system.
    """
    counts = _counts(cases)
    columns = range(len(_KINDS))
    shares = made_rates(
        cases,
        [counts[:, kind, _RIGHT] for kind in columns],
        [counts[:, kind, _ASKED] for kind in columns],
        independent=False,
    )
    told = [counts[:, kind, _TOLD] for kind in columns]
    soft, neither = (
        made_rates(cases, [counts[:, kind, part] for kind in columns], told, independent=False)
        for part in (_SOFT, _NEITHER)
    )
    rows: list[dict[str, Any]] = []
    for number, name in shown_relations(cases):
        members = members_of(cases, number)
        for column, kind in enumerate(_KINDS):
            answerable, right, dependent, untold, believed = (
                int(value) for value in counts[members, column, :5].sum(0)
            )
            if not answerable + dependent + untold:
                continue
            measured = interval(soft, number, column, "soft")
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
                    "soft_asked": believed,
                    "soft": measured["soft"],
                    **{f"soft_{end}": measured[f"ci_{end}"] for end in ("low", "high", "method")},
                    "neither": interval(neither, number, column, "neither")["neither"],
                }
            )
    return pd.DataFrame(rows, columns=list(QUESTION_COLUMNS))


def _counts(cases: DepictedCases) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return sums over questions, float64 cases × kinds × 7.

    They are the numbers of those asked, answered rightly, not asked, of those that cannot be told, and with a
    probability; the sum of these; and that of the probabilities of neither.
    """
    counts = np.zeros((len(cases.seed), len(_KINDS), 7))
    cache: dict[tuple[str, str, str], np.ndarray[Any, np.dtype[np.float64]]] = {}
    for row in np.flatnonzero(cases.has_scene).tolist():
        key = (cases.pool[row], cases.scene[row], cases.tells[row])
        if key not in cache:
            cache[key] = _of_picture(*key)
        counts[row] = cache[key]
        wrong = cases.truth[WHOLE][row]
        if counts[row, _KINDS.index(PROMPT), _TOLD]:
            judged = not np.isnan(wrong)
            counts[row, _KINDS.index(PROMPT), :4] = (judged, judged and wrong == 0, 0, not judged)
    return counts


def _of_picture(pool: str, scene: str, tells: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    counts = np.zeros((len(_KINDS), 7))
    look = look_of(scene, tells)
    if (PROMPT,) in look.beliefs:
        counts[_KINDS.index(PROMPT), _TOLD:] = (1, *look.beliefs[PROMPT,])
    for question in questions_about(look, said_of(pool)):
        column = _KINDS.index(question.kind)
        if question.depends_on:
            counts[[0, column], _DEPENDENT] += 1
        elif question.right is None:
            counts[[0, column], _UNTOLD] += 1
        else:
            counts[[0, column], _ASKED] += 1
            counts[[0, column], _RIGHT] += question.right
        if question.soft is not None:
            counts[[0, column], _TOLD:] += (1, question.soft, question.neither)
    return counts
