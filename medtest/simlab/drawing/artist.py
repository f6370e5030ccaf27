"""The drawing product: prompts in, pictures out, deterministic for equal requests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from random import Random

import numpy as np
from numpy.typing import NDArray

from medtest.core.recent import Recent
from medtest.phantoms.scenes import draw_scene
from medtest.simlab.answering.draws import Draws
from medtest.simlab.drawing.clinical.artist import ClinicalDrawing, drawn_order, paint_order
from medtest.simlab.drawing.clinical.defects import ClinicalDefects, clinical_slips
from medtest.simlab.drawing.clinical.reading import ClinicalPrompt, understood_order
from medtest.simlab.drawing.defects import DrawingDefects, Slips, embellishment, erring, slips
from medtest.simlab.drawing.layout import SceneLayout, laid_out
from medtest.simlab.drawing.reading import understood
from medtest.simlab.drawing.sides import SIDES, is_on_side
from medtest.simlab.drawing.wishes import Wish, WishList

Picture = NDArray[np.uint8]
_KEPT = 65_536
_ONE = WishList(
    wishes=(Wish(name="house", word="house", colour="red"), Wish(name="tree", word="tree", colour="green")),
    links=((1, "right of", 0),),
)
"""Content of the single picture drawn under the defect ``one_picture``."""


@dataclass(frozen=True, slots=True)
class Truth:
    """Content of a picture, from its layout instead of its pixels.

    Attributes:
        objects: Class, colour and box of each object.
        sides: All spatial relations, intended or not: index, side, index.
        held: The intended ones.
    """

    objects: tuple[tuple[str, str, tuple[float, float, float, float]], ...] = ()
    sides: tuple[tuple[int, str, int], ...] = ()
    held: tuple[tuple[int, str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """The drawing of a prompt, before painting.

    Attributes:
        layout: The layout; empty if the picture is blank or refused.
        slips: Defects of the drawing.
        revised: The drawn prompt, if it differs from the request.
        paint: Seed of the painting.
        wish_list: Content requested by the prompt.
    """

    layout: SceneLayout
    slips: Slips
    revised: str = ""
    paint: int = 0
    wish_list: WishList = field(default_factory=WishList)

    @property
    def refused(self) -> str:
        """Kind of refusal, one of :data:`medtest.simlab.drawing.defects.REFUSALS`; "" if it is drawn."""
        return self.slips.refused_as

    @property
    def blank(self) -> bool:
        """True if the picture is white."""
        return not self.refused and "blank_pictures" in self.slips.names

    def truth(self) -> Truth:
        """Return the content of the picture."""
        objects = tuple((placed.name, placed.colour, placed.box) for placed in self.layout.things)
        boxes = [placed.box for placed in self.layout.things]
        sides = tuple(
            (a, side, b)
            for a in range(len(boxes))
            for b in range(len(boxes))
            if a != b
            for side in SIDES
            if is_on_side(side, boxes[a], boxes[b])
        )
        return Truth(objects, sides, self.layout.held)


class Drawings:
    """A bounded, thread-safe cache of drawings by their inputs."""

    def __init__(self) -> None:
        self._drawings: Recent[Hashable, Drawing] = Recent(_KEPT)
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Drawing]) -> Drawing:
        """Return a drawing, creating it if needed."""
        with self._lock:
            cached = self._drawings.get(key)
        if cached is not None:
            return cached
        drawing = make()
        with self._lock:
            self._drawings[key] = drawing
        return drawing


class Artist:
    """Draws the content of prompts.

    Args:
        seed: Seed of all draws.
        defects: Defects of the product.
        drawings: Cache of layouts, which depend only on prompt, request seed and slips, so that artists may share it.
        clinical: Defects of its medical pictures, which it draws for prompts that name such a picture.
    """

    def __init__(
        self,
        seed: int = 0,
        defects: DrawingDefects | None = None,
        drawings: Drawings | None = None,
        clinical: ClinicalDefects | None = None,
    ) -> None:
        self.seed, self.defects = seed, defects or DrawingDefects()
        self.clinical = clinical or ClinicalDefects()
        self.drawings = drawings or Drawings()

    def draw(self, prompt: str, *, seed: int = 0, earlier: str = "") -> Drawing | ClinicalDrawing:
        """Return the drawing of a prompt.

        Args:
            prompt: Text of the prompt.
            seed: Seed of the request.
            earlier: The previous prompt of the session; "" for none.
        """
        order = understood_order(prompt)
        if order is not None:
            return self.draw_order(order, prompt, seed)
        return self.draw_scene(prompt, seed=seed, earlier=earlier)

    def draw_order(self, order: ClinicalPrompt, prompt: str, seed: int) -> ClinicalDrawing:
        """Return the drawing of a prompt for a medical picture."""
        steady, fresh = Draws(self.seed, "clinical", prompt), Draws(self.seed, "clinical", prompt, seed)
        return drawn_order(order, prompt, seed, clinical_slips(self.clinical, steady=steady, fresh=fresh))

    def draw_scene(self, prompt: str, *, seed: int = 0, earlier: str = "") -> Drawing:
        """Return the drawing of a prompt for a scene; arguments as for :meth:`draw`."""
        steady = Draws(self.seed, "drawing", prompt)
        fresh = Draws(self.seed, "drawing", prompt, seed)
        drawn_slips = slips(self.defects, understood(prompt), steady=steady, fresh=fresh)
        limits = (self.defects.most_entities, self.defects.cap)
        before = earlier if "removed_kept" in drawn_slips.names else ""
        return self.drawings.get(
            (prompt, seed, before, drawn_slips, limits), lambda: self._drawn(prompt, seed, drawn_slips, before)
        )

    def _drawn(self, prompt: str, seed: int, drawn_slips: Slips, earlier: str) -> Drawing:
        wishes = understood(prompt)
        # Neither depends on the product's seed, so that campaigns with many seeds share layouts.
        key = int(Draws("layout", prompt, seed).share("where") * 2**32)
        revised = ""
        if "prompts_rewritten" in drawn_slips.names:
            word = embellishment(wishes).word
            revised = f"{prompt.rstrip(' .')}. There is a {word} besides."
        if drawn_slips.refused_as or "blank_pictures" in drawn_slips.names:
            return Drawing(layout=SceneLayout(), slips=drawn_slips, revised=revised, wish_list=wishes)
        if "one_picture" in drawn_slips.names:
            return Drawing(layout=laid_out(_ONE, Random(0)), slips=drawn_slips, wish_list=wishes)  # noqa: S311 - not security-relevant
        before = understood(earlier) if earlier else None
        drawn_wishes = erring(wishes, drawn_slips.names, self.defects, before)
        # Positions are drawn as for the correct drawing, so that only the defect differs.
        layout = laid_out(drawn_wishes, Random(key))  # noqa: S311 - not security-relevant
        return Drawing(layout=layout, slips=drawn_slips, revised=revised, paint=key, wish_list=wishes)

    def paint(self, drawing: Drawing | ClinicalDrawing, size: int) -> Picture:
        """Return a drawing's pixels, uint8 ``size``×``size``×3 RGB.

        Raises:
            ValueError: It was refused.
        """
        if drawing.refused:
            raise ValueError("nothing was drawn")
        if isinstance(drawing, ClinicalDrawing):
            return paint_order(drawing, size)
        if drawing.blank:
            return np.full((size, size, 3), 255, np.uint8)
        return draw_scene(drawing.layout.things, size=size, rng=np.random.Generator(np.random.PCG64(drawing.paint)))
