"""Installed software that results may depend on."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, version

from medtest.core import __version__

ENVIRONMENT = ("python", "machine", "system", "medtest")
"""Entries that are not packages."""
_LIBRARIES = (
    "numpy",
    "opencv-python",
    "pillow",
    "scipy",
    "torch",
    "torchvision",
    "onnxruntime",
    "pyarrow",
    "transformers",
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_EXTRA = re.compile(r"\bextra\s*==")
_FOR_DEVELOPERS = re.compile(r"\bextra\s*==\s*['\"](dev|[a-z0-9]+-tests)['\"]")


def lock_of(brought_by: Iterable[str] = ()) -> dict[str, str]:
    """Return the versions of medtest, of all installed packages that it and its extras require, and of the machine.

    Args:
        brought_by: Further packages, which provide parts.
    """
    versions: dict[str, str] = {}
    waiting = [("medtest", True), *((name, False) for name in brought_by)]
    while waiting:
        name, extras = waiting.pop()
        normalized = re.sub(r"[-_.]+", "-", name).lower()
        if normalized in versions:
            continue
        try:
            versions[normalized], requirements = _installed(name)
        except PackageNotFoundError:
            continue  # an extra, or for other platforms
        left_out = _FOR_DEVELOPERS if extras else _EXTRA
        needed = [requirement for requirement in requirements if not left_out.search(requirement)]
        waiting += [(match[0], False) for requirement in needed if (match := _NAME.match(requirement))]
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "system": platform.system(),
        **dict(sorted({**versions, "medtest": __version__}.items())),
    }


@cache
def _installed(name: str) -> tuple[str, tuple[str, ...]]:
    """Return the version and the requirements of an installed package; parsing its metadata takes milliseconds.

    Raises:
        PackageNotFoundError: It is not installed.
    """
    package = distribution(name)
    return package.version, tuple(package.requires or ())


@cache
def versions() -> Mapping[str, str]:
    """Return the versions that may affect results, without importing the libraries."""
    installed = {"medtest": __version__, "python": platform.python_version(), "machine": platform.machine()}
    installed["system"] = platform.system()
    for library in _LIBRARIES:
        try:
            installed[library] = version(library)
        except PackageNotFoundError:
            continue
    return installed
