"""medtest: metamorphic test suites for medical-imaging AI.

Importing this package loads nothing heavy. The command line is ``medtest``; ``python run.py`` in a checkout is
the same as ``medtest run``. In Python, :func:`medtest.run` runs a suite and returns a :class:`medtest.Result`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from medtest.core import __version__

if TYPE_CHECKING:
    from medtest.session.arguments import Model
    from medtest.session.result import Result
    from medtest.session.runs import run
    from medtest.suite.compose import load_suite

__all__ = ["Model", "Result", "__version__", "load_suite", "run"]

_HOMES = {
    "Model": "session.arguments",
    "Result": "session.result",
    "load_suite": "suite.compose",
    "run": "session.runs",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
