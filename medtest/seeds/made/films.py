"""Films as seeds of a series: synthetic ones with ground truth, or the user's video files and frame folders."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from medtest.core.cases import ImageSpec, Seed, SeedRef
from medtest.core.errors import Mistake, UserMistakes, typed_error
from medtest.core.files import file_sha256, json_sha256
from medtest.core.files.images import BadFileError, read_bytes, read_size
from medtest.core.files.links import broken, is_broken
from medtest.core.files.masks import read_bright
from medtest.core.files.walk import DEEPEST, walk
from medtest.core.plugins import PartSettings
from medtest.phantoms.films import REVISION, make_film
from medtest.seeds.base import SeedFaults, SeedProblem, SeedSource
from medtest.seeds.folders.formats import PICTURES, is_ignored

VIDEOS = (".avi", ".mp4", ".mkv", ".mov", ".mpg", ".mpeg", ".webm")
INPUT, TRUTH = "input", "groundtruth"
_MOST_VALUES = 2**31
_DIGITS = re.compile(r"(\d+)")

FORM = "folders of frames (with input/ and groundtruth/ inside, as CDnet has them), or video files"


class FilmsSettings(PartSettings):
    """Settings of :class:`Films`.

    Attributes:
        count: Number of synthetic films, without ``data=``.
        frames: Number of frames of each film; of the user's films, the first ones up to this number (0 for all).
        size: Height and width of synthetic films in pixels.
        things: Moving things in each synthetic film.
        noise: Sensor noise of synthetic films in grey levels.
        max_pixels: Larger frames are refused before they are decoded.
    """

    count: int = Field(default=8, ge=1, le=10_000)
    frames: int = Field(default=60, ge=0, le=100_000)
    size: Annotated[list[Annotated[int, Field(ge=32, le=4096)]], Field(min_length=2, max_length=2)] = Field(
        default=[120, 160]
    )
    things: int = Field(default=3, ge=0, le=20)
    noise: float = Field(default=2.0, ge=0.0, le=50.0)
    max_pixels: int = Field(default=9_000_000, ge=1)


class Films(SeedSource):
    """Grey films, T×H×W, whose expected region is everything that moves.

    With ``data=PATH`` every folder below it that holds ``input/`` or frames is a film, as is every video file. Ground
    truth is in ``groundtruth/`` beside ``input/``, one picture per frame in the same order, white for motion (CDnet's
    greys for shadow and unknown are background). Films without ground truth are only compared with the source.
    """

    Settings: ClassVar[type[PartSettings]] = FilmsSettings
    task: ClassVar[str] = "region"
    revision: ClassVar[int] = REVISION
    phantom: ClassVar[bool] = True
    takes_root: ClassVar[bool] = True

    settings: FilmsSettings

    def faults(self) -> SeedFaults:
        """Return the problems of unusable films."""
        return SeedFaults(of_seeds={(self.dataset, name): (problem,) for name, problem in self._wrong.items()})

    def refusal(self, problems: Sequence[SeedProblem]) -> UserMistakes:
        """Return a single error report on all unusable films."""
        return UserMistakes([problem.as_mistake() for problem in problems[:50]])

    def places(self) -> Sequence[SeedRef]:
        """Return every film in its place, including unusable ones.

        Raises:
            UserMistakes: The folder holds no film.
        """
        if self.root is None:
            return tuple(
                SeedRef(dataset=self.dataset, seed_id=f"film-{index:03d}", locator=str(index))
                for index in range(self.settings.count)
            )
        return tuple(SeedRef(dataset=self.dataset, seed_id=name, locator=name) for name in self._found)

    def load(self, ref: SeedRef) -> Seed:
        """Generate or read one film.

        Raises:
            UserMistakes: A file can no longer be read.
        """
        moving: NDArray[np.bool_] | None
        if self.root is None:
            frames, moving = self._make_film(int(ref.locator))
        else:
            path = self.root / ref.locator
            try:
                frames, moving = self._video(path) if path.is_file() else self._folder(path)
            except BadFileError as error:
                raise Mistake(where=ref.locator, found=str(error)).as_error() from error
        return Seed(ref=ref, image=frames, expected=moving, kind="region", spec=ImageSpec(dtype="uint8", axes="tyx"))

    def digest(self) -> str:
        """Return a SHA-256 over the generator and its settings, or over the user's files."""
        content: dict[str, Any] = {"source": "films", "revision": REVISION, "dataset": self.dataset}
        if self.root is None:
            settings = {name: value for name, value in self.settings.counted().items() if name != "count"}
            content |= {"settings": settings, "suite_seed": self.suite_seed}
        else:
            content |= {
                "frames": self.settings.frames,
                "films": [[name, self._sha256(name)] for name in self._found if name not in self._wrong],
            }
        return json_sha256(content)

    def _make_film(self, index: int) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
        key = json.dumps([self.suite_seed, self.dataset, "film", index]).encode()
        rng = np.random.Generator(np.random.PCG64(int.from_bytes(hashlib.sha256(key).digest(), "big")))
        settings = self.settings
        film = make_film(
            rng,
            frames=settings.frames or 60,
            size=(settings.size[0], settings.size[1]),
            things=settings.things,
            noise=settings.noise,
        )
        return film.frames, film.moving

    # ------------------------------------------------------------------------------------------- the user's films

    @cached_property
    def _found(self) -> tuple[str, ...]:
        root = self.root
        if root is None:
            return ()
        if not root.is_dir():
            raise _wrong(f"{root.name}, which is not a folder")
        below = list(walk(root, deepest=DEEPEST, ignored=is_ignored))
        names = [
            (folder_entry.path / n).as_posix()
            for folder_entry in below
            for n in folder_entry.files
            if Path(n).suffix.lower() in VIDEOS
        ]
        for folder in (root / folder_entry.path for folder_entry in below):
            inside = folder / INPUT if (folder / INPUT).is_dir() else folder
            if folder.name not in (INPUT, TRUTH) and _frames(inside):
                names.append(folder.relative_to(root).as_posix())
        if not names:
            raise _wrong(f"{root.name}, which holds no film")
        return tuple(sorted(names))

    @cached_property
    def _wrong(self) -> dict[str, SeedProblem]:
        """Problems of films: frame sizes, and a ground truth for every frame if there is any."""
        return {name: problem for name in self._found if (problem := self._problem(name)) is not None}

    def _problem(self, name: str) -> SeedProblem | None:
        path = (self.root or Path()) / name
        try:
            if is_broken(path):
                raise BadFileError(broken(path))
            if path.is_file():
                return None
            frames, truths = self._files(path)
            sizes = {read_size(frame, max_pixels=self.settings.max_pixels) for frame in (*frames, *truths)}
            if len(sizes) > 1:
                raise BadFileError(f"holds frames of {len(sizes)} sizes")
        except BadFileError as error:
            return SeedProblem(
                file=name, reason=str(error), allowed="frames of one size, a truth for each", skipped=False
            )
        return None

    def _files(self, path: Path) -> tuple[list[Path], list[Path]]:
        inside = path / INPUT if (path / INPUT).is_dir() else path
        frames, truths = _frames(inside), _frames(path / TRUTH)
        if truths and len(truths) != len(frames):
            raise BadFileError(f"holds {len(frames)} frames and {len(truths)} truths")
        most = self.settings.frames or len(frames)
        return frames[:most], truths[:most]

    def _folder(self, path: Path) -> tuple[NDArray[np.uint8], NDArray[np.bool_] | None]:
        frames, truths = self._files(path)
        max_pixels = self.settings.max_pixels
        grey = [_grey(read_bytes(frame, max_pixels=max_pixels)) for frame in frames]
        if len({frame.shape for frame in grey}) != 1 or sum(frame.size for frame in grey) > _MOST_VALUES:
            raise BadFileError("holds frames of several sizes, or more than fit into memory")
        moving = np.stack([read_bright(truth, max_pixels=max_pixels) for truth in truths]) if truths else None
        return np.stack(grey), moving

    def _video(self, path: Path) -> tuple[NDArray[np.uint8], None]:
        film = cv2.VideoCapture(str(path))
        try:
            width, height = (int(film.get(key)) for key in (cv2.CAP_PROP_FRAME_WIDTH, cv2.CAP_PROP_FRAME_HEIGHT))
            if not film.isOpened() or width <= 0 or height <= 0:
                raise BadFileError("cannot be read as a video")
            if width * height > self.settings.max_pixels:
                raise BadFileError(f"has frames of {width} by {height} pixels; the bound is {self.settings.max_pixels}")
            frames: list[NDArray[np.uint8]] = []
            most = min(self.settings.frames or _MOST_VALUES, _MOST_VALUES // (width * height))
            while len(frames) < most:
                was_read, frame = film.read()
                if not was_read:
                    break
                frames.append(np.asarray(cv2.cvtColor(frame, cv2.COLOR_BGR2GRAY), np.uint8))
        finally:
            film.release()
        if not frames:
            raise BadFileError("holds no readable frame")
        return np.stack(frames), None

    def _sha256(self, name: str) -> str:
        path = (self.root or Path()) / name
        frames, truths = ([path], []) if path.is_file() else self._files(path)
        total = hashlib.sha256()
        for file in (*frames, *truths):
            total.update(bytes.fromhex(file_sha256(file)))
        return total.hexdigest()


def _frames(folder: Path) -> list[Path]:
    """Return the pictures of a folder, ordered by the numbers in their names."""
    if not folder.is_dir():
        return []
    files = [p for p in folder.iterdir() if p.suffix.lower() in PICTURES and not p.is_dir() and not is_ignored(p.name)]
    return sorted(files, key=lambda p: [int(t) if t.isdigit() else t for t in _DIGITS.split(p.name)])


def _grey(content: bytes) -> NDArray[np.uint8]:
    image = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_GRAYSCALE)
    if image is None:
        raise BadFileError("holds a damaged frame")
    return np.asarray(image, np.uint8)


def _wrong(problem: str) -> UserMistakes:
    return typed_error("data", problem, FORM)
