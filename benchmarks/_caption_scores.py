"""Scores of parsers on labelled captions: entities by name, triples by the names of their entities."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from medtest.core.scenes import Absence, NamedTriple
from medtest.language.captions.parsers import CaptionParser
from medtest.language.captions.reading.reader import read_prompt
from medtest.language.captions.reading.result import PromptReading

_One = TypeVar("_One", bound=Hashable)


@dataclass(frozen=True, kw_only=True)
class ParserRates:
    """Counts for precision and recall.

    Attributes:
        right: Number of correct results.
        parsed: Number of results.
        labelled: Number of labels.
    """

    right: int = 0
    parsed: int = 0
    labelled: int = 0

    @property
    def precision(self) -> float:
        """Share of results that are correct; 1 without results."""
        return self.right / self.parsed if self.parsed else 1.0

    @property
    def recall(self) -> float:
        """Share of labels that were found; 1 without labels."""
        return self.right / self.labelled if self.labelled else 1.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return 2 * self.right / (self.parsed + self.labelled) if self.parsed + self.labelled else 1.0

    def __add__(self, other: ParserRates) -> ParserRates:
        return ParserRates(
            right=self.right + other.right, parsed=self.parsed + other.parsed, labelled=self.labelled + other.labelled
        )


@dataclass(frozen=True, kw_only=True)
class ParserScore:
    """Score of a parser over captions.

    Attributes:
        captions: Number of captions.
        entities: Names of entities, with repeats.
        triples: Triples by names.
        whole: Number of captions whose entities and triples are all correct.
    """

    captions: int
    entities: ParserRates
    triples: ParserRates
    whole: int


def score(rows: Sequence[Mapping[str, Any]], parser: CaptionParser) -> ParserScore:
    """Return a parser's score over labelled captions.

    Args:
        rows: Rows of a file of labelled captions (:func:`labelled`).
        parser: The parser.
    """
    entities = triples = ParserRates()
    perfect = 0
    for row, pool in zip(rows, parser.parse_all(row["caption"] for row in rows), strict=True):
        entity_rates = compared(_names(row), (entity.name for entity in pool.entities))
        related = compared(_triples(row), pool.named())
        entities, triples = entities + entity_rates, triples + related
        perfect += all(rates.right == rates.parsed == rates.labelled for rates in (entity_rates, related))
    return ParserScore(captions=len(rows), entities=entities, triples=triples, whole=perfect)


@dataclass(frozen=True, kw_only=True)
class ReadingScore:
    """Score of readings of prompts.

    Attributes:
        prompts: Number of prompts.
        sent: Number of prompts that were understood, and would be sent.
        right: Number of those whose entities with counts and attributes, triples and absences are all as labelled.
    """

    prompts: int = 0
    sent: int = 0
    right: int = 0

    def __add__(self, other: ReadingScore) -> ReadingScore:
        return ReadingScore(
            prompts=self.prompts + other.prompts, sent=self.sent + other.sent, right=self.right + other.right
        )


def score_readings(rows: Sequence[Mapping[str, Any]], parser: CaptionParser | None = None) -> ReadingScore:
    """Return the score of readings of labelled prompts.

    Args:
        rows: Rows of a file of labelled prompts, with ``absent``.
        parser: Parser of the content; None for that of :func:`~medtest.language.captions.reading.reader.read_prompt`.
    """
    total = ReadingScore()
    for row in rows:
        reading = read_prompt(row["caption"], parser)
        right = reading.is_understood and means(reading, row)
        total += ReadingScore(prompts=1, sent=int(reading.is_understood), right=int(right))
    return total


def means(reading: PromptReading, row: Mapping[str, Any]) -> bool:
    """Return True if a reading's entities (names, counts, attributes), triples and absences are all as labelled."""
    entities = Counter((entity.name, entity.count, frozenset(entity.attributes)) for entity in reading.pool.entities)
    labelled = Counter((entity["name"], entity["count"], frozenset(entity["attributes"])) for entity in row["entities"])
    triples = Counter(reading.pool.named()) == Counter(_triples(row))
    return entities == labelled and triples and Counter(reading.absent) == Counter(_absences(row))


def is_held_out(caption: str) -> bool:
    """Return True for the half of the prompts on which no rule was written: an odd first byte of their SHA-256."""
    return hashlib.sha256(caption.encode()).digest()[0] % 2 == 1


def _absences(row: Mapping[str, Any]) -> list[Absence]:
    names = _names(row)

    def name(end: int | Mapping[str, Any]) -> str:
        return names[end] if isinstance(end, int) else str(end["name"])

    absences: list[Absence] = []
    for denied in row.get("absent", ()):
        if "entity" in denied:
            absences.append((denied["entity"]["name"],))
        elif "attribute" in denied:
            absences.append((name(denied["attribute"][0]), denied["attribute"][1]))
        else:
            subject, predicate, target = denied["triple"]
            absences.append((name(subject), predicate, name(target)))
    return absences


def labelled(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file of labelled captions: ``caption``, ``entities``, ``triples`` by index."""
    rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return rows


def compared(labelled: Iterable[_One], parsed: Iterable[_One]) -> ParserRates:
    """Return the rates of two multisets."""
    labels, results = Counter(labelled), Counter(parsed)
    return ParserRates(right=(labels & results).total(), parsed=results.total(), labelled=labels.total())


def _names(row: Mapping[str, Any]) -> list[str]:
    return [entity["name"] for entity in row["entities"]]


def _triples(row: Mapping[str, Any]) -> list[NamedTriple]:
    names = _names(row)
    return [(names[subject], predicate, names[target]) for subject, predicate, target in row["triples"]]
