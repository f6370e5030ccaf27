"""Hashed seed ids, and reasons without private information.

File names may be patient data. With ``privacy: {seed_ids: hashed}`` every id is replaced by an HMAC-SHA256 before it
leaves the worker; the key is kept outside the outputs, so that the recipient of a folder cannot test names. Random
numbers still come from the plain id.
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
    """Return the path of the key: ``MEDTEST_HASH_KEY_FILE``, else ``~/.config/medtest/hash.key``."""
    override = os.environ.get(KEY_VARIABLE)
    if override:
        return Path(override).expanduser()
    config = os.environ.get("XDG_CONFIG_HOME")
    return (Path(config) if config else Path.home() / ".config") / "medtest" / "hash.key"


def load_key(home: Path) -> bytes:
    """Return the key; create it, readable only for its owner, if it does not exist.

    Args:
        home: Folder that holds the outputs, which must not contain the key.

    Raises:
        UserMistakes: The key is among the outputs, or is too short.
        OutputProblem: It cannot be read or created.
    """
    path = key_file()
    if path.resolve().is_relative_to((home / "outputs").resolve()):
        raise Mistake(
            where=KEY_VARIABLE, found="a file below outputs/", fix="Keep the key outside the results."
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
        with suppress(
            FileExistsError
        ):  # unlike a rename, a link never replaces a key that another process just created
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def key_fingerprint(key: bytes) -> str:
    """Return a fingerprint that does not reveal the key; ids hashed with another key belong to another folder."""
    return _hmac(key, "fingerprint", "")


def _hmac(key: bytes, kind: str, text: str) -> str:
    return hmac.new(key, f"{kind}\0{text}".encode(), hashlib.sha256).hexdigest()[:_ID_LENGTH]


@dataclass(frozen=True, slots=True)
class ShownNames:
    """Display of ids.

    Attributes:
        key: Key of the hash, or None for plain ids.
        word_key: Key of the hash of words of prompts (:mod:`medtest.runner.privacy.hidden_words`), or None for plain
            words.
    """

    key: bytes | None = None
    word_key: bytes | None = None

    @classmethod
    def of(cls, privacy: Privacy, home: Path) -> ShownNames:
        """Return the display of a suite's ids; the key is that of this home, created if needed and missing."""
        hidden = (privacy.seed_ids == "hashed", privacy.prompts == "none")
        key = load_key(home) if any(hidden) else None
        return cls(*(key if is_hidden else None for is_hidden in hidden))

    def seed_id(self, dataset: str, seed_id: str) -> str:
        """Return the id shown in records."""
        return seed_id if self.key is None else _hmac(self.key, "seed", f"{dataset}\0{seed_id}")

    def cluster(self, ref: SeedRef) -> str:
        """Return the cluster shown in records; a seed that is its own cluster remains so."""
        if self.key is None:
            return ref.cluster
        if ref.cluster == ref.seed_id:
            return self.seed_id(ref.dataset, ref.seed_id)
        return _hmac(self.key, "cluster", ref.cluster)


class Scrubber:
    """Remover of private information from texts.

    Args:
        names: Display of ids.
        hide: Texts and their replacements (the data root, the home folder).
    """

    def __init__(self, names: ShownNames, hide: tuple[tuple[str, str], ...] = ()) -> None:
        self._names = names
        self._hide = tuple(sorted(((a, b) for a, b in hide if len(a) > 1), key=lambda pair: -len(pair[0])))

    def reason(self, text: str, ref: SeedRef | None) -> str:
        """Return one short line without keys, absolute paths and addresses; with hashed ids, also without names."""
        line = " ".join(redact(text).split())
        for secret, replacement in self._hide:
            line = line.replace(secret, replacement)
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
        shown_id = self._names.seed_id(ref.dataset, ref.seed_id)
        secrets_ = {ref.locator, locator.name, locator.stem, ref.seed_id, ref.cluster}
        for secret in sorted(secrets_ - {""}, key=len, reverse=True):
            text = re.sub(rf"(?<![0-9A-Za-z]){re.escape(secret)}(?![0-9A-Za-z])", shown_id, text)
        return text
