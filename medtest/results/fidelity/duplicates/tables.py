"""Tables of near-duplicates: ``duplicates.csv``, pairs by address, and ``duplicate_shares.csv``, how many there are.

Pictures whose pixels are the same are found among all cases, without a network; near-duplicates among those that were
embedded. Answers to the same prompt (another asking of it, a source and its ``unchanged``) are no pair: they may well
be alike. Of a group of alike pictures the first is paired with every answer to another prompt.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from medtest.results.columns import columns_in
from medtest.results.cube.axes import ALL
from medtest.results.cube.rates import decimals
from medtest.results.fidelity.cases import PICTURE, DrawnCases
from medtest.results.fidelity.duplicates.index import Alike, HashIndex, Near, cosine_of, representatives
from medtest.results.fidelity.embedded import EmbeddedRun
from medtest.results.fidelity.measures.shares import shares_of

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = columns_in(__file__, "duplicates")
SHARE_COLUMNS = columns_in(__file__, "duplicate_shares")
ANSWERS, TRAINING = "answers", "training"
MOST: Final = 1000
"""Pairs of a kind that are listed; all are counted."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Duplicates:
    """Near-duplicates of one system's answers.

    Attributes:
        pairs: The columns of ``duplicates.csv``.
        shares: The columns of ``duplicate_shares.csv``.
    """

    pairs: pd.DataFrame
    shares: pd.DataFrame


def duplicate_tables(cases: DrawnCases, embedded: EmbeddedRun | None, similarity: float) -> Duplicates:
    """Return the near-duplicates among answers to different prompts, and of training pictures.

    Args:
        cases: The cases of one system.
        embedded: Features and hashes of their pictures; None for pictures of the same pixels alone.
        similarity: Cosine of features from which on two are near-duplicates.
    """
    import pandas as pd

    near = _near(embedded, similarity)
    groups: defaultdict[str, list[int]] = defaultdict(list)
    names = cases.texts(PICTURE)
    for row in np.flatnonzero(cases.drawn):
        name = str(names[row])
        groups[near[name][0] if name in near else name].append(int(row))
    alike = {first: rows for first, rows in groups.items() if len({cases.prompts[row] for row in rows}) > 1}
    pairs = [pair for rows in alike.values() for pair in islice(_pairs(cases, rows, near), MOST)]
    pairs.sort(key=_nearest_first)
    hit = np.zeros(len(cases), bool)
    size = np.zeros(len(cases), np.int64)
    for rows in alike.values():
        hit[rows], size[rows] = True, len(rows)
    owner = np.full(len(cases), -1, np.int64)
    for number, rows in enumerate(alike.values()):
        owner[rows] = number
    shares = _shares(cases, ANSWERS, cases.drawn, hit, owner, size)
    if embedded is not None and embedded.training:
        known = _training(embedded, similarity)
        own = [
            {
                "kind": TRAINING,
                "first": cases.addresses[row],
                "second": embedded.training[known[str(names[row])][0]],
                "bits": known[str(names[row])][1].bits,
                "similarity": _known(known[str(names[row])][1].similarity),
                "same_pixels": None,
            }
            for row in np.flatnonzero(cases.drawn)
            if str(names[row]) in known
        ]
        pairs = pairs[:MOST] + sorted(own, key=_nearest_first)[:MOST]
        looked = cases.drawn & (embedded.rows >= 0)
        hit = np.array([str(name) in known for name in names])
        codes = {name: n for n, name in enumerate(dict.fromkeys(one for one, _ in known.values()))}
        owner = np.array([codes[known[str(name)][0]] if str(name) in known else -1 for name in names], dtype=np.int64)
        sizes = np.bincount(owner[owner >= 0], minlength=len(codes))
        size = np.where(owner >= 0, sizes[owner] if len(sizes) else 0, 0)
        shares += _shares(cases, TRAINING, looked, hit & looked, owner, size)
    return Duplicates(
        pairs=pd.DataFrame(pairs[: 2 * MOST], columns=list(COLUMNS)),
        shares=pd.DataFrame(shares, columns=list(SHARE_COLUMNS)),
    )


