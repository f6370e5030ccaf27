"""Stool and blood on the mucosa (MedTest report, sections 3.4.2 and 3.4.3).

Levels cover tissue with matter that the scene lights (:mod:`medtest.relations.objects.matter.ladder`). Published mode
pastes whole cut-outs, as the report does. The lesion, the black frame and the regions to avoid are unchanged in both.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from medtest.core.cases import Effect, FollowUp, Json, Params, PreparedSeed
from medtest.core.errors import Mistake
from medtest.relations.base import PUBLISHED_SEVERITY
from medtest.relations.levels import noise_seed, number
from medtest.relations.objects.matter.bleeding import BloodMatter
from medtest.relations.objects.matter.ladder import Ladder, Matter, pieces
from medtest.relations.objects.matter.stool import Stool
from medtest.relations.objects.matter.swatches import Swatch, swatch_digest, swatches_of
from medtest.relations.objects.pasted import PastedPieces
from medtest.relations.objects.placing import field_look, likeness


class _Covering(PastedPieces):
    """Base class of the two relations; a subclass names its matter."""

    revision: ClassVar[int] = 7
    nested: ClassVar[bool] = True
    matter: ClassVar[type[Stool] | type[BloodMatter]]

    def __init__(self, settings: Any) -> None:
        super().__init__(settings)
        self._matters: dict[str, Matter] = {
            swatch.name: self.matter(swatch, settings.wetness, settings.relief)
            for swatch in self._swatches
            if any(info.name == swatch.name for info in self.infos)
        }
        if not self._matters and not settings.drawn:
            raise Mistake(
                where=f"object library {self.library.label}",
                key=self.kind,
                found="no swatch of its matter",
                allowed="at least one pair NAME.albedo.png and NAME.surface.png beside NAME.png",
                fix="make the library again with `medtest objects build`, or take library=bundled or mode=published",
            ).as_error()

    @property
    def _swatches(self) -> tuple[Swatch, ...]:
        return swatches_of(self.library, self.kind)

    def fingerprint(self) -> dict[str, Any]:
        """Return the digests of the library's files; published mode reads no swatches."""
        own = super().fingerprint()
        return own if self.settings.drawn else {**own, "swatches": swatch_digest(self._swatches)}

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Draw the matter and the number of its ladder; in published mode the objects and their positions.

        Raises:
            NotApplicable: There is not enough room.
        """
        if severity == PUBLISHED_SEVERITY:
            return super().sample(seed, severity, rng)
        infos = [info for info in self.infos if info.name in self._matters]
        chances = np.cumsum(likeness(field_look(seed), infos))
        drawn = int(np.searchsorted(chances, rng.random() * chances[-1], side="right"))
        area = float(self.settings.levels[severity].area)
        params: dict[str, Json] = {
            "matter": infos[min(drawn, len(infos) - 1)].name,
            "ladder": noise_seed(rng),
            "area": area,
        }
        matter, ladder = self._ladder(seed, params)
        matter.check_room(ladder, area / 100)
        return dict(params)

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        """Cover the area of ``params`` with matter, or paste its objects; ``scale`` is the area in % of the field."""
        if "objects" in params:
            return super().apply(seed, params)
        matter, ladder = self._ladder(seed, params)
        area = number(params, "area") / 100
        image, solid = matter.pour(seed, ladder, area, self._margin(seed))
        data, facts = pieces(solid, seed, ladder, ladder.count(area))
        effect = Effect(kind="add", data={"what": self.kind, **data})
        return FollowUp(image=image, params=params, scale=100 * area, effect=effect, facts=facts)

    def _ladder(self, seed: PreparedSeed, params: Params) -> tuple[Matter, Ladder]:
        name = str(params["matter"])
        if name not in self._matters:
            self.library.info(self.kind, name)  # raises with the names that exist
        matter = self._matters[name]
        # Parameters above all levels, as another suite may have drawn them, need a ladder of their own.
        largest = max(number(params, "area"), *(level.area for level in self.settings.levels.values())) / 100
        return matter, matter.ladder(seed, int(number(params, "ladder")), self._margin(seed), largest)


class Feces(_Covering):
    """Stool left by incomplete cleansing (report 3.4.2, MR3-2).

    It lies at the rim of the field, on the side where gravity draws it, with thin liquid around; a severity covers what
    the one below covered, and more. In published mode pieces may be anywhere outside the lesion, likelier ones first.
    """

    kind: ClassVar[str] = "feces"
    matter = Stool


class Blood(_Covering):
    """Bleeding (report 3.4.3, MR3-3): films and pools that run from a few places along gravity and folds."""

    kind: ClassVar[str] = "blood"
    matter = BloodMatter
    alters: ClassVar[frozenset[str]] = frozenset(
        {"vascular", "bleeding", "bleed", "blood", "haemorrhage", "haemorrhages", "hemorrhage", "hemorrhages"}
    )
    alters_why: ClassVar[str] = "blood in the picture is a separate finding"
