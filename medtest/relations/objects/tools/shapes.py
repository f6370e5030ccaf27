"""Shapes and materials of drawn instruments.

Lengths are multiples of the sheath's half-width at the tip, measured from the tip backwards. Shapes follow 24 pictures
of Kvasir-Instrument: sheaths and probes of plastic, forceps with a wound metal shaft, a snare, a clip, and the
endoscope's own shaft in retroflexion.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
STEP = 0.125
"""Step of :attr:`ToolShape.outline`."""
TO_RIM = 1e6
"""End of a segment that reaches the rim of the field."""


@dataclass(frozen=True, kw_only=True)
class Surface:
    """Look of a surface.

    Attributes:
        colour: R, G, B under full light, 1 is the brightest that a camera shows.
        edge: Share of the light lost at the outline: small for plastic that scatters light.
        gloss: Light of the stripe that mirrors the lamp.
        stripe: Half-width of that stripe, as share of the surface's.
        opacity: Share of tissue hidden in the middle and at the outline.
        winding: Contrast of a wound wire.
        rough: Contrast of scratches and drops.
        mirror: Share of its light that comes from what is around.
        uneven: How unevenly tissue is mirrored: the standard deviation of its share over the surface, and what the
            outline adds. Uneven surfaces are those of bare metal, which glints.
    """

    colour: tuple[float, float, float]
    edge: float
    gloss: float = 0.0
    stripe: float = 0.25
    opacity: tuple[float, float] = (1.0, 1.0)
    winding: float = 0.0
    rough: float = 0.0
    mirror: float = 0.0
    uneven: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Segment:
    """Segment of an instrument.

    Attributes:
        material: Name in :data:`SURFACES`.
        start: Distance of its front end from the tip.
        end: Distance of its rear end from the tip.
        half: Half-widths of front and rear end.
        side: Distances of front and rear end from the axis.
        rounded: Length over which the front end is rounded.
        curved: By how much its ends lie farther back at the outline than in the middle, as a ring round a tube does.
        loop: Whether it is a wire round an ellipse: ``half`` is then the wire's and the ellipse's half-width.
    """

    material: str
    start: float
    end: float = TO_RIM
    half: tuple[float, float] = (1.0, 1.0)
    side: tuple[float, float] = (0.0, 0.0)
    rounded: float = 0.3
    curved: float = 0.0
    loop: bool = False

    def middle_and_half(self, away: Floats) -> tuple[Floats, Floats]:
        """Return the distance of its middle from the axis and its half-width, at distances from the tip."""
        share = np.clip((away - np.float32(self.start)) * np.float32(1.0 / min(self.end - self.start, 60.0)), 0.0, 1.0)
        middle = np.float32(self.side[0]) + np.float32(self.side[1] - self.side[0]) * share
        half = np.float32(self.half[0]) + np.float32(self.half[1] - self.half[0]) * share
        # A rounded end is a quarter of an ellipse.
        rest = np.clip(np.float32(1.0) - (away - np.float32(self.start)) * np.float32(1.0 / self.rounded), 0.0, 1.0)
        return middle.astype(np.float32), half * np.sqrt(np.float32(1.0) - rest * rest)


@dataclass(frozen=True, kw_only=True)
class ToolShape:
    """Shape of an instrument.

    Attributes:
        segments: Its segments, the farthest from the camera first; the last one reaches the rim.
        called: Its correct names in the vocabulary of typed answers.
        weight: How often it is drawn, about as often as its like is seen in 14 pictures of Kvasir-Instrument.
    """

    segments: tuple[Segment, ...]
    called: tuple[str, ...] = ()
    weight: int = 1

    @property
    def head(self) -> float:
        """Distance from the tip at which the sheath has its full width."""
        last = self.segments[-1]
        return last.start + last.rounded

    @cached_property
    def outline(self) -> Floats:
        """Half-width of the outline every :data:`STEP` from the tip to the end of the head; at least one value."""
        away = np.arange(0.0, self.head + STEP, STEP, dtype=np.float32)
        widest = np.zeros_like(away)
        for segment in self.segments:
            if segment.loop:
                radius = (segment.end - segment.start) / 2
                along = (away - np.float32(segment.start + radius)) * np.float32(1.0 / radius)
                half = np.float32(segment.half[1]) * np.sqrt(np.maximum(np.float32(1.0) - along * along, 0.0))
            else:
                middle, half = segment.middle_and_half(away)
                half = np.where((away >= segment.start) & (away <= segment.end), np.abs(middle) + half, 0.0)
            widest = np.maximum(widest, half)
        return widest

    @property
    def missing(self) -> float:
        """Area by which the head is smaller than a sheath cut straight at the tip, in squared half-widths."""
        return float(2 * STEP * (1.0 - self.outline.astype(np.float64)).sum())


SURFACES = {
    "white": Surface(
        colour=(0.98, 0.96, 0.92), edge=0.16, gloss=0.1, stripe=0.45, rough=0.03, mirror=0.55, uneven=0.03
    ),
    "blue": Surface(colour=(0.72, 0.74, 0.95), edge=0.2, gloss=0.18, rough=0.03, mirror=0.55, uneven=0.03),
    "clear": Surface(
        colour=(0.80, 0.76, 0.72),
        edge=0.1,
        gloss=0.5,
        stripe=0.16,
        opacity=(0.35, 0.8),
        rough=0.04,
        mirror=0.4,
        uneven=0.1,
    ),
    "metal": Surface(colour=(0.50, 0.46, 0.43), edge=0.5, gloss=0.56, stripe=0.2, rough=0.22, mirror=0.85, uneven=0.5),
    "wire": Surface(colour=(0.66, 0.64, 0.62), edge=0.5, gloss=0.4, stripe=0.4, rough=0.2, mirror=0.7, uneven=0.5),
    "wound": Surface(
        colour=(0.58, 0.52, 0.46), edge=0.5, gloss=0.45, stripe=0.26, winding=0.34, rough=0.15, mirror=0.75, uneven=0.5
    ),
    "rubber": Surface(colour=(0.15, 0.14, 0.115), edge=0.55, gloss=0.11, stripe=0.45, rough=0.1),
    "mark": Surface(colour=(0.86, 0.84, 0.76), edge=0.4),
}

TOOLS = {
    "tube": ToolShape(segments=(Segment(material="white", start=0.0, rounded=0.45),), called=("tube",), weight=4),
    "probe": ToolShape(
        segments=(
            Segment(material="metal", start=0.0, end=2.0, half=(0.36, 0.42), rounded=0.36),
            Segment(material="white", start=1.5, half=(0.98, 1.0), rounded=0.55),
        ),
        called=("probe",),
        weight=2,
    ),
    "blue_probe": ToolShape(
        segments=(
            Segment(material="metal", start=0.0, end=1.6, half=(0.4, 0.5), rounded=0.4),
            Segment(material="white", start=1.1, end=2.6, half=(0.84, 0.92), rounded=0.35),
            Segment(material="blue", start=2.3, rounded=0.2, curved=0.2),
        ),
        called=("probe",),
    ),
    "needle": ToolShape(
        segments=(
            Segment(material="metal", start=0.0, end=2.4, half=(0.1, 0.16), rounded=0.4),
            Segment(material="clear", start=0.7, end=3.2, half=(0.78, 0.9), rounded=0.25),
            Segment(material="white", start=2.8, rounded=0.3, curved=0.2),
        ),
        called=("injection_needle",),
        weight=2,
    ),
    "forceps": ToolShape(
        segments=(
            Segment(material="metal", start=0.0, end=1.8, half=(0.4, 0.3), side=(0.36, 0.26), rounded=0.6),
            Segment(material="metal", start=0.0, end=1.8, half=(0.4, 0.3), side=(-0.36, -0.26), rounded=0.6),
            Segment(material="metal", start=1.5, end=2.8, half=(0.5, 0.66), rounded=0.2),
            Segment(material="wound", start=2.4, rounded=0.3),
        ),
        called=("biopsy_forceps",),
        weight=2,
    ),
    "forceps_open": ToolShape(
        segments=(
            Segment(material="metal", start=0.0, end=1.9, half=(0.42, 0.3), side=(0.85, 0.22), rounded=0.6),
            Segment(material="metal", start=0.1, end=1.9, half=(0.42, 0.3), side=(-0.85, -0.22), rounded=0.6),
            Segment(material="metal", start=1.5, end=2.7, half=(0.46, 0.66), rounded=0.2),
            Segment(material="wound", start=2.4, rounded=0.3),
        ),
        called=("biopsy_forceps",),
    ),
    "snare": ToolShape(
        segments=(
            Segment(material="wire", start=0.0, end=3.4, half=(0.085, 1.2), loop=True),
            Segment(material="metal", start=3.3, end=4.3, half=(0.22, 0.34), rounded=0.2),
            Segment(material="white", start=3.9, rounded=0.4),
        ),
        called=("polyp_snare",),
    ),
    "clip": ToolShape(
        segments=(
            *(
                Segment(
                    material="metal", start=start, end=end, half=half, side=(sign * front, sign * rear), rounded=0.2
                )
                for sign in (1, -1)
                for start, end, half, front, rear in (
                    (0.0, 0.55, (0.1, 0.16), 0.22, 0.56),
                    (0.45, 1.9, (0.16, 0.22), 0.56, 0.2),
                )
            ),
            Segment(material="metal", start=1.6, end=3.0, half=(0.46, 0.6), rounded=0.2),
            Segment(material="white", start=2.7, rounded=0.4, curved=0.2),
        ),
        called=("metal_clip",),
    ),
}
"""Instruments of the working channel."""
SHAFTS = {
    "shaft": ToolShape(segments=(Segment(material="rubber", start=0.0, rounded=1.3),)),
    "marked_shaft": ToolShape(
        segments=(
            Segment(material="rubber", start=0.0, rounded=1.3),
            Segment(material="mark", start=1.2, end=1.36, rounded=0.04, curved=0.45),
            Segment(material="rubber", start=1.36, rounded=0.04, curved=0.45),
        )
    ),
}
"""The endoscope's own shaft in retroflexion."""
MODELS = TOOLS | SHAFTS
