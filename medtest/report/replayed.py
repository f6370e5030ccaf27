"""Pictures of cases that are made again for a report: follow-ups are replayed, and no system is asked anything.

Film strips and sheets of questions are drawn this way: each kind has an index of its own in ``samples/``, beside its
pictures, which is written last, so that a run that was cut off draws them anew.
"""

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
"""Writes a picture of replayed cases (uint8 H×W×3 each, None for one that cannot be made) to a path and returns what
its entry in the index gains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureKind:
    """A kind of pictures.

    Attributes:
        index: File name of their index in ``samples/``.
        files: Pattern of their names.
        gained: Keys that drawing adds to an entry of the index.
        undrawn: What is said of one that could not be drawn.
    """

    index: str
    files: str
    gained: tuple[str, ...] = ()
    undrawn: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedPicture:
    """One picture that is to be drawn.

    Attributes:
        entry: What the index says of it, as JSON values; ``file`` is its name.
        addresses: The cases it shows, all of one seed.
        draw: Draws it.
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
    """Draw pictures of one system and write their index; those that lie there already are kept.

    Where the suite keeps no images, what lies there is taken away.

    Args:
        suite: The suite.
        invocation: How it was called.
        folder: The system's folder.
        pictures: What is to be drawn, in the order of the index.
        kind: What they are.
        system: The system's name.

    Returns:
        What could not be drawn, in words.

    Raises:
        OutputProblem: A picture cannot be written.
    """
    wanted = [] if suite.privacy.images == "none" else list(pictures)
    if wanted and _already(folder, kind) == [dict(one.entry) for one in wanted]:
        return []
    if not wanted and not (folder / SAMPLES).is_dir():
        return []
    _clear(folder, kind, [str(one.entry["file"]) for one in wanted])
    drawn: list[dict[str, Any]] = []
    problems: list[str] = []
    parts: Parts | None = None
    for one in wanted:
        try:
            if parts is None:
                parts = Parts(suite, invocation.data, invocation.batch_size)
                parts.crafted = CraftedCases([folder], ShownNames.of(suite.privacy, invocation.home))
            images = replay_sequence(suite, invocation, one.addresses, parts)
        except Exception as error:  # noqa: BLE001 - a seed source or relation may be anybody's plug-in
            problems.append(f"{system}: {kind.undrawn} ({type(error).__name__}).")
            continue
        drawn.append({**one.entry, **one.draw(images, folder / SAMPLES / str(one.entry["file"]))})
    if drawn:
        with writing_text(folder / SAMPLES / kind.index) as file:
            json.dump(drawn, file, indent=1, ensure_ascii=False)
        with output_problems(folder / SAMPLES):
            WrittenFiles(folder / SAMPLES).note([kind.index, *(str(entry["file"]) for entry in drawn)])
    return problems


def _already(folder: Path, kind: PictureKind) -> list[dict[str, Any]]:
    """Return the entries of pictures that lie there, as they were before drawing."""
    return [
        {key: value for key, value in entry.items() if key not in kind.gained}
        for entry in sample_index(folder, kind.index)
    ]


def _clear(folder: Path, kind: PictureKind, wanted: Sequence[str]) -> None:
    """Remove what was drawn before, and note what is drawn now; a user's files stay."""
    target = folder / SAMPLES
    with output_problems(target):
        target.mkdir(parents=True, exist_ok=True)
        written = WrittenFiles(target)
        written.adopt([kind.index, *(str(entry["file"]) for entry in sample_index(folder, kind.index))])
        written.remove([*(path.name for path in target.glob(kind.files)), kind.index])
        written.expect([*wanted, kind.index])
