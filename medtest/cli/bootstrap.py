"""What has to be settled before the first heavy import: telemetry off, and OpenCV's system libraries there."""

from __future__ import annotations

import os
import platform
import sys
import traceback
from pathlib import Path

from medtest.core.errors import MedtestError, MissingSystemLibrary

DEFECT = 70
"""Exit code of an error that is medtest's own (sysexits' EX_SOFTWARE); no result of a run is told by it."""

_QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "GIT_PYTHON_REFRESH": "quiet",
    "NO_ALBUMENTATIONS_UPDATE": "1",
}
_MEMORY = {"ARROW_DEFAULT_MEMORY_POOL": "system"}
"""Arrow's own allocator keeps what was freed: with it a run's process peaks 40 MiB higher, and more in long runs."""
_SYSTEM_LIBRARIES = ("libGL.so", "libglib-2.0", "libgthread", "libSM.so", "libXext.so", "libxcb", "libX11")
_PACKAGES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("debian", "ubuntu", "linuxmint", "pop"), "apt-get install libgl1 libglib2.0-0"),
    (("fedora", "rhel", "centos", "rocky", "almalinux", "amzn"), "dnf install mesa-libGL glib2"),
    (("alpine",), "apk add mesa-gl glib"),
    (("arch", "manjaro"), "pacman -S libglvnd glib2"),
    (("opensuse", "suse", "sles"), "zypper install Mesa-libGL1 libglib-2_0-0"),
)


def tell_defect() -> int:
    """Print the error that is being handled as a defect of ours, and return its exit code."""
    traceback.print_exc()
    sys.stderr.write("This is a defect of medtest, not a mistake of yours; please report it with these lines.\n")
    return DEFECT


def quiet_libraries() -> None:
    """Switch off the telemetry, the network look-ups and the hoards of the libraries we use; the user's own stay."""
    for name, value in {**_QUIET, **_MEMORY}.items():
        os.environ.setdefault(name, value)


def require_opencv() -> None:
    """Import OpenCV, or say which system libraries it lacks.

    Raises:
        MedtestError: This Python lacks the package: it is another one than medtest was set up with.
        MissingSystemLibrary: The system lacks a library that opencv-python needs.
    """
    try:
        import cv2  # noqa: F401
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "cv2":
            raise MedtestError(
                f"{sys.executable} has not the packages that medtest needs. `make install` sets up .venv: run "
                ".venv/bin/python in place of python; or install them here: pip install -e ."
            ) from error
        if not any(name in str(error) for name in _SYSTEM_LIBRARIES):
            raise
        raise MissingSystemLibrary(opencv_advice(str(error), _distribution())) from error


def opencv_advice(problem: str, distribution: str = "") -> str:
    """Return what to do about a system library that OpenCV misses.

    Args:
        problem: The loader's message ("libGL.so.1: cannot open shared object file …").
        distribution: ``ID`` and ``ID_LIKE`` of ``/etc/os-release``, or "".
    """
    likely = [command for names, command in _PACKAGES if any(name in distribution.split() for name in names)]
    lines = [
        "OpenCV cannot start: this system lacks a library that opencv-python needs.",
        f"  found:   {problem.splitlines()[0]}",
        "  to mend: install it (as root, or with sudo):",
        *(f"             {command}" for command in (likely[:1] or [command for _, command in _PACKAGES])),
        "           or, where you may not, take OpenCV's build without windows, which needs neither:",
        "             pip uninstall opencv-python && pip install opencv-python-headless",
    ]
    return "\n".join(lines)


def _distribution() -> str:
    if platform.system() != "Linux":
        return ""
    try:
        text = Path("/etc/os-release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    values = dict(line.partition("=")[::2] for line in text.splitlines() if "=" in line)
    return " ".join(values.get(key, "").strip("\"'") for key in ("ID", "ID_LIKE"))
