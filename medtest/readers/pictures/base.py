"""Base class for readers of pictures: pixels in, a :class:`medtest.core.scenes.Scene` out.

A picture drawn by a text-to-image system is stored in its run's folder under the SHA-256 of its pixels. Records name
it, and a reader finds it there, during the run and later. Scenes are stored by picture and reader. What the reader's
card (:mod:`medtest.readers.pictures.card`) shows it cannot recognize is removed from what it claims to tell.
"""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from medtest.core.cases import Image, Json, Output, PictureOutput, PreparedSeed
from medtest.core.errors import MedtestError, Mistake
from medtest.core.files.by_content import DamagedFile, PictureFiles
from medtest.core.plugins import TRUSTED, PartSettings
from medtest.core.records import PICTURES
from medtest.core.scenes import Pool, Scene, Tells, dumped
from medtest.readers.base import BatchReader, ReadingJob, Readings
from medtest.readers.pictures.card import BadCard, Card
from medtest.readers.readings import content_key
from medtest.systems.files import file_mistakes, user_path

SCENE, TELLS, PICTURE = "scene", "tells", "picture"
NO_CARD = "none"


@dataclass(frozen=True, slots=True)
class PictureContent:
    """The content to read: a picture, and the questions for a reader that asks about it.

    Attributes:
        picture: SHA-256 of the pixels.
        pools: JSON texts of the pools to ask about; empty for a reader that looks for everything it knows.
    """

    picture: str
    pools: tuple[str, ...] = ()

    def asked(self) -> list[Pool]:
        """Return the pools to ask about."""
        return [Pool.of_json(json.loads(text)) for text in self.pools]


@dataclass(frozen=True, slots=True)
class PromptedContent(PictureContent):
    """The content to read for a reader that asks about the whole prompt.

    Attributes:
        prompt: The words of the case's prompt; "" if they are hidden.
    """

    prompt: str = ""


class PictureSettings(PartSettings):
    """Settings of all readers of pictures.

    Attributes:
        card: File of the card, as written by ``medtest readers card``; "" for the one next to the reader's own file, if
            any; ``none`` for no card.
    """

    card: str = Field(default="", json_schema_extra=TRUSTED)


