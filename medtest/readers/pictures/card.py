"""A reader's card: how often it recognizes present things and reports absent ones, counted on labelled pictures.

Sensitivity is the share of pictures with an object in which the reader sees it; specificity is the share of pictures
without it in which the reader does not see it. If the two add up to less than 1.5 for a name (Youden's J below one
half), the result is no better than guessing a quarter of the time: the reader *cannot tell* that name, and it is
removed from what the reader tells (:class:`medtest.core.scenes.Tells`), for presence and absence. The same applies to a
name for which the card has no pictures with it, or none without it, because there is no evidence that the reader can
tell it. If the card does not measure a kind at all (a card of photographs with boxes has no attributes), nothing is
removed.

Sides of findings have rows of their own, by finding: of the pictures that show it on one side and in which the reader
sees it on one side, ``present`` are those with the patient's left and ``seen`` those that are read as left.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

from medtest.core.errors import MedtestError
from medtest.core.scenes import SIDES, NamedTriple, Scene, Tells, dumped

Kind: TypeAlias = Literal["class", "predicate", "attribute", "side"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
LEAST_SUM: Final = 1.5
"""Minimum sum of sensitivity and specificity of a name that a reader can tell."""
SUFFIX: Final = ".card.json"
LEFT, RIGHT, BILATERAL = SIDES
_FORMAT: Final = 1
_MOST_BYTES: Final = 8 << 20
_MOST_ROWS: Final = 20_000


class BadCard(MedtestError):
    """The file is not a reader's card."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardRow:
    """A card's counts for one name.

    Attributes:
        kind: ``class``, ``predicate``, ``attribute`` or ``side``.
        name: The name as used in pools.
        present: Pictures with it (for a predicate: pairs of classes of a picture that have the relation; for an
            attribute: classes of a picture that have it; for a side: pictures with it on the left alone).
        seen: Number of these in which the reader sees it.
        absent: Pictures (pairs, classes) without it.
        spurious: Number of these in which the reader sees it nevertheless.
    """

    kind: Kind
    name: str
    present: int
    seen: int
    absent: int
    spurious: int

    def __post_init__(self) -> None:
        if self.kind not in KINDS or not (0 <= self.seen <= self.present and 0 <= self.spurious <= self.absent):
            raise ValueError(f"no row of a card: {self.kind} {self.name!r} {self.counts}")

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """``present``, ``seen``, ``absent``, ``spurious``."""
        return self.present, self.seen, self.absent, self.spurious

    @property
    def sensitivity(self) -> float | None:
        """Share of present ones that were seen, 0 to 1; None if there are none."""
        return self.seen / self.present if self.present else None

    @property
    def specificity(self) -> float | None:
        """Share of absent ones that were not seen, 0 to 1; None if there are none."""
        return 1.0 - self.spurious / self.absent if self.absent else None

    @property
    def reliable(self) -> bool:
        """Whether the reader can tell it: both values are measured and add up to at least :data:`LEAST_SUM`."""
        if not self.present or not self.absent:
            return False
        # in whole numbers, so that 0.9 + 0.6 does not fail because of rounding
        return 2 * (self.seen * self.absent - self.spurious * self.present) >= self.present * self.absent


