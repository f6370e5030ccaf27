"""Medical pictures of several kinds, each read by the reader of its kind.

The pools of a case and its source name findings, and these say whether the picture was ordered as a chest film, an
endoscopy or a capsule frame (:mod:`medtest.language.orders`). A kind of picture without a reader cannot be told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Final

from pydantic import Field, ValidationError

from medtest.core.cases import Image, Json
from medtest.core.errors import Mistake, UserMistakes, nearest_name
from medtest.core.plugins import TRUSTED, parts
from medtest.core.scenes import Pool, Scene, Tells
from medtest.language.orders import vocabulary
from medtest.readers.pictures.base import NO_CARD, PictureContent, PictureReader, PictureSettings
from medtest.readers.pictures.card import Card
from medtest.readers.pictures.named_system import setting_mistakes

BLIND: Final = Tells(classes=frozenset(), predicates=frozenset(), attributes=frozenset(), counts=False)
"""What can be told about a picture that no reader looks at: nothing."""
_KINDS: Final = {"chest film": "film", "endoscopy": "endoscopy", "capsule": "capsule"}


class OrderReaderSettings(PictureSettings):
    """Settings of :class:`OrderReader`.

    Attributes:
        card: Only ``none`` and "": each reader has a card of its own.
        film: Reader of chest films, as ``{use: NAME, …}`` with its settings; {} for none.
        endoscopy: Reader of pictures of colonoscopy and gastroscopy.
        capsule: Reader of capsule frames.
    """

    film: dict[str, Any] = Field(default={}, json_schema_extra=TRUSTED)
    endoscopy: dict[str, Any] = Field(default={}, json_schema_extra=TRUSTED)
    capsule: dict[str, Any] = Field(default={}, json_schema_extra=TRUSTED)


class OrderReader(PictureReader):
    """Looks at each picture with the reader for its kind."""

    Settings = OrderReaderSettings
    settings: OrderReaderSettings
    asks_words: ClassVar[bool] = True

    def __init__(self, name: str, settings: OrderReaderSettings) -> None:
        super().__init__(name, settings)
        self._made: dict[str, PictureReader] | None = None

    def readers(self) -> dict[str, PictureReader]:
        """Return the reader of each kind of picture, not opened.

        Raises:
            UserMistakes: There is no such reader, or its settings are wrong.
        """
        if self._made is None:
            self._made = {
                kind: made
                for kind, key in _KINDS.items()
                if (made := self._reader(key, getattr(self.settings, key))) is not None
            }
        return self._made

    def _reader(self, key: str, settings: dict[str, Any]) -> PictureReader | None:
        if not settings:
            return None
        infos = {name: info for name, info in parts("readers").items() if _reads_pictures(info.load())}
        name = str(settings.get("use", ""))
        if name not in infos:
            allowed, nearest = ", ".join(sorted(infos)), nearest_name(name, sorted(infos))
            raise Mistake(where=self.name, key=f"{key}.use", found=name, allowed=allowed, nearest=nearest).as_error()
        own = {option: value for option, value in settings.items() if option != "use"}
        reader_class = infos[name].load()
        try:
            made = reader_class.Settings(**{**infos[name].defaults, **own})
        except ValidationError as error:
            mistakes = setting_mistakes(error, reader_class.Settings, own, where=self.name, key=key)
            raise UserMistakes(mistakes) from None
        reader: PictureReader = reader_class(f"{self.name}-{key}", made)
        return reader

    @property
    def asks_prompt(self) -> bool:
        """True if one of the readers asks about the whole prompt."""
        return any(reader.asks_prompt for reader in self.readers().values())

    # ----------------------------------------------------------------------------------------- what all readers share

    def check(self) -> list[Mistake]:
        """Return the mistakes in the readers' names and settings."""
        try:
            readers = self.readers()
        except UserMistakes as error:
            return list(error.mistakes)
        if self.settings.card not in ("", NO_CARD):
            fix = "give a card to the reader itself, as film.card=FILE"
            return [Mistake(where=self.name, key="card", found=self.settings.card, allowed="no card", fix=fix)]
        if not readers:
            found, allowed = "no reader for any kind of picture", "at least one of film, endoscopy, capsule"
            return [Mistake(where=self.name, found=found, allowed=allowed)]
        return [mistake for reader in readers.values() for mistake in reader.check()]

    def weights(self) -> Sequence[Path]:
        """Return the files of all readers."""
        return [path for reader in self.readers().values() for path in reader.weights()]

    def without_card(self) -> dict[str, Json]:
        """Return everything the scenes depend on: what those of each reader depend on, their cards included."""
        readers: dict[str, Json] = {kind: reader.fingerprint() for kind, reader in self.readers().items()}
        return {**super().without_card(), "readers": readers}

    def about(self) -> dict[str, Json]:
        """Return the name, the readers with what is known about them, and the rows of their cards as one card."""
        readers: dict[str, Json] = {kind: reader.about() for kind, reader in self.readers().items()}
        cards = [reader.card for reader in self.readers().values() if reader.card is not None]
        return {**super().about(), "readers": readers, **({"card": joined(cards).as_json()} if cards else {})}

    def notice(self) -> str:
        """Return the readers' notices, and the kinds of pictures that have none."""
        blind = [kind for kind in _KINDS if kind not in self.readers()]
        texts = [reader.notice() for reader in self.readers().values()]
        texts += [f"{self.name} has no reader for pictures of kind {', '.join(blind)}."] if blind else []
        return " ".join(text for text in texts if text)

    def keep_in(self, folders: Iterable[Path]) -> None:
        """Set the run folders that contain pictures."""
        own = list(folders)
        super().keep_in(own)
        for reader in self.readers().values():
            reader.keep_in(own)

    def open(self, *, device: str, threads: int) -> None:
        """Open all readers.

        Raises:
            MedtestError: One cannot be opened.
        """
        try:
            for reader in self.readers().values():
                reader.open(device=device, threads=threads)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Release all readers."""
        for reader in self.readers().values():
            reader.close()

    # -------------------------------------------------------------------------------------------------------- pictures

    def look(self, images: Sequence[Image], contents: Sequence[PictureContent]) -> list[Scene]:
        """Return the findings by the reader of each picture's kind; none can be told without a reader."""
        scenes: list[Scene] = [Scene(tells=BLIND)] * len(contents)
        kinds = [kind_of(content.asked()) for content in contents]
        for kind, reader in self.readers().items():
            places = [at for at, own in enumerate(kinds) if own == kind]
            for some in _batches(places, reader.at_once):
                asked = [_content(contents[at], reader) for at in some]
                seen = reader.look([images[at] for at in some], asked)
                card = reader.card
                for at, scene in zip(some, seen, strict=True):
                    scenes[at] = scene if card is None else replace(scene, tells=card.restricted(scene.tells))
        return scenes