class PictureReader(BatchReader[PictureContent, Scene]):
    """A reader that looks at pictures; subclasses implement :meth:`look`.

    Attributes:
        asks_words: Whether the result depends on the pools of source and follow-up, which are then passed on.
    """

    task: ClassVar[str] = "depiction"
    columns: ClassVar[tuple[str, ...]] = (SCENE, TELLS)
    needs: ClassVar[tuple[str, ...]] = (PICTURE, "pool", "source_pool", "prompt")
    keeps: ClassVar[bool] = True
    own_processes: ClassVar[bool] = True
    at_once: ClassVar[int] = 8
    Settings: ClassVar[type[PartSettings]] = PictureSettings

    def __init__(self, name: str, settings: Any) -> None:
        super().__init__(name, settings)
        self._files: list[PictureFiles] = []

    def keep_in(self, folders: Iterable[Path]) -> None:
        """Set the run folders that contain pictures."""
        self._files = [PictureFiles(folder / PICTURES) for folder in folders]

    @property
    def asks_prompt(self) -> bool:
        """True if the result depends on the words of the prompt, which are then passed on."""
        return False

    @abstractmethod
    def look(self, images: Sequence[Image], contents: Sequence[PictureContent]) -> Sequence[Scene]:
        """Return the scenes that pictures show.

        Args:
            images: uint8 H×W×3 RGB of any sizes, at most ``at_once``.
            contents: The pictures' names and the questions about them.
        """

    # ------------------------------------------------------------------------------------------------------------- card

    def card_beside(self) -> Path | None:
        """Return the default path of the card, next to the reader's own file; None for a reader without a file."""
        return None

    @property
    def card_file(self) -> Path | None:
        """The card file from the settings, else the one next to the reader's file; None if there is none."""
        named = str(getattr(self.settings, "card", ""))
        if named == NO_CARD:
            return None
        if named:
            return user_path(named)
        beside = self.card_beside()
        return beside if beside is not None and beside.is_file() else None

    @cached_property
    def card(self) -> Card | None:
        """The card; None if there is none, or if the default one was made with other weights or settings.

        Raises:
            BadCard: The file is not a card.
        """
        path = self.card_file
        card = None if path is None else Card.read(path)
        return None if card is None or not self._is_of_this(card) else card

    def _is_of_this(self, card: Card) -> bool:
        return not card.reader or card.reader == self.print_without_card

    def without_card(self) -> dict[str, Json]:
        """Return everything the scenes depend on except the card: class, revision, settings and weights."""
        return super().fingerprint()

    @property
    def print_without_card(self) -> str:
        """SHA-256 of :meth:`without_card`; the card refers to it."""
        return hashlib.sha256(dumped(self.without_card()).encode()).hexdigest()

    def check(self) -> list[Mistake]:
        """Return the mistakes in the configured card: it is missing, invalid, or belongs to another reader."""
        named, path = str(getattr(self.settings, "card", "")), self.card_file
        if path is None:
            return []
        if mistakes := file_mistakes(str(path), where=self.name, key="card"):
            return mistakes
        fix = f"medtest readers card reader={self.name} …, or card={NO_CARD}"
        try:
            card = Card.read(path)
        except BadCard as error:
            return [Mistake(where=self.name, key="card", found=str(error), allowed="a reader's card", fix=fix)]
        if not named or self._is_of_this(card):
            return []
        description = f"{path.name} (made with another reader, other weights or other settings)"
        return [Mistake(where=self.name, key="card", found=description, allowed="this reader's card", fix=fix)]

    def notice(self) -> str:
        """Return a note that the accuracy is unknown if the reader has no card."""
        if self.card is not None:
            return ""
        stale = " (the existing one was made with other weights or settings)" if self.card_file is not None else ""
        return f"{self.name} has no card{stale}: its sensitivity is unknown, and no figure is corrected."

    def about(self) -> dict[str, Json]:
        """Return the name and the card."""
        return {**super().about(), **({} if self.card is None else {"card": self.card.as_json()})}

    def fingerprint(self) -> dict[str, Json]:
        """Return everything the scenes depend on, including the card."""
        return {**self.without_card(), "card": "" if self.card is None else self.card.sha256}

    # --------------------------------------------------------------------------------------------------------- contents

    def content(self, answer: Output, seed: PreparedSeed) -> PictureContent | None:
        """Return the picture of an answer; None if nothing was drawn."""
        if not isinstance(answer, PictureOutput) or not answer.picture:
            return None
        pools = [answer.prompt.pool] if seed.prompt is None else [answer.prompt.pool, seed.prompt.pool]
        return self._content(answer.picture, [dumped(pool.as_json()) for pool in pools], answer.prompt.text)

    def recorded(self, row: Mapping[str, Any]) -> PictureContent | None:
        """Return the picture that a record names."""
        if not row.get(PICTURE):
            return None
        texts = [row.get("pool"), row.get("source_pool") or row.get("pool")]
        return self._content(str(row[PICTURE]), [text for text in texts if text], str(row.get("prompt") or ""))

    def _content(self, picture: str, pools: Sequence[str], prompt: str) -> PictureContent:
        asked = tuple(sorted(set(pools))) if self.asks_words else ()
        return PromptedContent(picture, asked, prompt) if self.asks_prompt else PictureContent(picture, asked)

    def read(self, contents: Sequence[PictureContent]) -> list[Scene]:
        """Look at pictures.

        Raises:
            MedtestError: A picture is in no folder, or its pixels do not match its name.
        """
        scenes = self.look([self.pixels(content.picture) for content in contents], contents)
        card = self.card
        return (
            list(scenes) if card is None else [replace(scene, tells=card.restricted(scene.tells)) for scene in scenes]
        )

    def pixels(self, sha256: str) -> Image:
        """Return a picture by name, uint8 H×W×3 RGB.

        Raises:
            MedtestError: The picture is in no folder, or its pixels do not match its name.
        """
        problem = "it is in no run's folder (deleted by `privacy: {images: none}`?)"
        for files in self._files:
            if files.size("images", sha256) is None:
                continue
            try:
                return files.read("images", sha256)
            except DamagedFile as error:
                problem = str(error)
        raise MedtestError(f"the picture {sha256[:12]}… cannot be looked at: {problem}")

    def readings(self, contents: Sequence[PictureContent], job: ReadingJob) -> Readings:
        """Look at the pictures of a run's records for a view; unavailable pictures get no scene."""
        self.keep_in([job.folder])
        readings = super().readings(contents, job)
        unseen: dict[str, Mapping[str, str | None]] = {
            content_key(content): {SCENE: None, TELLS: None} for content in contents
        }
        return replace(readings, columns={**unseen, **readings.columns})

    def texts(self, content: PictureContent, facts: Scene) -> dict[str, str | None]:
        """Return the scene and what the reader can recognize, as JSON texts."""
        return {SCENE: dumped(facts.as_json()), TELLS: dumped(facts.tells.as_json())}

    def packed(self, facts: Scene) -> Any:
        """Return a scene as JSON values for storage."""
        return {**facts.as_json(), "tells": facts.tells.as_json()}

    def unpacked(self, value: Any) -> Scene:
        """Return a stored scene."""
        return Scene.of_json(value, Tells.of_json(value["tells"]))
