"""Simulated laboratory as a generator of medical pictures, served over HTTP by a real server on loopback."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from medtest.simlab.config import Config
from medtest.simlab.drawing.clinical import REVISION
from medtest.simlab.drawing.clinical.defects import ClinicalDefects
from medtest.systems.answering.simulated import RATE
from medtest.systems.pictures.simlab_images import Refusal, SimlabImages, SimlabImagesSettings, product_defects

_Defect = Literal[
    "sides_swapped",
    "negated_drawn",
    "findings_dropped",
    "counts_ignored",
    "sizes_ignored",
    "synonyms_missed",
    "anatomy_refused",
    "bystanders_leaked",
]


class ClinicalDefectSettings(BaseModel):
    """Defects of the product (:class:`medtest.simlab.drawing.clinical.defects.ClinicalDefects`): rates from 0 to 1.

    Attributes:
        sides_swapped: Findings are drawn on the other side.
        negated_drawn: Findings that the prompt excludes are drawn.
        findings_dropped: The finding named last is not drawn.
        counts_ignored: One instance is drawn of every finding.
        sizes_ignored: Every finding with a size measures 12 mm.
        synonyms_missed: Findings are drawn only under their plain names.
        anatomy_refused: Nothing is drawn.
        bystanders_leaked: An age, a sex or a scanner brings a further finding.
        anew: Defects that are drawn independently for each call; the others are constant per prompt.
        refused_as: Form of refusals: ``policy``, a 400; ``empty_list``, no picture; ``empty_base64``, an empty one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    sides_swapped: float = RATE
    negated_drawn: float = RATE
    findings_dropped: float = RATE
    counts_ignored: float = RATE
    sizes_ignored: float = RATE
    synonyms_missed: float = RATE
    anatomy_refused: float = RATE
    bystanders_leaked: float = RATE
    anew: list[_Defect] = []
    refused_as: list[Refusal] = Field(default=["policy", "empty_list", "empty_base64"], min_length=1)

    def drawn(self) -> ClinicalDefects:
        """Return the defects as the product's own type."""
        return product_defects(ClinicalDefects, self)


class SimlabClinicalSettings(SimlabImagesSettings):
    """Settings of the simulated generator of medical pictures, otherwise as of the simulated image generator.

    Attributes:
        size: 128x128 to 1024x1024.
        defects: Defects of the product.
    """

    size: Literal["128x128", "256x256", "384x384", "512x512", "768x768", "1024x1024"] = "256x256"
    defects: ClinicalDefectSettings = ClinicalDefectSettings()  # type: ignore[assignment]


class SimlabClinical(SimlabImages):
    """Simulated generator of medical pictures behind a real server, which runs from :meth:`open` to :meth:`close`."""

    Settings: ClassVar[type[SimlabImagesSettings]] = SimlabClinicalSettings
    answer_keys: ClassVar[tuple[str, ...]] = ("seed", "clinical")
    revision: ClassVar[int] = REVISION
    remembers: ClassVar[bool] = False

    settings: SimlabClinicalSettings

    def with_defects(self, config: Config) -> Config:
        """Return a server's configuration with the defects of this system's product."""
        return replace(config, clinical=self.settings.defects.drawn())
