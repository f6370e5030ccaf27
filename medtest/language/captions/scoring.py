"""How well a parser reads labelled captions: entities by name, triples by the names of their entities."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from medtest.core.scenes import NamedTriple
from medtest.language.captions.parsers import CaptionParser

_One = TypeVar("_One", bound=Hashable)


@dataclass(frozen=True, kw_only=True)
class ParserRates:
    """What was found of what is there.

    Attributes:
        right: Found and there.
        found: Found.
        there: There, by the labels.
    """

    right: int = 0
    found: int = 0
    there: int = 0

    @property
    def precision(self) -> float:
        """Share of what was found that is there; 1 where nothing was found."""
        return self.right / self.found if self.found else 1.0

    @property
    def recall(self) -> float:
        """Share of what is there that was found; 1 where nothing is."""
        return self.right / self.there if self.there else 1.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return 2 * self.right / (self.found + self.there) if self.found + self.there else 1.0

    def __add__(self, other: ParserRates) -> ParserRates:
        return ParserRates(
            right=self.right + other.right, found=self.found + other.found, there=self.there + other.there
        )


@dataclass(frozen=True, kw_only=True)
class ParserScore:
    """A parser's score over captions.

    Attributes:
        captions: How many.
        entities: Names of entities; one that is named twice counts twice.
        triples: Triples by names.
        whole: Captions whose entities and triples are all right.
    """

    captions: int
    entities: ParserRates
    triples: ParserRates
    whole: int


def score(rows: Sequence[Mapping[str, Any]], parser: CaptionParser) -> ParserScore:
    """Return a parser's score over labelled captions.

    Args:
        rows: Rows of a file of labelled captions (:func:`labelled`).
        parser: What reads them.
    """
    entities = triples = ParserRates()
    whole = 0
    for row, pool in zip(rows, parser.parse_all(row["caption"] for row in rows), strict=True):
        named = compared(_names(row), (one.name for one in pool.entities))
        related = compared(_triples(row), pool.named())
        entities, triples = entities + named, triples + related
        whole += all(one.right == one.found == one.there for one in (named, related))
    return ParserScore(captions=len(rows), entities=entities, triples=triples, whole=whole)


def labelled(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file of labelled captions: ``caption``, ``entities``, ``triples`` by index."""
    rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return rows


def compared(there: Iterable[_One], found: Iterable[_One]) -> ParserRates:
    """Return rates of two multisets."""
    labels, read = Counter(there), Counter(found)
    return ParserRates(right=(labels & read).total(), found=read.total(), there=labels.total())


def _names(row: Mapping[str, Any]) -> list[str]:
    return [one["name"] for one in row["entities"]]


def _triples(row: Mapping[str, Any]) -> list[NamedTriple]:
    names = _names(row)
    return [(names[subject], predicate, names[thing]) for subject, predicate, thing in row["triples"]]
