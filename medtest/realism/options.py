"""Settings of a comparison with real artefacts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from medtest.core.errors import Mistake, UserMistakes, typed_mistake
from medtest.core.files.paths import typed_folder

REAL = "real"
_COUNTS = {"cases": (1, 10_000), "patches": (0, 200), "seam": (0, 10_000)}
PLACE_KEYS = (REAL, "metadata")
"""Keys of :class:`RealPlaces`, beside ``real.NAME``."""
KEYS = (*PLACE_KEYS, *_COUNTS, "to")
METADATA = "metadata.csv"
"""Name of the file that says which pictures come from one video or patient, in the folder of a relation or above it."""


@dataclass(frozen=True, kw_only=True)
class RealPlaces:
    """Folders of real pictures.

    Attributes:
        root: Folder with a folder of real pictures for each relation, named like it; None without one.
        folders: Folders of single relations (``real.NAME=``), which go before those of ``root``.
        metadata: Name of the CSV with the video or patient of each picture.
        metadata_typed: Whether the user named that file, which must then exist.
    """

    root: Path | None = None
    folders: Mapping[str, Path] = field(default_factory=dict)
    metadata: str = METADATA
    metadata_typed: bool = False


@dataclass(frozen=True, kw_only=True)
class RealismOptions:
    """Settings of ``medtest realism``.

    Attributes:
        real: Folders of the real pictures.
        cases: Most made artefacts of each relation.
        patches: Patches of each picture, inside the artefact and in clean tissue; 0 leaves the test out.
        seam: Most pictures of the seam test; 0 leaves it out.
        to: Folder of the results; None for the default.
    """

    real: RealPlaces
    cases: int = 60
    patches: int = 12
    seam: int = 60
    to: Path | None = None


def is_place_key(key: str) -> bool:
    """Return True for a key that says where real pictures are."""
    return key in PLACE_KEYS or key.startswith(f"{REAL}.")


def keys_of(tokens: Iterable[str], keys: Sequence[str] = KEYS) -> tuple[str, ...]:
    """Return the keys of a command and those of single relations (``real.NAME``) among typed tokens."""
    typed = (token.partition("=")[0] for token in tokens if "=" in token)
    return (*keys, *dict.fromkeys(key for key in typed if key.startswith(f"{REAL}.")))


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
    try:
        places = real_places(typed)
    except UserMistakes as error:
        mistakes += error.mistakes
        places = None
    if places is None and not mistakes:
        fix = "real=FOLDER with FOLDER/feces/NAME.png and NAME_mask.png, or real.feces=FOLDER"
        mistakes.append(typed_mistake(REAL, "none", "a folder of real pictures", fix))
    if places is None or mistakes:
        raise UserMistakes(mistakes)
    return RealismOptions(real=places, to=Path(typed["to"]).expanduser() if typed.get("to") else None, **counts)


def real_places(typed: Mapping[str, str]) -> RealPlaces | None:
    """Return the typed folders of real pictures; None without any.

    Args:
        typed: Values by key; other keys are ignored.

    Raises:
        UserMistakes: A folder does not exist.
    """
    places = {key: text for key, text in typed.items() if is_place_key(key) and key != "metadata"}
    folders = {key: typed_folder(text) for key, text in places.items()}
    mistakes = [
        typed_mistake(key, text or "nothing", "a folder of real pictures")
        for key, text in places.items()
        if not text or not folders[key].is_dir()
    ]
    if mistakes:
        raise UserMistakes(mistakes)
    if not folders:
        return None
    return RealPlaces(
        root=folders.pop(REAL, None),
        folders={key.removeprefix(f"{REAL}."): folder for key, folder in folders.items()},
        metadata=typed.get("metadata") or METADATA,
        metadata_typed=bool(typed.get("metadata")),
    )
