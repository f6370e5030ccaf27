"""Worker that makes follow-ups: one seed at a time, pictures go directly to the store, rows to the parent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medtest.core.cases import Address, Image, Mask, Verdict
from medtest.core.errors import MedtestError, OutputProblem
from medtest.core.files.by_content import Kind, encode, mask_sha256
from medtest.runner.followups.entry import Entry
from medtest.runner.followups.maker import EntryMaker, LoadedSeed, expected_mask
from medtest.runner.followups.recipe import SuiteKeys
from medtest.runner.followups.store import FollowUpStore, names_of
from medtest.runner.pool.messages import SHARED, Begin, Done, Failed, PoolTask, TaskResult
from medtest.runner.units.made_case import describe
from medtest.runner.units.parts import NOT_STORED
from medtest.runner.units.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeTask(PoolTask):
    """Task to make the follow-ups of one seed.

    Attributes:
        cases: (place in the plan, address) pairs; a worker reports (:data:`~medtest.runner.pool.messages.SHARED`, place
            in the plan) as its current work.
    """

    cases: tuple[tuple[int, Address], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitMade:
    """Result of one seed, whose pictures are in the store.

    Attributes:
        source_key: Key of the source.
        entries: (place, entry) pairs.
        sizes: (kind, SHA-256, bytes) of the files that the entries use.
        counts: Numbers of new follow-ups (``made``), of those ``reused`` from another suite, of cases without room
            (``skipped``), and of the ``bytes`` written.
        errors: (shown address, error) of cases that failed.
    """

    source_key: str
    entries: tuple[tuple[int, Entry], ...]
    sizes: tuple[tuple[str, str, int], ...]
    counts: Mapping[str, int]
    errors: tuple[tuple[str, str], ...]


class MakeSession(Session):
    """Session of a worker that makes follow-ups and loads no system."""

    def _load(self) -> None:
        self._build()
        self.recipe = SuiteKeys(self._job.suite, self.parts.relations, self.names)
        self.maker = EntryMaker(self.parts, self.recipe, self.scrub)
        self.store = FollowUpStore.open(Path(self._job.store), create=True)

    def run(self, task: Any) -> None:
        """Make one unit."""
        try:
            self.send(TaskResult(task.index, _Unit(self, task).run()))
        except OutputProblem as error:
            self.send(Failed(error))
        except OSError as error:
            self.send(Failed(OutputProblem(_refused(Path(self._job.store), error))))
        else:
            self.send(Done(task.index, self._memory()))

    def close(self) -> None:
        """Close the store."""
        self.store.close()


class _Unit:
    """Follow-ups of one seed in the making."""

    def __init__(self, session: MakeSession, task: MakeTask) -> None:
        self._at = session
        self._task = task
        self._sizes: dict[tuple[Kind, str], int] = {}
        self._counts = {"made": 0, "reused": 0, "skipped": 0, "bytes": 0}
        self._errors: list[tuple[str, str]] = []

    def run(self) -> UnitMade:
        """Make the missing follow-ups."""
        session, task = self._at, self._task
        session.send(Begin(task.index, (SHARED, SHARED)))
        entries: list[tuple[int, Entry]] = []
        source_key = ""
        try:
            if (SHARED, SHARED) in task.given_up:
                raise MedtestError("the seed could not be prepared: it hung or crashed its process")
            loaded = session.maker.load(task.source, task.ref)
        except Exception as error:  # noqa: BLE001 - a seed source may come from a plug-in, a file may have changed
            self._failed(task.ref.source, f"the seed cannot be prepared: {describe(error)}")
        else:
            source_key = loaded.key
            entries = self._entries(loaded)
        return UnitMade(
            source_key=source_key,
            entries=tuple(entries),
            sizes=tuple((kind, sha256, size) for (kind, sha256), size in sorted(self._sizes.items())),
            errors=tuple(self._errors),
            counts=self._counts,
        )

    def _entries(self, loaded: LoadedSeed) -> list[tuple[int, Entry]]:
        session, seed = self._at, loaded.seed
        keys = [session.recipe.followup_key(loaded.key, address) for _, address in self._task.cases]
        stored = session.store.index.by_key(keys)
        self._keep("images", seed.sha256, seed.image)
        source_mask = self._keep_mask(seed.mask)
        entries: list[tuple[int, Entry]] = []
        for key, (place, address) in zip(keys, self._task.cases, strict=True):
            entry = stored.get(key)
            if entry is not None and self._is_whole(entry):
                self._counts["skipped" if entry.skipped else "reused"] += 1
            else:
                entry = self._make(loaded, key, place, address, source_mask)
            if entry is not None:
                entries.append((place, entry))
        return entries

    def _is_whole(self, entry: Entry) -> bool:
        """Return True if every file of an entry exists with its original size."""
        for kind, sha256 in names_of(entry):
            if (kind, sha256) not in self._sizes:
                size = self._at.store.whole_size(kind, sha256)
                if size is None:
                    return False
                self._sizes[kind, sha256] = size
        return True

    def _make(self, loaded: LoadedSeed, key: str, place: int, address: Address, source_mask: str) -> Entry | None:
        if (SHARED, place) in self._task.given_up:
            self._failed(address, "relation: it hung or crashed its process")
            return None
        self._at.send(Begin(self._task.index, (SHARED, place)))
        case = self._at.parts.make(loaded.seed, address)
        if case.verdict is Verdict.ERROR or case.reason.code in NOT_STORED:  # a later run may have it
            self._failed(address, case.reason.text)
            return None
        mask = ""
        if case.follow is None:
            self._counts["skipped"] += 1
        else:
            try:
                expected = expected_mask(loaded.seed, case.follow)
                mask = source_mask if expected is loaded.seed.mask else self._keep_mask(expected)
                self._keep("images", case.sha256, case.follow.image)
            except ValueError as error:
                self._failed(address, str(error))
                return None
            self._counts["made"] += 1
        return self._at.maker.entry(loaded, key, case, source_mask=source_mask, mask=mask)

    def _keep_mask(self, mask: Mask | None) -> str:
        if mask is None:
            return ""
        name = mask_sha256(mask)
        self._keep("masks", name, mask)
        return name

    def _keep(self, kind: Kind, sha256: str, pixels: Image | Mask) -> None:
        if (kind, sha256) in self._sizes:
            return
        size = self._at.store.whole_size(kind, sha256)
        if size is not None:
            self._sizes[kind, sha256] = size
            return
        content = encode(kind, pixels)
        self._counts["bytes"] += self._at.store.files.put_bytes(kind, sha256, content)
        self._sizes[kind, sha256] = len(content)

    def _failed(self, address: Address, reason: str) -> None:
        shown_address = self._at.recipe.shown(address)
        self._errors.append((str(shown_address), self._at.scrub.reason(reason, self._task.ref)))


def _refused(folder: Path, error: OSError) -> str:
    return (
        f"{folder.name} cannot be written: {error.strerror or error}. "
        "Finished results are kept; run the same command again to continue."
    )
