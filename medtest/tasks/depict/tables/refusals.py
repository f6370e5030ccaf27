"""What became of every call: drawn, refused, filtered; prompts that were rewritten; cases that nobody can tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from medtest.results.columns import columns_in
from medtest.results.cube.axes import OVERALL
from medtest.results.cube.rates import decimals
from medtest.tasks.depict.oracle import ANSWERED, FILTERED, REFUSED
from medtest.tasks.depict.tables.cases import DepictedCases
from medtest.tasks.depict.tables.errors import made_rates

if TYPE_CHECKING:
    import pandas as pd

REFUSAL_COLUMNS = columns_in(__file__, "refusals")


def refusal_table(cases: DepictedCases) -> pd.DataFrame:
    """Return what became of the calls of every operator and of the sources, with exactly :data:`REFUSAL_COLUMNS`.

    ``withheld`` are pictures that the service refused to draw or filtered; ``withheld_after_drawn`` those of them whose
    source was drawn, each a violation that no error rate holds. Its rate is of calls with a reply. ``rewritten`` are
    drawn pictures of which the service says that it drew another prompt.
    """
    import pandas as pd

    replied = np.asarray((cases.state != "") & ~cases.error, np.bool_)
    withheld = cases.withheld & replied
    drawn = np.asarray(replied & (cases.state == ANSWERED), np.bool_)
    made = made_rates(cases, [withheld], [replied])
    rows: list[dict[str, Any]] = []
    names = [*enumerate(cases.relations), *([(len(cases.relations), OVERALL)] if cases.pooled.sum() > 1 else [])]
    for number, name in names:
        there = cases.pooled[cases.relation] if number == len(cases.relations) else cases.relation == number
        calls, pictures, seen = there & (replied | cases.error), there & drawn, there & cases.seen
        untold = int((seen & ~cases.told).sum())
        rewritten = int((pictures & cases.rewritten).sum())
        at = (0, number, 0)
        rows.append(
            {
                "relation": name,
                "asked": int(calls.sum()),
                "drawn": int(pictures.sum()),
                "withheld": int((there & withheld).sum()),
                "content_filter": int((there & replied & (cases.state == FILTERED)).sum()),
                "refusal": int((there & replied & (cases.state == REFUSED)).sum()),
                "malformed": int((there & replied & ~withheld & ~drawn).sum()),
                "errors": int((there & cases.error).sum()),
                "withheld_after_drawn": int((there & withheld & (cases.source_state == ANSWERED)).sum()),
                "withheld_rate": float(decimals(made.rate[at])),
                "ci_low": float(decimals(made.low[at])),
                "ci_high": float(decimals(made.high[at])),
                "rewritten": rewritten,
                "rewritten_rate": _share(rewritten, int(pictures.sum())),
                "cannot_tell": untold,
                "cannot_tell_rate": _share(untold, int(seen.sum())),
            }
        )
    table = pd.DataFrame(rows, columns=list(REFUSAL_COLUMNS))
    return table[table["asked"] > 0].reset_index(drop=True)


def _share(part: int, whole: int) -> float:
    return round(part / whole, 6) if whole else float("nan")
