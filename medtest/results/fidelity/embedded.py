"""Features of one run's pictures: cached ones are read, missing ones are computed first."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from medtest.core.errors import MedtestError
from medtest.core.files.walk import files_below
from medtest.core.records import PICTURES
from medtest.readers.embeddings.choice import embedder_of
from medtest.readers.embeddings.hashes import HASH
from medtest.readers.embeddings.kept import FILE, FeatureFile, KeptFeatures, net_key
from medtest.readers.embeddings.work import EmbeddingJob, PictureJob, by_content
from medtest.results.fidelity.cases import PICTURE, DrawnCases
from medtest.results.fidelity.embedding import embed
from medtest.results.fidelity.features import Chosen, Integers, PictureFeatures
from medtest.results.fidelity.settings import FOLDERS, FigureSettings

_ENDINGS: Final = (".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".bmp", ".dib", ".tif", ".tiff", ".webp")


@dataclass(kw_only=True)
class EmbeddedRun:
    """Features of a run's pictures, of pictures in other folders, and of captions.

    Attributes:
        store: File that holds the features.
        net: Key of the network for distances and scores.
        words: Key of the network that compares pictures with captions; "" without one.
        rows: int64 N; index of each case's picture among the embedded ones, -1 if it was not embedded.
        pictures: Names of the embedded pictures, without repeats.
        real: Names of the reference pictures; empty if the sources are the reference.
        real_folders: Folder of each reference picture, the first below the folder of all; "" for none.
        training: Names of the training pictures, with their files relative to the folder.
        labelled: Names of pictures with known classes, with their classes.
        notices: Notices for the report, one line each.
    """

    store: FeatureFile
    net: str
    words: str
    rows: Integers
    pictures: Sequence[str]
    real: Sequence[str] = ()
    real_folders: Mapping[str, str] = field(default_factory=dict)
    training: Mapping[str, str] = field(default_factory=dict)
    labelled: Mapping[str, int] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._kept: dict[tuple[str, bool], KeptFeatures] = {}

    def close(self) -> None:
        """Close the file that holds the features."""
        self.store.close()

    def without_names(self) -> EmbeddedRun:
        """Return a copy whose training pictures are named by the SHA-256 of their files."""
        return replace(self, training={name: name for name in self.training})

    def of(
        self, cases: NDArray[np.bool_] | Integers, *, net: str | None = None, scores: bool = False
    ) -> PictureFeatures:
        """Return features, or scores, of the embedded pictures of cases."""
        key = (net or self.net, scores)
        if key not in self._kept:
            self._kept[key] = KeptFeatures(self.store, key[0], self.pictures, scores=scores)
        rows = self.rows[cases]
        return Chosen(self._kept[key], rows[rows >= 0])

    def others(self, names: Sequence[str], *, net: str | None = None, scores: bool = False) -> PictureFeatures:
        """Return the features, or scores, of pictures of other folders, or of texts, by name."""
        return KeptFeatures(self.store, net or self.net, names, scores=scores)

    def real_of(self, finding: str) -> list[str]:
        """Return the reference pictures in a folder named like a finding, in any case, with blanks, - or _."""
        folded = _folded(finding)
        return [name for name in self.real if _folded(self.real_folders.get(name, "")) == folded]

    def hashes(self, names: Sequence[str]) -> list[bytes]:
        """Return the perceptual hashes of pictures."""
        values = self.store.read(HASH, names)
        return [values[name][0].astype(np.uint8).tobytes() for name in names]

    def aspects(self, names: Sequence[str]) -> dict[str, float]:
        """Return width / height of the pictures whose size is known."""
        return {name: float(row[1][0]) for name, row in self.store.read(HASH, list(names)).items()}


def _folded(name: str) -> str:
    return " ".join(name.replace("_", " ").replace("-", " ").casefold().split())


def text_name(text: str) -> str:
    """Return the key under which the features of a text are stored."""
    return f"text:{hashlib.sha256(text.encode()).hexdigest()}"


def embedded_run(
    cases: DrawnCases,
    settings: FigureSettings,
    *,
    folder: Path,
    shared: Path,
    progress: Callable[[str], None] = lambda line: None,
) -> EmbeddedRun:
    """Return the features of a run, computing those that are missing.

    Args:
        cases: Cases of the run.
        settings: Settings of the figures.
        folder: Folder of the run.
        shared: Folder shared by all runs.
        progress: Called with progress messages.

    Raises:
        MedtestError: A network cannot be loaded.
        OutputProblem: The file of features cannot be used.
    """
    store = shared / FILE
    selected = cases.drawn & cases.of_seeds(settings.most)
    names = list(dict.fromkeys(str(name) for name in cases.texts(PICTURE)[selected]))
    outside = {key: _files(settings.folder(key)) for key in FOLDERS}
    files = {key: by_content(paths) for key, paths in outside.items()}
    texts = {text_name(text): text for text in _captions(cases)} if settings.words else {}
    embedding = embed(
        EmbeddingJob(
            store=str(store),
            nets=settings.nets,
            pictures=[
                *(PictureJob(name=name) for name in names),
                *(picture for key in FOLDERS for picture in files[key]),
            ],
            folder=str(folder / PICTURES),
            texts=texts,
            device=settings.device,
            cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        ),
        progress,
    )
    bad = embedding.failed
    embedded_names = [name for name in names if name not in bad]
    place = {name: row for row, name in enumerate(embedded_names)}
    notices = []
    if len(embedded_names) < len(names):
        reason = next(bad[name] for name in names if name in bad)
        notices.append(
            f"{len(names) - len(embedded_names):,} of {len(names):,} pictures are left out of their figures: {reason}"
        )
    lost = [picture for key in files for picture in files[key] if picture.name in bad]
    if lost:
        notices.append(f"{len(lost):,} files in the folders for figures are left out: {bad[lost[0].name]}")
    pictures = cases.texts(PICTURE)
    rows = [place.get(str(name), -1) if use else -1 for name, use in zip(pictures, selected, strict=True)]
    root = settings.folder("training")
    return EmbeddedRun(
        store=FeatureFile(store),
        net=net_key(settings.embedder.fingerprint()),
        words=net_key(embedder_of(settings.words).fingerprint()) if settings.words else "",
        rows=np.array(rows, dtype=np.int64),
        pictures=embedded_names,
        real=[picture.name for picture in files["real"] if picture.name not in bad],
        real_folders=_folders(files["real"], settings.folder("real")),
        training={
            picture.name: str(Path(picture.path or "").relative_to(root))
            for picture in files["training"]
            if root is not None and picture.name not in bad
        },
        labelled={
            picture.name: _class_of(Path(picture.path or ""))
            for picture in files["labelled"]
            if picture.name not in bad
        },
        notices=notices,
    )


def _folders(pictures: Sequence[PictureJob], root: Path | None) -> dict[str, str]:
    """Return the first folder below the root of each picture; "" for pictures in the root."""
    parts = {} if root is None else {p.name: Path(p.path or "").relative_to(root).parts for p in pictures}
    return {name: its[0] if len(its) > 1 else "" for name, its in parts.items()}


def _captions(cases: DrawnCases) -> list[str]:
    return list(dict.fromkeys(str(text) for text in cases.texts("prompt") if text))


def _class_of(path: Path) -> int:
    """Return the class number in the name of a picture's folder.

    Raises:
        MedtestError: The folder's name is not a number.
    """
    name = path.parent.name
    if not name.isdecimal():
        raise MedtestError(f"the folder {name!r} of labelled pictures is not named after a class number")
    return int(name)


def _files(folder: Path | None) -> list[Path]:
    """Return the pictures below a folder, sorted by name.

    Raises:
        MedtestError: There are none.
    """
    if folder is None:
        return []
    pictures = sorted(
        path for path in files_below(folder) if path.suffix.lower() in _ENDINGS and not path.name.startswith(".")
    )
    if not pictures:
        raise MedtestError(f"{folder.name} contains no pictures ({', '.join(_ENDINGS)})")
    return pictures
