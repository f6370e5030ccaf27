"""COCO's 80 classes, and the mapping from a detector's classes to those of pools."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from medtest.core.errors import MedtestError
from medtest.language.captions.vocabulary import vg150

COCO_80: Final = Path(__file__).with_name("coco.txt")
"""The object classes annotated in 2017, in the order of detector outputs (T.-Y. Lin et al., ECCV 2014)."""
_OWN: Final = {"sports ball": "ball"}
"""Detector classes whose names are not used as words for a class."""
_MOST_NAMES: Final = 100_000
_MOST_BYTES: Final = 4 << 20


def pool_class(name: str) -> str:
    """Return the name in pools of a detector's class (``bicycle``: ``bike``); unchanged if the vocabulary has none."""
    label = " ".join(name.lower().replace("_", " ").split())
    return vg150().class_of(_OWN.get(label, label)) or label


def read_names(path: Path) -> tuple[str, ...]:
    """Return the classes listed in a text file, one per line, in order; blank lines at the end are ignored.

    Raises:
        MedtestError: The file cannot be read or is not a list of names.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        lines = [line.strip() for line in content.decode("utf-8-sig").rstrip().splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a text in UTF-8"
        raise MedtestError(f"{path.name}: cannot be read: {reason}") from None
    if not lines or not all(lines) or len(lines) > _MOST_NAMES or len(content) > _MOST_BYTES:
        raise MedtestError(f"{path.name}: a text file with the name of one class on each line is expected")
    return tuple(lines)
