"""What a reader is: it turns what systems answered into facts, by which oracles judge and tables count.

A reader is a class found by its name as other parts are: ``conf/readers/typed_answers.yaml`` names one of ours, an
entry point in the group ``medtest.readers`` one of another package. It knows no system and no oracle. What it reads is
called content here: words, boxes, the SHA-256 of a picture, a value that can be hashed and kept as JSON. The same
content is read once, whoever answered so and in whichever case.

A suite's own reader (:attr:`medtest.core.oracles.base.Oracle.reads`, or ``oracles.reader``) reads as answers come, and
its facts stand in the records. Another one reads what the records hold, after the run, for a view: no system is asked.
"""

from __future__ import annotations

import hashlib
import json
import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from medtest.api.redact import reason_of
from medtest.api.store.answers import KeptTexts
from medtest.core.cases import Json, Output, PreparedSeed
from medtest.core.errors import ExitCode, MedtestError, Mistake
from medtest.core.plugins import Part, PartSettings, digest_name, is_trusted
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
        of_oracle: Whether the oracle's ``revision`` stands for it, so that digests name it nowhere.
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
        """What tables, notices and MLflow call it."""
        return self._name

    def check(self) -> list[Mistake]:
        """Return the user's mistakes that can be seen before anything runs: a file that is not there, a key."""
        return []

    def weights(self) -> Sequence[Path]:
        """Return the files that decide what it reads; they count by their content."""
        return ()

    def fingerprint(self) -> dict[str, Json]:
        """Return all that its facts depend on: class, revision, settings, SHA-256 of the weights.

        Settings that a suite may not set, paths and addresses, are none of it.
        """
        settings: dict[str, Json] = {}
        if isinstance(self.settings, PartSettings):
            fields = type(self.settings).model_fields
            trusted = {name for name, one in fields.items() if is_trusted(one)}
            settings = {name: value for name, value in self.settings.counted().items() if name not in trusted}
        return {
            "reader": digest_name(type(self)),
            "revision": type(self).revision,
            "settings": settings,
            "weights": [cached_sha256(path) for path in self.weights()],
        }

    def about(self) -> dict[str, Json]:
        """Return what tables say of it, JSON values: its ``name``, and of a reader that has one its ``card``."""
        return {"name": self.name}

    def notice(self) -> str:
        """Return who reads, where, and what is sent to whom; "" where nothing leaves the machine."""
        return ""

    def quote(self) -> str:
        """Return what reading costs at most; "" where it costs nothing."""
        return ""

    def announce(self, count: int) -> str:
        """Return the line before so many different contents are read for a view."""
        return f"{count:,} different answers are read by {self.name}. {self.notice()}".strip()

    def summary(self, readings: Readings, asked: int) -> str:
        """Return the line after they were read."""
        return f"{self.name} read {len(readings.columns):,} of {asked:,} different answers"

    def nothing(self) -> str:
        """Return the line where records hold nothing for it."""
        return f"the records hold nothing that {self.name} reads."

    @abstractmethod
    def recorded(self, row: Mapping[str, Any]) -> Content | None:
        """Return what a record holds for it to read: the content that :meth:`BatchReader.content` gave in the run.

        Args:
            row: A record with the columns ``needs``, None where it holds nothing.
        """

    @abstractmethod
    def readings(self, contents: Sequence[Content], job: ReadingJob) -> Readings:
        """Read contents for a view.

        Args:
            contents: Different ones.
            job: Where and how.
        """


class BatchReader(Reader[Content, Facts]):
    """A reader that takes a batch at once: rules, or a network on a device. The usual base of a plug-in.

    Attributes:
        at_once: Contents that one call of :meth:`read` takes at most.
        keeps: Whether facts are kept by content in a file that all runs share, since reading is dear; facts are then
            JSON values, or become such by :meth:`packed`.
        own_processes: Whether it reads in processes of its own beside those of systems, since it may take long, hang
            or crash, which is no fault of a system's.
    """

    at_once: ClassVar[int] = 1
    keeps: ClassVar[bool] = False
    own_processes: ClassVar[bool] = False

    def keep_in(self, folders: Iterable[Path]) -> None:
        """Say in which runs' folders lies what it may need beside its contents; called before it reads.

        Args:
            folders: One for each system.
        """
        return

    def packed(self, facts: Facts) -> Any:
        """Return facts as JSON values, to be kept; by default they are such."""
        return facts

    def unpacked(self, value: Any) -> Facts:
        """Return the facts that :meth:`packed` gave."""
        facts: Facts = value
        return facts

    def open(self, *, device: str, threads: int) -> None:
        """Load what is needed; called once in each process that reads.

        Args:
            device: ``cpu`` or ``cuda:N``.
            threads: Intra-op threads it may use.
        """

    def close(self) -> None:
        """Free what :meth:`open` took."""

    @abstractmethod
    def content(self, answer: Output, seed: PreparedSeed) -> Content | None:
        """Return what is to be read of an answer; None where there is nothing.

        Args:
            answer: The checked answer.
            seed: Whose it is.
        """

    @abstractmethod
    def read(self, contents: Sequence[Content]) -> Sequence[Facts]:
        """Return the facts of each content, in order.

        An exception is an ERROR of the cases whose content it is; of a batch each is then read alone, once.
        """

    @abstractmethod
    def texts(self, content: Content, facts: Facts) -> dict[str, str | None]:
        """Return the facts as a record holds them: a text for each of ``columns``, None for what it cannot tell."""

    def unknown(self, content: Content, facts: Facts) -> frozenset[str]:
        """Return the columns of which it cannot tell anything."""
        return frozenset(name for name, text in self.texts(content, facts).items() if text is None)

    def readings(self, contents: Sequence[Content], job: ReadingJob) -> Readings:
        """Read contents for a view; what cannot be read is told of and leaves its records as they are.

        Raises:
            MedtestError: The reader cannot be loaded.
        """
        kept = KeptReader(self, shared=job.shared, cache=job.cache)
        kept.open(device=job.device, threads=job.threads)
        try:
            facts = kept.facts(contents, job.progress)
        finally:
            kept.close()
        bad = [one for one in facts if isinstance(one, Unreadable)]
        read = {c: f for c, f in zip(contents, facts, strict=True) if not isinstance(f, Unreadable)}
        lacking = sum(bool(self.unknown(content, one)) for content, one in read.items())
        said = [f"{self.name} cannot tell everything of {lacking:,} of {len(contents):,} answers"] if lacking else []
        said += (
            [f"{self.name} could not read {len(bad):,} of {len(contents):,} answers: {bad[0].reason}"] if bad else []
        )
        return Readings(
            reader=self.name,
            recorded=self.recorded,
            about=self.about(),
            columns={content_key(content): self.texts(content, one) for content, one in read.items()},
            problem="; ".join(said),
            code=ExitCode.TOO_MANY_ERRORS if bad and not read else ExitCode.OK,
        )


