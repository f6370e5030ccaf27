"""COCO's 80 classes, and what pools call the classes of a detector."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from medtest.core.errors import MedtestError
from medtest.language.captions.vocabulary import vg150

COCO_80: Final = Path(__file__).with_name("coco.txt")
"""The things annotated in 2017, in the order that detectors number them (T.-Y. Lin et al., ECCV 2014)."""
_OWN: Final = {"sports ball": "ball"}
"""Names of detectors that are no word for a class."""
_MOST_NAMES: Final = 100_000
_MOST_BYTES: Final = 4 << 20


def pool_class(name: str) -> str:
    """Return what pools call a detector's class (``bicycle``: ``bike``); its own name where the vocabulary has none."""
    said = " ".join(name.lower().replace("_", " ").split())
    return vg150().class_of(_OWN.get(said, said)) or said


def read_names(path: Path) -> tuple[str, ...]:
    """Return the classes that a text file names, one a line, in their order; blank lines at the end are none.

    Raises:
        MedtestError: It cannot be read, or is no list of names.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        lines = [line.strip() for line in content.decode("utf-8-sig").rstrip().splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise MedtestError(f"{path.name}: cannot be read: {reason}") from None
    if not lines or not all(lines) or len(lines) > _MOST_NAMES or len(content) > _MOST_BYTES:
        raise MedtestError(f"{path.name}: a text file with the name of one class on each line is expected")
    return tuple(lines)
