"""User's command-line tool as a system under test: files in, files out, no shell."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from medtest.core.cases import Image, ImageSpec, Json
from medtest.core.errors import BadOutput, Mistake
from medtest.core.plugins import TRUSTED
from medtest.systems.adapters.image_files import SUFFIXES, read_image, write_image
from medtest.systems.base import Algorithm, RawAnswer, SystemSettings
from medtest.systems.files import cached_sha256

INPUT, OUTPUT = "{input}", "{output}"
FORM = "a program and its arguments with {input} and {output}, as 'mytool --denoise {input} {output}'"
_POLL_SECONDS = 0.02
_LAST_WORDS = 400
"""Bytes of a failing tool's output that enter the reason."""


class CommandSettings(SystemSettings):
    """Settings of a command-line tool.

    Attributes:
        command: Program and arguments; ``{input}`` and ``{output}`` are replaced by the two files; it is split like in
            a shell but run without one: no pipes, no wildcards, no variables.
        format: Format of both files: ``png`` (8 and 16 bit, two-dimensional), ``npy`` or ``nii`` (everything).
        seconds: Time limit per image; the tool and its children are killed.
        max_megabytes: Limit on the total size of written files; the tool is killed above.
    """

    command: str = Field(default="", json_schema_extra=TRUSTED)
    format: Literal["png", "npy", "nii"] = "png"
    seconds: float = Field(default=60.0, gt=0, le=86_400)
    max_megabytes: float = Field(default=256.0, gt=0, le=1_000_000)


class Command(Algorithm):
    """Program that reads an image file and writes another: an image, or a region (labels; 0 is outside).

    It runs once per image, in a temporary folder, with an empty standard input. A non-zero exit code, a missing or
    unreadable output, and an exceeded limit become the ERROR of that case. The digest of a run covers the command's
    words and the SHA-256 of the program and of every argument that is a file.
    """

    Settings: ClassVar[type[SystemSettings]] = CommandSettings
    settings: CommandSettings
    tasks: ClassVar[tuple[str, ...]] = ("image", "region")

    def check(self) -> Sequence[Mistake]:
        """Return the problems of the command, without running it."""
        command = self.settings.command
        try:
            words = _words(command)
        except ValueError as error:
            return [Mistake(where=self.name, key="command", found=f"{command!r} ({error})", allowed=FORM)]
        if not words:
            fix = "type it on the command line: command='mytool {input} {output}'"
            return [Mistake(where=self.name, key="command", found="nothing", allowed=FORM, fix=fix)]
        missing = [sign for sign in (INPUT, OUTPUT) if not any(sign in word for word in words[1:])]
        if missing:
            return [Mistake(where=self.name, key="command", found=f"no {' and no '.join(missing)}", allowed=FORM)]
        if shutil.which(words[0]) is None:
            problem = f"{words[0]}, which is not a program that can be run"
            return [Mistake(where=self.name, key="command", found=problem, allowed="a program on PATH, or its path")]
        return ()

    def fingerprint(self) -> dict[str, Json]:
        """Return the command's words, with files replaced by their SHA-256."""
        words: list[Json] = []
        for number, word in enumerate(_words(self.settings.command)):
            program = shutil.which(word) if number == 0 else word
            path = None if program is None else Path(program)
            is_file = path is not None and path.is_file()
            words.append(f"sha256:{cached_sha256(path)}" if is_file and path is not None else word)
        return {"command": words}

    def answer(self, image: Image, spec: ImageSpec) -> RawAnswer:
        """Run the tool on one image."""
        with tempfile.TemporaryDirectory(prefix="medtest-") as name:
            folder = Path(name)
            suffix = SUFFIXES[self.settings.format]
            source, result = folder / f"input{suffix}", folder / f"output{suffix}"
            write_image(source, image, spec)
            words = [
                word.replace(INPUT, str(source)).replace(OUTPUT, str(result)) for word in _words(self.settings.command)
            ]
            self._run(words, folder, source)
            if not result.is_file():
                raise BadOutput("the tool ended well and wrote no output")
            most = int(self.settings.max_megabytes * 1e6)
            region = self.task.masks
            return read_image(result, spec, max_bytes=most, max_values=4 * image.size, region=region)

    def _run(self, words: list[str], folder: Path, source: Path) -> None:
        log = folder / "said.txt"
        with log.open("wb") as out:
            try:
                process = subprocess.Popen(  # noqa: S603 - the user's own command, without a shell
                    words, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
                )
            except OSError as error:
                raise BadOutput(f"the tool cannot be started: {error.strerror}") from error
            try:
                self._watch(process, folder, source)
            finally:
                _kill(process)  # its children too, in every case
        if process.returncode:
            raise BadOutput(f"the tool ended with exit code {process.returncode}{_last_words(log, folder)}")

    def _watch(self, process: subprocess.Popen[bytes], folder: Path, source: Path) -> None:
        """Wait for a process to end within the limits."""
        end = time.monotonic() + self.settings.seconds
        wait = _POLL_SECONDS
        while process.poll() is None:
            if time.monotonic() > end:
                raise BadOutput(f"the tool was stopped after {self.settings.seconds:g} s")
            written = sum(path.stat().st_size for path in _files(folder) if path != source)
            if written > self.settings.max_megabytes * 1e6:
                raise BadOutput(f"the tool was stopped: it wrote more than {self.settings.max_megabytes:g} MB")
            time.sleep(wait)
            wait = min(0.25, 1.5 * wait)


def _words(command: str) -> list[str]:
    """Return a command's words; a leading ``~`` is expanded as in a shell."""
    words = shlex.split(command)
    return [str(Path(word).expanduser()) if word.startswith("~/") else word for word in words]


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):  # the whole group has already ended
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _last_words(log: Path, folder: Path) -> str:
    text = log.read_bytes()[-_LAST_WORDS:].decode("utf-8", "replace").replace(str(folder), "…").strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f": {lines[-1]}" if lines else ""