@dataclass(frozen=True, kw_only=True)
class Card:
    """Sensitivity and specificity of a reader by name.

    Attributes:
        rows: Ordered by kind and name, without duplicates.
        pictures: Number of labelled pictures.
        data: Description of the pictures ("60 pictures of photos/annotations.json", "1,000 drawn scenes, seed 7").
        reader: Hash of the reader's fingerprint without its card; "" if unknown.
    """

    rows: tuple[CardRow, ...]
    pictures: int = 0
    data: str = ""
    reader: str = ""

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the content, in hexadecimal."""
        return hashlib.sha256(dumped(self.as_json()).encode()).hexdigest()

    @cached_property
    def _by_name(self) -> Mapping[tuple[str, str], CardRow]:
        return {(row.kind, row.name): row for row in self.rows}

    def row(self, kind: Kind, name: str) -> CardRow | None:
        """Return the row of a name, or None."""
        return self._by_name.get((kind, name))

    def of_kind(self, kind: Kind) -> tuple[CardRow, ...]:
        """Return the rows of a kind; empty if that kind is not measured."""
        return tuple(row for row in self.rows if row.kind == kind)

    def restricted(self, tells: Tells) -> Tells:
        """Remove the names that the reader cannot tell according to the card.

        Args:
            tells: What it tells without a card.
        """
        sided = self.of_kind("side")
        reliable_sides = {row.name for row in sided if row.reliable}
        unsided = {row.name for row in (*self.of_kind("class"), *sided)} - reliable_sides if sided else set()
        sets: dict[Kind, frozenset[str] | None] = {
            "class": tells.classes,
            "predicate": tells.predicates,
            "attribute": tells.attributes,
        }
        restricted_sets = {}
        for kind, before in sets.items():
            rows = self.of_kind(kind)
            reliable_names = frozenset(row.name for row in rows if row.reliable)
            restricted_sets[kind] = (
                before if not rows else reliable_names if before is None else before & reliable_names
            )
        return Tells(
            classes=restricted_sets["class"],
            predicates=restricted_sets["predicate"],
            attributes=restricted_sets["attribute"],
            counts=tells.counts,
            unsided=tells.unsided | unsided,
        )

    def as_json(self) -> dict[str, Any]:
        """Return the card as JSON values."""
        return {
            "card": _FORMAT,
            "reader": self.reader,
            "data": self.data,
            "pictures": self.pictures,
            "columns": ["kind", "name", "present", "seen", "absent", "spurious"],
            "rows": [[row.kind, row.name, *row.counts] for row in self.rows],
        }

    @classmethod
    def of_json(cls, value: Any) -> Card:
        """Return the card from the result of :meth:`as_json`.

        Raises:
            ValueError: The value is not a card.
        """
        try:
            if value["card"] != _FORMAT or len(value["rows"]) > _MOST_ROWS:
                raise ValueError(f"format {value['card']!r} with {len(value['rows'])} rows")
            rows = [
                CardRow(kind=kind, name=str(name), present=int(a), seen=int(b), absent=int(c), spurious=int(d))
                for kind, name, a, b, c, d in value["rows"]
            ]
            if len({(row.kind, row.name) for row in rows}) < len(rows):
                raise ValueError("a name twice")
            labels = {"data": str(value["data"]), "reader": str(value["reader"])}
            return cls(rows=tuple(rows), pictures=int(value["pictures"]), **labels)
        except (TypeError, KeyError, ValueError) as error:
            raise ValueError(f"no card of a reader ({error})") from None

    def write(self, path: Path) -> None:
        """Write the card as a JSON file with one row per line.

        Raises:
            MedtestError: The file cannot be written.
        """
        value = self.as_json()
        rows = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in value.pop("rows"))
        head = json.dumps(value, ensure_ascii=False, indent=1).rstrip("\n}")
        try:
            path.write_text(f'{head},\n "rows": [\n  {rows}\n ]\n}}\n', encoding="utf-8")
        except OSError as error:
            raise MedtestError(f"{path.name}: the card cannot be written: {error.strerror}") from error

    @classmethod
    def read(cls, path: Path) -> Card:
        """Return the card in a file.

        Raises:
            BadCard: The file is missing or does not contain a card.
        """
        try:
            with path.open("rb") as file:
                content = file.read(_MOST_BYTES + 1)
            if len(content) > _MOST_BYTES:
                raise ValueError("the file is larger than any card")
            return cls.of_json(json.loads(content))
        except (OSError, ValueError, RecursionError) as error:
            words = (error.strerror or "") if isinstance(error, OSError) else str(error)
            raise BadCard(f"{path.name}: {words}") from None


@dataclass
class CardCounts:
    """Counts for a card, picture by picture.

    Args:
        classes: Classes covered by the labels: present or absent in every picture.
        predicates: Predicates covered by the labels; empty if there are no relations.
        attributes: Attributes covered by the labels.
    """

    classes: frozenset[str]
    predicates: frozenset[str] = frozenset()
    attributes: frozenset[str] = frozenset()
    pictures: int = 0
    _counts: Counter[tuple[Kind, str, tuple[str, ...], int]] = field(default_factory=Counter)

    def add(
        self,
        truth: Scene,
        detected: Scene,
        tells: Tells,
        *,
        doubtful: Iterable[str] = (),
        asked_relations: Collection[NamedTriple] | None = None,
        asked_attributes: Collection[tuple[str, str]] | None = None,
    ) -> None:
        """Count a picture.

        Predicates are counted over ordered pairs of different classes that are both present, end to end: a relation is
        missed if one of its ends is missed. Attributes are counted over classes that are present.

        Args:
            truth: What the picture shows.
            detected: What the reader sees.
            tells: What the reader tells about such pictures; other names get no rows.
            doubtful: Classes for which the labels claim neither presence nor absence, such as objects too small to
                count; they are left out.
            asked_relations: Relations the reader was asked about; None for a reader that looks for all.
            asked_attributes: Pairs of class and attribute it was asked about; None as above.
        """
        self.pictures += 1
        present, seen_names, left_out = truth.names(), detected.names(), set(doubtful)
        for name in self.classes - left_out:
            if tells.names(name):
                self._add("class", name, (), name in present, name in seen_names)
        named = sorted(present.keys() - left_out)
        self._relations(named, set(truth.named()), set(detected.named()), tells, asked_relations)
        for name in named:
            true, read = (_sides_of(scene, name) for scene in (truth, detected))
            if len(true) == len(read) == 1 and tells.names(name) and tells.describes(LEFT, name):
                self._add("side", name, (), true == {LEFT}, read == {LEFT})
        has, sees = _attribute_pairs(truth), _attribute_pairs(detected)
        for attribute in self.attributes:
            if tells.describes(attribute):
                for pair in ((name, attribute) for name in named if tells.names(name)):
                    if asked_attributes is None or pair in asked_attributes:
                        self._add("attribute", attribute, pair[:1], pair in has, pair in sees)

    def _relations(
        self,
        named: Sequence[str],
        true: set[NamedTriple],
        seen_triples: set[NamedTriple],
        tells: Tells,
        asked_triples: Collection[NamedTriple] | None,
    ) -> None:
        for subject in named:
            for other in named:
                for predicate in self.predicates if subject != other else ():
                    triple = (subject, predicate, other)
                    if tells.relates(triple) and (asked_triples is None or triple in asked_triples):
                        self._add("predicate", predicate, (subject, other), triple in true, triple in seen_triples)

    def _add(self, kind: Kind, name: str, ends: tuple[str, ...], is_present: bool, is_seen: bool) -> None:
        self._counts[kind, name, ends, 0 if is_present else 2] += 1
        self._counts[kind, name, ends, 1 if is_present else 3] += is_seen

    def _rows(self, kind: Kind, ends: frozenset[str]) -> Iterator[CardRow]:
        """Yield the rows of a kind, counted over the given classes."""
        total: Counter[tuple[str, int]] = Counter()
        for (other, name, its, place), count in self._counts.items():
            if other == kind and ends.issuperset(its):
                total[name, place] += count
        for name in sorted({name for name, _ in total}):
            present, seen_count, absent, spurious = (total[name, place] for place in range(4))
            yield CardRow(kind=kind, name=name, present=present, seen=seen_count, absent=absent, spurious=spurious)

    def card(self, *, data: str = "", reader: str = "") -> Card:
        """Return the card of the counts.

        Predicates and attributes are counted for classes that the reader can tell, because others are never checked.

        Args:
            data: Description of the pictures.
            reader: Hash of the reader's fingerprint.
        """
        classes = list(self._rows("class", frozenset()))
        reliable_classes = frozenset(row.name for row in classes if row.reliable)
        rest = [row for kind in KINDS[1:] for row in self._rows(kind, reliable_classes)]
        return Card(rows=(*classes, *rest), pictures=self.pictures, data=data, reader=reader)


def _attribute_pairs(scene: Scene) -> set[tuple[str, str]]:
    return {(entity.name, attribute) for entity in scene.entities for attribute in entity.attributes}


def _sides_of(scene: Scene, name: str) -> frozenset[str]:
    """Return the patient's sides on which a scene has a class."""
    values = {attribute for entity in scene.entities if entity.name == name for attribute in entity.attributes}
    return frozenset((LEFT, RIGHT)) if BILATERAL in values else frozenset(values & {LEFT, RIGHT})
