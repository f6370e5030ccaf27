"""A segmentation system as a reader of orders: whether a finding is there, how often, how large and on which side.

Each connected region of the mask is a finding. Its size is the diameter of a circle of its area.
"""

from __future__ import annotations

import math

from pydantic import Field

from medtest.core.errors import Mistake, nearest_name
from medtest.core.scenes import Tells
from medtest.language.orders import vocabulary
from medtest.language.orders.contents import SIZES, size_class
from medtest.readers.pictures.findings.labels import LEFT, RIGHT
from medtest.readers.pictures.segments import Segments, SegmentsSettings
from medtest.readers.pictures.spatial import PREDICATES


class MaskReaderSettings(SegmentsSettings):
    """Settings of :class:`MaskReader`.

    Attributes:
        least: Minimum size of a region as a share of the picture; smaller ones are no findings.
        millimetres: Width of the picture in millimetres; null if it is unknown, and sizes are not told.
        sides: Whether the picture is a film, whose right half is the patient's left; the side is that of the region's
            centroid.
    """

    least: float = Field(default=0.002, ge=0, le=1)
    millimetres: float | None = Field(default=None, gt=0, le=10_000)
    sides: bool = False


class MaskReader(Segments):
    """Detects one finding with a segmentation system: one entity for each region, with size and side."""

    Settings = MaskReaderSettings
    settings: MaskReaderSettings

    def check(self) -> list[Mistake]:
        """Return the mistakes in the name of the system or its settings; what it marks must be a finding of orders."""
        findings, own = vocabulary().findings, self.settings.finding
        if own in findings:
            return super().check()
        nearest = nearest_name(own, findings)
        wrong = Mistake(where=self.name, key="finding", found=own, allowed=", ".join(findings), nearest=nearest)
        return [wrong, *super().check()]

    def _make_tells(self) -> Tells:
        sizes = SIZES if self.settings.millimetres is not None else ()
        sides = (LEFT, RIGHT) if self.settings.sides else ()
        return Tells(
            classes=frozenset({self.settings.finding}),
            predicates=frozenset(PREDICATES),
            attributes=frozenset((*sizes, *sides)),
        )

    def _attributes(self, area: int, centre: float, width: int) -> tuple[str, ...]:
        values = []
        if self.settings.millimetres is not None:
            diameter = 2 * math.sqrt(area / math.pi) * self.settings.millimetres / width
            values.append(size_class(diameter))
        if self.settings.sides and centre != width / 2:
            values.append(LEFT if centre > width / 2 else RIGHT)
        return tuple(sorted(values))
