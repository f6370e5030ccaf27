"""Checks of a model's address and name, including keys typed in their place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medtest.api.calls.client import Endpoint
from medtest.api.redact import SECRET_NAMES, redact
from medtest.core.errors import Mistake


def holds_secret(value: object, name: str = "") -> bool:
    """Return True if extra body fields contain a likely key, judged by name or value."""
    if isinstance(value, Mapping):
        return any(holds_secret(item, str(key)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return any(holds_secret(item, name) for item in value)
    if not isinstance(value, str) or not value:
        return False
    return bool(SECRET_NAMES.search(name)) or redact(value) != value


def key_as_name(where: str, key: str) -> Mistake:
    """Return the mistake of typing a likely key as the model name, which would appear in records and reports."""
    return Mistake(
        where=where,
        key=key,
        found="what looks like a key (not shown)",
        allowed="the model's name as the server knows it",
        fix="name the environment variable that holds the key in key_variable",
    )


def unnamed(
    own: Any,
    endpoint: Endpoint,
    where: str,
    typed: str = "",
    *,
    model: str,
    pictures: bool = True,
    sends: str = "images",
) -> list[Mistake]:
    """Return missing or wrong parts of a model's address, key and name.

    Args:
        own: Its settings: ``base_url`` and ``model``.
        endpoint: Endpoint of its requests.
        where: Name of the asking part, for messages.
        typed: Prefix of keys on the command line.
        model: The key of the model's name.
        pictures: Whether images are sent.
        sends: Kind of content sent besides words: ``images``, or ``prompts`` for generated pictures.
    """
    mistakes: list[Mistake] = []
    if own.base_url:
        mistakes += endpoint.mistakes(where, pictures=pictures and sends == "images", prompts=sends == "prompts")
    else:
        allowed, fix = "the server's address, https://host/v1", f"type {typed}base_url=URL"
        mistakes.append(Mistake(where=where, key=f"{typed}base_url", found="nothing", allowed=allowed, fix=fix))
    if not own.model.strip():
        allowed, fix = "the model's name as the server knows it", f"type {typed}model_name=NAME"
        mistakes.append(Mistake(where=where, key=model, found="nothing", allowed=allowed, fix=fix))
    elif holds_secret(own.model):
        mistakes.append(key_as_name(where, model))
    return mistakes
