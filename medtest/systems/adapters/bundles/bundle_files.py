"""Files of a MONAI bundle, a folder or a zip: located and read within size limits, without unpacking."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any

import yaml

from medtest.core.errors import MedtestError
from medtest.systems.checkpoints.archives import check_archive
from medtest.systems.files import cached_sha256

CONFIGS = ("configs/inference.json", "configs/inference.yaml", "configs/inference.yml")
METADATA = ("configs/metadata.json",)
STATE = ("models/model.pt", "models/model.pth", "models/model.safetensors")
SCRIPT = ("models/model.ts",)
MOST_TEXT = 2 << 20
MOST_WEIGHTS = 4 << 30
"""Size limit in bytes of a zip member read into memory; a folder's file may have any size."""


class BundleFiles:
    """Bundle's files by their names inside it (``configs/inference.json``).

    Args:
        path: The bundle: a folder, or a zip with the bundle at its top or in one folder.

    Raises:
        MedtestError: It is neither.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._zip: dict[str, zipfile.ZipInfo] | None = None
        if path.is_dir():
            return
        check_archive(path)
        try:
            with zipfile.ZipFile(path) as archive:
                members = [member for member in archive.infolist() if not member.is_dir()]
        except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise MedtestError(f"{path.name}: neither a folder nor a zip that can be read: {error}") from error
        tops = {_top(member.filename) for member in members if member.filename.endswith(CONFIGS)}
        if len(tops) > 1:
            raise MedtestError(f"{path.name}: holds several bundles")
        top = next(iter(tops), "")
        self._zip = {member.filename.removeprefix(top): member for member in members if member.filename.startswith(top)}

    @property
    def is_zip(self) -> bool:
        """Whether the bundle is a zip."""
        return self._zip is not None

    def first(self, names: tuple[str, ...]) -> str | None:
        """Return the first of these files that exists."""
        return next((name for name in names if self._has(name)), None)

    def _has(self, name: str) -> bool:
        return (self.path / name).is_file() if self._zip is None else name in self._zip

    @contextmanager
    def opened(self, name: str, most: int) -> Iterator[IO[bytes]]:
        """Open a file as seekable bytes; members of a zip are read into memory.

        Args:
            name: Its name inside the bundle.
            most: Size limit in bytes.

        Raises:
            MedtestError: It cannot be read or is too large.
        """
        try:
            if self._zip is None:
                with (self.path / name).open("rb") as file:
                    yield file
                return
            with zipfile.ZipFile(self.path) as archive, archive.open(self._zip[name]) as member:
                content = member.read(most + 1)  # the size stated in the archive may be wrong
        except (OSError, zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError) as error:
            raise MedtestError(f"{self.path.name}: {name} cannot be read: {str(error)[:200]}") from error
        if len(content) > most:
            raise MedtestError(f"{self.path.name}: {name} is larger than {most >> 20} MiB")
        yield io.BytesIO(content)

    def sha256(self, name: str) -> str:
        """Return the SHA-256 of a file's bytes, in hexadecimal."""
        if self._zip is None:
            return cached_sha256(self.path / name)
        with self.opened(name, MOST_WEIGHTS) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]

    def table(self, name: str) -> dict[str, Any]:
        """Return a JSON or YAML file as plain data.

        Raises:
            MedtestError: It is missing, too large, or no mapping.
        """
        with self.opened(name, MOST_TEXT) as file:
            content = file.read(MOST_TEXT + 1)
        if len(content) > MOST_TEXT:
            raise MedtestError(f"{self.path.name}: {name} is too large to be a configuration")
        try:
            text = content.decode("utf-8")
            content_table = json.loads(text) if name.endswith(".json") else yaml.safe_load(text)
        except (ValueError, yaml.YAMLError, RecursionError) as error:
            raise MedtestError(f"{self.path.name}: {name} cannot be read: {str(error)[:200]}") from error
        if not isinstance(content_table, dict):
            raise MedtestError(f"{self.path.name}: {name} holds no table of settings")
        return {str(key): value for key, value in content_table.items()}


def _top(filename: str) -> str:
    """Return the folder inside a zip that holds a bundle, with its slash, from the path of its configuration."""
    parts = PurePosixPath(filename).parts[:-2]
    return "/".join(parts) + "/" if parts else ""
