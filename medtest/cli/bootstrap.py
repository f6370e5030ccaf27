"""Set-up before the first heavy import: telemetry off, OpenCV's system libraries checked."""

from __future__ import annotations

import os
import platform
import sys
import traceback
from pathlib import Path

from medtest.core.errors import MedtestError, MissingSystemLibrary

DEFECT = 70
"""Exit code of an internal error of medtest (sysexits' EX_SOFTWARE), never used for the result of a run."""

_QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "GIT_PYTHON_REFRESH": "quiet",
    "NO_ALBUMENTATIONS_UPDATE": "1",
}
_MEMORY = {"ARROW_DEFAULT_MEMORY_POOL": "system"}
"""Arrow's own allocator keeps freed memory: it raises the peak of a run's process by 40 MiB, more in long runs."""
_SYSTEM_LIBRARIES = ("libGL.so", "libglib-2.0", "libgthread", "libSM.so", "libXext.so", "libxcb", "libX11")
_PACKAGES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("debian", "ubuntu", "linuxmint", "pop"), "apt-get install libgl1 libglib2.0-0"),
    (("fedora", "rhel", "centos", "rocky", "almalinux", "amzn"), "dnf install mesa-libGL glib2"),
    (("alpine",), "apk add mesa-gl glib"),
    (("arch", "manjaro"), "pacman -S libglvnd glib2"),
    (("opensuse", "suse", "sles"), "zypper install Mesa-libGL1 libglib-2_0-0"),
)


def report_defect() -> int:
    """Print the current exception as a defect of medtest, and return its exit code."""
    traceback.print_exc()
    sys.stderr.write("This is a defect of medtest, not your mistake. Please report it with the lines above.\n")
    return DEFECT


def quiet_libraries() -> None:
    """Switch off telemetry, network look-ups and memory hoarding of libraries, unless the user set them."""
    for name, value in {**_QUIET, **_MEMORY}.items():
        os.environ.setdefault(name, value)


def require_opencv() -> None:
    """Import OpenCV, or report the system libraries that it lacks.

    Raises:
        MedtestError: This Python lacks the package, as it is not the one medtest was installed for.
        MissingSystemLibrary: The system lacks a library that opencv-python needs.
    """
    try:
        import cv2  # noqa: F401
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "cv2":
            raise MedtestError(
                f"{sys.executable} lacks packages that medtest needs. Use .venv/bin/python, which `make install` sets "
                "up, or install medtest here: pip install -e ."
            ) from error
        if not any(name in str(error) for name in _SYSTEM_LIBRARIES):
            raise
        raise MissingSystemLibrary(opencv_advice(str(error), _distribution())) from error


def opencv_advice(problem: str, distribution: str = "") -> str:
    """Return advice on a system library that OpenCV misses.

    Args:
        problem: The loader's message ("libGL.so.1: cannot open shared object file …").
        distribution: ``ID`` and ``ID_LIKE`` of ``/etc/os-release``, or "".
    """
    likely = [command for names, command in _PACKAGES if any(name in distribution.split() for name in names)]
    lines = [
        "OpenCV cannot start: this system lacks a library that opencv-python needs.",
        f"  found:   {problem.splitlines()[0]}",
        "  fix:     install it (as root, or with sudo):",
        *(f"             {command}" for command in (likely[:1] or [command for _, command in _PACKAGES])),
        "           or, without root rights, use the headless build of OpenCV, which does not need it:",
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
