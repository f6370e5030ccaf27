"""Settings of figures of pictures: block ``oracles.figures`` of the oracle's settings."""

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
        pictures: ``embedded`` or ``none``: whether pictures are embedded for figures and near-duplicates. Structural
            R-precision and GenEval's rule need no network and are always computed.
        inception: Weights of Inception-v3 (2015-12-05), to compute FID, KID and IS in place of the bundled network.
        clip: Hugging Face folder of CLIP, to compute RP in place of structural R-precision.
        real: Folder of real pictures as reference of distances; none for the answers to the sources' prompts.
        training: Folder of pictures to search for near-duplicates of answers.
        temperature: Divisor of scores in the inception score; none for one fitted on ``labelled``, or the network's
            own.
        most: Number of seeds of each data set whose pictures are embedded, selected by their ids; none for all.
        captions: Caption to retrieve in R-precision: the ``mutated`` caption of each case, or its source's
            (``original``), as in the paper's released code.
        labelled: Folder of pictures with known classes, in subfolders named by class number, to fit the temperature.
        similarity: Cosine of features from which two pictures with similar hashes are near-duplicates.
        geneval_score: Smallest reader score of objects that count under GenEval's rule (0.3 in GenEval).
        geneval_counting_score: The same for prompts that count (0.9 in GenEval).
        device: Device of the networks: ``auto``, ``cpu`` or ``cuda:N``.
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
        """Return the figure settings in an oracle's settings (``Context.judging``), or the defaults."""
        return cls.model_validate(judging.get("figures") or {})

    @property
    def pixels(self) -> Mapping[str, Any]:
        """Network for distances and scores."""
        return {"net": "inception", "place": self.inception} if self.inception else {"net": "bundled"}

    @property
    def words(self) -> Mapping[str, Any] | None:
        """Network that compares pictures with captions; None to compare by structure."""
        return {"net": "clip", "place": self.clip} if self.clip else None

    @property
    def nets(self) -> list[Mapping[str, Any]]:
        """All networks."""
        return [self.pixels, *([self.words] if self.words else [])]

    @property
    def embedder(self) -> Embedder:
        """Network for distances and scores, not opened."""
        return embedder_of(self.pixels)

    def check(self) -> list[Mistake]:
        """Return the mistakes in the paths."""
        mistakes = [mistake for net in self.nets for mistake in embedder_of(net).check()]
        for key in FOLDERS:
            place = getattr(self, key)
            if place is not None:
                mistakes += folder_mistakes(place, where="oracles.figures", key=key)
        return mistakes

    def folder(self, key: str) -> Path | None:
        """Return one of the folders of pictures."""
        place = getattr(self, key)
        return None if place is None else user_path(place)
