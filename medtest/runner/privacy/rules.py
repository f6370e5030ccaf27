"""Hashed seed ids, and reasons that give nothing away.

File names may be patient data. With ``privacy: {seed_ids: hashed}`` every id is replaced by an HMAC-SHA256 before it
leaves the worker; the key lies outside the outputs, so that whoever gets a folder cannot try names. Random numbers
still come from the plain id.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from medtest.api.redact import redact
from medtest.core.cases import SeedRef
from medtest.core.errors import Mistake, OutputProblem
from medtest.suite.model import Privacy

KEY_VARIABLE = "MEDTEST_HASH_KEY_FILE"
_KEY_BYTES = 32
_ID_LENGTH = 24
_MAX_REASON = 300
_POINTER = re.compile(r"0x[0-9a-fA-F]{5,}")
_ABSOLUTE = re.compile(r"(?<![\w.…~])(?:[A-Za-z]:\\|/)(?:[^\s:'\"<>|*?,;()\[\]]+[/\\])+([^\s:'\"<>|*?,;()\[\]/\\]*)")


def key_file() -> Path:
    """Return where the key lies: ``MEDTEST_HASH_KEY_FILE``, else ``~/.config/medtest/hash.key``."""
    named = os.environ.get(KEY_VARIABLE)
    if named:
        return Path(named).expanduser()
    config = os.environ.get("XDG_CONFIG_HOME")
    return (Path(config) if config else Path.home() / ".config") / "medtest" / "hash.key"


def load_key(home: Path) -> bytes:
    """Return the key, made readable for its owner alone when there is none.

    Args:
        home: Folder that holds the outputs, in which the key may not lie.

    Raises:
        UserMistakes: The key lies among the outputs, or is too short to be one.
        OutputProblem: It cannot be read or made.
    """
    path = key_file()
    if path.resolve().is_relative_to((home / "outputs").resolve()):
        raise Mistake(
            where=KEY_VARIABLE, found="a file below outputs/", fix="Keep the key where the results are not."
        ).as_error()
    try:
        if not path.exists():
            _make_key(path)
        key = path.read_bytes().strip()
    except OSError as error:
        raise OutputProblem(f"The key for hashed seed ids cannot be read or made: {error.strerror}") from error
    if len(key) < 16:
        raise Mistake(where=KEY_VARIABLE, found=f"{len(key)} bytes", allowed="a key of at least 16 bytes").as_error()
    return key


def _make_key(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_hex(_KEY_BYTES).encode())
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):  # unlike a rename, a link never replaces the key another process just made
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def key_fingerprint(key: bytes) -> str:
    """Return a name for the key that tells nothing about it; ids hashed with another key belong to another folder."""
    return _hmac(key, "fingerprint", "")


def _hmac(key: bytes, kind: str, text: str) -> str:
    return hmac.new(key, f"{kind}\0{text}".encode(), hashlib.sha256).hexdigest()[:_ID_LENGTH]


@dataclass(frozen=True, slots=True)
class ShownNames:
    """How ids are shown.

    Attributes:
        key: Key of the hash, or None for plain ids.
        word_key: Key of the hash of words of prompts (:mod:`medtest.runner.privacy.hidden_words`), or None for plain
            words.
    """

    key: bytes | None = None
    word_key: bytes | None = None

    @classmethod
    def of(cls, privacy: Privacy, home: Path) -> ShownNames:
        """Return how a suite's ids are shown; the key is that of this home, made where it is needed and missing."""
        wanted = (privacy.seed_ids == "hashed", privacy.prompts == "none")
        key = load_key(home) if any(wanted) else None
        return cls(*(key if one else None for one in wanted))

    def seed_id(self, dataset: str, seed_id: str) -> str:
        """Return the id as records show it."""
        return seed_id if self.key is None else _hmac(self.key, "seed", f"{dataset}\0{seed_id}")

    def cluster(self, ref: SeedRef) -> str:
        """Return the cluster as records show it; a seed that is its own cluster stays so."""
        if self.key is None:
            return ref.cluster
        if ref.cluster == ref.seed_id:
            return self.seed_id(ref.dataset, ref.seed_id)
        return _hmac(self.key, "cluster", ref.cluster)


class Scrubber:
    """Takes out of texts what must not leave this machine.

    Args:
        names: How ids are shown.
        hide: Texts and what stands for them (the data root, the home folder).
    """

    def __init__(self, names: ShownNames, hide: tuple[tuple[str, str], ...] = ()) -> None:
        self._names = names
        self._hide = tuple(sorted(((a, b) for a, b in hide if len(a) > 1), key=lambda pair: -len(pair[0])))

    def reason(self, text: str, ref: SeedRef | None) -> str:
        """Return one short line without keys, absolute paths and memory addresses; with hashed ids, without names."""
        line = " ".join(redact(text).split())
        for secret, shown in self._hide:
            line = line.replace(secret, shown)
        line = _ABSOLUTE.sub(r"…/\1", line)
        line = _POINTER.sub("0x…", line)
        if ref is not None and self._names.key is not None:
            line = self._without_names(line, ref)
        return line if len(line) <= _MAX_REASON else f"{line[: _MAX_REASON - 1]}…"

    def params(self, value: Any, ref: SeedRef) -> Any:
        """Return parameters with names of the seed replaced in every string; the same object for plain ids."""
        if self._names.key is None:
            return value
        if isinstance(value, str):
            return self._without_names(value, ref)
        if isinstance(value, dict):
            return {key: self.params(inner, ref) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.params(inner, ref) for inner in value]
        return value

    def _without_names(self, text: str, ref: SeedRef) -> str:
        locator = PurePath(ref.locator)
        shown = self._names.seed_id(ref.dataset, ref.seed_id)
        secrets_ = {ref.locator, locator.name, locator.stem, ref.seed_id, ref.cluster}
        for secret in sorted(secrets_ - {""}, key=len, reverse=True):
            text = re.sub(rf"(?<![0-9A-Za-z]){re.escape(secret)}(?![0-9A-Za-z])", shown, text)
        return text
