"""Versions of packages that results depend on, in ``pip``'s format, and what another version may change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from medtest.runner.reporting.software import ENVIRONMENT

Touches = Literal["pixels", "answers", "tables", "nothing"]
"""Effects of another package version: bytes of seeds and follow-ups, answers of systems, tables and reports

made of the same records, or none of these.
"""
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


def lock_text(versions: Mapping[str, str]) -> str:
    """Return versions as a file for ``pip install -r``; entries that are not packages are comments."""
    head = [f"# {name} {versions[name]}" for name in ENVIRONMENT if name in versions]
    return "\n".join([*head, *(f"{name}=={versions[name]}" for name in versions if name not in ENVIRONMENT), ""])


@dataclass(frozen=True, kw_only=True)
class OtherVersion:
    """A package whose version differs here.

    Attributes:
        name: Name of the package.
        packed: Version where the pack was made; "" if it was not installed.
        here: Version here; "" if it is not installed.
        touches: Possible effects of the difference.
    """

    name: str
    packed: str
    here: str
    touches: tuple[Touches, ...]

    def __str__(self) -> str:
        return f"{self.name} {self.packed or 'none'} → {self.here or 'none'}"


def other_versions(packed: Mapping[str, str], installed: Mapping[str, str]) -> list[OtherVersion]:
    """Return the packages whose version differs from the pack's, those with most effects first."""
    names = [name for name in {**packed, **installed} if packed.get(name, "") != installed.get(name, "")]
    changed = [
        OtherVersion(
            name=name, packed=packed.get(name, ""), here=installed.get(name, ""), touches=_TOUCHED.get(name, (NOTHING,))
        )
        for name in names
    ]
    return sorted(changed, key=lambda version: (version.touches == (NOTHING,), -len(version.touches), version.name))
