"""Full unpickling of an old checkpoint, which runs its code, to extract its weights. Runs in a separate process.

``python -m medtest.systems.checkpoints.unpickle IN OUT`` is started only by :mod:`medtest.systems.checkpoints.convert`,
after the user has confirmed that the file is trusted. Its answer is one line: :data:`MARK` and a JSON object.
"""

from __future__ import annotations

import importlib
import json
import pickle
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from medtest.core.deferred import torch
from medtest.core.errors import MedtestError
from medtest.systems.checkpoints.archives import check_archive

DEPTH = 4
MARK = "medtest-answer: "
"""Prefix of the line with the answer; code of the file may print before and after."""


def stand_in(module: str, name: str) -> type[Any]:
    """Return a class that replaces one whose code is not available.

    A model that was pickled whole refers to the classes of its authors' code. Its parameters do not need that code:
    they are in the attributes that every ``torch.nn.Module`` has. Settings of the training script (yacs, easydict and
    others) next to the weights unpickle as calls, dictionaries or lists; their content is discarded.
    """
    from torch import nn

    def begin(self: nn.Module, *_: Any, **__: Any) -> None:
        nn.Module.__init__(self)

    def restore(self: nn.Module, state: Any) -> None:
        if isinstance(state, dict):
            nn.Module.__setstate__(self, state)  # type: ignore[no-untyped-call]

    def ignore(_: nn.Module, *__: Any) -> None:
        """Ignore an item."""

    def new(cls: type[nn.Module], *_: Any, **__: Any) -> nn.Module:
        module_object: nn.Module = object.__new__(cls)
        nn.Module.__init__(module_object)
        return module_object

    body: dict[str, Any] = {"__module__": module, "__new__": new, "__init__": begin, "__setstate__": restore}
    return type(name, (nn.Module,), body | dict.fromkeys(("__setitem__", "append", "extend", "add", "update"), ignore))


class TolerantUnpickler(pickle.Unpickler):
    """Unpickler that uses :func:`stand_in` for classes that cannot be imported."""

    def find_class(self, module: str, name: str) -> Any:
        """Return the class or function of this name, or its replacement."""
        try:
            return super().find_class(module, name)
        except (ImportError, AttributeError):
            # torch's reader overrides find_class of this class's instances and falls back to this method.
            return stand_in(module, name)


def pickle_module() -> ModuleType:
    """Return a module for torch.load to use instead of ``pickle``."""
    substitute = ModuleType("medtest_pickle")
    substitute.__dict__.update({name: getattr(pickle, name) for name in pickle.__all__})
    substitute.Unpickler = TolerantUnpickler  # type: ignore[attr-defined]
    return substitute


def read_whole(path: Path) -> Any:
    """Return a checkpoint's content, running any code it requests."""
    check_archive(path)
    try:
        return torch.load(path, map_location="cpu", weights_only=False, pickle_module=pickle_module())
    except (RuntimeError, pickle.UnpicklingError, EOFError):
        with path.open("rb") as file:
            return TolerantUnpickler(file).load()


def plain(content: Any, depth: int = DEPTH) -> Any:
    """Return the content with modules replaced by their weights and arrays by tensors."""
    import numpy as np
    from torch import nn

    if isinstance(content, nn.Module):
        return dict(content.state_dict()) if "_parameters" in vars(content) else {}
    if isinstance(content, np.ndarray) and content.dtype.kind in "fiub":
        return torch.from_numpy(np.ascontiguousarray(content))
    if isinstance(content, Mapping) and depth:
        return {str(key): plain(value, depth - 1) for key, value in content.items()}
    return content


def main(arguments: list[str]) -> int:
    """Convert one file."""
    from medtest.systems.checkpoints.checkpoint import unwrapped, without_prefixes, write_state

    source, target = (Path(argument) for argument in arguments)
    importlib.invalidate_caches()
    try:
        state = without_prefixes(unwrapped(plain(read_whole(source)), source.name))
        write_state(target, state)
    except MedtestError as error:
        return _print_answer({"error": str(error)})
    except Exception as error:  # noqa: BLE001 - an untrusted pickle may raise anything
        return _print_answer({"error": f"{source.name}: {type(error).__name__}: {str(error)[:300]}"})
    return _print_answer({"entries": len(state)})


def _print_answer(answer: dict[str, Any]) -> int:
    """Print the answer on a separate line, because the file's own code may have printed before."""
    sys.stdout.write(f"\n{MARK}{json.dumps(answer)}\n")
    sys.stdout.flush()
    return int("error" in answer)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
