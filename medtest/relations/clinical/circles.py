"""Round objects: their places beside, far from or on a lesion, and the base class of their relations."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from itertools import count, islice
from typing import Any, ClassVar, Literal, TypeAlias, cast

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from medtest.core.cases import Effect, FollowUp, Image, Params, PreparedSeed
from medtest.core.errors import NotApplicable
from medtest.core.recent import last_of, per_seed
from medtest.relations.base import Relation
from medtest.relations.levels import Level, LeveledSettings, noise_seed, number
from medtest.relations.placement import distance_to, grid_shares, keep_out, lesion_distance

Placement: TypeAlias = Literal["beside", "far", "on"]
NEAR = 0.2
"""Distance from the lesion, as fraction of the image's height, up to which a place is beside it."""
STEP = 4
"""Grid spacing of candidate centres in pixels."""
APART = 0.9
"""Least distance of two circles' centres, as share of the sum of their radii."""

Circle: TypeAlias = tuple[float, float, float]
"""Column, row and radius in pixels."""


class CirclePlaces:
    """Free centres for circles that do not overlap one another.

    Args:
        seed: The prepared seed. Circles stay in the field of view.
        placement: ``beside``: off the lesion with the margin, the centre within :data:`NEAR` and the radius of it;
            ``far``: farther than that; ``on``: the centre on the lesion. Without a lesion the first two are anywhere
            outside the central ellipse (:func:`~medtest.relations.placement.keep_out`).
        margin: Least distance in pixels between a circle's rim and the lesion (``beside``, ``far``).
    """

    def __init__(self, seed: PreparedSeed, placement: Placement, margin: int) -> None:
        self.near = NEAR * seed.height
        self.placement = placement
        self.taken: list[Circle] = []
        self.rows, self.columns, self.room, self.distance = _candidates(seed, placement, margin)
        self._clear = np.full(self.rows.shape, np.inf, np.float32)

    def draw(
        self, radius: float, rng: np.random.Generator, *, reach: float = 1.0, touching: int | None = None
    ) -> Circle | None:
        """Draw a free centre for a circle; None without room.

        Args:
            radius: In pixels.
            rng: One number is drawn.
            reach: Radius within which pixels change, as multiple of ``radius``; it stays off the lesion and the frame.
            touching: Index of a circle in ``taken`` beside which it shall be, where there is room.
        """
        number = float(rng.random())
        free = (self.room > reach * radius + 1.0) & (self._clear >= APART * radius)
        if self.distance is not None and self.placement == "beside":
            free &= self.distance <= self.near + radius
        if self.distance is not None and self.placement == "far":
            free &= self.distance > self.near + radius
        if touching is not None:
            beside = free & (self._away(self.taken[touching]) <= APART * radius + STEP)
            free = beside if beside.any() else free
        places = np.flatnonzero(free)
        if places.size == 0:
            return None
        chosen = places[min(int(number * places.size), places.size - 1)]
        circle = (float(self.columns[chosen]), float(self.rows[chosen]), radius)
        self.taken.append(circle)
        np.minimum(self._clear, self._away(circle), out=self._clear)
        return circle

    def _away(self, circle: Circle) -> NDArray[np.float32]:
        """Return the distance of the candidates from a circle, which others may cover a little."""
        column, row, radius = circle
        across, down = self.columns - np.float32(column), self.rows - np.float32(row)
        return np.asarray(np.sqrt(across * across + down * down) - np.float32(APART * radius), np.float32)


@per_seed
def _candidates(
    seed: PreparedSeed, placement: Placement, margin: int
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32], NDArray[np.float32] | None]:
    """Return rows and columns of candidate centres, the largest radius at each, and the distance from the lesion."""
    if placement == "on" and seed.mask is not None:
        blocked = seed.frame
    else:
        blocked = np.logical_or(keep_out(seed, margin=margin), seed.frame)
    padded = np.pad(blocked, 1, constant_values=True)
    found = distance_to(padded)
    room = np.full(padded.shape, math.inf, np.float32) if found is None else found
    distance = lesion_distance(seed)
    grid = (slice(None, None, STEP), slice(None, None, STEP))
    room = room[1:-1, 1:-1][grid]
    usable = room > 1
    if placement == "on" and seed.mask is not None:
        usable &= seed.mask[grid]
    rows, columns = (places.astype(np.float32) * np.float32(STEP) for places in np.nonzero(usable))
    near = None if distance is None else distance[grid][usable]
    return rows, columns, room[usable], near


