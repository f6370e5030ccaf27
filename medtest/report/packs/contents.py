"""Contents of a pack: ``pack.json``, which lists every other file with its SHA-256, and the permitted files.

A suite's pack::

    pack.json                      pack head: content, versions and file list
    suites/NAME.yaml               the suite as composed, with every setting of its parts
    suites/excluded_by_study.csv   cases that raters judged unfit, if the suite excludes them
    as_written/*.yaml              the suite as written, and those that it extends
    lock.txt                       versions of the installed packages that medtest depends on
    seeds.csv                      every seed with the SHA-256 of its pixels and of its expected answer
    followups.csv                  some follow-ups with their SHA-256
    data/**.png                    pixels of the seeds, if requested

A run's pack has ``outputs/SUITE/SYSTEM/DIGEST/`` of the run, and of the run that it is relative to, instead of the
suite and its lists. It holds the inputs of tables and report, but neither of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from medtest.core import __version__
from medtest.core.errors import Mistake, UserMistakes
from medtest.core.files import file_sha256
from medtest.core.files.zips import name_refused

HEAD = "pack.json"
FORMAT = 1
"""Incremented when the interpretation of an existing pack changes."""
SUITES, WRITTEN, DATA = "suites", "as_written", "data"
LOCK, SEEDS, FOLLOW_UPS = "lock.txt", "seeds.csv", "followups.csv"
MOST_HEAD = 32 << 20
"""Maximum size of ``pack.json``, in bytes."""

_ID = r"_?[a-z0-9][a-z0-9_-]{0,63}"
_PICTURE = r"(?:images|masks)/[0-9a-f]{2}/[0-9a-f]{64}\.png"
_OF_SUITE = (
    rf"(?:{SUITES}|{WRITTEN})/{_ID}\.yaml",
    rf"{SUITES}/excluded_by_study\.csv",
    *(re.escape(name) for name in (LOCK, SEEDS, FOLLOW_UPS)),
    rf"{DATA}/.+\.png",
)
_IN_VIEW = (
    r"run\.json|suite\.yaml|cases\.parquet|readings\.json|excluded_by_study\.csv"
    r"|samples/[^/]+\.(?:png|jpe?g|json)|tables/[^/]+\.(?:csv|tex)"
)
_OF_RUN = (
    re.escape(LOCK),
    rf"outputs/[^/]+/[^/]+/[^/]+/(?:(?:views/[^/]+/)?(?:{_IN_VIEW})"
    rf"|records\.parquet|records/shard-[^/]+\.parquet|(?:answers|thumbnails)/pack-[0-9a-f]{{24}}\.parquet"
    rf"|gates\.jsonl|inside/[^/]+\.(?:json|csv|png)"
    rf"|(?:crafted|pictures)/{_PICTURE})",
)
Kind = Literal["suite", "run"]
_ALLOWED: Mapping[str, re.Pattern[str]] = {
    "suite": re.compile("|".join(_OF_SUITE)),
    "run": re.compile("|".join(_OF_RUN)),
}


class _Fields(BaseModel):
    model_config = ConfigDict(frozen=True)


class PackedFile(_Fields):
    """A file of a pack."""

    bytes: int = Field(ge=0)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class PackedPart(_Fields):
    """A part named by a suite: its name, class, revision and package."""

    name: str
    target: str
    revision: int
    origin: str
    version: str = ""


class SuiteFacts(_Fields):
    """Facts of a suite's pack beside its files.

    Attributes:
        parts: Parts by key, such as ``relations.blur``.
        systems: Content covered by the digest of each system's run, by system id; unavailable systems are left out.
        limit: Number of seeds of each data set covered by the lists; None for all.
        left_out: Relations without follow-ups in the list, with the reason.
        hashed: Fingerprints of the keys that hash seed ids and words of prompts, where they are hashed.
        needs_data: Whether its seeds are read from the user's folder.
        runs_from_data: Whether the suite's seeds are read from ``data/``.
    """

    parts: dict[str, PackedPart] = {}
    systems: dict[str, dict[str, Any]] = {}
    limit: int | None = None
    left_out: dict[str, str] = {}
    hashed: dict[str, str] = {}
    needs_data: bool = False
    runs_from_data: bool = False


class RunFacts(_Fields):
    """Facts of a run's pack beside its files.

    Attributes:
        folder: Folder of the run within the pack.
        system: The system's name in records.
        reference: Folder of the run that it is relative to, or "".
        made: SHA-256 of the tables and the report made from this pack, by their names below ``folder``.
        lacking: Tables of the packed run that differ or are missing when made from this pack alone.
    """

    folder: str
    system: str
    reference: str = ""
    made: dict[str, str] = {}
    lacking: list[str] = []


class PackHead(_Fields):
    """``pack.json``.

    Attributes:
        format: :data:`FORMAT` of the packing version.
        kind: Kind of the pack.
        medtest: Version that packed it.
        suite: Name of the suite.
        suite_version: Version of the suite.
        privacy: Privacy settings of the suite.
        versions: Versions that figures may depend on: Python, processor, packages by name.
        files: Every other file.
        of_suite: Facts of a suite's pack.
        of_run: Facts of a run's pack.
    """

    format: int
    kind: Kind
    medtest: str
    suite: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")
    suite_version: str
    privacy: dict[str, str]
    versions: dict[str, str]
    files: dict[str, PackedFile]
    of_suite: SuiteFacts | None = None
    of_run: RunFacts | None = None

    def text(self) -> str:
        """Return the file's text, the same for the same content."""
        values = self.model_dump(mode="json", exclude_none=True)
        return json.dumps(values, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def packed_files(folder: Path) -> dict[str, PackedFile]:
    """Return every file at or below a folder, in the format of ``pack.json``.

    Raises:
        OSError: A file cannot be read.
    """
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): PackedFile(bytes=path.stat().st_size, sha256=file_sha256(path))
        for path in paths
    }


