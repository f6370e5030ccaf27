"""Hiding of the words of prompts in records: ``privacy: {prompts: none}``.

A prompt may describe a patient. Under this setting its words, and the prompts that a service reports to have used
instead, enter no record, hence no table, no report and nothing in MLflow. Fields compared by rules (pools, effects,
scenes) stay comparable: every name in them is replaced by its HMAC-SHA256, under the key of hashed ids
(:mod:`medtest.runner.privacy.rules`).
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medtest.core.errors import Mistake
from medtest.core.scenes import dumped
from medtest.core.tasks.base import Task
from medtest.readers.base import Reader
from medtest.runner.privacy.rules import ShownNames
from medtest.suite.model import Suite

_LENGTH = 12
_QUOTED = re.compile(r"[:\"'“”‘’«»]")


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenWords:
    """Hiding rules for the words in records.

    Attributes:
        key: Key of the hash; None to show words.
        said: Text columns of words, which are left empty.
        named: Text columns of JSON, in which every string is replaced.
    """

    key: bytes | None = None
    said: tuple[str, ...] = ()
    named: tuple[str, ...] = ()

    @classmethod
    def of(cls, suite: Suite, key: bytes | None) -> HiddenWords:
        """Return the hiding rules for a suite's records.

        Args:
            suite: The suite.
            key: Key of the hash (:attr:`medtest.runner.privacy.rules.ShownNames.word_key`), None to show words.
        """
        task: Task = suite.task
        if key is None or not task.prompts:
            return cls()
        return cls(key=key, said=task.storage.said_columns, named=task.storage.named_columns)

    def texts(self, texts: Mapping[str, str | None]) -> Mapping[str, str | None]:
        """Return text columns with hidden words."""
        return texts if self.key is None else {name: self.column(name, text) for name, text in texts.items()}

    def column(self, name: str, text: str | None) -> str | None:
        """Return one text column with hidden words."""
        if self.key is None or not text or name not in (*self.said, *self.named):
            return text
        return None if name in self.said else dumped(self.value(json.loads(text)))

    def value(self, value: Any) -> Any:
        """Return a JSON value with every string replaced; object keys, which medtest defines, stay."""
        if self.key is None:
            return value
        if isinstance(value, str):
            return f"w{self._hmac(value)[:_LENGTH]}"
        if isinstance(value, Mapping):
            return {key: self.value(inner) for key, inner in value.items()}
        return [self.value(inner) for inner in value] if isinstance(value, list | tuple) else value

    def sha256(self, sha256: str) -> str:
        """Return a replacement for the SHA-256 of a prompt, because short prompts could be found by trial."""
        return sha256 if self.key is None or not sha256 else self._hmac(sha256)

    def reason(self, reason: str) -> str:
        """Return a reason without quotations, because a service may repeat the prompt."""
        return reason if self.key is None else _QUOTED.split(reason, maxsplit=1)[0].strip()

    def _hmac(self, text: str) -> str:
        return hmac.new(self.key or b"", f"word\0{text}".encode(), hashlib.sha256).hexdigest()


def hidden_words(suite: Suite, home: Path) -> HiddenWords:
    """Return the hiding rules for a suite's records.

    Args:
        suite: The suite.
        home: Folder that holds the outputs; the key is that of this home, created if needed and missing.
    """
    return HiddenWords.of(suite, ShownNames.of(suite.privacy, home).word_key)


def check_reader(suite: Suite, reader: Reader[Any, Any]) -> None:
    """Refuse a second reader that needs the hidden words.

    Raises:
        UserMistakes: The reader needs them.
    """
    if suite.task.prompts and suite.privacy.prompts == "none" and reader.asks_words:
        raise Mistake(
            where="suite",
            key="oracles.reader",
            found=reader.name,
            allowed="a reader that asks about no words",
            fix="under privacy: {prompts: none} records hold no words to ask about; name it in the suite itself, where"
            " it reads during the run",
        ).as_error()
