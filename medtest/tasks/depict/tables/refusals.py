"""Outcomes of calls: drawn, refused, filtered; rewritten prompts; undetermined cases."""

from __future__ import annotations

from typing import Any

import numpy as np

from medtest.core.deferred import pd
from medtest.results.columns import columns_in
from medtest.results.cube.rates import decimals
from medtest.tasks.depict.oracle import ANSWERED, FILTERED, REFUSED
from medtest.tasks.depict.tables.cases import DepictedCases
from medtest.tasks.depict.tables.errors import made_rates, members_of, shown_relations

REFUSAL_COLUMNS = columns_in(__file__, "refusals")


def refusal_table(cases: DepictedCases) -> pd.DataFrame:
    """Return the outcomes of the calls of every operator and of the sources, with exactly :data:`REFUSAL_COLUMNS`.

    ``withheld`` counts pictures that the service refused to draw or filtered; ``withheld_after_drawn`` those whose
    source was drawn, each a violation that is not in error rates. Its rate is relative to calls with a reply.
    ``rewritten`` counts pictures for which the service says that it drew another prompt.
    """
    replied = np.asarray((cases.state != "") & ~cases.error, np.bool_)
    withheld = cases.withheld & replied
    drawn = np.asarray(replied & (cases.state == ANSWERED), np.bool_)
    refusal_rates = made_rates(cases, [withheld], [replied])
    rows: list[dict[str, Any]] = []
    for number, name in shown_relations(cases):
        members = members_of(cases, number)
        calls, pictures, readable = members & (replied | cases.error), members & drawn, members & cases.has_scene
        untold = int((readable & ~cases.detectable).sum())
        rewritten = int((pictures & cases.rewritten).sum())
        at = (0, number, 0)
        rows.append(
            {
                "relation": name,
                "asked": int(calls.sum()),
                "drawn": int(pictures.sum()),
                "withheld": int((members & withheld).sum()),
                "content_filter": int((members & replied & (cases.state == FILTERED)).sum()),
                "refusal": int((members & replied & (cases.state == REFUSED)).sum()),
                "malformed": int((members & replied & ~withheld & ~drawn).sum()),
                "errors": int((members & cases.error).sum()),
                "withheld_after_drawn": int((members & withheld & (cases.source_state == ANSWERED)).sum()),
                "withheld_rate": float(decimals(refusal_rates.rate[at])),
                "ci_low": float(decimals(refusal_rates.low[at])),
                "ci_high": float(decimals(refusal_rates.high[at])),
                "rewritten": rewritten,
                "rewritten_rate": _share(rewritten, int(pictures.sum())),
                "cannot_tell": untold,
                "cannot_tell_rate": _share(untold, int(readable.sum())),
            }
        )
    table = pd.DataFrame(rows, columns=list(REFUSAL_COLUMNS))
    return table[table["asked"] > 0].reset_index(drop=True)


def _share(part: int, whole: int) -> float:
    return round(part / whole, 6) if whole else float("nan")
