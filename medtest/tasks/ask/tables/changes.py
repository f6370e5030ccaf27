"""Differences between answers and the source's: any-hit, Jaccard's index, equality, and changes that are not flips.

A set of colours or findings that loses one of two names flips although it shares the other; the three figures show
this. For sizes and counts, an interval that contains the source's is weaker, one within it stronger, one that crosses
it overlaps; none of these is a flip. Distances of places are king moves on the 3 × 3 grid between the nearest cells.
"""

from __future__ import annotations

import numpy as np

from medtest.core.deferred import pd
from medtest.results.records.records_io import Records
from medtest.tasks.ask.tables.cells import Questions
from medtest.tasks.ask.tables.records import answered

CHANGES = ("weaker", "stronger", "overlap")
SCORES = ("any_hit", "exact", "jaccard")
COLUMNS = ("item", "relation", "cases", *SCORES, *CHANGES, "distance")


def change_table(records: Records) -> pd.DataFrame:
    """Return the differences between answers to follow-ups and to sources, with exactly :data:`COLUMNS`.

    Only judged cases count. ``any_hit``, ``exact`` and ``jaccard`` are means in [0, 1], with a refusal counted as 0;
    ``distance`` is the mean over places, empty for other types. ``overall`` covers all relations but ``unchanged``.

    Args:
        records: Records of one system.
    """
    cases = answered(records.followups)
    cases = cases[cases["self_agreement"].notna().to_numpy(dtype=bool)]
    if cases.empty:
        return pd.DataFrame(columns=list(COLUMNS))
    texts = {name: cases[name].astype(object).fillna("").to_numpy(dtype=object) for name in ("item", "relation")}
    place = Questions.of(pd.DataFrame({**texts, "image": ""}), "vqa changes", items=list(dict.fromkeys(texts["item"])))
    change = cases["change"].astype(object).fillna("").to_numpy(dtype=object)
    scores = {name: cases[f"self_{name}"].to_numpy(dtype=np.float64, na_value=np.nan) for name in SCORES}
    distance = pd.to_numeric(cases["distance"], errors="coerce").to_numpy(dtype=np.float64)
    counts = place.counts(np.ones(len(cases)))
    columns = {
        "cases": counts,
        **{name: place.means(values, np.ones(len(cases), bool)) for name, values in scores.items()},
        **{name: place.counts(change == name) for name in CHANGES},
        "distance": place.means(distance, ~np.isnan(distance)),
    }
    keep = counts > 0
    keep[:, -1] = False  # there is no pool of all questions
    return place.table(columns, keep, COLUMNS)
