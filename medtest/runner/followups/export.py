"""Export of a store's follow-ups as a plain data set for other tools.

The folder holds ``images/`` and ``masks/`` (same names, PNG: 8-bit RGB; 8-bit grey, 0 and 255), ``sources/images/`` and
``sources/masks/``, ``followups.csv`` and ``metadata.csv``. The seed source ``image_mask_folders`` reads ``images/`` and
``masks/`` back, and patients and relations with ``metadata=metadata.csv``.
"""

from __future__ import annotations

import csv
import filecmp
import hashlib
import re
import shutil
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from medtest.core.errors import Mistake, OutputProblem, UserMistakes, nearest_name, typed_error, typed_mistake
from medtest.core.files.by_content import Kind
from medtest.runner.folder import output_problems, writing, writing_text
from medtest.runner.followups.entry import Entry
from medtest.runner.followups.index_rows import to_json
from medtest.runner.followups.store import FollowUpStore

TABLE = "followups.csv"
MARK = ".medtest-followups"
COLUMNS = (
    "file",
    "mask_file",
    "source_file",
    "source_mask_file",
    "address",
    "source",
    "dataset",
    "seed_id",
    "cluster",
    "relation",
    "group",
    "severity",
    "frame",
    "repeat",
    "scale",
    "params",
    "revision",
    "sha256",
    "mask_sha256",
    "source_sha256",
    "skipped",
)
"""Columns of ``followups.csv``.

Files below the folder ("" if there is none), the addresses of the follow-up and its source, the change (parameters as
JSON; physical distance from identity), SHA-256 of the pixels, and the reason if there is no follow-up.
"""

METADATA = "metadata.csv"
METADATA_COLUMNS = ("image", "cluster", "relation", "severity")
"""Columns of ``metadata.csv`` used by ``image_mask_folders``: the image's name, its patient or video, two strata."""

_LONGEST = 100
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, kw_only=True)
class ExportReport:
    """Summary of an export.

    Attributes:
        folder: The target folder.
        followups: Number of follow-ups with an image.
        masks: Number of follow-ups with an expected mask.
        sources: Number of source images.
        skipped: Cases of the table without a follow-up.
        bytes: Bytes of pictures in the folder.
    """

    folder: Path
    followups: int
    masks: int
    sources: int
    skipped: int
    bytes: int


def export_store(
    store: FollowUpStore,
    to: Path,
    *,
    suite: str = "",
    datasets: Collection[str] = (),
    relations: Collection[str] = (),
    severities: Collection[int] = (),
    progress: Callable[[int, int], None] | None = None,
) -> ExportReport:
    """Write the chosen follow-ups as a plain data set, resuming an interrupted export.

    Args:
        store: The store.
        to: A new folder, or one that an earlier export of the same choice began.
        suite: A suite's key; "" for everything in the store.
        datasets: Ids of data sets; all if empty.
        relations: Ids of relations; all if empty.
        severities: Severities; all if empty.
        progress: Called with the number of written follow-ups and their total.

    Returns:
        Summary of the folder.

    Raises:
        UserMistakes: The choice is empty, or the folder holds something else.
        DamagedFile: A picture of the store is missing or altered.
        OutputProblem: The folder cannot be written.
    """
    chosen: dict[str, Any] = {"datasets": datasets, "relations": relations, "severities": severities}
    _check_choice(store, suite, chosen)
    with output_problems(to / TABLE):
        to.mkdir(parents=True, exist_ok=True)
    _check_folder(to, suite, chosen)
    writer = _Writer(store, to)
    total = store.count(suite, skipped=True, **chosen)
    written_names: set[str] = set()
    with writing_text(to / TABLE) as file, writing_text(to / METADATA) as metadata_file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        short = csv.writer(metadata_file, lineterminator="\n")
        short.writerow(METADATA_COLUMNS)
        for number, entry in enumerate(store.entries(suite, skipped=True, **chosen), start=1):
            name = unique_name(entry)
            if (
                name not in written_names
            ):  # a follow-up remade after a relation changed has the address of the older one
                written_names.add(name)
            else:
                name = f"{name}__{entry.key[:8]}"
            table.writerow(writer.write(entry, name))
            if not entry.skipped:
                short.writerow((name, entry.cluster, entry.address.relation, entry.address.severity))
            if progress is not None:
                progress(number, total)
    return ExportReport(folder=to, **writer.counts)


def unique_name(entry: Entry) -> str:
    """Return a file name without suffix from data set, seed and relation, safe on every system."""
    address = entry.address
    return _safe(f"{address.dataset}__{address.seed_id}__{address.stem}")


def _safe(name: str) -> str:
    plain = _UNSAFE.sub("-", name)
    if plain == name and len(name) <= _LONGEST:
        return plain
    return f"{plain[:_LONGEST]}-{hashlib.sha256(name.encode()).hexdigest()[:10]}"