def joined(cards: Sequence[Card]) -> Card:
    """Return the rows of several cards as one card; of a name on more than one, the row of the first."""
    rows = {(row.kind, row.name): row for card in reversed(cards) for row in card.rows}
    return Card(
        rows=tuple(rows[key] for key in sorted(rows)),
        pictures=sum(card.pictures for card in cards),
        data="; ".join(card.data for card in cards if card.data),
    )


def kind_of(pools: Iterable[Pool]) -> str:
    """Return the kind of picture whose findings pools name; "" for none or several."""
    names = {
        name for pool in pools for name in (*(entity.name for entity in pool.entities), *pool.absent, *pool.uncertain)
    }
    fitting = [kind for kind, words in vocabulary().modalities.items() if names and names <= words.findings.keys()]
    return fitting[0] if len(fitting) == 1 else ""


def _content(content: PictureContent, reader: PictureReader) -> PictureContent:
    if not reader.asks_words:
        return PictureContent(content.picture)
    return content if reader.asks_prompt else PictureContent(content.picture, content.pools)


def _batches(places: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    for start in range(0, len(places), size):
        yield places[start : start + size]


def _reads_pictures(reader: type[Any]) -> bool:
    return issubclass(reader, PictureReader) and not issubclass(reader, OrderReader)
