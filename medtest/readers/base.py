"""Base classes for readers, which turn systems' answers into facts that oracles check and tables count.

A reader is a class that is found by name, like other parts: ``conf/readers/typed_answers.yaml`` names a built-in one,
an entry point in the group ``medtest.readers`` one from another package. A reader is independent of systems and
oracles. Its input is called content here: words, boxes, the SHA-256 of a picture, or any other value that can be hashed
and stored as JSON. The same content is read only once, no matter which system gave the answer or for which case.

A suite's own reader (:attr:`medtest.core.oracles.base.Oracle.reads`, or ``oracles.reader``) reads answers as they
arrive, and its facts are stored in the records. Other readers read the records after the run, for a view, without
calling a system.
"""

from __future__ import annotations

import hashlib
import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from medtest.api.redact import reason_of
from medtest.api.store.answers import KeptTexts
from medtest.core.cases import Json, Output, PreparedSeed
from medtest.core.errors import ExitCode, MedtestError, Mistake
from medtest.core.plugins import Part, PartSettings, digest_name, is_trusted
from medtest.core.recent import Recent
from medtest.readers.readings import FILE as FILE
from medtest.readers.readings import JUDGE as JUDGE
from medtest.readers.readings import READ_BY as READ_BY
from medtest.readers.readings import ReadingJob as ReadingJob
from medtest.readers.readings import Readings as Readings
from medtest.readers.readings import Texts as Texts
from medtest.readers.readings import Unreadable as Unreadable
from medtest.readers.readings import content_key as content_key
from medtest.systems.files import cached_sha256

Content = TypeVar("Content", bound=Hashable)
Facts = TypeVar("Facts")
_MOST_REASON = 300
_MOST_KEPT = 4096


class Reader(Part, ABC, Generic[Content, Facts]):
    """Reads one kind of answer.

    Attributes:
        task: Name of the task whose answers it reads.
        columns: Text columns of a record that hold its facts; the oracle lists them among its ``texts``.
        needs: Columns of a record that :meth:`recorded` looks at.
        second: Whether it reads only what a suite's own reader cannot; an oracle cannot rest on it.
        asks_words: Whether it asks about words of the case that records may not hold (``privacy: {prompts: none}``).
        of_oracle: Whether the oracle's ``revision`` covers the reader, so that digests do not mention it.
    """

    task: ClassVar[str]
    columns: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[tuple[str, ...]] = ()
    second: ClassVar[bool] = False
    asks_words: ClassVar[bool] = False
    of_oracle: ClassVar[bool] = False

    def __init__(self, name: str, settings: Any) -> None:
        self._name = name
        self.settings = settings

    @property
    def name(self) -> str:
        """Name in tables, notices and MLflow."""
        return self._name

    def check(self) -> list[Mistake]:
        """Return the user's mistakes that can be detected before a run starts, such as a missing file or key."""
        return []

    def weights(self) -> Sequence[Path]:
        """Return the files that determine the reader's facts; they are compared by content."""
        return ()

    def fingerprint(self) -> dict[str, Json]:
        """Return everything the facts depend on: name, revision, settings and SHA-256 of the weights.

        Settings that a suite cannot set, such as paths and addresses, are left out.
        """
        settings: dict[str, Json] = {}
        if isinstance(self.settings, PartSettings):
            fields = type(self.settings).model_fields
            trusted = {name for name, field_info in fields.items() if is_trusted(field_info)}
            settings = {name: value for name, value in self.settings.counted().items() if name not in trusted}
        return {
            "reader": digest_name("readers", type(self)),
            "revision": type(self).revision,
            "settings": settings,
            "weights": [cached_sha256(path) for path in self.weights()],
        }

    def about(self) -> dict[str, Json]:
        """Return the reader's entry in tables, as JSON values: its ``name``, and its ``card`` if it has one."""
        return {"name": self.name}

    def notice(self) -> str:
        """Describe who reads, where, and what is sent to whom; "" if nothing leaves the machine."""
        return ""

    def quote(self) -> str:
        """Describe the maximum cost of reading; "" if it is free."""
        return ""

    def announce(self, count: int) -> str:
        """Return the line shown before ``count`` different contents are read for a view."""
        return f"{count:,} different answers are read by {self.name}. {self.notice()}".strip()

    def summary(self, readings: Readings, total: int) -> str:
        """Return the line shown after reading."""
        return f"{self.name} read {len(readings.columns):,} of {total:,} different answers"

    def nothing(self) -> str:
        """Return the line shown if the records contain nothing for this reader."""
        return f"the records hold nothing that {self.name} reads."

    @abstractmethod
    def recorded(self, row: Mapping[str, Any]) -> Content | None:
        """Return the content of a record for this reader: the one that :meth:`BatchReader.content` gave in the run.

        Args:
            row: A record with the columns ``needs``, None if there is no content.
        """

    @abstractmethod
    def readings(self, contents: Sequence[Content], job: ReadingJob) -> Readings:
        """Read contents for a view.

        Args:
            contents: Distinct contents.
            job: Location and options.
        """


