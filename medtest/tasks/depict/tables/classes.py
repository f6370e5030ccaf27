"""Classes and relations by miss rate, with the reader's card."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from medtest.core.deferred import pd
from medtest.readers.pictures.card import Card
from medtest.results.columns import columns_in
from medtest.results.cube.intervals import wilson, wilson_ends
from medtest.tasks.depict.tables.cases import DepictedCases
from medtest.tasks.depict.views import look_of, said_of

CLASS_COLUMNS = columns_in(__file__, "depiction_classes")
CLASS, PREDICATE = "class", "predicate"


def class_table(cases: DepictedCases, card: Card | None = None) -> pd.DataFrame:
    """Return a row for each class and predicate in prompts, with exactly :data:`CLASS_COLUMNS`.

    ``said`` counts pictures whose prompt states it, ``missed`` those in which it is not detected (a predicate: in any
    stated triple), ``uncalled`` pictures with a detected class that no prompt requested. ``told`` says whether the
    reader can detect it at all; if not, it is neither missed nor uncalled. Rows are sorted by decreasing miss rate.

    Args:
        cases: Cases of one system.
        card: Card of the reader.
    """
    stated: Counter[tuple[str, str]] = Counter()
    missed: Counter[tuple[str, str]] = Counter()
    uncalled: Counter[tuple[str, str]] = Counter()
    detectable: Counter[tuple[str, str]] = Counter()
    texts = [cases.pool[cases.has_scene], cases.scene[cases.has_scene], cases.tells[cases.has_scene]]
    for (pool, scene, tells), count in Counter(zip(*texts, strict=True)).items():
        words, look = said_of(pool), look_of(scene, tells)
        for name in words.names:
            stated[CLASS, name] += count
            if look.tells.names(name):
                detectable[CLASS, name] += count
                missed[CLASS, name] += 0 if look.names[name] else count
        for name in look.names:
            uncalled[CLASS, name] += 0 if words.names[name] or not look.tells.names(name) else count
        for predicate in {triple[1] for triple in words.triples}:
            triples = [triple for triple in words.triples if triple[1] == predicate]
            comparable = [triple for triple in triples if look.tells.relates(triple)]
            stated[PREDICATE, predicate] += count
            if comparable:
                detectable[PREDICATE, predicate] += count
                missed[PREDICATE, predicate] += 0 if all(triple in look.triples for triple in comparable) else count
    names = sorted({*stated, *(key for key, count in uncalled.items() if count)})
    rows = [_row(key, stated[key], detectable[key], missed[key], uncalled[key], card) for key in names]
    frame = pd.DataFrame(rows, columns=list(CLASS_COLUMNS))
    order = ["kind", "missed_rate", "said", "name"]
    return frame.sort_values(order, ascending=[True, False, False, True], kind="stable").reset_index(drop=True)


def _row(
    key: tuple[str, str], stated: int, detectable: int, missed: int, uncalled: int, card: Card | None
) -> dict[str, Any]:
    kind, name = key
    low, high = wilson_ends(missed, detectable)
    row: dict[str, Any] = {
        "kind": kind,
        "name": name,
        "said": stated,
        "missed": missed,
        "missed_rate": round(missed / detectable, 6) if detectable else float("nan"),
        "ci_low": round(low, 6),
        "ci_high": round(high, 6),
        "uncalled": uncalled,
        "told": bool(detectable) or not stated,
    }
    card_row = None if card is None else card.row(kind, name)  # type: ignore[arg-type]
    if card_row is not None:
        present, detected, absent, spurious = card_row.counts
        for side, part, whole in (("sensitivity", detected, present), ("specificity", absent - spurious, absent)):
            ends = wilson(part, whole)
            row[side] = round(part / whole, 6) if whole else float("nan")
            row |= {
                f"{side}_{end}": round(float(np.asarray(v)), 6) for end, v in zip(("low", "high"), ends, strict=True)
            }
    return row
