"""Atomic writing of packs: a complete file or folder, or none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

from medtest.core.errors import OutputProblem, typed_error
from medtest.core.files import file_sha256
from medtest.core.files.zips import RefusedZip, write_zip
from medtest.runner.folder import output_problems, sync_folder, sync_tree, writing


def check_target(to: Path, key: str) -> None:
    """Check that a target does not exist and that its parent folder does.

    Raises:
        UserMistakes: The target exists, or its parent folder does not.
    """
    if to.exists() or to.is_symlink():
        raise typed_error(key, f"{to}, which exists", "a new name", f"move it aside, or choose another {key}=")
    if not to.absolute().parent.is_dir():
        raise typed_error(key, str(to), "a name in an existing folder")


def write_pack(stage: Path, to: Path) -> tuple[str, int]:
    """Write every file of a folder into a ZIP file.

    Args:
        stage: The folder.
        to: The file.

    Returns:
        SHA-256 and size of the file.

    Raises:
        OutputProblem: It cannot be written, or would be unreadable.
    """
    files = [(path.relative_to(stage).as_posix(), path) for path in stage.rglob("*") if path.is_file()]
    try:
        with writing(to) as target:
            write_zip(target, files)
    except RefusedZip as error:
        raise OutputProblem(f"{to.name} {error}. Nothing was written.") from error
    return file_sha256(to), to.stat().st_size


@contextmanager
def folder_beside(to: Path, *, durable: bool = True) -> Iterator[Path]:
    """Yield a new folder that becomes ``to`` when the block ends without an error and is removed otherwise.

    If the process is killed, the folder remains as ``.NAME.….part``, never as ``to``: everything is on disk before the
    rename.

    Args:
        to: The folder to create.
        durable: Whether to wait for the disk, once; not needed for a folder that is removed soon.

    Raises:
        UserMistakes: ``to`` was created meanwhile.
        OutputProblem: It cannot be written.
    """
    with output_problems(to):
        draft = Path(mkdtemp(prefix=f".{to.name}.", suffix=".part", dir=to.absolute().parent))
    try:
        with output_problems(to):
            yield draft
            check_target(to, "to")
            draft.chmod(0o777 & ~_umask())
            if durable:
                sync_tree(draft)
            draft.rename(to)
            if durable:
                sync_folder(to.absolute().parent)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def _umask() -> int:
    before = os.umask(0o077)
    os.umask(before)
    return before