class BatchReader(Reader[Content, Facts]):
    """A reader that takes a batch at once: rules, or a network on a device. The usual base class for a plug-in.

    Attributes:
        at_once: Maximum number of contents per call of :meth:`read`.
        keeps: Whether facts are stored by content in a file shared by all runs, because reading is expensive; facts are
            then JSON values, or are converted to them by :meth:`packed`.
        own_processes: Whether the reader runs in processes separate from those of systems, because it may take long,
            hang or crash, which must not be blamed on a system.
    """

    at_once: ClassVar[int] = 1
    keeps: ClassVar[bool] = False
    own_processes: ClassVar[bool] = False

    def keep_in(self, folders: Iterable[Path]) -> None:
        """Set the run folders that contain what the reader needs besides its contents; called before it reads.

        Args:
            folders: One per system.
        """
        return

    def packed(self, facts: Facts) -> Any:
        """Return facts as JSON values for storage; by default they already are."""
        return facts

    def unpacked(self, value: Any) -> Facts:
        """Return the facts from the result of :meth:`packed`."""
        facts: Facts = value
        return facts

    def open(self, *, device: str, threads: int) -> None:
        """Load what the reader needs; called once in each reading process.

        Args:
            device: ``cpu`` or ``cuda:N``.
            threads: Intra-op threads it may use.
        """

    def close(self) -> None:
        """Release what :meth:`open` loaded."""

    @abstractmethod
    def content(self, answer: Output, seed: PreparedSeed) -> Content | None:
        """Return the part of an answer to read; None if there is none.

        Args:
            answer: The checked answer.
            seed: The seed of the answer.
        """

    @abstractmethod
    def read(self, contents: Sequence[Content]) -> Sequence[Facts]:
        """Return the facts of each content, in order.

        An exception counts as an ERROR of the cases with that content; after a failed batch, each content is retried
        alone once.
        """

    @abstractmethod
    def texts(self, content: Content, facts: Facts) -> dict[str, str | None]:
        """Return the facts as stored in a record: a text for each of ``columns``, None if the reader cannot tell."""

    def unknown(self, content: Content, facts: Facts) -> frozenset[str]:
        """Return the columns that the reader can say nothing about."""
        return frozenset(name for name, text in self.texts(content, facts).items() if text is None)

    def readings(self, contents: Sequence[Content], job: ReadingJob) -> Readings:
        """Read contents for a view; contents that cannot be read are reported, and their records stay unchanged.

        Raises:
            MedtestError: The reader cannot be loaded.
        """
        kept_reader = KeptReader(self, shared=job.shared, cache=job.cache)
        kept_reader.open(device=job.device, threads=job.threads)
        try:
            facts = kept_reader.facts(contents, job.progress)
        finally:
            kept_reader.close()
        bad = [reading for reading in facts if isinstance(reading, Unreadable)]
        read = {c: f for c, f in zip(contents, facts, strict=True) if not isinstance(f, Unreadable)}
        lacking = sum(bool(self.unknown(content, reading)) for content, reading in read.items())
        problems = (
            [f"{self.name} cannot tell everything of {lacking:,} of {len(contents):,} answers"] if lacking else []
        )
        problems += (
            [f"{self.name} could not read {len(bad):,} of {len(contents):,} answers: {bad[0].reason}"] if bad else []
        )
        return Readings(
            reader=self.name,
            recorded=self.recorded,
            about=self.about(),
            columns={content_key(content): self.texts(content, reading) for content, reading in read.items()},
            problem="; ".join(problems),
            code=ExitCode.TOO_MANY_ERRORS if bad and not read else ExitCode.OK,
        )


