"""Pictures of cases replayed for a report, without querying any system."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from medtest.core.cases import Image
from medtest.core.files.written import WrittenFiles
from medtest.report.pages.material import SAMPLES, sample_index
from medtest.runner.folder import output_problems, writing_text
from medtest.runner.privacy.rules import ShownNames
from medtest.runner.records.crafted import CraftedCases
from medtest.runner.replaying.replay import replay_sequence
from medtest.runner.units.parts import Parts
from medtest.suite.model import Invocation, Suite

Draw: TypeAlias = Callable[[Sequence[Image | None], Path], Mapping[str, Any]]
"""Draw replayed cases (uint8 H×W×3 each, None for one that cannot be made) to a path.

Returns further entries for the index.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureKind:
    """Kind of pictures.

    Attributes:
        index: File name of their index in ``samples/``.
        files: Pattern of the file names.
        gained: Keys that drawing adds to an entry of the index.
        undrawn: Message about a picture that could not be drawn.
    """

    index: str
    files: str
    gained: tuple[str, ...] = ()
    undrawn: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedPicture:
    """A picture to be drawn.

    Attributes:
        entry: Its index entry, as JSON values; ``file`` is its name.
        addresses: The shown cases, all of one seed.
        draw: Draws the picture.
    """

    entry: Mapping[str, Any]
    addresses: Sequence[str]
    draw: Draw


def write_pictures(
    suite: Suite,
    invocation: Invocation,
    folder: Path,
    pictures: Sequence[ReplayedPicture],
    kind: PictureKind,
    system: str,
) -> list[str]:
    """Draw pictures of one system and write their index, unless they exist already.

    If the suite keeps no images, existing pictures are removed.

    Args:
        suite: The suite.
        invocation: Options of the call.
        folder: The system's folder.
        pictures: The pictures, in the order of the index.
        kind: Kind of the pictures.
        system: The system's name.

    Returns:
        Messages about pictures that could not be drawn.

    Raises:
        OutputProblem: A picture cannot be written.
    """
    requested = [] if suite.privacy.images == "none" else list(pictures)
    if requested and _existing_entries(folder, kind) == [dict(picture.entry) for picture in requested]:
        return []
    if not requested and not (folder / SAMPLES).is_dir():
        return []
    _clear(folder, kind, [str(picture.entry["file"]) for picture in requested])
    drawn: list[dict[str, Any]] = []
    problems: list[str] = []
    parts: Parts | None = None
    for picture in requested:
        try:
            if parts is None:
                parts = Parts(suite, invocation.data, invocation.batch_size)
                parts.crafted = CraftedCases([folder], ShownNames.of(suite.privacy, invocation.home))
            images = replay_sequence(suite, invocation, picture.addresses, parts)
        except Exception as error:  # noqa: BLE001 - seed sources and relations may be third-party plug-ins
            problems.append(f"{system}: {kind.undrawn} ({type(error).__name__}).")
            continue
        drawn.append({**picture.entry, **picture.draw(images, folder / SAMPLES / str(picture.entry["file"]))})
    if drawn:
        with writing_text(folder / SAMPLES / kind.index) as file:
            json.dump(drawn, file, indent=1, ensure_ascii=False)
        with output_problems(folder / SAMPLES):
            WrittenFiles(folder / SAMPLES).note([kind.index, *(str(entry["file"]) for entry in drawn)])
    return problems


def _existing_entries(folder: Path, kind: PictureKind) -> list[dict[str, Any]]:
    """Return the entries of existing pictures, without the keys added by drawing."""
    return [
        {key: value for key, value in entry.items() if key not in kind.gained}
        for entry in sample_index(folder, kind.index)
    ]


def _clear(folder: Path, kind: PictureKind, files: Sequence[str]) -> None:
    """Remove previously drawn pictures and record the new ones; users' files stay."""
    target = folder / SAMPLES
    with output_problems(target):
        target.mkdir(parents=True, exist_ok=True)
        written = WrittenFiles(target)
        written.adopt([kind.index, *(str(entry["file"]) for entry in sample_index(folder, kind.index))])
        written.remove([*(path.name for path in target.glob(kind.files)), kind.index])
        written.expect([*files, kind.index])
