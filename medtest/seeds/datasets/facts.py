"""Published facts on data sets, read from ``facts.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from medtest.core.files.paths import read_yaml

FILE = Path(__file__).parent / "facts.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Published facts of a data set.

    Attributes:
        key: Its id in tables and suites.
        title: Its name.
        images: Number of images.
        sizes: Their sizes, ``width x height`` in pixels; empty if they vary.
        other_sizes: Sizes of copies in circulation.
        size_note: Note on those copies.
        smallest: Smallest size, where sizes vary.
        largest: Largest size, where sizes vary.
        aliases: Names of folders and archives that hold it.
        signs: Names of files found only beside this data set's folders.
        copies: Counts of known parts and other editions, with their names.
        part_of: Id of the data set that contains it, or "".
        stands_for: Id of the data set whose images it has, or "".
        source: Where to download it.
        paper: Its paper.
        licence: Short name of its licence.
        holds: Kind of expected answer.
        classes: Names of its classes in order, if its files do not give them.
        class_counts: Number of images per class, by the name used in its files.
        mapping: Class of the shipped suites by the name used in its files, "" for none; empty if names agree.
        pairs: Number of question-answer pairs; 0 if it has none or the number is not published.
        unconfirmed: Facts not confirmed by a second source.
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
        """Return the name of the part or edition with this number of images, or ""."""
        return dict(self.copies).get(count, "")


@cache
def _content() -> dict[str, Any]:
    content: dict[str, Any] = read_yaml(FILE)
    return content


@cache
def known() -> dict[str, Facts]:
    """Return the facts of every known data set by id."""
    datasets = {}
    for key, values in _content()["datasets"].items():
        fields: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
        }
        fields["copies"] = tuple((int(copy["images"]), str(copy["name"])) for copy in values.get("copies", ()))
        fields["class_counts"] = tuple((str(n), int(c)) for n, c in values.get("class_counts", {}).items())
        datasets[key] = Facts(key=key, **fields)
    return datasets


def mixtures() -> list[dict[str, Any]]:
    """Return the known folders that hold several sets, as in the file.

    Each has its name as ``folder``, a ``title``, and ``splits``: the ``dataset`` and ``part`` of the files whose name,
    in lower case and without suffix, matches the pattern ``names``.
    """
    mixed: list[dict[str, Any]] = _content()["mixtures"]
    return mixed


@cache
def suites() -> dict[str, tuple[str, ...]]:
    """Return the data sets that each suite's tables need, by suite name."""
    return {name: tuple(sets) for name, sets in _content()["suites"].items()}


def plain(name: str) -> str:
    """Return a name without case and punctuation: ``CVC-ClinicDB`` and ``cvc_clinicdb`` become equal."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


@cache
def by_alias(holds: str = "masks") -> dict[str, str]:
    """Return the ids of data sets with masks, labels or questions, by the plain form of their names."""
    fitting = [facts for facts in known().values() if facts.holds == holds]
    return {plain(alias): facts.key for facts in fitting for alias in (*facts.aliases, facts.key)}