class KeptReader(Generic[Content, Facts]):
    """A reader that is opened, and what it read: no content is read twice.

    Args:
        reader: The reader.
        shared: The folder that all runs share; None keeps facts in memory alone.
        cache: ``use``, ``refresh`` or ``off``.
    """

    def __init__(self, reader: BatchReader[Content, Facts], *, shared: Path | None, cache: str = "use") -> None:
        self.reader = reader
        path = shared / FILE if shared is not None and reader.keeps else None
        self._kept = KeptTexts(path, cache, "the file of readings")
        self._print = content_key(tuple(sorted(reader.fingerprint().items()))) if path is not None else ""
        self._known: OrderedDict[Content, Facts] = OrderedDict()
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
        """Free what was opened."""
        self.reader.close()
        self._kept.close()

    def facts(
        self, contents: Sequence[Content], progress: Callable[[str], None] = lambda line: None
    ) -> list[Facts | Unreadable]:
        """Return the facts of contents, in order; those that are not known are read, ``at_once`` in a call.

        Args:
            contents: What is to be read.
            progress: Is told how many are read.
        """
        with self._lock:
            found: dict[Content, Facts | Unreadable] = {}
            for content in dict.fromkeys(contents):
                known = self._recall(content)
                if known is not None:
                    found[content] = known
            unread = [content for content in dict.fromkeys(contents) if content not in found]
            for start in range(0, len(unread), self.reader.at_once):
                batch = unread[start : start + self.reader.at_once]
                found |= zip(batch, self._read(batch), strict=True)
                progress(f"{start + len(batch):,} of {len(unread):,} answers are read")
            return [found[content] for content in contents]

    def columns(self, rows: Sequence[Mapping[str, Any]]) -> list[Texts]:
        """Return what each of these records holds as this reader reads it; nothing where it finds no content."""
        recorded = [self.reader.recorded(row) for row in rows]
        facts = iter(self.facts([content for content in recorded if content is not None]))
        made: list[Texts] = []
        for content in recorded:
            one = None if content is None else next(facts)
            unread = content is None or one is None or isinstance(one, Unreadable)
            made.append({} if unread else self.reader.texts(content, one))  # type: ignore[arg-type]
        return made

    def _read(self, batch: Sequence[Content]) -> list[Facts | Unreadable]:
        try:
            given = list(self.reader.read(batch))
            if len(given) != len(batch):
                raise MedtestError(f"gave facts of {len(given)} answers where {len(batch)} were to be read")
        except Exception as error:  # noqa: BLE001 - a reader may be anybody's plug-in; what it breaks on is an ERROR
            if len(batch) == 1:
                return [Unreadable(reason_of(error, _MOST_REASON))]
            return [one for content in batch for one in self._read([content])]
        for content, facts in zip(batch, given, strict=True):
            self._keep(content, facts)
        return list(given)

    def known(self, content: Content) -> Facts | None:
        """Return the facts of a content that was read before; None where it was not."""
        with self._lock:
            return self._recall(content)

    def keep(self, content: Content, facts: Facts) -> None:
        """Keep what another process read of a content."""
        with self._lock:
            self._keep(content, facts)

    def _keep(self, content: Content, facts: Facts) -> None:
        self._remember(content, facts)
        if self._print:
            self._kept.keep(self._key(content), json.dumps(self.reader.packed(facts), ensure_ascii=False))

    def _recall(self, content: Content) -> Facts | None:
        if content in self._known:
            self._known.move_to_end(content)
            return self._known[content]
        text = self._kept.text(self._key(content)) if self._print else None
        if text is None:
            return None
        facts: Facts = self.reader.unpacked(json.loads(text))
        self._remember(content, facts)
        return facts

    def _remember(self, content: Content, facts: Facts) -> None:
        self._known[content] = facts
        if len(self._known) > _MOST_KEPT:
            self._known.popitem(last=False)

    def _key(self, content: Content) -> str:
        return hashlib.sha256(f"{self._print}\n{content_key(content)}".encode()).hexdigest()
