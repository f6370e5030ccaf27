"""pandas and torch, loaded at their first use: commands and workers that need neither start without them."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["pd", "torch"]


class _Deferred:
    """Stand-in of a module that passes on every attribute."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: ModuleType | None = None

    def __getattr__(self, name: str) -> Any:
        if self._module is None:  # import_module at every attribute takes microseconds
            self._module = import_module(self._name)
        return getattr(self._module, name)


if TYPE_CHECKING:
    import pandas as pd
    import torch
else:
    pd, torch = _Deferred("pandas"), _Deferred("torch")