class KeptReader(Generic[Content, Facts]):
    """An opened reader with the facts it has read, so that no content is read twice.

    Args:
        reader: The reader.
        shared: The folder shared by all runs; None stores facts only in memory.
        cache: ``use``, ``refresh`` or ``off``.
    """

    def __init__(self, reader: BatchReader[Content, Facts], *, shared: Path | None, cache: str = "use") -> None:
        self.reader = reader
        path = shared / FILE if shared is not None and reader.keeps else None
        self._kept = KeptTexts(path, cache, "the file of readings")
        self._print = content_key(tuple(sorted(reader.fingerprint().items()))) if path is not None else ""
        self._known: Recent[Content, Facts] = Recent(_MOST_KEPT)
        self._lock = threading.Lock()

    def open(self, *, device: str, threads: int) -> None:
        """Load the reader.

        Raises:
            MedtestError: It cannot be loaded.
        """
        try:
            self.reader.open(device=device, threads=threads)
        except MedtestError:
            raise
        except Exception as error:
            reason = reason_of(error, _MOST_REASON)
            raise MedtestError(f"The reader {self.reader.name!r} cannot be loaded: {reason}") from error

    def close(self) -> None:
        """Release what was opened."""
        self.reader.close()
        self._kept.close()

    def facts(
        self, contents: Sequence[Content], progress: Callable[[str], None] = lambda line: None
    ) -> list[Facts | Unreadable]:
        """Return the facts of contents, in order; unknown ones are read, at most ``at_once`` per call.

        Args:
            contents: The contents to read.
            progress: Called with a line about how many are read.
        """
        with self._lock:
            facts: dict[Content, Facts | Unreadable] = {}
            for content in dict.fromkeys(contents):
                recalled = self._recall(content)
                if recalled is not None:
                    facts[content] = recalled
            unread = [content for content in dict.fromkeys(contents) if content not in facts]
            for start in range(0, len(unread), self.reader.at_once):
                batch = unread[start : start + self.reader.at_once]
                facts |= zip(batch, self._read(batch), strict=True)
                progress(f"{start + len(batch):,} of {len(unread):,} answers are read")
            return [facts[content] for content in contents]

    def columns(self, rows: Sequence[Mapping[str, Any]]) -> list[Texts]:
        """Return the texts of each record according to this reader; empty if the record has no content for it."""
        recorded = [self.reader.recorded(row) for row in rows]
        facts = iter(self.facts([content for content in recorded if content is not None]))
        columns: list[Texts] = []
        for content in recorded:
            reading = None if content is None else next(facts)
            unread = content is None or reading is None or isinstance(reading, Unreadable)
            columns.append({} if unread else self.reader.texts(content, reading))  # type: ignore[arg-type]
        return columns

    def _read(self, batch: Sequence[Content]) -> list[Facts | Unreadable]:
        try:
            outcomes = list(self.reader.read(batch))
            if len(outcomes) != len(batch):
                raise MedtestError(f"gave facts of {len(outcomes)} answers where {len(batch)} were to be read")
        except Exception as error:  # noqa: BLE001 - a reader may be anybody's plug-in; what it breaks on is an ERROR
            if len(batch) == 1:
                return [Unreadable(reason_of(error, _MOST_REASON))]
            return [reading for content in batch for reading in self._read([content])]
        for content, facts in zip(batch, outcomes, strict=True):
            self._keep(content, facts)
        return list(outcomes)

    def known(self, content: Content) -> Facts | None:
        """Return the facts of a content that has already been read, else None."""
        with self._lock:
            return self._recall(content)

    def keep(self, content: Content, facts: Facts) -> None:
        """Store facts of a content that another process has read."""
        with self._lock:
            self._keep(content, facts)

    def _keep(self, content: Content, facts: Facts) -> None:
        self._known[content] = facts
        if self._print:
            self._kept.keep(self._key(content), json.dumps(self.reader.packed(facts), ensure_ascii=False))

    def _recall(self, content: Content) -> Facts | None:
        if content in self._known:
            return self._known[content]
        text = self._kept.text(self._key(content)) if self._print else None
        if text is None:
            return None
        facts: Facts = self.reader.unpacked(json.loads(text))
        self._known[content] = facts
        return facts

    def _key(self, content: Content) -> str:
        return hashlib.sha256(f"{self._print}\n{content_key(content)}".encode()).hexdigest()
