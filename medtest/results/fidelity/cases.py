"""Cases of one system with generated pictures: sources and follow-ups in one table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import SOURCE
from medtest.core.deferred import pd
from medtest.core.records import ADDRESS, KEY_COLUMNS, addresses
from medtest.results.cube.axes import ALL
from medtest.results.fidelity.features import Integers

PICTURE = "picture"
TAG = "stratum_tag"
MODALITY = "stratum_modality"
"""Column with the kind of picture that an order asks for; other prompts have none."""
_TEXTS = (
    *("dataset", "seed_id", "cluster", "relation", "verdict", PICTURE, "prompt", "pool", "scene", "tells"),
    *(TAG, MODALITY),
)
EVERY, VIOLATED, HELD = "all", "violated", "held"
"""Subsets of cases: all, FAIL, or PASS under the suite's primary criterion."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DrawnCases:
    """Cases of one system, sources first.

    Attributes:
        columns: Text columns, "" if a record has no value.
        addresses: Address of each case.
        prompts: Identity of the prompt: its text, or its SHA-256 if records have no text.
        origin: int64 N; row of each case's source, its own row for a source, -1 if the source is not recorded.
    """

    columns: dict[str, NDArray[np.object_]]
    addresses: list[str]
    prompts: NDArray[np.object_]
    origin: Integers

    @classmethod
    def of(cls, records: Any) -> DrawnCases:
        """Return the cases of records (:class:`medtest.core.tasks.results.RunRecords`)."""
        frame = pd.concat([records.sources, records.followups], ignore_index=True)
        columns = {name: _texts(frame, name) for name in _TEXTS}
        case_addresses = _texts(frame, ADDRESS)
        if not all(case_addresses) and len(frame):
            case_addresses = np.array(addresses({name: frame[name].tolist() for name in KEY_COLUMNS}), dtype=object)
        is_source = columns["relation"] == SOURCE
        hashed = np.where(is_source, _texts(frame, "source_sha256"), _texts(frame, "followup_sha256"))
        seeds = list(zip(columns["dataset"], columns["seed_id"], strict=True))
        source_of = {seed: row for row, seed in enumerate(seeds) if is_source[row]}
        return cls(
            columns=columns,
            addresses=[str(address) for address in case_addresses],
            prompts=np.where(columns["prompt"] != "", columns["prompt"], hashed),
            origin=np.array([source_of.get(seed, -1) for seed in seeds], dtype=np.int64),
        )

    def __len__(self) -> int:
        return len(self.addresses)

    def texts(self, name: str) -> NDArray[np.object_]:
        """Return a text column."""
        return self.columns[name]

    @cached_property
    def drawn(self) -> NDArray[np.bool_]:
        """Mask of the cases with a picture."""
        return np.asarray(self.texts(PICTURE) != "", dtype=bool)

    @cached_property
    def datasets(self) -> tuple[str, ...]:
        """Names of data sets, in order."""
        return tuple(dict.fromkeys(str(name) for name in self.texts("dataset")))

    @cached_property
    def relations(self) -> tuple[str, ...]:
        """Relations in the order of the records, ``source`` first."""
        return tuple(dict.fromkeys(str(name) for name in self.texts("relation")))

    @property
    def groups(self) -> tuple[str, ...]:
        """Data sets, followed by ``all`` if there are several."""
        return (*self.datasets, ALL) if len(self.datasets) > 1 else self.datasets

    @cached_property
    def clusters(self) -> NDArray[np.object_]:
        """Cluster of each case, by its data set and name."""
        pairs = zip(self.texts("dataset"), self.texts("cluster"), strict=True)
        return np.array([f"{dataset}/{cluster}" for dataset, cluster in pairs], dtype=object)

    def of_seeds(self, most: int | None) -> NDArray[np.bool_]:
        """Return a mask of the cases of at most ``most`` seeds of each data set, the same under every relation.

        The selection depends only on the ids of the seeds.
        """
        if most is None:
            return np.ones(len(self), bool)
        selected: set[tuple[str, str]] = set()
        seeds = list(zip(self.texts("dataset"), self.texts("seed_id"), strict=True))
        for dataset in self.datasets:
            candidates = {seed for seed in seeds if seed[0] == dataset}
            selected.update(
                sorted(candidates, key=lambda seed: hashlib.sha256("\0".join(map(str, seed)).encode()).digest())[:most]
            )
        return np.array([seed in selected for seed in seeds], dtype=bool)

    def chosen(self, group: str, relation: str, finding: str = EVERY) -> NDArray[np.bool_]:
        """Return a mask of the cases of a data set (or ``all``) and a relation with a finding."""
        mask = self.texts("relation") == relation
        if group != ALL:
            mask = mask & (self.texts("dataset") == group)
        if finding != EVERY:
            mask = mask & (self.texts("verdict") == {VIOLATED: "FAIL", HELD: "PASS"}[finding])
        return np.asarray(mask, dtype=bool)

    @cached_property
    def ordering(self) -> Mapping[str, NDArray[np.bool_]]:
        """For each finding that orders of medical pictures name, in alphabetical order, a mask of the cases with it."""
        named: dict[str, list[int]] = {}
        for row in np.flatnonzero((self.texts(MODALITY) != "") & (self.texts("pool") != "")).tolist():
            for name in {str(entity[0]) for entity in json.loads(self.texts("pool")[row])["entities"]}:
                named.setdefault(name, []).append(row)
        masks = {name: np.zeros(len(self), np.bool_) for name in sorted(named)}
        for name, rows in named.items():
            masks[name][rows] = True
        return masks

    def findings(self, relation: str) -> Sequence[str]:
        """Return the findings that the cases of a relation can have."""
        return (EVERY,) if relation == SOURCE else (EVERY, VIOLATED, HELD)


def _texts(frame: pd.DataFrame, name: str) -> NDArray[np.object_]:
    if name not in frame.columns:
        return np.full(len(frame), "", dtype=object)
    texts: NDArray[np.object_] = frame[name].astype(object).fillna("").to_numpy(dtype=object)
    return texts
