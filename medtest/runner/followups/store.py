"""The store: follow-ups kept by content once, to test with, to train with and to be judged by people."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import cast

from medtest.core.cases import Address, Image, Mask, image_sha256
from medtest.core.errors import OutputProblem
from medtest.core.files.by_content import Kind, PictureFiles, mask_sha256
from medtest.core.files.paths import home
from medtest.runner.followups.entry import Entry, SuiteEntry
from medtest.runner.followups.index import Index

FOLDER = "followups"


def default_folder() -> Path:
    """Return where follow-ups are kept unless a command says otherwise: ``followups/`` under the home folder."""
    return home() / FOLDER


class FollowUpStore:
    """A folder of follow-ups with its index; open it with :meth:`open`.

    Safe to share among threads; may be pickled and used after a fork (each thread of each process has a connection of
    its own). Several processes may add to one store at a time.

    Example::

        store = FollowUpStore.open()
        for entry in store.entries(relations={"blur"}, severities={3}):
            image = store.image(entry.followup_sha256)      # uint8 H×W×3 RGB
            expected = store.mask(entry.mask_sha256)        # bool H×W
            source = store.image(entry.source_sha256)

    Attributes:
        folder: Where it lies.
        readonly: Whether it was opened for reading alone.
    """

    def __init__(self, folder: Path, *, readonly: bool) -> None:
        self.folder = folder
        self.readonly = readonly
        self._files = PictureFiles(folder)
        self._index = Index(folder, readonly=readonly)

    @classmethod
    def open(cls, folder: Path | None = None, *, create: bool = False) -> FollowUpStore:
        """Open a store.

        Args:
            folder: Its folder; :func:`default_folder` where it is None.
            create: Open it for writing, and make it where there is none. Without, it is opened for reading alone, which
                also works in a folder that cannot be written.

        Raises:
            MedtestError: There is no store, or one of a later format.
            OutputProblem: It cannot be made.
        """
        chosen = default_folder() if folder is None else Path(folder)
        if create:
            try:
                chosen.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise OutputProblem(f"{chosen.name} cannot be made: {error.strerror or error}") from error
        return cls(chosen, readonly=not create)

    def close(self) -> None:
        """Close this thread's connection to the index; the store can go on being used."""
        self._index.close()

    # --------------------------------------------------------------------------------------------------- reading

    @property
    def index(self) -> Index:
        """The index itself, for the rest of this package."""
        return self._index

    @property
    def files(self) -> PictureFiles:
        """The pictures' files, for the rest of this package."""
        return self._files

    def suites(self) -> tuple[SuiteEntry, ...]:
        """Return the suites of which there are follow-ups, the one added to last first."""
        return self._index.suites()

    def entries(
        self,
        suite: str = "",
        *,
        datasets: Collection[str] = (),
        relations: Collection[str] = (),
        severities: Collection[int] = (),
        seeds: Collection[str] = (),
        skipped: bool = False,
    ) -> Iterator[Entry]:
        """Yield follow-ups, a page at a time, so that memory stays flat.

        Args:
            suite: A suite's key (``StoreReport.suite``, ``suites()[0].key``): its cases in the order of its plan. ""
                for everything in the store, in the order in which it was added.
            datasets: Ids of data sets; all when empty.
            relations: Ids of relations; all when empty.
            severities: Severities; all when empty.
            seeds: Ids of seeds, as the store shows them; all when empty.
            skipped: Whether cases without a follow-up (no room) are yielded too.
        """
        where, values = _conditions(datasets, relations, severities, seeds, skipped=skipped)
        for page in self._index.pages(suite, where, values):
            yield from page

    def count(
        self,
        suite: str = "",
        *,
        datasets: Collection[str] = (),
        relations: Collection[str] = (),
        severities: Collection[int] = (),
        seeds: Collection[str] = (),
        skipped: bool = False,
    ) -> int:
        """Return how many entries :meth:`entries` would yield."""
        where, values = _conditions(datasets, relations, severities, seeds, skipped=skipped)
        return self._index.count(suite, where, values)

    def find(self, address: Address, suite: str = "") -> Entry | None:
        """Return the follow-up of an address (seed id as the store shows it), the last added of several, or None."""
        where = (
            "AND s.dataset = ? AND s.seed_id = ? AND f.relation = ? AND f.severity = ? AND f.frame = ? AND f.repeat = ?"
        )
        values = (
            address.dataset,
            address.seed_id,
            address.relation,
            address.severity,
            address.frame,
            address.repeat,
        )
        found = [entry for page in self._index.pages(suite, where, values) for entry in page]
        return found[-1] if found else None

    def by_key(self, key: str) -> Entry | None:
        """Return the follow-up with this key, or None."""
        return self._index.by_key([key]).get(key)

    def image(self, sha256: str) -> Image:
        """Return an image, uint8 H×W×3 RGB, writable, checked against its name.

        Raises:
            DamagedFile: It is missing, truncated or altered.
            ValueError: That is no SHA-256.
        """
        return self._files.read("images", sha256)

    def mask(self, sha256: str) -> Mask:
        """Return a mask, bool H×W, checked against its name.

        Raises:
            DamagedFile: It is missing, truncated or altered.
            ValueError: That is no SHA-256 (an unlabelled case has none: "").
        """
        return self._files.read("masks", sha256)

    def image_path(self, sha256: str) -> Path:
        """Return the PNG file of an image (8-bit RGB)."""
        return self._files.path("images", sha256)

    def mask_path(self, sha256: str) -> Path:
        """Return the PNG file of a mask (8-bit grey, 0 and 255)."""
        return self._files.path("masks", sha256)

    def whole_size(self, kind: Kind, sha256: str) -> int | None:
        """Return the bytes of a picture's file, or None where it is not there with the size it was written with."""
        size = self._files.size(kind, sha256)
        return size if size is not None and size == self._index.size(kind, sha256) else None

    # --------------------------------------------------------------------------------------------------- writing

    def put_image(self, image: Image) -> str:
        """Keep an image and return its name.

        Args:
            image: uint8 H×W×3 RGB.

        Raises:
            OutputProblem: It cannot be written.
            ValueError: It is something else.
        """
        return self._put("images", image_sha256(image), image)

    def put_mask(self, mask: Mask) -> str:
        """Keep a mask and return its name.

        Args:
            mask: bool H×W.

        Raises:
            OutputProblem: It cannot be written.
            ValueError: It is something else.
        """
        return self._put("masks", mask_sha256(mask), mask)

    def _put(self, kind: Kind, sha256: str, pixels: Image | Mask) -> str:
        if self.readonly:
            raise OutputProblem(f"{self.folder.name} was opened for reading; FollowUpStore.open(folder, create=True)")
        try:
            self._files.put(kind, sha256, pixels)
        except OSError as error:
            raise OutputProblem(f"{self.folder.name}/{kind} cannot be written: {error.strerror or error}") from error
        return sha256

    def put(self, source_key: str, entries: Iterable[Entry], *, suite: str = "", places: Iterable[int] = ()) -> None:
        """Note follow-ups of one source whose pictures were put before, all of them or none.

        Args:
            source_key: Digest of what determines the source (:func:`medtest.runner.followups.recipe.source_key`).
            entries: The follow-ups; an entry whose key is known replaces the earlier one.
            suite: Key of a suite noted with :meth:`add_suite`, or "".
            places: The entries' places in the suite's plan, where a suite is given.

        Raises:
            OutputProblem: A picture was not put, or the index cannot be written.
        """
        listed = list(entries)
        numbers = list(places) if suite else [0] * len(listed)
        self._index.add(source_key, zip(numbers, listed, strict=True), self._sizes(listed), suite)

    def add_suite(self, key: str, *, name: str, version: str, added: str) -> None:
        """Note a suite before follow-ups of it are put."""
        self._index.add_suite(key, name, version, added)

    def _sizes(self, entries: Iterable[Entry]) -> list[tuple[str, str, int]]:
        found: list[tuple[str, str, int]] = []
        for kind, sha256 in sorted({named for entry in entries for named in names_of(entry)}):
            size = self._files.size(kind, sha256)
            if size is None:
                raise OutputProblem(f"{self.folder.name}: {kind}/{sha256[:12]}… was not written before it was noted")
            found.append((kind, sha256, size))
        return found


def names_of(entry: Entry) -> list[tuple[Kind, str]]:
    """Return the (kind, SHA-256) of every file that an entry uses."""
    named = [
        ("images", entry.source_sha256),
        ("masks", entry.source_mask_sha256),
        ("images", entry.followup_sha256),
        ("masks", entry.mask_sha256),
    ]
    return [(cast(Kind, kind), sha256) for kind, sha256 in named if sha256]


def _conditions(
    datasets: Collection[str],
    relations: Collection[str],
    severities: Collection[int],
    seeds: Collection[str],
    *,
    skipped: bool,
) -> tuple[str, list[object]]:
    chosen = (
        ("AND s.dataset IN (SELECT value FROM json_each(?))", datasets),
        ("AND f.relation IN (SELECT value FROM json_each(?))", relations),
        ("AND f.severity IN (SELECT value FROM json_each(?))", severities),
        ("AND s.seed_id IN (SELECT value FROM json_each(?))", seeds),
    )
    asked = [(condition, json.dumps(sorted(names, key=str))) for condition, names in chosen if names]
    conditions = [condition for condition, _ in asked]
    if not skipped:
        conditions.append("AND f.skipped = ''")
    return " ".join(conditions), [names for _, names in asked]
