"""Names of metrics and params as every MLflow store takes them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

VALUE_LENGTH = 5900
_KEY_LENGTH = 240
NOT_ALLOWED = re.compile(r"[^A-Za-z0-9_\-./ ]")


def metric_name(name: str) -> str:
    """Return a metric's name with nothing but the characters that every MLflow store takes."""
    return NOT_ALLOWED.sub("_", name)[:_KEY_LENGTH]


def flat_params(covers: Mapping[str, Any]) -> dict[str, str]:
    """Return what a digest covers as flat params: ``relations.blur``, ``system.fingerprint.weights``.

    Relations' and other parts' settings stay JSON text, so that a run has tens of params and not hundreds.
    """
    found: dict[str, str] = {}
    for key, value in covers.items():
        if key in {"seeds", "relations"} and isinstance(value, Mapping):
            for name, entry in value.items():
                found[f"{key}.{name}"] = _text(entry)
        elif key == "system" and isinstance(value, Mapping):
            for name, entry in value.items():
                if isinstance(entry, Mapping):
                    found |= {f"system.{name}.{inner}": _text(deep) for inner, deep in entry.items()}
                else:
                    found[f"system.{name}"] = _text(entry)
        elif isinstance(value, Mapping):
            found |= {f"{key}.{name}": _text(entry) for name, entry in value.items()}
        else:
            found[key] = _text(value)
    return found


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)


def clean_params(params: Mapping[str, str]) -> dict[str, str]:
    """Return params with keys that every store takes and values no longer than it keeps."""
    return {NOT_ALLOWED.sub("_", key)[:_KEY_LENGTH]: value[:VALUE_LENGTH] for key, value in params.items()}
