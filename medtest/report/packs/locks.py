"""Versions of what figures rest on, as ``pip`` writes them, and what another version may change."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from typing import Final, Literal

from medtest.core.version import __version__

Touches = Literal["pixels", "answers", "tables", "nothing"]
"""What another version of a package may change: bytes of seeds and follow-ups, what systems answer, tables and reports
made of the same records, or none of these."""
PIXELS: Final = "pixels"
ANSWERS: Final = "answers"
TABLES: Final = "tables"
NOTHING: Final = "nothing"

_TOUCHED: Mapping[str, tuple[Touches, ...]] = {
    "medtest": (PIXELS, ANSWERS, TABLES),
    "python": (PIXELS, TABLES),
    "machine": (PIXELS, ANSWERS, TABLES),
    "system": (PIXELS, ANSWERS, TABLES),
    "numpy": (PIXELS, ANSWERS, TABLES),
    "scipy": (PIXELS, ANSWERS, TABLES),
    "opencv-python": (PIXELS, ANSWERS),
    "opencv-python-headless": (PIXELS, ANSWERS),
    "pillow": (PIXELS, TABLES),
    **dict.fromkeys(("scikit-image", "pydicom", "nibabel", "simpleitk", "tifffile", "imageio-ffmpeg"), (PIXELS,)),
    **dict.fromkeys(("torch", "torchvision", "transformers", "tokenizers", "onnxruntime", "safetensors"), (ANSWERS,)),
    **dict.fromkeys(("timm", "monai", "segmentation-models-pytorch", "diffusers", "accelerate"), (ANSWERS,)),
    **dict.fromkeys(("bm3d", "pywavelets", "foolbox", "pyautoattack", "spacy", "stanza"), (ANSWERS,)),
    **dict.fromkeys(("pandas", "pyarrow", "statsmodels", "patsy", "jinja2", "markupsafe", "matplotlib"), (TABLES,)),
}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_EXTRA = re.compile(r"\bextra\s*==")
_FOR_DEVELOPERS = re.compile(r"\bextra\s*==\s*['\"](dev|[a-z0-9]+-tests)['\"]")
_ENVIRONMENT = ("python", "machine", "system", "medtest")
"""What no package index has."""


def lock_of(brought_by: Iterable[str] = ()) -> dict[str, str]:
    """Return the versions of medtest, of all installed packages that it and its extras rest on, and of the machine.

    Args:
        brought_by: Further packages, which bring parts.
    """
    found: dict[str, str] = {}
    waiting = [("medtest", True), *((name, False) for name in brought_by)]
    while waiting:
        name, extras = waiting.pop()
        known = re.sub(r"[-_.]+", "-", name).lower()
        if known in found:
            continue
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue  # an extra, or for other systems
        found[known] = package.version
        left_out = _FOR_DEVELOPERS if extras else _EXTRA
        needed = [one for one in package.requires or () if not left_out.search(one)]
        waiting += [(match[0], False) for one in needed if (match := _NAME.match(one))]
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "system": platform.system(),
        **dict(sorted({**found, "medtest": __version__}.items())),
    }


def lock_text(versions: Mapping[str, str]) -> str:
    """Return versions as a file that ``pip install -r`` reads; what is no package stands in comments."""
    head = [f"# {name} {versions[name]}" for name in _ENVIRONMENT if name in versions]
    return "\n".join([*head, *(f"{name}=={versions[name]}" for name in versions if name not in _ENVIRONMENT), ""])


@dataclass(frozen=True, kw_only=True)
class OtherVersion:
    """A package whose version is another here.

    Attributes:
        name: The package.
        packed: Its version where the pack was made, "" where it was not installed.
        here: Its version here, likewise.
        touches: What that may change.
    """

    name: str
    packed: str
    here: str
    touches: tuple[Touches, ...]

    def __str__(self) -> str:
        return f"{self.name} {self.packed or 'none'} → {self.here or 'none'}"


def other_versions(packed: Mapping[str, str], here: Mapping[str, str]) -> list[OtherVersion]:
    """Return what is installed in another version than where a pack was made, what touches most first."""
    names = [name for name in {**packed, **here} if packed.get(name, "") != here.get(name, "")]
    found = [
        OtherVersion(
            name=name, packed=packed.get(name, ""), here=here.get(name, ""), touches=_TOUCHED.get(name, (NOTHING,))
        )
        for name in names
    ]
    return sorted(found, key=lambda one: (one.touches == (NOTHING,), -len(one.touches), one.name))