def read_head(content: bytes, where: str) -> PackHead:
    """Read ``pack.json``.

    Args:
        content: Bytes of the file.
        where: Name of the pack in messages.

    Raises:
        UserMistakes: It is not a pack head, or of a newer format.
    """
    try:
        values = json.loads(content.decode("utf-8"))
        number = values["format"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise no_pack(where, f"an unreadable {HEAD}") from error
    if isinstance(number, int) and number > FORMAT:
        raise Mistake(
            where=where,
            key="format",
            found=f"{number}, packed by medtest {printable(str(values.get('medtest', '?'))[:40])}",
            allowed=f"{FORMAT} at most, by medtest {__version__}",
            fix="pip install --upgrade medtest",
        ).as_error()
    try:
        head = PackHead.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        key = printable(".".join(str(part) for part in first["loc"])[:200])
        raise no_pack(where, f"{HEAD} with an invalid {key}") from error
    if (head.of_suite is None) == (head.kind == "suite") or (head.of_run is None) == (head.kind == "run"):
        raise no_pack(where, f"{HEAD} without facts of the {head.kind}")
    return head


def check_names(head: PackHead, names: Iterable[str], where: str) -> None:
    """Check that a pack holds exactly the files of its head, and that all of them are data.

    Raises:
        UserMistakes: A file is missing, unlisted, or of a kind that no pack has.
    """
    present = set(names) - {HEAD}
    pattern = _ALLOWED[head.kind]
    odd = sorted(name for name in {*present, *head.files} if name_refused(name) or not pattern.fullmatch(name))
    if odd:
        raise no_pack(where, f"{odd[0][:120]!r}{_more(odd)}, which no pack of a {head.kind} has")
    missing, beside = sorted(head.files.keys() - present), sorted(present - head.files.keys())
    if missing or beside:
        problem = f"no {missing[0]!r}{_more(missing)}" if missing else f"{beside[0]!r}{_more(beside)} beside it"
        raise no_pack(where, f"{problem}: it was changed since it was packed")


def printable(text: str) -> str:
    """Return untrusted text with non-printable characters replaced, safe for a terminal."""
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)


def _more(names: list[str]) -> str:
    return f" and {len(names) - 1:,} more" if len(names) > 1 else ""


def no_pack(where: str, found: str) -> UserMistakes:
    """Return the error for something that is not a pack, or an incomplete one."""
    return Mistake(
        where=where,
        found=found,
        allowed="a file that medtest pack wrote, or the folder that medtest unpack made of one",
        fix="medtest pack suite=NAME to=FILE.zip",
    ).as_error()