class CountLevel(Level):
    """One severity.

    Attributes:
        count: Number of objects.
    """

    count: int = Field(ge=1, le=400)


class CircleSettings(LeveledSettings[CountLevel]):
    """Settings of ``bubbles`` and ``lens_drop``.

    Attributes:
        radius: Typical radius as fraction of the image's height.
        placement: ``beside`` the lesion, ``far`` from it or ``on`` it; on the lesion the mask may no longer be what a
            reader would draw.
        margin: Least distance from the lesion as fraction of the image's height (``beside``, ``far``).
    """

    radius: float = Field(gt=0.002, le=0.2)
    placement: Placement = "beside"
    margin: float = Field(ge=0.0, le=0.25)


class CircleRelation(Relation):
    """Base class of relations that draw round objects one after the other.

    A severity adds objects to those of the level below.

    Attributes:
        what: Plural name of the objects, their key in the parameters.
    """

    Settings = CircleSettings
    group: ClassVar[str] = "objects"
    effects: ClassVar[frozenset[str]] = frozenset({"hide"})
    nested: ClassVar[bool] = True
    what: ClassVar[str]

    @abstractmethod
    def place_next(
        self, places: CirclePlaces, radius: float, index: int, rng: np.random.Generator
    ) -> list[Any] | dict[str, Any] | None:
        """Draw the parameters and the place of the next object; None without room.

        Args:
            places: The free places.
            radius: Typical radius in pixels.
            index: Number of objects placed so far.
            rng: The ladder's random generator.
        """

    @abstractmethod
    def draw(self, image: Image, seed: PreparedSeed, params: Params, item: Any, touched: NDArray[np.uint8]) -> None:
        """Draw one object into ``image`` and mark its pixels in ``touched`` (uint8 H×W)."""

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Draw and place the objects one after the other.

        Raises:
            NotApplicable: There is not enough room.
        """
        settings: CircleSettings = self.settings
        level = settings.levels[severity]
        shared = self.shared_parameters(rng)
        radius, margin = settings.radius * seed.height, round(settings.margin * seed.height)
        key = (noise_seed(rng), radius, settings.placement, margin)

        def make() -> tuple[list[Any], Iterator[Any]]:
            return [], self._placed(CirclePlaces(seed, settings.placement, margin), radius, key[0])

        # Objects are placed when a severity first needs them, and kept for the others.
        placed, further = last_of(seed, f"circles.ladder.{self.what}", key, make)
        placed += islice(further, max(0, level.count - len(placed)))
        if len(placed) < level.count:
            raise NotApplicable(f"no room for {level.count} {self.what}")
        return {self.what: placed[: level.count], **shared, "scale": level.scale}

    def _placed(self, places: CirclePlaces, radius: float, number: int) -> Iterator[Any]:
        """Yield one placed object after the other, until there is no room."""
        rng = np.random.Generator(np.random.PCG64(number))
        for index in count():
            item = self.place_next(places, radius, index, rng)
            if item is None:
                return
            yield item

    def shared_parameters(self, rng: np.random.Generator) -> dict[str, Any]:
        """Draw the parameters that all objects of a seed share; none by default."""
        return {}

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        """Draw the objects over the field."""
        image = seed.image.copy()
        touched = np.zeros(image.shape[:2], np.uint8)
        objects = cast("list[Any]", params[self.what])
        for item in objects:
            self.draw(image, seed, params, item, touched)
        cv2.copyTo(seed.image, seed.frame.view(np.uint8), image)
        touched[seed.frame] = 0
        return FollowUp(
            image=image,
            params=params,
            scale=number(params, "scale"),
            effect=Effect(kind="add", data={"what": self.what, "count": len(objects), "grid": grid_shares(touched)}),
            facts={"object_area": np.count_nonzero(touched) / max(1, int(np.count_nonzero(~seed.frame)))},
        )
