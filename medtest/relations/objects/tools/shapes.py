"""Shapes and materials of drawn instruments.

Lengths are multiples of the sheath's half-width at the tip, measured from the tip backwards. Shapes follow 24 pictures
of Kvasir-Instrument: sheaths and probes of plastic, forceps with a wound metal shaft, a snare, a clip, and the
endoscope's own shaft in retroflexion.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medtest.core.files.paths import read_yaml

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


def _tuples(values: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}


def _shape(values: dict[str, Any]) -> ToolShape:
    segments = [Segment(**_tuples(segment)) for segment in values["segments"]]
    return ToolShape(**_tuples({**values, "segments": segments}))


_INSTRUMENTS = read_yaml(Path(__file__).with_name("instruments.yaml"))
SURFACES = {name: Surface(**_tuples(values)) for name, values in _INSTRUMENTS["surfaces"].items()}
TOOLS = {name: _shape(values) for name, values in _INSTRUMENTS["tools"].items()}
"""Instruments of the working channel."""
SHAFTS = {name: _shape(values) for name, values in _INSTRUMENTS["shafts"].items()}
"""The endoscope's own shaft in retroflexion."""
MODELS = TOOLS | SHAFTS
