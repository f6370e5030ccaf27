"""Captions from the user's file, parsed into pools before a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import ClassVar, Literal, TypeVar

from pydantic import Field, field_validator

from medtest.core.errors import MedtestError, Mistake, UserMistakes
from medtest.core.plugins import TRUSTED, PartSettings
from medtest.core.scenes import Pool
from medtest.language.captions.parsers import CaptionParser, NoParser, parser_of
from medtest.language.captions.reading.reader import read_prompt
from medtest.language.captions.reading.result import REFUSING, PromptReading
from medtest.language.captions.reading.reviewed import ENDING, Review, read_reviews, reviewed_file, under_review
from medtest.language.captions.vocabulary import vg150
from medtest.language.questions.question_files import short
from medtest.seeds.base import SeedProblem
from medtest.seeds.captions.base import Candidate, Prompts, PromptSeedSettings, PromptSource
from medtest.seeds.captions.classed import Allowed, in_classes
from medtest.seeds.captions.files import CaptionRow, read
from medtest.seeds.folders.files import data_root, distinct_ids, table_below
from medtest.seeds.folders.layout import natural_key, shown
from medtest.seeds.folders.settings import inside

SUFFIXES = (".json", ".jsonl", ".csv", ".tsv", ".txt")
ASKED = "language_model"
"""Name of the parser that calls a language model over an API."""
_Read = TypeVar("_Read")
MOST_SHOWN = 10
"""Most rows of one file that a report names."""


class FiledSettings(PromptSeedSettings):
    """Settings shared by sources that read prompts from a file.

    Attributes:
        file: The file below ``data=``; "" takes the only one there.
        on_bad_seed: ``stop`` with one report, or ``skip`` bad rows and count them.
    """

    file: str = ""
    on_bad_seed: Literal["stop", "skip"] = "stop"

    _below = field_validator("file")(inside)


class CaptionSettings(FiledSettings):
    """Settings of :class:`Captions`.

    Attributes:
        parser: Name of the parser that reads pools: ``controlled``, ``spacy``, ``stanza``, ``language_model``.
        parser_options: Its settings (a pipeline's name or folder, a server's address); trusted suites only.
        words: ``own``: captions keep their words, and follow-ups differ in the changed phrase alone; captions that are
            not understood are left out and counted by reason. ``template``: as for other sources.
        caption: Captions taken of each image: the ``first`` with at least ``min_triples`` relations that can be used,
            ``longest``, ``relations`` (the one with most), or ``all``.
        classes: Entities that pools keep: ``any``; ``known``: those with a class in medtest; ``vg150``: those
            of Visual Genome's 150. Relations of dropped entities are dropped.
    """

    parser: str = "controlled"
    parser_options: dict[str, str | int | bool | None] = Field(default={}, json_schema_extra=TRUSTED)
    caption: Literal["first", "longest", "relations", "all"] = "first"
    classes: Allowed = "any"
    words: Literal["template", "own"] = "own"
    min_triples: int = Field(default=2, ge=0, le=20)


class FiledPrompts(PromptSource):
    """Base class of sources whose prompts are in one file below the user's folder.

    Attributes:
        holds: Description of the folder's content, for messages.
        suffixes: Suffixes of files that may hold the prompts.
    """

    needs_root: ClassVar[bool] = True
    holds: ClassVar[str] = "your file of prompts"
    suffixes: ClassVar[tuple[str, ...]] = SUFFIXES

    settings: FiledSettings

    def _file(self) -> Path:
        """Return the file that the suite names, or the only candidate below the root.

        Raises:
            UserMistakes: The file is missing, or there are no or several candidates.
        """
        root, key = data_root(self.root, self.holds), f"seeds.{self.dataset}.file"
        if self.settings.file:
            return table_below(root, self.settings.file, key)
        files = [path for path in root.iterdir() if path.suffix.lower() in self.suffixes and path.is_file()]
        names = sorted(path.name for path in files if not path.name.endswith(ENDING))
        if len(names) == 1:
            return table_below(root, names[0], key)
        some = ", ".join(shown(PurePosixPath(name)) for name in names[:6]) + (" and others" if len(names) > 6 else "")
        raise Mistake(
            where=shown(root.name or "."),
            key=key,
            found=f"{len(names)} files that may be it: {some}" if names else "no file of prompts",
            allowed=f"the name of one of them ({', '.join(self.suffixes)})",
            fix=f"seeds.{self.dataset}.file={names[0] if names else 'NAME'}",
        ).as_error()

    def refusal(self, problems: Sequence[SeedProblem]) -> UserMistakes:
        """Return a single error report on unusable rows."""
        where = problems[0].file
        more = f", the first {MOST_SHOWN} shown" if len(problems) > MOST_SHOWN else ""
        heading = f"{len(problems):,} rows of {where} cannot be used{more} (on_bad_seed: skip leaves them out)"
        if len(problems) == 1:
            heading = f"1 row of {where} cannot be used (on_bad_seed: skip leaves it out)"
        return UserMistakes([problem.as_mistake() for problem in problems[:MOST_SHOWN]], heading=heading)

    def _keep_place(self, seed_id: str, row: CaptionRow, where: str, listing: Prompts) -> None:
        """Record an unusable row: in its place, or among those left out."""
        if self.settings.on_bad_seed == "skip":
            listing.problems.append(SeedProblem(file=f"{where}, {row.place}", reason=row.wrong))
            return
        wrong = SeedProblem(file=where, key=row.place, reason=row.wrong)
        listing.candidates.append(Candidate(seed_id=seed_id, text="", pool=Pool(), wrong=wrong))


class Captions(FiledPrompts):
    """Captions from a file; intervals resample images."""

    Settings: ClassVar[type[PartSettings]] = CaptionSettings
    holds: ClassVar[str] = "your file of captions"

    settings: CaptionSettings
    _reviews: Mapping[str, Review] = MappingProxyType({})

    def _look(self, listing: Prompts) -> None:
        path = self._file()
        where = shown(PurePosixPath(path.name))
        rows, bad = read(path, where)
        self._reviews = read_reviews(reviewed_file(path))
        reviewed = sum(row.text in self._reviews for row in rows)
        if reviewed:
            listing.notices.append(f"{reviewed:,} of {len(rows):,} prompts have a reviewed pool, which is used.")
        by_image: dict[str, list[CaptionRow]] = {}
        for row in rows:
            by_image.setdefault(_image_of(row), []).append(row)
        unread: list[CaptionRow] = []
        chosen = self._candidate_captions(by_image, unread)
        wrong: dict[str, list[CaptionRow]] = {}
        for broken in (*bad, *unread):
            wrong.setdefault(_image_of(broken), []).append(broken)
        skip = self.settings.on_bad_seed == "skip"
        images = sorted({**by_image, **({} if skip else wrong)}, key=natural_key)
        ids = dict(zip(images, distinct_ids(images), strict=True))
        for broken in (*bad, *unread) if skip else ():
            self._keep_place("", broken, where, listing)
        for image in images:
            if image in wrong and not skip:  # the broken caption may be the one to choose
                first, *others = wrong[image]
                self._keep_place(ids[image], first, where, listing)
                listing.loose += [SeedProblem(file=where, key=row.place, reason=row.wrong) for row in others]
                continue
            several = len(chosen[image]) > 1
            for number, caption in enumerate(chosen[image], 1):
                seed_id = f"{ids[image]}-{number}" if several else ids[image]
                listing.candidates.append(replace(caption, seed_id=seed_id, cluster=ids[image]))

    def _parser(self) -> CaptionParser:
        settings, key = self.settings, f"seeds.{self.dataset}.parser"
        options = settings.parser_options
        if settings.parser == ASKED and not options.get("folder"):
            raise Mistake(
                where="suite",
                key=key,
                found=settings.parser,
                allowed="with a folder that stores its answers, since every command lists the seeds again",
                fix=f"add seeds.{self.dataset}.parser_options.folder=FOLDER",
            ).as_error()
        try:
            return parser_of(settings.parser, **options)
        except NoParser as error:
            raise Mistake(where="suite", key=key, found=settings.parser, fix=str(error)).as_error() from error

    def _candidate_captions(
        self, by_image: Mapping[str, Sequence[CaptionRow]], unread: list[CaptionRow]
    ) -> dict[str, list[Candidate]]:
        """Return the candidate captions of each image, parsing as few as possible and recording failures.

        Each round parses one caption per image, because some parsers work in batches.
        """
        settings, parser = self.settings, self._parser()
        waiting = {image: list(rows) for image, rows in by_image.items()}
        if settings.caption == "longest":
            waiting = {image: [max(rows, key=lambda row: len(row.text))] for image, rows in waiting.items()}
        chosen: dict[str, list[Candidate]] = {image: [] for image in waiting}
        while waiting:
            now = {image: rows.pop(0) for image, rows in waiting.items()}
            for image, caption in zip(now, self._read([*now.values()], parser, unread), strict=True):
                if caption is None:
                    continue
                chosen[image].append(caption)
                if settings.caption == "first" and self._is_suitable(caption):
                    chosen[image] = [caption]
                    waiting[image].clear()
            waiting = {image: rows for image, rows in waiting.items() if rows}
        if settings.caption == "all":
            return chosen
        return {image: [max(captions, key=_usefulness)] if captions else [] for image, captions in chosen.items()}

    def _is_suitable(self, caption: Candidate) -> bool:
        if caption.refusal or len(caption.pool.triples) < self.settings.min_triples:
            return False
        return self.settings.words == "own" or self._by_templates(caption.pool) is not None

    def _read(
        self, rows: Sequence[CaptionRow], parser: CaptionParser, unread: list[CaptionRow]
    ) -> Iterator[Candidate | None]:
        """Yield captions, not yet named, with their content in terms of classes; None if the parser failed."""
        vocabulary, allowed = vg150(), self.settings.classes
        if self.settings.words == "own":
            for row in rows:
                reading = self._reading(row, parser, unread)
                if reading is None:
                    yield None
                elif reading.is_understood:
                    content = in_classes(reading.content, allowed, vocabulary)
                    yield Candidate(seed_id="", text=row.text, pool=content, own=True)
                else:
                    refusal = next(reason for reason in reading.reasons if reason in REFUSING)
                    yield Candidate(seed_id="", text=row.text, pool=Pool(), own=True, refusal=refusal)
            return
        try:
            pools: list[Pool | None] = [*parser.parse_all(row.text for row in rows)]
        except MedtestError:
            raise
        except Exception:  # noqa: BLE001 - an external parser may fail on any caption; find which
            pools = [self._tried(row, parser.parse, unread) for row in rows]
        for row, parsed in zip(rows, pools, strict=True):
            review = self._reviews.get(row.text)
            pool = parsed if review is None else review.reading.pool
            said = None if pool is None else in_classes(pool, allowed, vocabulary)
            yield Candidate(seed_id="", text=row.text, pool=said) if said is not None else None

    def _reading(self, row: CaptionRow, parser: CaptionParser, unread: list[CaptionRow]) -> PromptReading | None:
        own_rules = self.settings.parser == CaptionSettings().parser
        reading = self._tried(row, lambda text: read_prompt(text, None if own_rules else parser), unread)
        return None if reading is None else under_review(reading, self._reviews)

    def _tried(self, row: CaptionRow, parse: Callable[[str], _Read], unread: list[CaptionRow]) -> _Read | None:
        try:
            return parse(row.text)
        except MedtestError:
            raise
        except Exception as error:  # noqa: BLE001 - as above
            why = f"the parser {self.settings.parser} broke: {type(error).__name__}: {error}"
            unread.append(replace(row, place=short(row.text), wrong=why))
            return None


def _image_of(row: CaptionRow) -> str:
    """Return the image of a row; its position in the file if it names none."""
    return row.image or f"line-{row.number:06d}"


def _usefulness(caption: Candidate) -> tuple[bool, int]:
    return not caption.refusal, len(caption.pool.triples)
