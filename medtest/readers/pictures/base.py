"""What a reader of pictures is: pixels in, a :class:`medtest.core.scenes.Scene` out.

What a text-to-image system drew lies in its run's folder by the SHA-256 of its pixels; records name it, and a reader
finds it there, during the run and long after. What it saw is kept by picture and reader. What its card
(:mod:`medtest.readers.pictures.card`) shows that it cannot tell is taken from what it tells.
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


class PictureSettings(PartSettings):
    """Settings that all readers of pictures have.

    Attributes:
        card: File of its card, as ``medtest readers card`` writes it; "" for the one that lies beside the reader's own
            file, where there is one, ``none`` for none.
    """

    card: str = Field(default="", json_schema_extra=TRUSTED)


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
    Settings: ClassVar[type[PartSettings]] = PictureSettings

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

    # ------------------------------------------------------------------------------------------------------- its card

    def card_beside(self) -> Path | None:
        """Return where its card lies where no other is named: beside its own file. None for a reader without one."""
        return None

    @property
    def card_file(self) -> Path | None:
        """The card that is named, else the one beside it; None where there is none."""
        named = str(getattr(self.settings, "card", ""))
        if named == NO_CARD:
            return None
        if named:
            return user_path(named)
        beside = self.card_beside()
        return beside if beside is not None and beside.is_file() else None

    @cached_property
    def card(self) -> Card | None:
        """Its card; None where there is none, or where the one beside it was made with other weights or settings.

        Raises:
            BadCard: The file is no card.
        """
        path = self.card_file
        found = None if path is None else Card.read(path)
        return None if found is None or not self._is_of_this(found) else found

    def _is_of_this(self, card: Card) -> bool:
        return not card.reader or card.reader == self.print_without_card

    def without_card(self) -> dict[str, Json]:
        """Return all that its scenes depend on but the card: class, revision, settings, weights."""
        return super().fingerprint()

    @property
    def print_without_card(self) -> str:
        """SHA-256 of that; a card names it."""
        return hashlib.sha256(dumped(self.without_card()).encode()).hexdigest()

    def check(self) -> list[Mistake]:
        """Return what is wrong with the card that is named: it is missing, none, or another reader's."""
        named, path = str(getattr(self.settings, "card", "")), self.card_file
        if path is None:
            return []
        if found := file_mistakes(str(path), where=self.name, key="card"):
            return found
        fix = f"medtest readers card reader={self.name} …, or card={NO_CARD}"
        try:
            card = Card.read(path)
        except BadCard as error:
            return [Mistake(where=self.name, key="card", found=str(error), allowed="a reader's card", fix=fix)]
        if not named or self._is_of_this(card):
            return []
        what = f"{path.name} (made with another reader, other weights or other settings)"
        return [Mistake(where=self.name, key="card", found=what, allowed="this reader's card", fix=fix)]

    def notice(self) -> str:
        """Return that nothing is known of how well it sees, where it has no card."""
        if self.card is not None:
            return ""
        stale = " (the one beside it was made with other weights or settings)" if self.card_file is not None else ""
        return (
            f"{self.name} has no card{stale}: how often it sees what is there is not known, and nothing is corrected."
        )

    def about(self) -> dict[str, Json]:
        """Return its name and its card."""
        return {**super().about(), **({} if self.card is None else {"card": self.card.as_json()})}

    def fingerprint(self) -> dict[str, Json]:
        """Return all that its scenes depend on, its card with it."""
        return {**self.without_card(), "card": "" if self.card is None else self.card.sha256}

    # ------------------------------------------------------------------------------------------------- what it looks at

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
        seen = self.look([self.pixels(content.picture) for content in contents], contents)
        card = self.card
        return list(seen) if card is None else [replace(one, tells=card.restricted(one.tells)) for one in seen]

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
        """Look at what the records of a run name, for a view; what cannot be looked at has no scene, not another's."""
        self.keep_in([job.folder])
        found = super().readings(contents, job)
        unseen: dict[str, Mapping[str, str | None]] = {content_key(one): {SCENE: None, TELLS: None} for one in contents}
        return replace(found, columns={**unseen, **found.columns})

    def texts(self, content: PictureContent, facts: Scene) -> dict[str, str | None]:
        """Return the scene and what the reader can tell, as JSON texts."""
        return {SCENE: dumped(facts.as_json()), TELLS: dumped(facts.tells.as_json())}

    def packed(self, facts: Scene) -> Any:
        """Return a scene as JSON values, to be kept."""
        return {**facts.as_json(), "tells": facts.tells.as_json()}

    def unpacked(self, value: Any) -> Scene:
        """Return a scene that was kept."""
        return Scene.of_json(value, Tells.of_json(value["tells"]))
