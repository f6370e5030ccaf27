"""Synthetic CT volumes of the abdomen, with livers evenly spread over a range of variability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from medtest.core.cases import ImageSpec, Seed, SeedRef
from medtest.core.plugins import PartSettings, wrong_at
from medtest.phantoms.abdomen.cohort import box_of_training_livers, draw_liver
from medtest.phantoms.abdomen.generator import (
    MOST_VOXELS,
    NOISE_HU,
    REVISION,
    SHAPE,
    SPACING,
    AbdomenPhantom,
    abdomen_rng,
    make_abdomen,
)
from medtest.phantoms.abdomen.variability import StandardBox, liver_variability
from medtest.seeds.base import SeedSource
from medtest.seeds.made.base import settings_digest

VARIABILITY = "liver_variability"
LOW_HU, HIGH_HU = -200.0, 300.0
"""Values shown black and white; PSNR and noise scales refer to this range."""
Millimetres = Annotated[float, Field(gt=0.0, le=2000.0)]


class AbdomenSettings(PartSettings):
    """Settings of :class:`Abdomens`.

    Attributes:
        count: Number of livers.
        repeats: Scans of each liver, which differ only in noise and share a cluster.
        lowest: Smallest variability, per cent.
        highest: Largest variability, per cent.
        shape: Voxels along z, y, x.
        spacing: Voxel size, millimetres.
        noise: Standard deviation of the noise, Hounsfield units.
        box: Standard box in millimetres (z, y, x); None takes the mean dimensions of the training livers.
        placement: Placement of the box: ``centroid`` or ``corner``.
    """

    count: int = Field(default=20, ge=1, le=10_000)
    repeats: int = Field(default=5, ge=1, le=1000)
    lowest: float = Field(default=0.25, ge=0.0, le=30.0)
    highest: float = Field(default=9.5, ge=0.0, le=30.0)
    shape: Annotated[list[Annotated[int, Field(ge=16, le=2048)]], Field(min_length=3, max_length=3)] = list(SHAPE)
    spacing: Annotated[list[Annotated[float, Field(gt=0.0, le=50.0)]], Field(min_length=3, max_length=3)] = list(
        SPACING
    )
    noise: float = Field(default=NOISE_HU, ge=0.0, le=500.0)
    box: Annotated[list[Millimetres], Field(min_length=3, max_length=3)] | None = None
    placement: Literal["centroid", "corner"] = "centroid"

    @model_validator(mode="after")
    def _check(self) -> AbdomenSettings:
        if self.lowest > self.highest:
            raise wrong_at("lowest", f"at most highest, which is {self.highest:g}; not {self.lowest:g}")
        if int(np.prod(self.shape)) > MOST_VOXELS:
            raise wrong_at("shape", f"at most {MOST_VOXELS:,} voxels together; not {int(np.prod(self.shape)):,}")
        return self


class Abdomens(SeedSource):
    """Abdomen phantoms ``liver-00-n0`` … (liver 0 with its first noise), in ascending variability."""

    Settings: ClassVar[type[PartSettings]] = AbdomenSettings
    revision: ClassVar[int] = REVISION
    phantom: ClassVar[bool] = True
    task: ClassVar[str] = "region"

    settings: AbdomenSettings

    def refs(self) -> Sequence[SeedRef]:
        """Return every scan, liver by liver."""
        digits = len(str(self.settings.count - 1))
        return tuple(
            SeedRef(
                dataset=self.dataset,
                seed_id=f"liver-{liver:0{max(2, digits)}d}-n{repeat}",
                cluster=f"liver-{liver:0{max(2, digits)}d}",
                locator=f"{liver}/{repeat}",
            )
            for liver in range(self.settings.count)
            for repeat in range(self.settings.repeats)
        )

    def make(self, ref: SeedRef) -> AbdomenPhantom:
        """Generate one phantom with its ground truth."""
        settings = self.settings
        liver, repeat = (int(part) for part in ref.locator.split("/"))
        share = liver / (settings.count - 1) if settings.count > 1 else 0.5
        target = settings.lowest + (settings.highest - settings.lowest) * share
        coefficients, shift = draw_liver(self.suite_seed, self.dataset, liver, target, settings.placement)
        return make_abdomen(
            abdomen_rng(self.suite_seed, self.dataset, liver),
            coefficients,
            shift=shift,
            noise=abdomen_rng(self.suite_seed, self.dataset, liver, repeat),
            shape=(settings.shape[0], settings.shape[1], settings.shape[2]),
            spacing=(settings.spacing[0], settings.spacing[1], settings.spacing[2]),
            noise_hu=settings.noise,
        )

    def box(self) -> StandardBox:
        """Return the standard box that variability is measured against."""
        size = self.settings.box
        return StandardBox(size=tuple(size)) if size is not None else box_of_training_livers()

    def load(self, ref: SeedRef) -> Seed:
        """Generate one phantom and measure its liver."""
        phantom = self.make(ref)
        measured = liver_variability(phantom.liver, phantom.spacing, self.box(), placement=self.settings.placement)
        spec = ImageSpec(
            dtype="float32", low=LOW_HU, high=HIGH_HU, spacing=phantom.spacing, axes="zyx", marks=phantom.marks
        )
        return Seed(
            ref=ref,
            image=phantom.volume,
            expected=phantom.liver,
            kind="region",
            spec=spec,
            properties={VARIABILITY: measured},
        )

    def digest(self) -> str:
        """Return a SHA-256 over the generator's revision, the settings, the data set's id and the suite's seed."""
        return settings_digest(self, "abdomen")

    def notices(self) -> Sequence[str]:
        """Describe the box that livers are measured against."""
        size = " × ".join(f"{mm:.0f}" for mm in self.box().size)
        return [
            f"{self.dataset}: variability against a box of {size} mm (z, y, x), placed by {self.settings.placement}"
        ]
