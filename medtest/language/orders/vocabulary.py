"""Vocabulary of orders, read from ``words.yaml``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

from medtest.core.files.paths import read_yaml
from medtest.language.captions import inflection

WORDS = Path(__file__).with_name("words.yaml")
TOKEN = re.compile(r"\d+(?:\.\d+)?|[^\W\d_]+(?:['’][^\W\d_]+)?|[^\s\w-]|_")
"""Numbers, words and signs; hyphens separate words as blanks do."""


CAPITALS = frozenset(("L", "R", "M", "F", "HH", "UC", "BE", "PA", "AP"))
"""Abbreviations that count only in capitals, because small letters would make other words of them."""


def tokens_of(phrase: str) -> tuple[str, ...]:
    """Return the tokens of a phrase as they are compared."""
    return tuple(folded(word) for word in TOKEN.findall(phrase))


def folded(word: str) -> str:
    """Return a word in the form for comparison: in lower case, except for :data:`CAPITALS`."""
    return word if word in CAPITALS else word.lower().replace("’", "'")


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingWords:
    """A finding of a modality.

    Attributes:
        name: Its name in pools.
        words: Nouns for it in the singular, the canonical one first.
        abbreviations: Abbreviations.
        plurals: Irregular plurals by word.
        sides: ``one`` (left or right), ``pair`` (either or both), ``both`` (always both), ``midline`` or ``none``.
        mass: Whether it has neither number nor article.
        counted: Whether its instances are counted.
        coloured: Whether it has a colour.
        typed: Whether it has a Paris type.
        millimetres: Smallest and largest diameter by its definition; None if it has no size.
        tool: Whether it is an instrument.
        regions: Regions where it may be put; empty for any.
    """

    name: str
    words: tuple[str, ...]
    abbreviations: tuple[str, ...] = ()
    plurals: Mapping[str, str] = field(default_factory=dict)
    sides: Literal["one", "pair", "both", "midline", "none"] = "none"
    mass: bool = False
    counted: bool = False
    coloured: bool = False
    typed: bool = False
    millimetres: tuple[float, float] | None = None
    tool: bool = False
    regions: tuple[str, ...] = ()

    @property
    def nouns(self) -> tuple[str, ...]:
        """All nouns and abbreviations."""
        return self.words + self.abbreviations

    def plural(self, noun: str) -> str:
        """Return the plural of one of its nouns."""
        return self.plurals.get(noun) or (f"{noun}s" if noun.isupper() else inflection.plural(noun))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModalityWords:
    """A kind of picture.

    Attributes:
        name: Its name in orders.
        words: Phrases for it, the canonical one first.
        abbreviations: Abbreviations.
        regions: Phrases by region.
        scanners: Phrases by scanner.
        findings: Findings by name.
        alike: Groups of findings of which one may be taken for another, or is a kind of it.
        apart: Groups of findings of which operators put only one into a picture.
    """

    name: str
    words: tuple[str, ...]
    abbreviations: tuple[str, ...]
    regions: Mapping[str, tuple[str, ...]]
    scanners: Mapping[str, tuple[str, ...]]
    findings: Mapping[str, FindingWords]
    alike: tuple[frozenset[str], ...] = ()
    apart: tuple[frozenset[str], ...] = ()

    def phrases(self, region: str) -> tuple[str, ...]:
        """Return the phrases for this kind of picture and a region, the canonical one first."""
        return self.regions[region] if region else self.words + self.abbreviations

    def beside(self, names: Collection[str], region: str) -> list[FindingWords]:
        """Return the findings that may be put into a picture beside others.

        Args:
            names: Findings in the picture.
            region: Region in view; "" if none is named, which leaves those that share one with the others.
        """
        regions = [{region}] if region else [set(own) for name in names if (own := self.findings[name].regions)]
        common = set.intersection(*regions) if regions else None
        return [
            words
            for words in self.findings.values()
            if not any(words.name in group and group.intersection(names) for group in self.apart)
            if common is None or not words.regions or common.intersection(words.regions)
        ]

    def are_alike(self, name: str, other: str) -> bool:
        """Return True if one finding may be taken for another, or is the same."""
        return name == other or any(name in group and other in group for group in self.alike)


@dataclass(frozen=True, kw_only=True)
class OrderVocabulary:
    """All words of orders.

    Attributes:
        modalities: Kinds of pictures by name.
        sides: Phrases by side.
        paris: Phrases by Paris type.
        size_words: Smallest and largest diameter in millimetres by word.
        sexes: Words by sex.
        styles: Words by style.
        numbers: Numbers from zero.
        lists: The other lists of ``words.yaml``.
    """

    modalities: Mapping[str, ModalityWords]
    sides: Mapping[str, tuple[str, ...]]
    paris: Mapping[str, tuple[str, ...]]
    size_words: Mapping[str, tuple[float, float]]
    sexes: Mapping[str, tuple[str, ...]]
    styles: Mapping[str, tuple[str, ...]]
    numbers: tuple[str, ...]
    lists: Mapping[str, tuple[str, ...]]

    @cached_property
    def findings(self) -> Mapping[str, FindingWords]:
        """Findings of all modalities by name."""
        return {name: words for modality in self.modalities.values() for name, words in modality.findings.items()}


@cache
def vocabulary() -> OrderVocabulary:
    """Return the vocabulary."""
    data = read_yaml(WORDS)
    lists = ("colours", "single", "several", "articles", "negations", "doubts", "normal", "ages", "fillers", "breaks")
    return OrderVocabulary(
        modalities={name: _modality(name, fields) for name, fields in data["modalities"].items()},
        sides=_phrases(data["sides"]),
        paris=_phrases(data["paris"]),
        size_words={word: (float(low), float(high)) for word, (low, high) in data["size_words"].items()},
        sexes=_phrases(data["sexes"]),
        styles=_phrases(data["styles"]),
        numbers=tuple(data["numbers"]),
        lists={name: tuple(data[name]) for name in lists},
    )


def _phrases(table: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    return {name: tuple(phrases) for name, phrases in table.items()}


def _modality(name: str, fields: Mapping[str, Any]) -> ModalityWords:
    return ModalityWords(
        name=name,
        words=tuple(fields["words"]),
        abbreviations=tuple(fields["abbreviations"]),
        regions=_phrases(fields["regions"]),
        scanners=_phrases(fields["scanners"]),
        findings={finding: _finding(finding, dict(words)) for finding, words in fields["findings"].items()},
        alike=tuple(map(frozenset, fields.get("alike", ()))),
        apart=tuple(map(frozenset, fields.get("apart", ()))),
    )


def _finding(name: str, fields: dict[str, Any]) -> FindingWords:
    bounds = fields.pop("millimetres", None)
    return FindingWords(
        name=name,
        words=tuple(fields.pop("words")),
        abbreviations=tuple(fields.pop("abbreviations", ())),
        regions=tuple(fields.pop("regions", ())),
        millimetres=None if bounds is None else (float(bounds[0]), float(bounds[1])),
        **fields,
    )
