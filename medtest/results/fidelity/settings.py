"""What figures of pictures are made with: a block of the oracle's settings, ``oracles.figures``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field

from medtest.core.errors import Mistake
from medtest.core.plugins import TRUSTED, PartSettings
from medtest.readers.embeddings.base import Embedder
from medtest.readers.embeddings.choice import embedder_of
from medtest.systems.files import folder_mistakes, user_path

FOLDERS: Final = ("real", "training", "labelled")
"""Settings that name folders of pictures."""


class FigureSettings(PartSettings):
    """Settings of figures of pictures.

    Attributes:
        pictures: Whether pictures are embedded at all, for figures and near-duplicates: ``embedded`` or ``none``.
            What needs no network, R-precision by structure and GenEval's rule, is made in either case.
        inception: Weights of Inception-v3 (2015-12-05): FID, KID and IS in place of ours.
        clip: A Hugging Face folder of CLIP: RP in place of ours.
        real: A folder of real pictures that distances are to; none for the answers to the sources' prompts.
        training: A folder of pictures in which near-duplicates of answers are looked for.
        temperature: What scores are divided by for the inception score; none for one that is fitted on ``labelled``,
            or the network's own.
        most: Seeds of each data set whose pictures are embedded, drawn by their ids; none for all.
        captions: What R-precision asks for: the ``mutated`` caption of each case, or its source's (``original``), as
            the paper's released code does.
        labelled: A folder of pictures whose classes are known, in subfolders named by the class's number: the
            temperature is fitted on them.
        similarity: Cosine of features from which on two pictures with near hashes are near-duplicates.
        geneval_score: Things of which the reader is less sure do not count under GenEval's rule (0.3 there).
        geneval_counting_score: The same for its prompts that count (0.9 there).
        device: ``auto``, ``cpu`` or ``cuda:N``: where networks run.
    """

    pictures: Literal["embedded", "none"] = "embedded"
    inception: str | None = Field(None, json_schema_extra=TRUSTED)
    clip: str | None = Field(None, json_schema_extra=TRUSTED)
    real: str | None = Field(None, json_schema_extra=TRUSTED)
    training: str | None = Field(None, json_schema_extra=TRUSTED)
    labelled: str | None = Field(None, json_schema_extra=TRUSTED)
    temperature: float | None = Field(None, gt=0)
    most: int | None = Field(1000, ge=2)
    captions: Literal["mutated", "original"] = "mutated"
    similarity: float = Field(0.97, ge=-1, le=1)
    geneval_score: float = Field(0.0, ge=0, le=1)
    geneval_counting_score: float = Field(0.0, ge=0, le=1)
    device: str = Field("auto", pattern=r"auto|cpu|cuda:\d+")

    @classmethod
    def of(cls, judging: Mapping[str, Any]) -> FigureSettings:
        """Return the settings that an oracle's settings hold (``Context.judging``); the defaults where it has none."""
        return cls.model_validate(judging.get("figures") or {})

    @property
    def pixels(self) -> Mapping[str, Any]:
        """The network that distances and scores are made with."""
        return {"net": "inception", "place": self.inception} if self.inception else {"net": "bundled"}

    @property
    def words(self) -> Mapping[str, Any] | None:
        """The network that compares pictures with captions; None where structure does."""
        return {"net": "clip", "place": self.clip} if self.clip else None

    @property
    def nets(self) -> list[Mapping[str, Any]]:
        """All networks."""
        return [self.pixels, *([self.words] if self.words else [])]

    @property
    def embedder(self) -> Embedder:
        """The network that distances and scores are made with, not opened."""
        return embedder_of(self.pixels)

    def check(self) -> list[Mistake]:
        """Return what is wrong with the paths."""
        found = [mistake for net in self.nets for mistake in embedder_of(net).check()]
        for key in FOLDERS:
            place = getattr(self, key)
            if place is not None:
                found += folder_mistakes(place, where="oracles.figures", key=key)
        return found

    def folder(self, key: str) -> Path | None:
        """Return one of the folders of pictures."""
        place = getattr(self, key)
        return None if place is None else user_path(place)