class _Writer:
    """Copier of pictures; copies each name once.

    Args:
        store: The store.
        to: The target folder.
    """

    def __init__(self, store: FollowUpStore, to: Path) -> None:
        self._store = store
        self._to = to
        self._sources: set[str] = set()
        self.counts = {"followups": 0, "masks": 0, "sources": 0, "skipped": 0, "bytes": 0}

    def write(self, entry: Entry, name: str) -> dict[str, Any]:
        """Copy an entry's pictures and return its row."""
        file = mask = source = source_mask = ""
        if entry.skipped:
            self.counts["skipped"] += 1
        else:
            file = self._copy("images", entry.followup_sha256, f"images/{name}.png")
            self.counts["followups"] += 1
            if entry.mask_sha256:
                mask = self._copy("masks", entry.mask_sha256, f"masks/{name}.png")
                self.counts["masks"] += 1
            source, source_mask = self._source(entry)
        address = entry.address
        return {
            "file": file,
            "mask_file": mask,
            "source_file": source,
            "source_mask_file": source_mask,
            "address": str(address),
            "source": str(entry.source),
            "dataset": address.dataset,
            "seed_id": address.seed_id,
            "cluster": entry.cluster,
            "relation": address.relation,
            "group": entry.group,
            "severity": address.severity,
            "frame": address.frame,
            "repeat": address.repeat,
            "scale": "" if entry.scale is None else repr(entry.scale),
            "params": "" if entry.skipped else to_json(dict(entry.params)),
            "revision": entry.revision,
            "sha256": entry.followup_sha256,
            "mask_sha256": entry.mask_sha256,
            "source_sha256": entry.source_sha256,
            "skipped": entry.skipped,
        }

    def _source(self, entry: Entry) -> tuple[str, str]:
        # One store may hold two preparations of a seed (with different sizes); the digest distinguishes them.
        name = _safe(f"{entry.address.dataset}__{entry.address.seed_id}__{entry.source_sha256[:8]}")
        new = name not in self._sources
        self._sources.add(name)
        image, mask = f"sources/images/{name}.png", ""
        if entry.source_mask_sha256:
            mask = f"sources/masks/{name}.png"
        if new:
            self._copy("images", entry.source_sha256, image)
            self.counts["sources"] += 1
            if mask:
                self._copy("masks", entry.source_mask_sha256, mask)
        return image, mask

    def _copy(self, kind: Literal["images", "masks"], sha256: str, name: str) -> str:
        source = self._store.files.path(kind, sha256)
        target = self._to / name
        size = self._store.files.size(kind, sha256)
        if size is None or not _is_copy(source, target):
            size = self._write(kind, sha256, source, target)
        self.counts["bytes"] += size
        return name

    def _write(self, kind: Kind, sha256: str, source: Path, target: Path) -> int:
        self._store.files.read(kind, sha256)  # no damaged picture leaves the store
        draft = target.with_name(f".{target.name}.part")
        with output_problems(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, draft)
            draft.replace(target)
        return target.stat().st_size


def _is_copy(source: Path, target: Path) -> bool:
    """Return True if a file of an earlier call holds the same bytes; equal size does not suffice."""
    try:
        return target.is_file() and filecmp.cmp(source, target, shallow=False)
    except OSError:
        return False


def _check_choice(store: FollowUpStore, suite: str, chosen: dict[str, Any]) -> None:
    """Check that every typed name exists in the store."""
    index = store.index
    existing: dict[str, list[Any]] = {
        "datasets": [row[0] for row in index.rows("SELECT DISTINCT dataset FROM sources ORDER BY 1")],
        "relations": [row[0] for row in index.rows("SELECT DISTINCT relation FROM followups ORDER BY 1")],
        "severities": [row[0] for row in index.rows("SELECT DISTINCT severity FROM followups ORDER BY 1")],
    }
    words = {"datasets": "--dataset", "relations": "--relation", "severities": "--severity"}
    mistakes = [
        typed_mistake(
            words[kind],
            str(name),
            ", ".join(map(str, existing[kind])) or "none",
            nearest=nearest_name(str(name), map(str, existing[kind])),
        )
        for kind, names in chosen.items()
        for name in names
        if name not in existing[kind]
    ]
    if not mistakes and not store.count(suite, **chosen):
        mistakes = [Mistake(where="command line", found="no follow-up", allowed="a choice that holds some")]
    if mistakes:
        raise UserMistakes(mistakes)


def _check_folder(to: Path, suite: str, chosen: dict[str, Any]) -> None:
    mark = to / MARK
    choice = to_json([suite, *(sorted(chosen[name], key=str) for name in sorted(chosen))])
    try:
        if mark.is_file():
            if mark.read_text(encoding="utf-8") == choice:
                return
        elif not any(to.iterdir()):
            with writing(mark) as file:
                file.write(choice.encode())
            return
    except OSError as error:
        raise OutputProblem(f"{to.name} cannot be read: {error.strerror or error}") from error
    raise typed_error(
        "--to", f"{to.name}, which holds something else", "a new folder, or one that an export of the same choice began"
    )
