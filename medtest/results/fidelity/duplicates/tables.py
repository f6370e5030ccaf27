"""Tables of near-duplicates: ``duplicates.csv``, pairs by address, and ``duplicate_shares.csv``, their shares.

Identical pixels are detected among all cases without a network; near-duplicates among the embedded pictures. Answers to
the same prompt (a repeat, or a source and its ``unchanged``) are not paired, since they may be alike. In a group of
similar pictures, the first is paired with every answer to another prompt.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Final

import numpy as np

from medtest.core.deferred import pd
from medtest.results.columns import columns_in
from medtest.results.cube.axes import ALL
from medtest.results.fidelity.cases import PICTURE, DrawnCases
from medtest.results.fidelity.duplicates.index import Alike, HashIndex, Near, cosine_of, representatives
from medtest.results.fidelity.embedded import EmbeddedRun
from medtest.results.fidelity.measures.shares import shares_of

COLUMNS = columns_in(__file__, "duplicates")
SHARE_COLUMNS = columns_in(__file__, "duplicate_shares")
ANSWERS, TRAINING = "answers", "training"
MOST: Final = 1000
"""Largest number of pairs listed for each kind; all are counted."""


def duplicate_tables(
    cases: DrawnCases, embedded: EmbeddedRun | None, similarity: float
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the near-duplicates among answers to different prompts, and of training pictures, and their shares.

    Args:
        cases: Cases of one system.
        embedded: Features and hashes of their pictures; None to detect identical pixels only.
        similarity: Cosine of features from which two pictures are near-duplicates.
    """
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
        matches = _training(embedded, similarity)
        training_pairs = [
            {
                "kind": TRAINING,
                "first": cases.addresses[row],
                "second": embedded.training[matches[str(names[row])][0]],
                "bits": matches[str(names[row])][1].bits,
                "similarity": _known(matches[str(names[row])][1].similarity),
                "same_pixels": None,
            }
            for row in np.flatnonzero(cases.drawn)
            if str(names[row]) in matches
        ]
        pairs = pairs[:MOST] + sorted(training_pairs, key=_nearest_first)[:MOST]
        searched = cases.drawn & (embedded.rows >= 0)
        hit = np.array([str(name) in matches for name in names])
        codes = {name: n for n, name in enumerate(dict.fromkeys(match for match, _ in matches.values()))}
        owner = np.array(
            [codes[matches[str(name)][0]] if str(name) in matches else -1 for name in names], dtype=np.int64
        )
        sizes = np.bincount(owner[owner >= 0], minlength=len(codes))
        size = np.where(owner >= 0, sizes[owner] if len(sizes) else 0, 0)
        shares += _shares(cases, TRAINING, searched, hit & searched, owner, size)
    return (
        pd.DataFrame(pairs[: 2 * MOST], columns=list(COLUMNS)),
        pd.DataFrame(shares, columns=list(SHARE_COLUMNS)),
    )


def _nearest_first(pair: Mapping[str, Any]) -> tuple[int, float]:
    return int(pair["bits"]), -float(pair["similarity"] or 0.0)


def _near(embedded: EmbeddedRun | None, similarity: float) -> Mapping[str, tuple[str, Near]]:
    """Return for each embedded picture the first one it nearly duplicates, by name."""
    if embedded is None or not embedded.pictures:
        return {}
    hashes = embedded.hashes(embedded.pictures)
    nearest = representatives(hashes, cosine_of(embedded.others(embedded.pictures)), similarity)
    return {
        name: (embedded.pictures[match.number], match) for name, match in zip(embedded.pictures, nearest, strict=True)
    }


def _pairs(cases: DrawnCases, rows: Sequence[int], near: Mapping[str, tuple[str, Near]]) -> Any:
    """Yield the pairs of a group: its first case with every answer to another prompt."""
    first = rows[0]
    names = cases.texts(PICTURE)
    for row in rows[1:]:
        if cases.prompts[row] == cases.prompts[first]:
            continue
        identical = names[row] == names[first]
        match = near.get(str(names[row]))
        yield {
            "kind": ANSWERS,
            "first": cases.addresses[first],
            "second": cases.addresses[row],
            "bits": 0 if identical or match is None else match[1].bits,
            "similarity": 1.0 if identical or match is None else _known(match[1].similarity),
            "same_pixels": bool(identical),
        }


def _training(embedded: EmbeddedRun, similarity: float) -> Mapping[str, tuple[str, Near]]:
    """Return for each answer close to a training picture the nearest one, by names.

    Answers are held in memory; training pictures are read one batch after another.
    """
    index = HashIndex()
    for number, content in enumerate(embedded.hashes(embedded.pictures)):
        index.add(number, content)
    names = list(embedded.training)
    alike = cosine_of(embedded.others(embedded.pictures), embedded.others(names))
    matches: dict[str, tuple[str, Near]] = {}
    for start in range(0, len(names), 512):
        batch = names[start : start + 512]
        for number, (name, content) in enumerate(zip(batch, embedded.hashes(batch), strict=True), start):
            for near in _all_near(index, number, content, alike, similarity):
                answer = embedded.pictures[near.number]
                if answer not in matches or (near.bits, -near.similarity) < (
                    matches[answer][1].bits,
                    -matches[answer][1].similarity,
                ):
                    matches[answer] = (name, near)
    return matches


def _all_near(index: HashIndex, number: int, content: bytes, alike: Alike, least: float) -> Sequence[Near]:
    near = (Near(candidate, bits, alike(candidate, number)) for candidate, bits in index.near(content))
    return [match for match in near if match.similarity >= least]


def _shares(cases: DrawnCases, kind: str, looked: Any, hit: Any, owner: Any, size: Any) -> list[dict[str, Any]]:
    """Return one row for each data set and relation, and one for all relations together."""
    records = []
    for group in cases.groups:
        inside = np.ones(len(cases), bool) if group == ALL else cases.texts("dataset") == group
        every = {relation: inside & (cases.texts("relation") == relation) for relation in cases.relations}
        selections = [(name, np.flatnonzero(mask & looked)) for name, mask in {**every, ALL: inside}.items()]
        cells = [(name, rows) for name, rows in selections if rows.size]
        shares = shares_of(cases, [(rows, hit[rows]) for _, rows in cells])
        for (relation, rows), share in zip(cells, shares, strict=True):
            records.append(
                {
                    "kind": kind,
                    "dataset": group,
                    "relation": relation,
                    **share,
                    "near_duplicates": int(hit[rows].sum()),
                    "groups": len(set(owner[rows][hit[rows]].tolist())),
                    "largest_group": int(size[rows].max(initial=0)),
                }
            )
    return records


def _known(value: float) -> float | None:
    return None if value != value else round(value, 6)
