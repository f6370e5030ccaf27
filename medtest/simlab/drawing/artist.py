"""The product that draws: words in, a picture out, the same picture whenever the same is asked."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from random import Random

import numpy as np
from numpy.typing import NDArray

from medtest.phantoms.scenes import Placed, draw_scene
from medtest.simlab.answering.draws import Draws
from medtest.simlab.drawing.defects import DrawingDefects, Slips, embellishment, erring, slips
from medtest.simlab.drawing.layout import SceneLayout, laid_out
from medtest.simlab.drawing.reading import understood
from medtest.simlab.drawing.sides import SIDES, lies
from medtest.simlab.drawing.wishes import Wish, WishedRelation, WishList

Picture = NDArray[np.uint8]
_KEPT = 65_536
_ONE = WishList(
    wishes=(Wish(name="house", word="house", colour="red"), Wish(name="tree", word="tree", colour="green")),
    links=(WishedRelation(one=1, side="right of", other=0),),
)
"""What is drawn where one picture answers everything."""


@dataclass(frozen=True, slots=True)
class Truth:
    """What a picture shows, from its layout; no pixel is looked at.

    Attributes:
        things: Class, colour and box of each.
        sides: All that lie somehow to another, meant or not: index, side, index.
        held: Those that were laid out so.
    """

    things: tuple[tuple[str, str, tuple[float, float, float, float]], ...] = ()
    sides: tuple[tuple[int, str, int], ...] = ()
    held: tuple[tuple[int, str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """What comes of a prompt, before it is painted.

    Attributes:
        layout: What stands where; nothing where it is blank or refused.
        slips: What went wrong.
        revised: The prompt that was drawn, where it is another than was asked.
        paint: Seed of the painting.
        asked: What the prompt asks for.
    """

    layout: SceneLayout
    slips: Slips
    revised: str = ""
    paint: int = 0
    asked: WishList = field(default_factory=WishList)

    @property
    def refused(self) -> str:
        """How it is refused, one of :data:`medtest.simlab.drawing.defects.REFUSALS`; "" where it is drawn."""
        return self.slips.refused_as

    @property
    def blank(self) -> bool:
        """Whether the picture is white."""
        return not self.refused and "blank_pictures" in self.slips.names

    def truth(self) -> Truth:
        """Return what the picture shows."""
        things = tuple((one.name, one.colour, one.box) for one in self.layout.things)
        boxes = [one.box for one in self.layout.things]
        sides = tuple(
            (a, side, b)
            for a in range(len(boxes))
            for b in range(len(boxes))
            if a != b
            for side in SIDES
            if lies(side, boxes[a], boxes[b])
        )
        return Truth(things, sides, self.layout.held)


class Drawings:
    """Drawings by what they are made from, a bounded number of them, from any thread."""

    def __init__(self) -> None:
        self._drawings: OrderedDict[Hashable, Drawing] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Drawing]) -> Drawing:
        """Return a drawing, made where it is not there yet."""
        with self._lock:
            found = self._drawings.get(key)
        if found is not None:
            return found
        made = make()
        with self._lock:
            self._drawings[key] = made
            if len(self._drawings) > _KEPT:
                self._drawings.popitem(last=False)
        return made


class Artist:
    """Draws what prompts ask for.

    Args:
        seed: Of all its draws.
        defects: What is wrong with it.
        kept: Layouts that several artists may share: they depend on prompt, request's seed and slips alone.
    """

    def __init__(self, seed: int = 0, defects: DrawingDefects | None = None, kept: Drawings | None = None) -> None:
        self.seed, self.defects = seed, defects or DrawingDefects()
        self.kept = kept or Drawings()

    def draw(self, prompt: str, *, seed: int = 0, earlier: str = "") -> Drawing:
        """Return what comes of a prompt.

        Args:
            prompt: The words.
            seed: The request's.
            earlier: The prompt that came before it in its session; "" for none.
        """
        steady = Draws(self.seed, "drawing", prompt)
        fresh = Draws(self.seed, "drawing", prompt, seed)
        found = slips(self.defects, understood(prompt), steady=steady, fresh=fresh)
        limits = (self.defects.most_entities, self.defects.cap)
        before = earlier if "removed_kept" in found.names else ""
        return self.kept.get((prompt, seed, before, found, limits), lambda: self._drawn(prompt, seed, found, before))

    def _drawn(self, prompt: str, seed: int, found: Slips, earlier: str) -> Drawing:
        asked = understood(prompt)
        # Neither depends on the product's seed: the same layouts serve campaigns of many.
        key = int(Draws("layout", prompt, seed).share("where") * 2**32)
        revised = ""
        if "prompts_rewritten" in found.names:
            word = embellishment(asked).word
            revised = f"{prompt.rstrip(' .')}. There is a {word} besides."
        if found.refused_as or "blank_pictures" in found.names:
            return Drawing(layout=SceneLayout(), slips=found, revised=revised, asked=asked)
        if "one_picture" in found.names:
            return Drawing(layout=laid_out(_ONE, Random(0)), slips=found, asked=asked)  # noqa: S311 - no secrets
        before = understood(earlier) if earlier else None
        wanted = erring(asked, found.names, self.defects, before)
        # Places are drawn as for the sound drawing: only what is wrong differs.
        layout = laid_out(wanted, Random(key))  # noqa: S311 - no secrets
        return Drawing(layout=layout, slips=found, revised=revised, paint=key, asked=asked)

    def paint(self, drawing: Drawing, size: int) -> Picture:
        """Return a drawing's pixels, uint8 ``size``×``size``×3 RGB.

        Raises:
            ValueError: It was refused.
        """
        if drawing.refused:
            raise ValueError("nothing was drawn")
        if drawing.blank:
            return np.full((size, size, 3), 255, np.uint8)
        placed = [Placed(name=one.name, colour=one.colour, box=one.box) for one in drawing.layout.things]
        return draw_scene(placed, size=size, rng=np.random.Generator(np.random.PCG64(drawing.paint)))
