"""Keys that were typed where a name or a field of a body belongs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medtest.api.redact import SECRET_NAMES, redact
from medtest.errors import Mistake


def holds_secret(value: Any, name: str = "") -> bool:
    """Whether further fields of a body hold what looks like a key, by its name or by itself."""
    if isinstance(value, Mapping):
        return any(holds_secret(item, str(key)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return any(holds_secret(item, name) for item in value)
    if not isinstance(value, str) or not value:
        return False
    return bool(SECRET_NAMES.search(name)) or redact(value) != value


def key_as_name(where: str, key: str) -> Mistake:
    """Return the mistake of typing what looks like a key as a model's name, which stands in records and reports."""
    return Mistake(
        where=where,
        key=key,
        found="what looks like a key (not shown)",
        allowed="the model's name as the server knows it",
        fix="name the environment variable that holds the key in key_variable",
    )
