"""Verification of lists of SHA-256, of frozen plans and of evidence, for ``medtest check``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from medtest.core.errors import OutputProblem
from medtest.core.files import file_sha256, read_object
from medtest.evidence.signing import SIGNATURE, verify
from medtest.runner.folder import MANIFEST, RUN_FILE
from medtest.runner.reporting.frozen import is_plan, is_whole

INDEX = ".sha256"
"""End of the name of an evidence document's list of files."""


class FileState(StrEnum):
    """State of a listed file."""

    SAME = "unchanged"
    CHANGED = "changed"
    MISSING = "missing"


@dataclass(frozen=True, kw_only=True)
class CheckedList:
    """Result of the check of a list of files, or of a frozen plan.

    Attributes:
        files: State of every listed file by its name; none for a plan.
        signature: Whether its signature is good, and the result of the check as one line; None if it has none.
        whole: False for a plan whose content does not have the hash that it states.
    """

    files: Mapping[str, FileState] = field(default_factory=dict)
    signature: tuple[bool, str] | None = None
    whole: bool = True

    @property
    def holds(self) -> bool:
        """True if every file is unchanged, and a signature, if there is one, is good."""
        unchanged = all(state is FileState.SAME for state in self.files.values())
        return unchanged and self.whole and (self.signature is None or self.signature[0])


def listed_in(path: Path) -> Path | None:
    """Return the list that a path names: a list, a frozen plan, or a folder of a run or of evidence; else None.

    Raises:
        OutputProblem: The list beside a document cannot be read.
    """
    if path.is_dir():
        if (path / RUN_FILE).is_file() and (path / MANIFEST).is_file():
            return path / MANIFEST
        lists = [file for file in sorted(path.glob(f"*{INDEX}")) if file.name != MANIFEST]
        return lists[0] if len(lists) == 1 else None
    if path.suffix == INDEX and path.is_file():
        return path
    if path.suffix == ".json" and path.is_file() and is_plan(read_object(path)):
        return path
    beside = path.with_suffix(INDEX)
    if path.suffix not in (".html", ".pdf") or not path.is_file() or not beside.is_file():
        return None
    return beside if path.name in read_list(beside) else None


def check(path: Path, *, signers: Path | None = None) -> CheckedList:
    """Check a list of files, or a frozen plan, and its signature.

    Args:
        path: The list or the plan, from :func:`listed_in`.
        signers: Public key, or ``allowed_signers`` of ``ssh-keygen``, that the signature must belong to; None accepts
            any key.

    Raises:
        OutputProblem: The list cannot be read.
        UserMistakes: ``ssh-keygen`` is not installed, or the file of signers holds no key.
    """
    signed = path.with_name(path.name + SIGNATURE).is_file()
    signature = verify(path, signers) if signed or signers is not None else None
    if path.suffix == ".json":
        return CheckedList(whole=is_whole(read_object(path)), signature=signature)
    return CheckedList(files=check_list(path), signature=signature)


def check_list(path: Path) -> dict[str, FileState]:
    """Return the state of every file of a list in the format of ``sha256sum``; names are relative to its folder.

    Raises:
        OutputProblem: The list cannot be read.
    """
    states: dict[str, FileState] = {}
    for name, sha256 in read_list(path).items():
        try:
            file = path.parent / name
            if not file.is_file():  # a device or a pipe may never end
                states[name] = FileState.MISSING
            else:
                states[name] = FileState.SAME if file_sha256(file) == sha256 else FileState.CHANGED
        except (OSError, ValueError):
            states[name] = FileState.MISSING
    return states


def read_list(path: Path) -> dict[str, str]:
    """Return the SHA-256 of a list's files by name.

    Raises:
        OutputProblem: It cannot be read, or is no such list.
    """
    files: dict[str, str] = {}
    try:
        for line in path.read_text(encoding="utf-8", errors="surrogateescape").removesuffix("\n").split("\n"):
            digest, _, name = line.removeprefix("\\").removesuffix("\r").partition("  ")
            if len(digest) != 64 or not name:
                raise ValueError(f"the line {line[:40]!r}")
            escaped = line.startswith("\\")
            files[_unescaped(name) if escaped else name] = digest
    except (OSError, ValueError) as error:
        raise OutputProblem(f"{path.parent.name}/{path.name} is no list of SHA-256: {error}") from error
    return files


def _unescaped(name: str) -> str:
    return name.replace("\\\\", "\0").replace("\\n", "\n").replace("\\r", "\r").replace("\0", "\\")
