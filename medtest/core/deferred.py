"""pandas and torch, loaded at their first use: commands and workers that need neither start without them."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["pd", "torch"]


class _Deferred(ModuleType):
    """Stand-in of a module that passes on every attribute."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.__name__), name)


if TYPE_CHECKING:
    import pandas as pd
    import torch
else:
    pd, torch = _Deferred("pandas"), _Deferred("torch")
