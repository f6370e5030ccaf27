"""Insertion of an endoscopic instrument (MedTest report, section 3.4.1, MR3-1).

Levels push one instrument further and further in, lit by the scene. Published mode, and ``kind: cutout``, paste a
cut-out of an object library, as the report does. The lesion, the black frame and the regions to avoid are unchanged in
all.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from medtest.core.cases import FollowUp, Mask, Params, PreparedSeed
from medtest.core.errors import Mistake, NotApplicable, nearest_name
from medtest.core.recent import last_of
from medtest.relations.base import PUBLISHED_SEVERITY
from medtest.relations.levels import number
from medtest.relations.objects.library import BUNDLED
from medtest.relations.objects.pasted import PastedInstrument
from medtest.relations.objects.tools.drawing import draw
from medtest.relations.objects.tools.entering import SHADE, ToolPose, Way, reach_of, way_of
from medtest.relations.objects.tools.shapes import MODELS, SHAFTS, TOOLS, ToolShape
from medtest.relations.placement import lesion_distance

CLOCK = (4.5, 5.5)
"""Hours on the clock face of the field between which the working channel lets instruments in: 13 of 14 real ones."""
AIM = 45
"""Largest angle in degrees between an instrument and the way to the field's centre."""
AIMS = 12
"""Directions drawn, of which the nearest to the field's centre with room is taken."""
NEARLY = 0.95
"""Share of the best direction's room that is as good."""
SHORTEST = 0.5
"""Least share of a severity's area at which an instrument that stops before the lesion still counts."""
LEAST_STEP = 1.05
"""Least area as multiple of the level below, so that every level changes more."""


TOOL = {"width": (0.125, 0.17), "bend": (-0.05, 0.05), "gain": (0.85, 1.15)}
SHAFT = {"width": (0.25, 0.33), "bend": (-0.08, 0.08), "gain": (0.75, 1.25)}
"""Widths as fraction of the field's diameter (medians 0.16 and 0.29), curvature, and brightness."""
TOOL_TAPER, SHAFT_TAPER = 0.34, 0.40