def _nearest_first(pair: Mapping[str, Any]) -> tuple[int, float]:
    return int(pair["bits"]), -float(pair["similarity"] or 0.0)


def _near(embedded: EmbeddedRun | None, similarity: float) -> Mapping[str, tuple[str, Near]]:
    """Return for each embedded picture the first one that it is nearly the same as, by name."""
    if embedded is None or not embedded.pictures:
        return {}
    hashes = embedded.hashes(embedded.pictures)
    found = representatives(hashes, cosine_of(embedded.others(embedded.pictures)), similarity)
    return {name: (embedded.pictures[one.number], one) for name, one in zip(embedded.pictures, found, strict=True)}


def _pairs(cases: DrawnCases, rows: Sequence[int], near: Mapping[str, tuple[str, Near]]) -> Any:
    """Yield the pairs of a group: its first case with every answer to another prompt."""
    first = rows[0]
    names = cases.texts(PICTURE)
    for row in rows[1:]:
        if cases.prompts[row] == cases.prompts[first]:
            continue
        same = names[row] == names[first]
        one = near.get(str(names[row]))
        yield {
            "kind": ANSWERS,
            "first": cases.addresses[first],
            "second": cases.addresses[row],
            "bits": 0 if same or one is None else one[1].bits,
            "similarity": 1.0 if same or one is None else _known(one[1].similarity),
            "same_pixels": bool(same),
        }


def _training(embedded: EmbeddedRun, similarity: float) -> Mapping[str, tuple[str, Near]]:
    """Return for each answer that is near a training picture which one, the nearest: by names.

    Answers are what is held in memory; training pictures are gone through one after another.
    """
    index = HashIndex()
    for number, content in enumerate(embedded.hashes(embedded.pictures)):
        index.add(number, content)
    names = list(embedded.training)
    alike = cosine_of(embedded.others(embedded.pictures), embedded.others(names))
    found: dict[str, tuple[str, Near]] = {}
    for start in range(0, len(names), 512):
        some = names[start : start + 512]
        for number, (name, content) in enumerate(zip(some, embedded.hashes(some), strict=True), start):
            for one in _all_near(index, number, content, alike, similarity):
                answer = embedded.pictures[one.number]
                if answer not in found or (one.bits, -one.similarity) < (
                    found[answer][1].bits,
                    -found[answer][1].similarity,
                ):
                    found[answer] = (name, one)
    return found


def _all_near(index: HashIndex, number: int, content: bytes, alike: Alike, least: float) -> Sequence[Near]:
    near = (Near(other, bits, alike(other, number)) for other, bits in index.near(content))
    return [one for one in near if one.similarity >= least]


def _shares(cases: DrawnCases, kind: str, looked: Any, hit: Any, owner: Any, size: Any) -> list[dict[str, Any]]:
    """Return a row for each data set and relation, and one for all relations together."""
    made = []
    for group in cases.groups:
        inside = np.ones(len(cases), bool) if group == ALL else cases.texts("dataset") == group
        every = {relation: inside & (cases.texts("relation") == relation) for relation in cases.relations}
        found = [(name, np.flatnonzero(here & looked)) for name, here in {**every, ALL: inside}.items()]
        cells = [(name, rows) for name, rows in found if rows.size]
        shares = shares_of(cases, [(rows, hit[rows]) for _, rows in cells])
        for (relation, rows), share in zip(cells, shares, strict=True):
            percent, low, high = decimals([100 * share.rate, 100 * share.low, 100 * share.high]).tolist()
            made.append(
                {
                    "kind": kind,
                    "dataset": group,
                    "relation": relation,
                    "pictures": len(rows),
                    "near_duplicates": int(hit[rows].sum()),
                    "percent": percent,
                    "ci_low": low,
                    "ci_high": high,
                    "ci_method": share.method,
                    "groups": len(set(owner[rows][hit[rows]].tolist())),
                    "largest_group": int(size[rows].max(initial=0)),
                }
            )
    return made


def _known(value: float) -> float | None:
    return None if value != value else round(value, 6)
