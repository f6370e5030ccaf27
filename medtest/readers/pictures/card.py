"""A reader's card: how often it sees what is there, and says what is not, counted on labelled pictures.

Sensitivity is the share of pictures with a thing in which the reader sees it, specificity the share of those without it
in which it does not. A name where the two add up to less than 1.5 is no better told than by guessing a quarter of the
time (Youden's J below one half): the reader *cannot tell* it, and it leaves what the reader tells
(:class:`medtest.core.scenes.Tells`), for presence and for absence. So does a name of which the card has no pictures
with it, or none without it: nothing shows that it can be told. Of a kind that the card does not measure at all (a card
of photographs with boxes has no attributes) nothing is taken away.
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
from medtest.core.scenes import NamedTriple, Scene, Tells, dumped

Kind: TypeAlias = Literal["class", "predicate", "attribute"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
LEAST_SUM: Final = 1.5
"""Sensitivity and specificity of what a reader can tell add up to this at least."""
SUFFIX: Final = ".card.json"
_FORMAT: Final = 1
_MOST_BYTES: Final = 8 << 20
_MOST_ROWS: Final = 20_000


class BadCard(MedtestError):
    """A file is no card of a reader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardRow:
    """What a card says of one name.

    Attributes:
        kind: ``class``, ``predicate`` or ``attribute``.
        name: The name, as pools have it.
        present: Pictures with it (of a predicate: pairs of classes of a picture of which it holds; of an attribute:
            classes of a picture that have it).
        seen: Those of them in which the reader sees it.
        absent: Pictures (pairs, classes) without it.
        spurious: Those of them in which the reader sees it nevertheless.
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
        """Share seen of what is there, 0 to 1; None without any."""
        return self.seen / self.present if self.present else None

    @property
    def specificity(self) -> float | None:
        """Share not seen of what is not there, 0 to 1; None without any."""
        return 1.0 - self.spurious / self.absent if self.absent else None

    @property
    def told(self) -> bool:
        """Whether the reader can tell it: both are measured and add up to :data:`LEAST_SUM`."""
        if not self.present or not self.absent:
            return False
        # in whole numbers: 0.9 + 0.6 must not fail by rounding
        return 2 * (self.seen * self.absent - self.spurious * self.present) >= self.present * self.absent


@dataclass(frozen=True, kw_only=True)
class Card:
    """Sensitivity and specificity of a reader, name by name.

    Attributes:
        rows: In the order of kinds and names; each once.
        pictures: Labelled pictures that were looked at.
        data: Which, in words ("60 pictures of photos/annotations.json", "1,000 drawn scenes, seed 7").
        reader: Hash of the reader's fingerprint without its card; "" where nobody says.
    """

    rows: tuple[CardRow, ...]
    pictures: int = 0
    data: str = ""
    reader: str = ""

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of its content, in hexadecimal."""
        return hashlib.sha256(dumped(self.as_json()).encode()).hexdigest()

    @cached_property
    def _by_name(self) -> Mapping[tuple[str, str], CardRow]:
        return {(row.kind, row.name): row for row in self.rows}

    def row(self, kind: Kind, name: str) -> CardRow | None:
        """Return what it says of a name; None where it says nothing."""
        return self._by_name.get((kind, name))

    def of_kind(self, kind: Kind) -> tuple[CardRow, ...]:
        """Return its rows of a kind; empty where it does not measure that kind."""
        return tuple(row for row in self.rows if row.kind == kind)

    def restricted(self, tells: Tells) -> Tells:
        """Return what a reader tells less what the card shows that it cannot.

        Args:
            tells: What it could tell without a card.
        """
        sets: dict[Kind, frozenset[str] | None] = {
            "class": tells.classes,
            "predicate": tells.predicates,
            "attribute": tells.attributes,
        }
        kept = {}
        for kind, before in sets.items():
            rows = self.of_kind(kind)
            told = frozenset(row.name for row in rows if row.told)
            kept[kind] = before if not rows else told if before is None else before & told
        return Tells(
            classes=kept["class"], predicates=kept["predicate"], attributes=kept["attribute"], counts=tells.counts
        )

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
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
        """Return what :meth:`as_json` gave.

        Raises:
            ValueError: It is something else.
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
            said = {"data": str(value["data"]), "reader": str(value["reader"])}
            return cls(rows=tuple(rows), pictures=int(value["pictures"]), **said)
        except (TypeError, KeyError, ValueError) as error:
            raise ValueError(f"no card of a reader ({error})") from None

    def write(self, path: Path) -> None:
        """Write it as a file of JSON, one row a line.

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
        """Return the card of a file.

        Raises:
            BadCard: There is none, or it is something else.
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
        classes: Classes that the labels speak of: present or absent in every picture.
        predicates: Predicates that the labels speak of; empty where they say no relations.
        attributes: The same of attributes.
    """

    classes: frozenset[str]
    predicates: frozenset[str] = frozenset()
    attributes: frozenset[str] = frozenset()
    pictures: int = 0
    _counts: Counter[tuple[Kind, str, tuple[str, ...], int]] = field(default_factory=Counter)

    def add(
        self,
        truth: Scene,
        seen: Scene,
        tells: Tells,
        *,
        doubtful: Iterable[str] = (),
        asked: Collection[NamedTriple] | None = None,
        asked_attributes: Collection[tuple[str, str]] | None = None,
    ) -> None:
        """Count a picture.

        Predicates are counted over ordered pairs of different classes that are both there, from end to end: a relation
        is missed where one of its ends is. Attributes are counted over classes that are there.

        Args:
            truth: What it shows.
            seen: What the reader sees.
            tells: What the reader tells of such pictures; names beyond it have no rows.
            doubtful: Classes of which the labels say neither, as things too small to count; they are left out.
            asked: Relations about which the reader was asked; None for a reader that looks for all.
            asked_attributes: Classes and attributes of them about which it was asked; None likewise.
        """
        self.pictures += 1
        there, found, left_out = truth.names(), seen.names(), set(doubtful)
        for name in self.classes - left_out:
            if tells.names(name):
                self._add("class", name, (), name in there, name in found)
        named = sorted(there.keys() - left_out)
        self._relations(named, set(truth.named()), set(seen.named()), tells, asked)
        has, sees = _described(truth), _described(seen)
        for attribute in self.attributes:
            if tells.describes(attribute):
                for pair in ((one, attribute) for one in named if tells.names(one)):
                    if asked_attributes is None or pair in asked_attributes:
                        self._add("attribute", attribute, pair[:1], pair in has, pair in sees)

    def _relations(
        self,
        named: Sequence[str],
        true: set[NamedTriple],
        seen: set[NamedTriple],
        tells: Tells,
        asked: Collection[NamedTriple] | None,
    ) -> None:
        for one in named:
            for two in named:
                for predicate in self.predicates if one != two else ():
                    triple = (one, predicate, two)
                    if tells.relates(triple) and (asked is None or triple in asked):
                        self._add("predicate", predicate, (one, two), triple in true, triple in seen)

    def _add(self, kind: Kind, name: str, ends: tuple[str, ...], there: bool, seen: bool) -> None:
        self._counts[kind, name, ends, 0 if there else 2] += 1
        self._counts[kind, name, ends, 1 if there else 3] += seen

    def _rows(self, kind: Kind, ends: frozenset[str]) -> Iterator[CardRow]:
        """Yield the rows of a kind, counted over these classes."""
        total: Counter[tuple[str, int]] = Counter()
        for (other, name, its, place), count in self._counts.items():
            if other == kind and ends.issuperset(its):
                total[name, place] += count
        for name in sorted({name for name, _ in total}):
            present, seen, absent, spurious = (total[name, place] for place in range(4))
            yield CardRow(kind=kind, name=name, present=present, seen=seen, absent=absent, spurious=spurious)

    def card(self, *, data: str = "", reader: str = "") -> Card:
        """Return the card of what was counted.

        Predicates and attributes are those of classes that the reader can tell: of others nothing is judged anyway.

        Args:
            data: The pictures, in words.
            reader: Hash of the reader's fingerprint.
        """
        classes = list(self._rows("class", frozenset()))
        told = frozenset(row.name for row in classes if row.told)
        rest = [row for kind in KINDS[1:] for row in self._rows(kind, told)]
        return Card(rows=(*classes, *rest), pictures=self.pictures, data=data, reader=reader)


def _described(scene: Scene) -> set[tuple[str, str]]:
    return {(one.name, attribute) for one in scene.entities for attribute in one.attributes}
