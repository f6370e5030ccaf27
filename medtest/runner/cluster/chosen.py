"""Choice of the cluster for workers from a command's options."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from medtest.core.errors import UserMistakes, typed_mistake
from medtest.suite.schema import ExecutorBlock

_ADDRESS = re.compile(r"auto|[A-Za-z0-9.-]{1,253}:\d{1,5}|\[[0-9A-Fa-f:]+\]:\d{1,5}")


def cluster_of(options: ExecutorBlock) -> ExecutorBlock | None:
    """Return the chosen cluster, None for workers on this machine.

    Raises:
        UserMistakes: Ray is not installed, the address is invalid, or the wheel does not exist.
    """
    if options.name == "local":
        return None
    mistakes = []
    if importlib.util.find_spec("ray") is None:
        mistakes.append(typed_mistake("executor", "ray, which is not installed", "", "pip install 'medtest[ray]'"))
    if options.address is not None and not _ADDRESS.fullmatch(options.address):
        advice = (
            "" if "://" not in options.address else "Ray's client (ray://) is not used: type the head's own address."
        )
        mistakes.append(
            typed_mistake("executor.address", options.address[:80], "auto, or HOST:PORT of the cluster", advice)
        )
    wheel = None if options.wheel is None else Path(options.wheel).expanduser().resolve()
    if wheel is not None and not (wheel.suffix == ".whl" and wheel.name.startswith("medtest-") and wheel.is_file()):
        fix = "Make one: python -m build --wheel"
        mistakes.append(
            typed_mistake("executor.wheel", str(options.wheel)[:200], "an existing file medtest-….whl", fix)
        )
    if mistakes:
        raise UserMistakes(mistakes)
    return options if wheel is None else options.model_copy(update={"wheel": str(wheel)})
