"""What a reader of pictures is: pixels in, a :class:`medtest.scenes.Scene` out.

What a text-to-image system drew lies in its run's folder by the SHA-256 of its pixels; records name it, and a reader
finds it there, during the run and long after. What it saw is kept by picture and reader.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from medtest.cases import Image, Output, PictureOutput, PreparedSeed
from medtest.errors import MedtestError
from medtest.files.by_content import DamagedFile, PictureFiles
from medtest.readers.base import BatchReader, ReadingJob, Readings
from medtest.records import PICTURES
from medtest.scenes import Pool, Scene, Tells, dumped

SCENE, TELLS, PICTURE = "scene", "tells", "picture"


class PictureGone(MedtestError):
    """No folder that a reader knows holds the picture any more."""


@dataclass(frozen=True, slots=True)
class PictureContent:
    """What is read: a picture, and for a reader that asks about it, what is asked.

    Attributes:
        picture: SHA-256 of the pixels.
        pools: JSON texts of the pools about which it is asked; empty for a reader that looks for all it knows.
    """

    picture: str
    pools: tuple[str, ...] = ()

    def asked(self) -> list[Pool]:
        """Return the pools."""
        return [Pool.of_json(json.loads(text)) for text in self.pools]


class PictureReader(BatchReader[PictureContent, Scene]):
    """A reader that looks at pictures; a class of its own says in :meth:`look` what it sees.

    Attributes:
        asks_words: Whether what it sees depends on the pools of source and follow-up, which it is then told.
    """

    task: ClassVar[str] = "depiction"
    columns: ClassVar[tuple[str, ...]] = (SCENE, TELLS)
    needs: ClassVar[tuple[str, ...]] = (PICTURE, "pool", "source_pool")
    keeps: ClassVar[bool] = True
    own_processes: ClassVar[bool] = True
    at_once: ClassVar[int] = 8

    def __init__(self, name: str, settings: Any) -> None:
        super().__init__(name, settings)
        self._files: list[PictureFiles] = []

    def keep_in(self, folders: Iterable[Path]) -> None:
        """Say in which runs' folders pictures lie."""
        self._files = [PictureFiles(folder / PICTURES) for folder in folders]

    @abstractmethod
    def look(self, images: Sequence[Image], contents: Sequence[PictureContent]) -> Sequence[Scene]:
        """Return what pictures show.

        Args:
            images: uint8 H×W×3 RGB, of any sizes, at most ``at_once``.
            contents: Which pictures they are, and what is asked about them.
        """

    def content(self, answer: Output, seed: PreparedSeed) -> PictureContent | None:
        """Return the picture of an answer; None where none was drawn."""
        if not isinstance(answer, PictureOutput) or not answer.picture:
            return None
        pools = [answer.prompt.pool] if seed.prompt is None else [answer.prompt.pool, seed.prompt.pool]
        return self._content(answer.picture, [dumped(pool.as_json()) for pool in pools])

    def recorded(self, row: Mapping[str, Any]) -> PictureContent | None:
        """Return the picture that a record names."""
        if not row.get(PICTURE):
            return None
        texts = [row.get("pool"), row.get("source_pool") or row.get("pool")]
        return self._content(str(row[PICTURE]), [text for text in texts if text])

    def _content(self, picture: str, pools: Sequence[str]) -> PictureContent:
        return PictureContent(picture, tuple(sorted(set(pools))) if self.asks_words else ())

    def read(self, contents: Sequence[PictureContent]) -> list[Scene]:
        """Look at pictures.

        Raises:
            PictureGone: One lies in no folder, or holds other pixels than its name says.
        """
        return list(self.look([self.pixels(content.picture) for content in contents], contents))

    def pixels(self, sha256: str) -> Image:
        """Return a picture by its name, uint8 H×W×3 RGB.

        Raises:
            PictureGone: It lies in no folder, or holds other pixels than its name says.
        """
        problem = "it lies in no run's folder (deleted by `privacy: {images: none}`?)"
        for files in self._files:
            if files.size("images", sha256) is None:
                continue
            try:
                return files.read("images", sha256)
            except DamagedFile as error:
                problem = str(error)
        raise PictureGone(f"the picture {sha256[:12]}… cannot be looked at: {problem}")

    def readings(self, contents: Sequence[PictureContent], job: ReadingJob) -> Readings:
        """Look at what the records of a run name, for a view."""
        self.keep_in([job.folder])
        return super().readings(contents, job)

    def texts(self, content: PictureContent, facts: Scene) -> dict[str, str | None]:
        """Return the scene and what the reader can tell, as JSON texts."""
        return {SCENE: dumped(facts.as_json()), TELLS: dumped(facts.tells.as_json())}

    def packed(self, facts: Scene) -> Any:
        """Return a scene as JSON values, to be kept."""
        return {**facts.as_json(), "tells": facts.tells.as_json()}

    def unpacked(self, value: Any) -> Scene:
        """Return a scene that was kept."""
        return Scene.of_json(value, Tells.of_json(value["tells"]))
