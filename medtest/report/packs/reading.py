"""Safe reading of untrusted packs: unpacked within bounds, and verified against the pack head."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq

from medtest.core.errors import Mistake, UserMistakes
from medtest.core.files import decoded, file_sha256, read_object
from medtest.core.files.zips import BOUNDS, BoundedZip, RefusedZip, ZipBounds
from medtest.report.packs.contents import DATA, HEAD, MOST_HEAD, PackHead, check_names, no_pack, printable, read_head
from medtest.report.packs.writing import check_target, folder_beside
from medtest.results.records.wanted import RUN_FILE, SUITE_FILE
from medtest.runner.records import answers
from medtest.runner.records.case_set import FILE as CASES
from medtest.runner.records.shard_scan import damage
from medtest.suite.reading.safety import read_suite

MOST_TEXT = 1 << 28
"""Maximum size of a list that is read into memory, in bytes: enough for more than a million seeds."""
MOST_RECORDS, MOST_ROWS = 16 << 30, 100_000_000
"""Maximum bytes and rows of records in memory, as declared by their file."""
_READ_AT_ONCE = (".json", ".jsonl", ".yaml", ".txt")


@dataclass(frozen=True, kw_only=True)
class PackFolder:
    """An unpacked pack.

    Attributes:
        folder: Folder of the files.
        where: Name of the pack in messages.
        head: Head of the pack.
        changed: Files that were changed or removed since packing.
    """

    folder: Path
    where: str
    head: PackHead
    changed: tuple[str, ...] = ()

    def text(self, name: str) -> str:
        """Return a file's text.

        Raises:
            UserMistakes: It cannot be read, or is larger than :data:`MOST_TEXT`.
        """
        path = self.folder / name
        try:
            if path.stat().st_size > MOST_TEXT:
                raise no_pack(self.where, f"{name} of {path.stat().st_size:,} bytes")
            return decoded(path.read_bytes())
        except (OSError, ValueError) as error:
            raise no_pack(self.where, f"an unreadable {name}: {error}") from error


def unpack(file: Path, to: Path, bounds: ZipBounds = BOUNDS, *, durable: bool = True) -> PackHead:
    """Unpack a pack into a new folder, completely or not at all.

    Args:
        file: The ZIP file.
        to: The folder, which must not exist.
        bounds: Limits on the content of the file.
        durable: Whether to wait until all of it is on disk, once for all files.

    Raises:
        UserMistakes: It is not a pack, of a newer format, damaged, or changed; or the folder exists.
        OutputProblem: The folder cannot be written.
    """
    check_target(to, "to")
    with opened(file, bounds) as (archive, head), folder_beside(to, durable=durable) as draft:
        _extract(archive, head, draft, file.name)
    return head


@contextmanager
def opened(file: Path, bounds: ZipBounds = BOUNDS) -> Iterator[tuple[BoundedZip, PackHead]]:
    """Open a pack and check its file names, but not its contents.

    Raises:
        UserMistakes: It is not a pack, or one of a newer format.
    """
    if not file.is_file():
        raise Mistake(where="command line", found=str(file), allowed="an existing file").as_error()
    try:
        with BoundedZip(file, bounds) as archive:
            if HEAD not in archive.names:
                raise no_pack(file.name, f"a ZIP file without {HEAD} at the top level")
            head = read_head(archive.read(HEAD, MOST_HEAD), file.name)
            check_names(head, archive.names, file.name)
            yield archive, head
    except RefusedZip as error:
        raise no_pack(file.name, f"a file that {error}") from error


def _extract(archive: BoundedZip, head: PackHead, to: Path, where: str) -> None:
    (to / HEAD).write_bytes(archive.read(HEAD, MOST_HEAD))
    for name, packed in head.files.items():
        if archive.size(name) != packed.bytes:
            raise no_pack(where, f"{name!r} that differs from the packed file")
        path = to / name
        path.parent.mkdir(parents=True, exist_ok=True)
        total = hashlib.sha256()
        with path.open("xb") as target:
            for part in archive.chunks(name):
                total.update(part)
                target.write(part)
        if total.hexdigest() != packed.sha256:
            raise no_pack(where, f"{name!r} that differs from the packed file")
    _check_content(to, head, where)


@contextmanager
def reading(pack: Path, bounds: ZipBounds = BOUNDS) -> Iterator[PackFolder]:
    """Yield a pack as a folder; a ZIP file is unpacked temporarily.

    Raises:
        UserMistakes: It is not a pack.
    """
    if not pack.is_dir():
        with TemporaryDirectory(prefix="medtest-unpacked-") as scratch:
            folder = Path(scratch) / "pack"
            head = unpack(pack, folder, bounds, durable=False)
            yield PackFolder(folder=folder, where=pack.name, head=head)
        return
    path = pack / HEAD
    if not path.is_file() or path.stat().st_size > MOST_HEAD:
        raise no_pack(str(pack), f"a folder without {HEAD}")
    head = read_head(path.read_bytes(), str(pack))
    check_names(head, head.files, str(pack))
    _check_links(pack, head, str(pack))
    _check_content(pack, head, str(pack))
    changed = tuple(name for name, packed in head.files.items() if _sha256(pack / name) != packed.sha256)
    yield PackFolder(folder=pack, where=str(pack), head=head, changed=changed)


def _check_links(folder: Path, head: PackHead, where: str) -> None:
    """Refuse a folder with links, since packs contain none and data of untrusted packs are read in place.

    Raises:
        UserMistakes: A file of the pack is a link, is inside one, or there is one among its data.
    """
    listed = {path for name in head.files for path in (PurePosixPath(name), *PurePosixPath(name).parents)}
    links = sorted(str(path) for path in listed if (folder / path).is_symlink() and path != PurePosixPath("."))
    for place, folders, files in os.walk(folder / DATA):
        inside = (Path(place, name) for name in (*folders, *files))
        links += [str(path.relative_to(folder)) for path in inside if path.is_symlink()]
    if links:
        raise no_pack(where, f"a link, {printable(links[0])}, which packs never contain")


def _sha256(path: Path) -> str:
    try:
        return "" if path.is_symlink() else file_sha256(path)
    except OSError:
        return ""


def _check_content(folder: Path, head: PackHead, where: str) -> None:
    """Refuse content that is oversized, damaged or misleading to a reader.

    Raises:
        UserMistakes: A file has such content.
    """
    for name, packed in head.files.items():
        path = folder / name
        if path.name == SUITE_FILE and (mistakes := read_suite(path, f"{where}: {name}").mistakes):
            raise UserMistakes(mistakes[:5])
        if path.suffix in _READ_AT_ONCE and packed.bytes > MOST_TEXT:
            raise no_pack(where, f"{name} of {packed.bytes:,} bytes")
        if path.suffix != ".parquet":
            continue
        try:
            footer = pq.read_metadata(path)
            size = sum(footer.row_group(number).total_byte_size for number in range(footer.num_row_groups))
        except (pa.ArrowException, OSError) as error:
            raise no_pack(where, f"{path.name} that is not a Parquet file") from error
        if size > MOST_RECORDS or footer.num_rows > MOST_ROWS:
            raise no_pack(where, f"{path.name} of {footer.num_rows:,} rows, {size / 1e9:,.0f} GB unpacked")
        whole = answers.damage if path.parent.name in (answers.FOLDER, answers.THUMBNAILS) else damage
        if path.name != CASES and (why := whole(path)):
            raise no_pack(where, f"{path.name} that is {why}")
    if head.of_run is not None:
        _check_run(folder, head, where)


def _check_run(folder: Path, head: PackHead, where: str) -> None:
    """Check that a pack has its run's folder, and also the run it is relative to, if any."""
    facts = head.of_run
    if facts is None:
        return
    own, named = folder / facts.folder, [name for name in (facts.folder, facts.reference) if name]
    if any(f"{name}/{RUN_FILE}" not in head.files for name in named):
        raise no_pack(where, f"no {RUN_FILE} of its run")
    allowed = {(folder / facts.reference).resolve()} if facts.reference else set()
    for path in sorted(folder.rglob(RUN_FILE)):
        reference = read_object(path).get("reference")
        if reference and (own / str(reference)).resolve() not in allowed:
            raise no_pack(where, f"a run that is relative to {str(reference)[:120]!r}, which is not in the pack")
