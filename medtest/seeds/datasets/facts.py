"""Published facts on data sets, read from ``facts.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).parent / "facts.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What was published of a data set.

    Attributes:
        key: Its id in tables and suites.
        title: Its name.
        images: How many images it has.
        sizes: Their sizes, ``width x height`` in pixels; empty where they vary.
        other_sizes: Sizes of copies that go round.
        size_note: What is to know of those.
        smallest: Smallest size, where sizes vary.
        largest: Largest size, where sizes vary.
        aliases: Names of folders and archives that hold it.
        signs: Names of files that lie beside its folders and beside no other's.
        copies: Counts of known parts and other editions, with their names.
        part_of: The data set it is a part of, or "".
        stands_for: The data set whose images it has, or "".
        source: Where it is to be had.
        paper: Its paper.
        licence: Its terms, in a word.
        holds: What kind of expected answer it has.
        classes: Names of its classes in order, where its files do not say them.
        class_counts: How many images of each class it has, by the name that its files write.
        mapping: Class of our own suites by the name that its files write, "" for none; empty where it needs none.
        pairs: How many pairs of question and answer it has; 0 where it has none or the number is not published.
        unconfirmed: Which of these facts were not seen at a second source.
    """

    key: str
    title: str
    images: int
    sizes: tuple[str, ...] = ()
    other_sizes: tuple[str, ...] = ()
    size_note: str = ""
    smallest: str = ""
    largest: str = ""
    aliases: tuple[str, ...] = ()
    signs: tuple[str, ...] = ()
    copies: tuple[tuple[int, str], ...] = ()
    part_of: str = ""
    stands_for: str = ""
    source: str = ""
    paper: str = ""
    licence: str = ""
    holds: str = "masks"
    classes: tuple[str, ...] = ()
    class_counts: tuple[tuple[str, int], ...] = ()
    mapping: Mapping[str, str] = field(default_factory=dict, hash=False)
    pairs: int = 0
    unconfirmed: str = ""

    def copy_named(self, count: int) -> str:
        """Return the name of the part or edition that has so many images, or ""."""
        return dict(self.copies).get(count, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Which files of a mixed folder belong to a data set.

    Attributes:
        dataset: Its id.
        part: Which part of it they are.
        names: Pattern of their names, lower case and without suffix.
    """

    dataset: str
    part: str
    names: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixture:
    """A folder that holds several sets.

    Attributes:
        folder: Its name.
        title: What it is.
        images: How many images it has.
        splits: What belongs to which set.
    """

    folder: str
    title: str
    images: int
    splits: tuple[Split, ...]


@cache
def _content() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return content


@cache
def known() -> dict[str, Facts]:
    """Return every data set by id."""
    found = {}
    for key, values in _content()["datasets"].items():
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
        }
        given["copies"] = tuple((int(copy["images"]), str(copy["name"])) for copy in values.get("copies", ()))
        given["class_counts"] = tuple((str(n), int(c)) for n, c in values.get("class_counts", {}).items())
        found[key] = Facts(key=key, **given)
    return found


@cache
def mixtures() -> tuple[Mixture, ...]:
    """Return the folders that hold several sets."""
    return tuple(
        Mixture(
            folder=entry["folder"],
            title=entry["title"],
            images=entry["images"],
            splits=tuple(Split(**split) for split in entry["splits"]),
        )
        for entry in _content()["mixtures"]
    )


@cache
def suites() -> dict[str, tuple[str, ...]]:
    """Return the data sets that a suite's tables need, by its name."""
    return {name: tuple(sets) for name, sets in _content()["suites"].items()}


def plain(name: str) -> str:
    """Return a name without case and punctuation, so that ``CVC-ClinicDB`` and ``cvc_clinicdb`` meet."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


@cache
def by_alias(holds: str = "masks") -> dict[str, str]:
    """Return ids of the data sets that hold masks, labels or questions, by the plain form of their names."""
    fitting = [facts for facts in known().values() if facts.holds == holds]
    return {plain(alias): facts.key for facts in fitting for alias in (*facts.aliases, facts.key)}
