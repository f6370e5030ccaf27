"""Captions that a user has, one for each image, parsed into pools before a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import ClassVar, Literal

from pydantic import Field, field_validator

from medtest.captions.parsers import CaptionParser, parser_of
from medtest.captions.vocabulary import vg150
from medtest.errors import Mistake, UserMistakes
from medtest.plugins import PartSettings
from medtest.scenes import Pool
from medtest.seeds.base import SeedProblem
from medtest.seeds.captions.base import Candidate, Prompts, PromptSettings, PromptSource
from medtest.seeds.captions.classed import Allowed, in_classes
from medtest.seeds.captions.files import BadRow, CaptionRow, read, short
from medtest.seeds.folders.files import data_root, distinct_ids, table_below
from medtest.seeds.folders.layout import natural_key, shown
from medtest.seeds.folders.settings import inside

SUFFIXES = (".json", ".jsonl", ".csv", ".tsv", ".txt")
MOST_SHOWN = 10
"""Rows of one file that a report names."""


class FiledSettings(PromptSettings):
    """What a suite may set of prompts from a file.

    Attributes:
        file: The file below ``data=``; "" finds the only one there is.
        on_bad_seed: ``stop`` with one report, or ``skip`` bad rows and count them.
    """

    file: str = ""
    on_bad_seed: Literal["stop", "skip"] = "stop"

    _below = field_validator("file")(inside)


class CaptionSettings(FiledSettings):
    """What a suite may set.

    Attributes:
        parser: Name of the parser that reads pools.
        caption: Which of an image's captions: ``first`` with as many relations as ``min_triples`` asks and a pool that
            templates say, ``longest``, ``relations`` (that with most), or ``all``.
        classes: Which entities pools keep: ``any``; ``known``: those of which medtest knows a class; ``vg150``: those
            of Visual Genome's 150. Relations of others go with them.
    """

    parser: str = "controlled"
    caption: Literal["first", "longest", "relations", "all"] = "first"
    classes: Allowed = "any"
    min_triples: int = Field(default=2, ge=0, le=20)


class FiledPrompts(PromptSource):
    """A source whose prompts lie in one file below the user's folder.

    Attributes:
        holds: What the folder holds, in words.
        suffixes: How files are called among which the only one is found.
    """

    needs_root: ClassVar[bool] = True
    holds: ClassVar[str] = "your file of prompts"
    suffixes: ClassVar[tuple[str, ...]] = SUFFIXES

    settings: FiledSettings

    def _file(self) -> Path:
        """Return the file that the suite names, or the only one there is.

        Raises:
            UserMistakes: It is not there, leads out of the folder, or there are none or several.
        """
        root, key = data_root(self.root, self.holds), f"seeds.{self.dataset}.file"
        if self.settings.file:
            return table_below(root, self.settings.file, key)
        found = sorted(path.name for path in root.iterdir() if path.suffix.lower() in self.suffixes and path.is_file())
        if len(found) == 1:
            return table_below(root, found[0], key)
        some = ", ".join(shown(PurePosixPath(name)) for name in found[:6]) + (" and others" if len(found) > 6 else "")
        raise Mistake(
            where=shown(root.name or "."),
            key=key,
            found=f"{len(found)} files that may be it: {some}" if found else "no file of prompts",
            allowed=f"the name of one of them ({', '.join(self.suffixes)})",
            fix=f"seeds.{self.dataset}.file={found[0] if found else 'NAME'}",
        ).as_error()

    def _bad(self, rows: Sequence[BadRow], where: str, found: Prompts) -> None:
        """Write down rows that cannot be used.

        Raises:
            UserMistakes: There are some, and ``on_bad_seed`` is ``stop``.
        """
        if rows and self.settings.on_bad_seed == "stop":
            more = f", the first {MOST_SHOWN} shown" if len(rows) > MOST_SHOWN else ""
            heading = f"{len(rows):,} rows of {where} cannot be used{more} (on_bad_seed: skip leaves them out)"
            if len(rows) == 1:
                heading = f"1 row of {where} cannot be used (on_bad_seed: skip leaves it out)"
            raise UserMistakes(
                [Mistake(where=where, key=one.place, found=one.reason) for one in rows[:MOST_SHOWN]], heading=heading
            )
        found.problems += [SeedProblem(file=f"{where}, {one.place}", reason=one.reason) for one in rows]


class Captions(FiledPrompts):
    """Captions from a file; intervals resample images."""

    Settings: ClassVar[type[PartSettings]] = CaptionSettings
    holds: ClassVar[str] = "your file of captions"

    settings: CaptionSettings

    def _look(self, found: Prompts) -> None:
        path = self._file()
        where = shown(PurePosixPath(path.name))
        rows, bad = read(path, where)
        self._bad(bad, where, found)
        by_image: dict[str, list[CaptionRow]] = {}
        for number, one in enumerate(rows, 1):
            by_image.setdefault(one.image or f"line-{number:06d}", []).append(one)
        images = sorted(by_image, key=natural_key)
        ids = dict(zip(images, distinct_ids(images), strict=True))
        parser, unread = self._parser(), list[BadRow]()
        for image in images:
            chosen = list(self._chosen(by_image[image], parser, unread))
            several = len(chosen) > 1
            for number, (row, pool) in enumerate(chosen, 1):
                seed_id = f"{ids[image]}-{number}" if several else ids[image]
                found.candidates.append(Candidate(seed_id=seed_id, text=row.text, pool=pool, cluster=ids[image]))
        self._bad(unread, where, found)

    def _parser(self) -> CaptionParser:
        try:
            return parser_of(self.settings.parser)
        except KeyError as error:
            raise Mistake(
                where="suite",
                key=f"seeds.{self.dataset}.parser",
                found=self.settings.parser,
                allowed=str(error.args[0]),
            ).as_error() from error

    def _chosen(
        self, rows: Sequence[CaptionRow], parser: CaptionParser, unread: list[BadRow]
    ) -> Iterable[tuple[CaptionRow, Pool]]:
        """Return the captions of an image that may be asked; as few are parsed as it takes, and what broke is noted."""
        settings = self.settings
        if settings.caption == "longest":
            rows = [max(rows, key=lambda row: len(row.text))]
        parsed = self._parsed(rows, parser, unread)
        if settings.caption == "first":
            best = None
            for row, pool in parsed:
                if best is None or len(pool.triples) > len(best[1].triples):
                    best = (row, pool)
                if len(pool.triples) >= settings.min_triples and self._by_templates(pool):
                    return [(row, pool)]
            return [best] if best else []
        if settings.caption == "relations":
            most = max(parsed, key=lambda one: len(one[1].triples), default=None)
            return [most] if most else []
        return parsed

    def _parsed(
        self, rows: Iterable[CaptionRow], parser: CaptionParser, unread: list[BadRow]
    ) -> Iterator[tuple[CaptionRow, Pool]]:
        for row in rows:
            try:
                yield row, in_classes(parser.parse(row.text), self.settings.classes, vg150())
            except Exception as error:  # noqa: BLE001 - a parser of others may break on a stranger's words
                why = f"the parser {self.settings.parser} broke: {type(error).__name__}: {error}"
                unread.append(BadRow(place=short(row.text), reason=why))
