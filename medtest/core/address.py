"""Addresses, image hashes, reserved names, other cases of a data set; part of :mod:`medtest.core.cases`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medtest.core.portable import key_generator

SOURCE = "source"
UNCHANGED = "unchanged"
CONTROLS = "controls"
"""Group of relations that remove the evidence for an answer; they have rates of their own and enter no other."""
REMOVE = "remove"
"""Kind of the effect of controls."""
ID_PATTERN = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
"""Pattern of the names and ids of suites, systems, relations and data sets."""


def stem_text(relation: str, severity: int, frame: int, repeat: int) -> str:
    """Return the part of an address below its image: ``<relation>_s<severity>_f<frame>_r<repeat>``."""
    return f"{relation}_s{severity}_f{frame}_r{repeat}"


def address_text(
    dataset: str, seed_id: str, relation: str, severity: int, frame: int, repeat: int, item: str = ""
) -> str:
    """Format an address as records, reports and ``medtest replay`` write it; a question's name follows its image's.

    Args:
        dataset: Data set id; the arguments follow the order of :data:`medtest.core.records.KEY_COLUMNS`.
        seed_id: Id of the source case, hashed if ids are hidden.
        relation: The relation's id.
        severity: 1–5, or 0.
        frame: Index in a sequence.
        repeat: Number of the draw.
        item: A question; "" if there is none.
    """
    text = f"{dataset}/{seed_id}/{stem_text(relation, severity, frame, repeat)}"
    return f"{text}/{item}" if item else text


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Address:
    """Address of a case; its random numbers depend only on the address and the suite's seed.

    Attributes:
        dataset: Data set id.
        seed_id: Id of the source case within the data set (the plain one, never the hashed one).
        relation: The relation's id in the suite; ``"source"`` for the source case itself.
        severity: 1–5, or 0 for sources and for relations that draw from published ranges.
        frame: Index in a sequence, from 0.
        repeat: Number of the draw, from 0.
        item: A question, where one image has several; all items share one follow-up.
    """

    dataset: str
    seed_id: str
    relation: str = SOURCE
    severity: int = 0
    frame: int = 0
    repeat: int = 0
    item: str = ""

    def generator(self, suite_seed: int) -> np.random.Generator:
        """Return the random generator of the case: PCG64 seeded by SHA-256 of suite seed and address without item."""
        place = (self.dataset, self.seed_id, self.relation, self.severity, self.frame, self.repeat)
        return key_generator([int(suite_seed), *place])

    def sequence_generator(self, suite_seed: int) -> np.random.Generator:
        """Return the generator shared by all frames of a sequence: :meth:`generator` with -1 as the frame."""
        return replace(self, frame=-1).generator(suite_seed)

    def source(self) -> Address:
        """Return the address of this follow-up's source case."""
        return replace(self, relation=SOURCE, severity=0, frame=0, repeat=0)

    @property
    def is_source(self) -> bool:
        """True for a source case."""
        return self.relation == SOURCE

    @property
    def stem(self) -> str:
        """File name of an exported follow-up, without suffix: ``<relation>_s<severity>_f<frame>_r<repeat>``."""
        return stem_text(self.relation, self.severity, self.frame, self.repeat)

    def __str__(self) -> str:
        return address_text(
            self.dataset, self.seed_id, self.relation, self.severity, self.frame, self.repeat, self.item
        )


def image_sha256(image: NDArray[Any]) -> str:
    """Return the SHA-256 of an image's shape, dtype and bytes, in hexadecimal."""
    head = f"{image.dtype.str}{image.shape}".encode()
    digest = hashlib.sha256(head)
    digest.update(np.ascontiguousarray(image).data)
    return digest.hexdigest()


class Peers:
    """All source cases of a data set; each is loaded when it is first needed.

    Args:
        refs: References to the cases, in the order of the data set (:class:`medtest.core.cases.SeedRef`).
        load: Returns the prepared case of a reference (:class:`medtest.core.cases.PreparedSeed`).
    """

    def __init__(self, refs: Sequence[Any], load: Callable[[Any], Any]) -> None:
        self.refs = tuple(refs)
        self._load = load
        self._memo: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self.refs)

    def case(self, number: int) -> Any:
        """Return a prepared case by its number, from 0."""
        return self._load(self.refs[number])

    def strangers(self, ref: Any) -> list[int]:
        """Return the numbers of the cases of other clusters (patients, videos) than that of a case.

        Args:
            ref: Reference to the case.
        """
        return [
            number
            for number, other in enumerate(self.refs)
            if other.cluster != ref.cluster and other.seed_id != ref.seed_id
        ]

    def memo(self, key: str, make: Callable[[], Any]) -> Any:
        """Return the cached result of ``make`` for this data set; ``key`` starts with the module name of the caller."""
        if key not in self._memo:
            self._memo[key] = make()
        return self._memo[key]
