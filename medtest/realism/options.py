"""Settings of a comparison with real artefacts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from medtest.core.errors import Mistake, UserMistakes, typed_mistake
from medtest.core.files.paths import typed_folder

REAL = "real"
_COUNTS = {"cases": (1, 10_000), "patches": (0, 200), "seam": (0, 10_000)}
KEYS = (REAL, "metadata", *_COUNTS, "to")
METADATA = "metadata.csv"
"""Name of the file that says which pictures come from one video or patient, in the folder of a relation or above it."""


@dataclass(frozen=True, kw_only=True)
class RealismOptions:
    """Settings of ``medtest realism``.

    Attributes:
        root: Folder with a folder of real pictures for each relation, named like it; None without one.
        folders: Folders of single relations (``real.NAME=``), which go before those of ``root``.
        metadata: Name of the CSV with the video or patient of each picture.
        metadata_typed: Whether the user named that file, which must then exist.
        cases: Most made artefacts of each relation.
        patches: Patches of each picture, inside the artefact and in clean tissue; 0 leaves the test out.
        seam: Most pictures of the seam test; 0 leaves it out.
        to: Folder of the results; None for the default.
    """

    root: Path | None = None
    folders: Mapping[str, Path] = field(default_factory=dict)
    metadata: str = METADATA
    metadata_typed: bool = False
    cases: int = 60
    patches: int = 12
    seam: int = 60
    to: Path | None = None


def keys_of(tokens: Iterable[str]) -> tuple[str, ...]:
    """Return the keys of this command among typed tokens, ``real.NAME`` included."""
    typed = (token.partition("=")[0] for token in tokens if "=" in token)
    return (*KEYS, *dict.fromkeys(key for key in typed if key.startswith(f"{REAL}.")))


def options_of(typed: Mapping[str, str]) -> RealismOptions:
    """Return the typed settings.

    Args:
        typed: Values by key.

    Raises:
        UserMistakes: A number is out of range, a folder does not exist, or none is named.
    """
    mistakes: list[Mistake] = []
    counts: dict[str, int] = {}
    for key, (low, high) in _COUNTS.items():
        text = typed.get(key)
        if text is None:
            continue
        if text.isdecimal() and low <= int(text) <= high:
            counts[key] = int(text)
        else:
            mistakes.append(typed_mistake(key, text, f"a whole number from {low} to {high:,}"))
    folders: dict[str, Path] = {}
    for key, text in typed.items():
        if key != REAL and not key.startswith(f"{REAL}."):
            continue
        folder = typed_folder(text)
        if not text or not folder.is_dir():
            mistakes.append(typed_mistake(key, text or "nothing", "a folder of real pictures"))
        folders[key] = folder
    if not folders:
        fix = "real=FOLDER with FOLDER/feces/NAME.png and NAME_mask.png, or real.feces=FOLDER"
        mistakes.append(typed_mistake(REAL, "none", "a folder of real pictures", fix))
    if mistakes:
        raise UserMistakes(mistakes)
    return RealismOptions(
        root=folders.pop(REAL, None),
        folders={key.removeprefix(f"{REAL}."): folder for key, folder in folders.items()},
        metadata=typed.get("metadata") or METADATA,
        metadata_typed=bool(typed.get("metadata")),
        to=Path(typed["to"]).expanduser() if typed.get("to") else None,
        **counts,
    )
