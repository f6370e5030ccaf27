"""How answers differ from the source's: any-hit, Jaccard's index and the same set side by side, and what is no flip.

A set of colours or findings that loses one of two names flips, though it shares the other: the three figures together
say which. Of sizes and counts an interval that holds the source's is weaker, one within it stronger, one that crosses
it overlaps; none of them is a flip. Distances of places are king moves on the 3 × 3 grid between the nearest cells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from medtest.results.answer_flips import OVERALL
from medtest.results.answer_records import answered
from medtest.results.answer_rows import UNCHANGED
from medtest.results.records_io import Records

if TYPE_CHECKING:
    import pandas as pd

CHANGES = ("weaker", "stronger", "overlap")
COLUMNS = ("item", "relation", "cases", "any_hit", "exact", "jaccard", *CHANGES, "distance")


def change_table(records: Records) -> pd.DataFrame:
    """Return how answers to follow-ups differ from the sources', with exactly :data:`COLUMNS`.

    Over judged cases. ``any_hit``, ``exact`` and ``jaccard`` are means in [0, 1], a refusal counted as 0; ``distance``
    is the mean of places, empty elsewhere. ``overall`` is over relations but ``unchanged``.

    Args:
        records: Records of one system.
    """
    import pandas as pd

    cases = answered(records.followups)
    cases = cases[cases["self_agreement"].notna().to_numpy(dtype=bool)]
    texts = {name: cases[name].astype(object).fillna("").to_numpy(dtype=object) for name in ("item", "relation")}
    change = cases["change"].astype(object).fillna("").to_numpy(dtype=object)
    scores = {
        name: cases[f"self_{name}"].to_numpy(dtype=np.float64, na_value=np.nan)
        for name in ("any_hit", "exact", "jaccard")
    }
    distance = pd.to_numeric(cases["distance"], errors="coerce").to_numpy(dtype=np.float64)
    plain = texts["relation"] != UNCHANGED
    under = {name: texts["relation"] == name for name in dict.fromkeys(texts["relation"])} | {OVERALL: plain}
    rows: list[dict[str, object]] = []
    for item in dict.fromkeys(texts["item"]):
        own = texts["item"] == item
        for relation, there in under.items():
            chosen = np.flatnonzero(own & there)
            if not chosen.size:
                continue
            moved = distance[chosen][~np.isnan(distance[chosen])]
            rows.append(
                {
                    "item": item,
                    "relation": relation,
                    "cases": int(chosen.size),
                    **{name: round(float(values[chosen].mean()), 6) for name, values in scores.items()},
                    **{name: int((change[chosen] == name).sum()) for name in CHANGES},
                    "distance": round(float(moved.mean()), 6) if moved.size else float("nan"),
                }
            )
    return pd.DataFrame(rows, columns=list(COLUMNS))
