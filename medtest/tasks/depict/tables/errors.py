"""Error and miss rates by operator and rule (ACTesting, equations 17 to 20), with intervals over prompts.

A case counts where both pictures were drawn and seen and the reader can tell what the change did; refusals are counted
apart (``refusals.csv``). Rates of prompts that were drawn by density are weighted by what each stands for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from medtest.core.cases import SOURCE
from medtest.results.columns import columns_in
from medtest.results.cube.axes import OVERALL, Floats
from medtest.results.cube.rates import CASES, Rates, decimals, rates
from medtest.tasks.depict.oracle import WHOLE
from medtest.tasks.depict.rules import ENTITIES, KINDS, RELATIONS, RULES, STRICT
from medtest.tasks.depict.tables.cases import ALL_KINDS, MISS_RULES, DepictedCases
from medtest.tasks.depict.tables.correction import Correction

if TYPE_CHECKING:
    import pandas as pd

ERROR_COLUMNS = columns_in(__file__, "actesting")
MISS_COLUMNS = columns_in(__file__, "actesting_miss")
TRUTH = "truth"


def error_table(cases: DepictedCases, correction: Correction | None = None) -> pd.DataFrame:
    """Return error rates of every operator, rule and kind, with exactly :data:`ERROR_COLUMNS`.

    ``cannot_tell`` counts seen cases whose change lies on what the reader cannot tell, and its share of them. Against
    ``truth`` there is one rule, and the source is a row of its own. ``corrected`` is the rate by the reader's card
    (:mod:`medtest.tasks.depict.tables.correction`), of the rule ``strict`` and against ``truth``.

    Args:
        cases: The cases of one system.
        correction: The reader's card; None where it has none.
    """
    import pandas as pd

    shown = [
        (rule, kind, cases.pair[rule, kind])
        for rule in RULES
        for kind in (ALL_KINDS if rule == STRICT else (WHOLE, ENTITIES, RELATIONS))
    ]
    shown += [("", kind, cases.truth[kind]) for kind in ALL_KINDS]
    known = [~np.isnan(wrong) for _, _, wrong in shown]
    made = made_rates(cases, [np.where(k, one[2], 0.0) for k, one in zip(known, shown, strict=True)], known)
    rows: list[dict[str, Any]] = []
    for column, (rule, kind, wrong) in enumerate(shown):
        rows += _rows(cases, wrong, made, column, rule=rule, kind=kind, correction=correction)
    return pd.DataFrame(rows, columns=list(ERROR_COLUMNS))


def _rows(
    cases: DepictedCases,
    wrong: Floats,
    made: Rates,
    column: int,
    *,
    rule: str,
    kind: str,
    correction: Correction | None,
) -> list[dict[str, Any]]:
    known, against = ~np.isnan(wrong), "source" if rule else TRUTH
    seen = cases.paired if against == "source" else cases.seen
    found = []
    for number, name in _names(cases):
        there = _members(cases, number)
        if against == "source" and name == SOURCE:
            continue
        whole, untold = int((known & there).sum()), int((seen & there & ~cases.told).sum())
        looked_at = int((seen & there).sum())
        if not looked_at:
            continue
        row = {
            "relation": name,
            "rule": rule,
            "against": against,
            "kind": kind,
            "cases": whole,
            "errors": int(wrong[known & there].sum()),
            **_interval(made, number, column, "rate"),
            "cannot_tell": untold,
            "cannot_tell_rate": round(untold / looked_at, 6),
        }
        wanted = rule in (STRICT, "") and kind in (ENTITIES, RELATIONS)
        if correction is not None and wanted and whole:
            rows = np.flatnonzero(known & there)
            row |= correction.of_errors(cases, rows, row, pairs=against == "source", kind=kind)
        found.append(row)
    return found


def miss_table(cases: DepictedCases, correction: Correction | None = None) -> pd.DataFrame:
    """Return miss rates of every operator, the source and rule, with exactly :data:`MISS_COLUMNS`.

    ``said`` are things and relations that the reader can tell; ``cannot_tell`` counts the others that prompts say, and
    its share is of both.

    Args:
        cases: The cases of one system.
        correction: The reader's card; None where it has none.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for rule in MISS_RULES:
        counts = cases.missing[rule].astype(np.float64)
        for kind, (seen, said, hidden) in ((ENTITIES, (0, 1, 4)), (RELATIONS, (2, 3, 5))):
            made = made_rates(cases, [counts[:, said] - counts[:, seen]], [counts[:, said]], independent=False)
            for number, name in _names(cases):
                there = _members(cases, number)
                whole, untold = (int(counts[there, one].sum()) for one in (said, hidden))
                if not whole:
                    continue
                row = {
                    "relation": name,
                    "rule": rule,
                    "kind": kind,
                    "said": whole,
                    "seen": int(counts[there, seen].sum()),
                    **_interval(made, number, 0, "miss"),
                    "cannot_tell": untold,
                    "cannot_tell_rate": round(untold / (whole + untold), 6),
                }
                if correction is not None and rule == STRICT:
                    row |= correction.of_misses(cases, np.flatnonzero(there & cases.seen), row, kind=kind)
                rows.append(row)
    return pd.DataFrame(rows, columns=list(MISS_COLUMNS))


def made_rates(cases: DepictedCases, part: Sequence[Any], whole: Sequence[Any], *, independent: bool = True) -> Rates:
    """Return weighted rates of all relations and of all operators together, a column each; one draw serves them all.

    Args:
        cases: The cases.
        part: For each column N numerators.
        whole: N denominators.
        independent: Whether a case holds one yes or no.
    """
    weighed = [np.concatenate([np.asarray(one, np.float64) * cases.weight for one in side]) for side in (part, whole)]
    return rates(
        cases.place(len(part)),
        *weighed,
        pools=(CASES,),
        pooled=cases.pooled,
        independent=independent and not cases.weighted,
    )


def _names(cases: DepictedCases) -> list[tuple[int, str]]:
    names = list(enumerate(cases.relations))
    return [*names, (len(names), OVERALL)] if cases.pooled.sum() > 1 else names


def _members(cases: DepictedCases, number: int) -> Any:
    return cases.pooled[cases.relation] if number == len(cases.relations) else cases.relation == number


def _interval(made: Rates, number: int, column: int, name: str) -> dict[str, Any]:
    at = (0, number, column)
    return {
        name: float(decimals(made.rate[at])),
        "ci_low": float(decimals(made.low[at])),
        "ci_high": float(decimals(made.high[at])),
        "ci_method": str(made.method[at]) if made.whole[at] else "",
    }


__all__ = ["ERROR_COLUMNS", "KINDS", "MISS_COLUMNS", "error_table", "made_rates", "miss_table"]
