"""Store of follow-ups: kept once by content, for testing, training and human judgement."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, TypedDict, Unpack, cast

from medtest.core.cases import Address, Image, Mask, image_sha256
from medtest.core.errors import OutputProblem
from medtest.core.files.by_content import Kind, PictureFiles, mask_sha256
from medtest.core.files.paths import home
from medtest.runner.followups.entry import Entry, SuiteEntry
from medtest.runner.followups.index import Index

FOLDER = "followups"
_CONDITIONS = {
    "datasets": "AND s.dataset IN (SELECT value FROM json_each(?))",
    "relations": "AND f.relation IN (SELECT value FROM json_each(?))",
    "severities": "AND f.severity IN (SELECT value FROM json_each(?))",
    "seeds": "AND s.seed_id IN (SELECT value FROM json_each(?))",
}


class EntryChoice(TypedDict, total=False):
    """Choice of follow-ups in a store; everything that is absent or empty restricts nothing.

    Attributes:
        datasets: Ids of data sets.
        relations: Ids of relations.
        severities: Severities.
        seeds: Ids of seeds, as the store shows them.
        skipped: True to include cases without a follow-up (no room).
    """

    datasets: Collection[str]
    relations: Collection[str]
    severities: Collection[int]
    seeds: Collection[str]
    skipped: bool


def default_folder() -> Path:
    """Return the default folder of follow-ups: ``followups/`` under the home folder."""
    return home() / FOLDER


class FollowUpStore:
    """Folder of follow-ups with its index; open it with :meth:`open`.

    May be shared by threads, pickled, and used after a fork (each thread of each process has its own connection).
    Several processes may add to one store at a time.

    Example::

        store = FollowUpStore.open()
        for entry in store.entries(relations={"blur"}, severities={3}):
            image = store.image(entry.followup_sha256)      # uint8 H×W×3 RGB
            expected = store.mask(entry.mask_sha256)        # bool H×W
            source = store.image(entry.source_sha256)

    Attributes:
        folder: Its folder.
        readonly: True if it was opened read-only.
        files: The picture files, for other modules of this package.
        index: The index, for other modules of this package.
    """

    def __init__(self, folder: Path, *, readonly: bool) -> None:
        self.folder = folder
        self.readonly = readonly
        self.files = PictureFiles(folder)
        self.index = Index(folder, readonly=readonly)

    @classmethod
    def open(cls, folder: Path | None = None, *, create: bool = False) -> FollowUpStore:
        """Open a store.

        Args:
            folder: Its folder; :func:`default_folder` if None.
            create: Open for writing, and create the store if it does not exist. Otherwise it is opened read-only, which
                also works in a folder without write permission.

        Raises:
            MedtestError: There is no store, or it has a later format.
            OutputProblem: It cannot be created.
        """
        chosen = default_folder() if folder is None else Path(folder)
        if create:
            try:
                chosen.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise OutputProblem(f"{chosen.name} cannot be made: {error.strerror or error}") from error
        return cls(chosen, readonly=not create)

    def close(self) -> None:
        """Close this thread's connection to the index; the store remains usable."""
        self.index.close()

    # --------------------------------------------------------------------------------------------------- reading

    def suites(self) -> tuple[SuiteEntry, ...]:
        """Return the suites with follow-ups in the store, the most recently extended first."""
        return self.index.suites()

    def entries(self, suite: str = "", **choice: Unpack[EntryChoice]) -> Iterator[Entry]:
        """Yield follow-ups page by page, so that memory use is bounded.

        Args:
            suite: A suite's key (``StoreReport.suite``, ``suites()[0].key``): its cases in the order of its plan. ""
                for everything in the store, in the order in which it was added.
            choice: Restrictions.
        """
        where, values = _conditions(choice)
        for page in self.index.pages(suite, where, values):
            yield from page

    def count(self, suite: str = "", **choice: Unpack[EntryChoice]) -> int:
        """Return the number of entries that :meth:`entries` would yield."""
        where, values = _conditions(choice)
        return self.index.count(suite, where, values)

    def find(self, address: Address, suite: str = "") -> Entry | None:
        """Return the follow-up with an address (seed id as the store shows it), the last added of several, or None."""
        where = (
            "AND s.dataset = ? AND s.seed_id = ? AND f.relation = ? AND f.severity = ? AND f.frame = ? AND f.repeat = ?"
        )
        case = (address.relation, address.severity, address.frame, address.repeat)
        values = (address.dataset, address.seed_id, *case)
        matches = [entry for page in self.index.pages(suite, where, values) for entry in page]
        return matches[-1] if matches else None

    def by_key(self, key: str) -> Entry | None:
        """Return the follow-up with this key, or None."""
        return self.index.by_key([key]).get(key)

    def image(self, sha256: str) -> Image:
        """Return an image, uint8 H×W×3 RGB, writable, checked against its name.

        Raises:
            DamagedFile: It is missing, truncated or altered.
            ValueError: The name is not a SHA-256.
        """
        return self.files.read("images", sha256)

    def mask(self, sha256: str) -> Mask:
        """Return a mask, bool H×W, checked against its name.

        Raises:
            DamagedFile: It is missing, truncated or altered.
            ValueError: The name is not a SHA-256 (it is "" for an unlabelled case).
        """
        return self.files.read("masks", sha256)

    def image_path(self, sha256: str) -> Path:
        """Return the PNG file of an image (8-bit RGB)."""
        return self.files.path("images", sha256)

    def mask_path(self, sha256: str) -> Path:
        """Return the PNG file of a mask (8-bit grey, 0 and 255)."""
        return self.files.path("masks", sha256)

    def whole_size(self, kind: Kind, sha256: str) -> int | None:
        """Return the size of a picture's file in bytes, or None unless the file exists with its original size."""
        size = self.files.size(kind, sha256)
        return size if size is not None and size == self.index.size(kind, sha256) else None

    # --------------------------------------------------------------------------------------------------- writing

    def put_image(self, image: Image) -> str:
        """Store an image and return its name.

        Args:
            image: uint8 H×W×3 RGB.

        Raises:
            OutputProblem: It cannot be written.
            ValueError: The image has another dtype or shape.
        """
        return self._put("images", image_sha256(image), image)

    def put_mask(self, mask: Mask) -> str:
        """Store a mask and return its name.

        Args:
            mask: bool H×W.

        Raises:
            OutputProblem: It cannot be written.
            ValueError: The mask has another dtype or shape.
        """
        return self._put("masks", mask_sha256(mask), mask)

    def _put(self, kind: Kind, sha256: str, pixels: Image | Mask) -> str:
        if self.readonly:
            raise OutputProblem(f"{self.folder.name} was opened for reading; FollowUpStore.open(folder, create=True)")
        try:
            self.files.put(kind, sha256, pixels)
        except OSError as error:
            raise OutputProblem(f"{self.folder.name}/{kind} cannot be written: {error.strerror or error}") from error
        return sha256

    def put(self, source_key: str, entries: Iterable[Entry], *, suite: str = "", places: Iterable[int] = ()) -> None:
        """Add follow-ups of one source whose pictures are already stored, all of them or none.

        Args:
            source_key: Digest of everything that determines the source
                (:func:`medtest.runner.followups.recipe.source_key`).
            entries: The follow-ups; an entry with an existing key replaces the earlier one.
            suite: Key of a suite registered with :meth:`add_suite`, or "".
            places: The entries' places in the suite's plan, if a suite is given.

        Raises:
            OutputProblem: A picture is missing, or the index cannot be written.
        """
        listed = list(entries)
        numbers = list(places) if suite else [0] * len(listed)
        self.index.add(source_key, zip(numbers, listed, strict=True), self._sizes(listed), suite)

    def add_suite(self, key: str, *, name: str, version: str, added: str) -> None:
        """Register a suite before its follow-ups are added."""
        self.index.add_suite(key, name, version, added)

    def _sizes(self, entries: Iterable[Entry]) -> list[tuple[str, str, int]]:
        sizes: list[tuple[str, str, int]] = []
        for kind, sha256 in sorted({name for entry in entries for name in names_of(entry)}):
            size = self.files.size(kind, sha256)
            if size is None:
                raise OutputProblem(f"{self.folder.name}: {kind}/{sha256[:12]}… was not written before it was noted")
            sizes.append((kind, sha256, size))
        return sizes


def names_of(entry: Entry) -> list[tuple[Kind, str]]:
    """Return the (kind, SHA-256) of every file that an entry uses."""
    files = [
        ("images", entry.source_sha256),
        ("masks", entry.source_mask_sha256),
        ("images", entry.followup_sha256),
        ("masks", entry.mask_sha256),
    ]
    return [(cast(Kind, kind), sha256) for kind, sha256 in files if sha256]


def _conditions(choice: EntryChoice) -> tuple[str, list[object]]:
    restrictions: dict[str, Any] = {
        _CONDITIONS[key]: names for key, names in choice.items() if key != "skipped" and names
    }
    conditions = [*restrictions, *(() if choice.get("skipped") else ("AND f.skipped = ''",))]
    return " ".join(conditions), [json.dumps(sorted(names, key=str)) for names in restrictions.values()]