class Instrument(PastedInstrument):
    """Insertion of an instrument, or of the endoscope's own shaft (report 3.4.1, MR3-1).

    A tool enters where the working channel ends, between 4:30 and 5:30 on the clock face of the field. Each severity
    pushes the same tool further in. It stops before the lesion, where the levels below leave it a step, and is never
    moved to another place to find room.
    """

    revision: ClassVar[int] = 4

    def __init__(self, settings: Any) -> None:
        super().__init__(settings)
        self._pastes = settings.drawn or settings.kind == "cutout"
        self._most = max(level.area for level in settings.levels.values()) / 100
        self.nested = not self._pastes  # type: ignore[misc]
        if not self._pastes and (settings.library != BUNDLED or settings.library_folder is not None):
            raise Mistake(
                where="instrument",
                key="library",
                found=self.library.label,
                allowed=f"{BUNDLED}, because kind={settings.kind} is drawn",
                fix="kind=cutout or mode=published pastes the library's cut-outs",
            ).as_error()

    def fingerprint(self) -> dict[str, Any]:
        """Return the digest of the library's files if cut-outs are pasted."""
        return super().fingerprint() if self._pastes else {}

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Draw the instrument and its pose; for cut-outs the object and its position.

        Raises:
            NotApplicable: There is not enough room.
        """
        if severity == PUBLISHED_SEVERITY or self._pastes:
            return super().sample(seed, severity, rng)
        params = self._draw(seed, rng)
        area = float(self.settings.levels[severity].area)
        model, way = self._way(seed, params)
        room = 100 * way.area_of(model, way.reach)
        if room < SHORTEST * area:
            raise NotApplicable(
                f"no room for an instrument on {area:.3g} % of the field where it enters, at"
                f" {params['clock']:.1f} o'clock ({max(room, 0):.2g} % is free)"
            )
        possible = {level.area for level in self.settings.levels.values() if SHORTEST * level.area <= room}
        steps = sum(other > area for other in possible)
        largest = round(room / LEAST_STEP**steps, 3)
        return {**params, "area": area, **({"scale_applied": largest} if largest < area else {})}

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        """Push the instrument of ``params`` in, or paste its cut-out; ``scale`` is the area in % of the field.

        Raises:
            UserMistakes: The parameters name an instrument that does not exist.
        """
        if "objects" in params:
            return super().apply(seed, params)
        model, way = self._way(seed, params)
        area = number(params, "scale_applied" if "scale_applied" in params else "area") / 100
        depth = min(way.depth_of(model, area), way.reach)
        image, solid = draw(seed, way, model, depth, number(params, "gain"))
        facts = {"object_area": int(np.count_nonzero(solid)) / way.field}
        distance = lesion_distance(seed)
        if distance is not None and solid.any():
            facts["lesion_distance"] = float(distance[solid].min())
        effect = self._effect(_middles(solid), solid.view(np.uint8), model.called)
        return FollowUp(image=image, params=params, scale=number(params, "area"), effect=effect, facts=facts)

    def _draw(self, seed: PreparedSeed, rng: np.random.Generator) -> dict[str, Any]:
        """Return the pose, the same at every severity."""
        tool = self.settings.kind == "tool"
        models, ranges = (TOOLS, TOOL) if tool else (SHAFTS, SHAFT)
        names = [name for name, model in models.items() for _ in range(model.weight)]
        name = names[int(rng.integers(len(names)))]
        clock = rng.uniform(*CLOCK) if tool else rng.uniform(0.0, 12.0)
        drawn = {key: round(float(rng.uniform(*limits)), 4) for key, limits in ranges.items()}
        params = {"tool": name, "clock": round(float(clock), 3), **drawn}
        aims = sorted((int(aim) for aim in rng.integers(-AIM, AIM + 1, AIMS)), key=abs)
        key = f"{params} {aims} {self._margin(seed)} {self._most}"
        return {**params, "aim": last_of(seed, "instrument.aim", key, lambda: self._aim(seed, params, aims))}

    def _aim(self, seed: PreparedSeed, params: dict[str, Any], aims: list[int]) -> int:
        """Return the direction nearest to the field's centre that has about the room of the best one."""
        model, margin = MODELS[params["tool"]], self._margin(seed)
        # A strip this long has the area of the highest level, with some more for a narrow head; more is no advantage.
        length = 1.25 * math.pi * self._most / (2 * params["width"])
        reaches: list[float] = []
        for aim in aims:
            reaches.append(reach_of(seed, model, self._entry({**params, "aim": aim}), margin))
            if reaches[-1] >= NEARLY * length:
                return aim
        return next(aim for aim, reach in zip(aims, reaches, strict=True) if reach >= NEARLY * max(reaches))

    def _entry(self, params: Params) -> ToolPose:
        values = {key: number(params, key) for key in ("clock", "aim", "width", "bend")}
        return ToolPose(**values, taper=SHAFT_TAPER if params["tool"] in SHAFTS else TOOL_TAPER)

    def _way(self, seed: PreparedSeed, params: Params) -> tuple[ToolShape, Way]:
        """Return the model and its way into the field; the last way is kept with the seed."""
        name, margin = str(params["tool"]), self._margin(seed)
        if name not in MODELS:
            raise Mistake(
                where="instrument",
                key="tool",
                found=repr(name),
                allowed=", ".join(MODELS),
                nearest=nearest_name(name, list(MODELS)),
            ).as_error()
        model, entry = MODELS[name], self._entry(params)
        shade = SHADE if name in SHAFTS else 0.0
        key = (name, entry, margin)
        return model, last_of(seed, "instrument.way", key, lambda: way_of(seed, model, entry, margin, shade))


def _middles(solid: Mask) -> list[tuple[int, float, float]]:
    """Return the pixels of the instrument and the middle of its box, as fractions of the image's sides."""
    rows, columns = np.flatnonzero(solid.any(axis=1)), np.flatnonzero(solid.any(axis=0))
    if rows.size == 0:
        return []
    height, width = solid.shape
    middle = ((columns[0] + columns[-1] + 1) / (2 * width), (rows[0] + rows[-1] + 1) / (2 * height))
    return [(int(np.count_nonzero(solid)), float(middle[0]), float(middle[1]))]
