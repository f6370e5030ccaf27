"""Error and miss rates by operator and rule (ACTesting, equations 17 to 20), with intervals over prompts.

A case counts if both pictures were drawn and read and the reader can detect the change; refusals are counted separately
(``refusals.csv``). Rates of prompts that were drawn by density are weighted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from medtest.core.cases import SOURCE
from medtest.core.deferred import pd
from medtest.results.columns import columns_in
from medtest.results.cube.axes import OVERALL, Floats
from medtest.results.cube.rates import CASES, Rates, decimals, rates
from medtest.tasks.depict.oracle import WHOLE
from medtest.tasks.depict.rules import ENTITIES, RELATIONS, RULES, STRICT
from medtest.tasks.depict.tables.cases import ALL_KINDS, DepictedCases
from medtest.tasks.depict.tables.correction import Correction

ERROR_COLUMNS = columns_in(__file__, "actesting")
MISS_COLUMNS = columns_in(__file__, "actesting_miss")
TRUTH = "truth"


def error_table(cases: DepictedCases, correction: Correction | None = None) -> pd.DataFrame:
    """Return error rates of every operator, rule and kind, with exactly :data:`ERROR_COLUMNS`.

    ``cannot_tell`` counts cases whose change the reader cannot detect, and their share. Against ``truth`` there is a
    single rule, and the source has a row. ``corrected`` is the rate corrected by the reader's card
    (:mod:`medtest.tasks.depict.tables.correction`), for the rule ``strict`` and against ``truth``.

    Args:
        cases: Cases of one system.
        correction: Correction by the reader's card; None without a card.
    """
    columns = [
        (rule, kind, cases.pair[rule, kind])
        for rule in RULES
        for kind in (ALL_KINDS if rule == STRICT else (WHOLE, ENTITIES, RELATIONS))
    ]
    columns += [("", kind, cases.truth[kind]) for kind in ALL_KINDS]
    valid = [~np.isnan(wrong) for _, _, wrong in columns]
    efr = made_rates(
        cases, [np.where(k, column_spec[2], 0.0) for k, column_spec in zip(valid, columns, strict=True)], valid
    )
    rows: list[dict[str, Any]] = []
    for column, (rule, kind, wrong) in enumerate(columns):
        rows += _rows(cases, wrong, efr, column, rule=rule, kind=kind, correction=correction)
    return pd.DataFrame(rows, columns=list(ERROR_COLUMNS))


def _rows(
    cases: DepictedCases,
    wrong: Floats,
    measured: Rates,
    column: int,
    *,
    rule: str,
    kind: str,
    correction: Correction | None,
) -> list[dict[str, Any]]:
    judged, against = ~np.isnan(wrong), "source" if rule else TRUTH
    readable = cases.paired if against == "source" else cases.has_scene
    records = []
    for number, name in shown_relations(cases):
        members = members_of(cases, number)
        if against == "source" and name == SOURCE:
            continue
        judged_count, untold = int((judged & members).sum()), int((readable & members & ~cases.detectable).sum())
        looked_at = int((readable & members).sum())
        if not looked_at:
            continue
        row = {
            "relation": name,
            "rule": rule,
            "against": against,
            "kind": kind,
            "cases": judged_count,
            "errors": int(wrong[judged & members].sum()),
            **interval(measured, number, column, "rate"),
            "cannot_tell": untold,
            "cannot_tell_rate": round(untold / looked_at, 6),
        }
        correctable = rule in (STRICT, "") and kind in (ENTITIES, RELATIONS)
        if correction is not None and correctable and judged_count:
            rows = np.flatnonzero(judged & members)
            row |= correction.of_errors(cases, rows, row, pairs=against == "source", kind=kind)
        records.append(row)
    return records


def miss_table(cases: DepictedCases, correction: Correction | None = None) -> pd.DataFrame:
    """Return miss rates of every operator, the source and rule, with exactly :data:`MISS_COLUMNS`.

    ``said`` counts objects and relations that the reader can detect; ``cannot_tell`` counts the others in prompts, and
    its share is relative to both.

    Args:
        cases: Cases of one system.
        correction: Correction by the reader's card; None without a card.
    """
    rows: list[dict[str, Any]] = []
    for rule in RULES:
        counts = cases.missing[rule].astype(np.float64)
        for kind, (detected_at, stated_at, hidden) in ((ENTITIES, (0, 1, 4)), (RELATIONS, (2, 3, 5))):
            miss_rates = made_rates(
                cases, [counts[:, stated_at] - counts[:, detected_at]], [counts[:, stated_at]], independent=False
            )
            for number, name in shown_relations(cases):
                members = members_of(cases, number)
                stated_count, untold = (int(counts[members, column].sum()) for column in (stated_at, hidden))
                if not stated_count:
                    continue
                row = {
                    "relation": name,
                    "rule": rule,
                    "kind": kind,
                    "said": stated_count,
                    "seen": int(counts[members, detected_at].sum()),
                    **interval(miss_rates, number, 0, "miss"),
                    "cannot_tell": untold,
                    "cannot_tell_rate": round(untold / (stated_count + untold), 6),
                }
                if correction is not None and rule == STRICT:
                    row |= correction.of_misses(cases, np.flatnonzero(members & cases.has_scene), row, kind=kind)
                rows.append(row)
    return pd.DataFrame(rows, columns=list(MISS_COLUMNS))


def made_rates(cases: DepictedCases, part: Sequence[Any], whole: Sequence[Any], *, independent: bool = True) -> Rates:
    """Return weighted rates of all relations and of all operators together, one column each, from shared draws.

    Args:
        cases: The cases.
        part: For each column N numerators.
        whole: For each column N denominators.
        independent: True if a case is a single binary outcome.
    """
    weighed = [
        np.concatenate([np.asarray(column, np.float64) * cases.weight for column in side]) for side in (part, whole)
    ]
    return rates(
        cases.place(len(part)),
        *weighed,
        pools=(CASES,),
        pooled=cases.pooled,
        independent=independent and not cases.weighted,
    )


def shown_relations(cases: DepictedCases) -> list[tuple[int, str]]:
    """Return index and name of the relations, with all operators together last."""
    names = list(enumerate(cases.relations))
    return [*names, (len(names), OVERALL)] if cases.pooled.sum() > 1 else names


def members_of(cases: DepictedCases, number: int) -> Any:
    """Return a mask of the cases of a relation by its index, or of all operators."""
    return cases.pooled[cases.relation] if number == len(cases.relations) else cases.relation == number


def interval(measured: Rates, number: int, column: int, name: str) -> dict[str, Any]:
    """Return a rate with its interval as columns of a row."""
    at = (0, number, column)
    return {
        name: float(decimals(measured.rate[at])),
        "ci_low": float(decimals(measured.low[at])),
        "ci_high": float(decimals(measured.high[at])),
        "ci_method": str(measured.method[at]) if measured.whole[at] else "",
    }
