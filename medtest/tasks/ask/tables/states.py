"""Refusals, unparsed answers and costs of a system.

A server's own refusal and its content filter count as refusals, like those in the text; cut-off answers and malformed
replies are unparsed. All are counted separately here, independent of other tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Verdict
from medtest.core.deferred import pd
from medtest.readers.base import JUDGE, READ_BY
from medtest.results.columns import columns_in
from medtest.results.cube.rates import decimals
from medtest.results.rates.costs import cost_rows
from medtest.results.records.records_io import Records
from medtest.tasks.ask.tables.cells import Questions
from medtest.tasks.ask.tables.records import RULES, SCHEMA, STATE, answered, independent, read_by

COUNTS = (
    "asked",
    "value",
    "not_relevant",
    "refusal",
    "by_filter",
    "refused_after_answer",
    "unparsed",
    "cut_off",
    "malformed",
    "by_schema",
    "by_rules",
    "by_judge",
    "errors",
)
"""Columns that count answers."""

STATE_COLUMNS = columns_in(__file__, "answer_states")
COST_COLUMNS = columns_in(__file__, "answer_costs")


def state_table(records: Records) -> pd.DataFrame:
    """Return states of answers by question and relation, with exactly :data:`STATE_COLUMNS`.

    ``asked`` counts cases with an image, ``errors`` those without an answer. ``refusal`` counts all refusals,
    ``by_filter`` those of the server's content filter, ``refused_after_answer`` those whose source was answered.
    ``unparsed`` counts all answers that could not be read, including ``cut_off`` and ``malformed``; ``by_schema``,
    ``by_rules`` and ``by_judge`` count the others by reader: answers in the requested schema, parsed texts, readings of
    a judge. Rates are relative to answers; intervals are Wilson's with images counted as cases, for pools (``all``,
    ``overall``) bootstraps over images unless fewer than ten images were refused, or fewer than ten answered.
    ``overall`` excludes ``unchanged`` and the source.

    Args:
        records: Records of one system.
    """
    cases = _cases(records)
    if cases.empty:
        return pd.DataFrame(columns=list(STATE_COLUMNS))
    place = Questions.of(cases, "vqa states", items=list(dict.fromkeys(cases["item"])))
    names = (STATE, "reply", "why", "verdict", READ_BY)
    error, marks = _marks({name: cases[name].to_numpy(dtype=object) for name in names})
    counts = place.counts(np.ones(len(cases)))
    refusals = place.rates(marks["refusal"], ~error)
    columns = {
        "asked": counts,
        **{name: place.counts(mark) for name, mark in marks.items()},
        "errors": place.counts(error),
        "refusal_rate": decimals(refusals.rate[0]),
        "ci_low": decimals(refusals.low[0]),
        "ci_high": decimals(refusals.high[0]),
    }
    return place.table(columns, counts > 0, STATE_COLUMNS)


def _cases(records: Records) -> pd.DataFrame:
    """Return the columns that determine the state of every case with an image."""
    parts = []
    for frame in (records.sources, records.followups):
        cases = frame[["item", "relation", "verdict", STATE, "reply", "why"]].astype(object)
        cases[READ_BY] = read_by(frame)
        error = cases["verdict"] == Verdict.ERROR.value
        parts.append(cases.assign(image=independent(frame))[cases[STATE].notna() | error].fillna(""))
    return pd.concat(parts, ignore_index=True)


def _marks(texts: Mapping[str, NDArray[Any]]) -> tuple[NDArray[np.bool_], dict[str, NDArray[np.bool_]]]:
    """Return masks of the errors and of each state."""
    error = texts["verdict"] == Verdict.ERROR.value
    states = {name: (texts[STATE] == name) & ~error for name in ("value", "not_relevant", "refusal", "unparsed")}
    replies = {
        name: (texts["reply"] == reply) & ~error
        for name, reply in (("by_filter", "content_filter"), ("cut_off", "length"), ("malformed", "malformed"))
    }
    refused = states["refusal"] & (texts["why"] == "refusal")
    by = {f"by_{name}": (texts[READ_BY] == name) & ~error for name in (SCHEMA, RULES, JUDGE)}
    return error, {**states, "refused_after_answer": refused, **replies, **by}


def cost_table(records: Records) -> pd.DataFrame:
    """Return tokens, cost, latency and calls, in total, by relation and by question: :data:`COST_COLUMNS`.

    Tokens, dollars and attempts are sums over answers (each answer of a call with several questions has its share of
    tokens and dollars); dollars and attempts also over calls that ended in an ERROR. ``without_cost`` counts answers
    without a known price. Seconds are of whole calls, over answers from a server rather than a cache.

    Args:
        records: Records of one system.
    """
    return cost_rows([records.sources, records.followups], ("relation", "item"), COST_COLUMNS, answered)
