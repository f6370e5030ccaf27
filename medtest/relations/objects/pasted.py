"""Pasted cut-outs of instruments, feces and blood (MedTest report, sections 3.4 and 4.5).

Cut-outs from an object library are pasted outside the lesion. The lesion, the black frame and the regions to avoid are
unchanged.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, cast

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from medtest.core.cases import Effect, FollowUp, Image, Params, PreparedSeed
from medtest.core.errors import Mistake
from medtest.core.plugins import TRUSTED, PartSettings
from medtest.core.recent import per_seed
from medtest.relations.base import PUBLISHED_SEVERITY, Relation
from medtest.relations.levels import Level, PublishedRanges, RangedSettings, number
from medtest.relations.objects.cutouts import Cutout, Variant, cutout
from medtest.relations.objects.library import BUNDLED, SOLID, ObjectInfo, ObjectLibrary, load_library
from medtest.relations.objects.placing import PlacedObject, PlacingOptions, field_look, place_free, place_instrument
from medtest.relations.placement import grid_shares, keep_out, lesion_distance

GREY_AT_MEAN = 0.8
"""Value of the grey mask at the field's mean brightness, at which objects keep theirs (medtest.preparation.grey)."""


class AreaLevel(Level):
    """One severity.

    Attributes:
        area: Covered percentage of the field.
    """

    area: float = Field(gt=0.0, le=30.0)

    @property
    def scale(self) -> float:
        """Covered percentage of the field."""
        return self.area


class PiecesLevel(AreaLevel):
    """Number and area of the pieces of ``feces`` or ``blood`` in published mode.

    Attributes:
        count: Pieces that share the area.
    """

    count: int


class AreaRange(PublishedRanges):
    """Range of the area in published mode.

    Attributes:
        area_low: Smallest area, percent of the field.
        area_high: Largest area, percent of the field.
    """

    area_low: float = Field(gt=0.0, le=30.0)
    area_high: float = Field(gt=0.0, le=30.0)

    def draw(self, rng: np.random.Generator) -> dict[str, Any]:
        """Return the drawn parameters with the area rounded."""
        drawn = super().draw(rng)
        return {**drawn, "area": round(drawn["area"], 3)}


class PiecesRange(AreaRange):
    """Ranges of area and number of pieces in published mode.

    Attributes:
        count_low: Fewest pieces.
        count_high: Most pieces.
    """

    count_low: int = Field(ge=1, le=40)
    count_high: int = Field(ge=1, le=40)


class _LibrarySettings(PartSettings):
    """Settings shared by the three relations.

    Attributes:
        library: ``bundled``, or the id of a library in ``objects/`` of the working directory (or MEDTEST_HOME).
        library_folder: A library's folder; only from ``conf/`` or the command line.
        partial_views: Whether cut-outs cut by an image's corner are used (report 4.5 leaves them out).
        margin: Least distance from the lesion, as fraction of the image's height.
        edge_blur: Standard deviation of the Gaussian blur of edges, as fraction of the image's height.
        grey_floor: Share of its brightness that an object keeps in complete darkness; the grey mask scales the rest.
        gain_low: Least brightness ratio of the target field to the object's original one.
        gain_high: Largest such ratio.
    """

    library: str = Field(default=BUNDLED, pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")
    library_folder: str | None = Field(default=None, json_schema_extra=TRUSTED)
    partial_views: bool = False
    margin: float = Field(default=0.02, ge=0.0, le=0.25)
    edge_blur: float = Field(default=0.0016, ge=0.0, le=0.02)
    grey_floor: float = Field(default=0.35, ge=0.0, le=1.0)
    gain_low: float = Field(default=0.5, gt=0.0, le=1.0)
    gain_high: float = Field(default=1.5, ge=1.0, le=3.0)


class InstrumentSettings(RangedSettings[AreaLevel], _LibrarySettings):
    """Settings of ``instrument``.

    Attributes:
        kind: ``tool``: an instrument of the working channel. ``shaft``: the endoscope's own shaft in retroflexion.
            ``cutout``: a cut-out of the library, as in published mode; its levels do not contain one another.
        turn: Largest deviation from the instrument's original angle, in degrees.
        spread: Standard deviation of its position around the original one, as fraction of the field.
        reach: Largest deviation from the original position, as fraction of the field.
        published: Range in published mode, which is ours as the report gives no figures.
    """

    kind: Literal["tool", "shaft", "cutout"] = "tool"
    turn: float = Field(default=15.0, ge=0.0, le=180.0)
    spread: float = Field(default=0.06, gt=0.0, le=1.0)
    reach: float = Field(default=0.28, gt=0.0, le=1.0)
    published: AreaRange


class PiecesSettings(RangedSettings[AreaLevel], _LibrarySettings):
    """Settings of ``feces`` and ``blood``.

    Attributes:
        wetness: Factor on the wetness of the matter in levels; 0 leaves out thin liquid and foam too.
        relief: Factor on what is drawn onto the matter in levels: its height, rounded rims and uneven brightness.
        published: Ranges in published mode, which are ours as the report gives no figures.
    """

    wetness: float = Field(default=1.0, ge=0.0, le=2.0)
    relief: float = Field(default=1.0, ge=0.0, le=2.0)
    published: PiecesRange

    def level(self, severity: int, rng: np.random.Generator) -> AreaLevel:
        """Return the level of a severity; in published mode one drawn from the ranges, with a number of pieces."""
        if severity != PUBLISHED_SEVERITY:
            return super().level(severity, rng)
        return PiecesLevel.model_construct(**self.published.draw(rng))


class _Objects(Relation):
    """Base class of relations that paste objects of one kind; subclasses define their placement."""

    group: ClassVar[str] = "objects"
    scale_unit: ClassVar[str] = "% of the field"
    kind: ClassVar[str] = ""

    def __init__(self, settings: Any) -> None:
        super().__init__(settings)
        self.library: ObjectLibrary = load_library(settings.library, settings.library_folder)
        self.infos: tuple[ObjectInfo, ...] = tuple(
            info for info in self.library.kind(self.kind) if settings.partial_views or not info.partial
        )
        if not self.infos:
            raise Mistake(
                where=f"object library {self.library.label}",
                key=self.kind,
                found="no whole cut-out of this kind" if self.library.kind(self.kind) else "none of this kind",
                allowed="at least one",
                fix=f"add some with `medtest objects build --kind {self.kind}`, or take library=bundled",
            ).as_error()

    def fingerprint(self) -> dict[str, Any]:
        """Return the digest of the library's files."""
        return {"library": self.library.digest}

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Draw the objects, their angles, sizes and positions.

        Raises:
            NotApplicable: There is not enough room.
        """
        settings = self.settings
        level = settings.level(severity, rng)
        options = PlacingOptions(
            margin=self._margin(seed), blur=self._blur(seed), gains=(settings.gain_low, settings.gain_high)
        )
        placed = self._place(seed, rng, level, options)
        return {"area": float(level.area), "objects": [dict(item) for item in placed]}

    @abstractmethod
    def _place(
        self, seed: PreparedSeed, rng: np.random.Generator, level: Any, options: PlacingOptions
    ) -> list[PlacedObject]: ...

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        """Paste the objects listed in ``params``; ``scale`` is the nominal area in percent of the field.

        Raises:
            UserMistakes: The parameters name an object that the library lacks.
        """
        image = seed.image.copy()
        placed = cast(Sequence[PlacedObject], params["objects"])
        allow, shade = _masks(seed, self._margin(seed), float(self.settings.grey_floor))
        distance = lesion_distance(seed)
        area, nearest = 0, float("inf")
        touched = np.zeros(image.shape[:2], np.uint8)
        centres: list[tuple[int, float, float]] = []
        for item in placed:
            variant = self._variant(item)
            piece = cutout(self.library, variant, self._blur(seed))
            covered, near = _paste(image, piece, item, allow, shade, distance, touched)
            area += covered
            nearest = min(nearest, near)
            centres.append((covered, *_middle(item, piece, seed)))
        facts = {"object_area": area / field_look(seed).pixels}
        if np.isfinite(nearest):
            facts["lesion_distance"] = nearest
        return FollowUp(
            image=image,
            params=params,
            scale=number(params, "area"),
            effect=self._effect(centres, touched, self._object_names(placed)),
            facts=facts,
        )

    def _object_names(self, placed: Sequence[PlacedObject]) -> list[str]:
        """Return the correct names of the objects; empty if unknown for any of them."""
        called = [self.library.info(self.kind, item["name"]).called for item in placed]
        return sorted({name for names in called for name in names}) if all(called) else []

    def _effect(
        self, centres: Sequence[tuple[int, float, float]], touched: NDArray[np.uint8], called: Sequence[str]
    ) -> Effect:
        """Return the effect: objects added, with positions as fractions of the image's sides, largest first."""
        ordered = sorted(centres, reverse=True)
        places: list[Any] = [[round(x, 4), round(y, 4)] for _, x, y in ordered]
        first = places[0] if places else [0.5, 0.5]
        return Effect(
            kind="add",
            data={
                "what": self.kind,
                "count": len(places),
                "x": first[0],
                "y": first[1],
                "places": places,
                "grid": grid_shares(touched),
                **({"names": list(called)} if called else {}),
            },
        )

    def _variant(self, item: PlacedObject) -> Variant:
        return Variant(
            info=self.library.info(self.kind, item["name"]),
            angle=int(item["angle"]),
            step=int(item["size"]),
            flip=bool(item["flip"]),
        )

    def _blur(self, seed: PreparedSeed) -> float:
        return round(float(self.settings.edge_blur) * seed.height, 2)

    def _margin(self, seed: PreparedSeed) -> int:
        return round(float(self.settings.margin) * seed.height)


@per_seed
def _masks(seed: PreparedSeed, margin: int, floor: float) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the pasting mask and the shading of objects, both uint8 H×W×3."""
    open_field = np.logical_not(np.logical_or(seed.frame, keep_out(seed, margin=margin)))
    if seed.mask is not None:
        open_field &= ~seed.mask
    allow = open_field.view(np.uint8) * np.uint8(255)
    light = floor + (1 - floor) * np.minimum(seed.grey / GREY_AT_MEAN, 1)
    shade = np.where(open_field, np.round(255 * light), 0).astype(np.uint8)
    return cv2.merge([allow] * 3).astype(np.uint8), cv2.merge([shade] * 3).astype(np.uint8)


def _middle(item: PlacedObject, piece: Cutout, seed: PreparedSeed) -> tuple[float, float]:
    """Return the centre of the visible part of an object's box, as fractions of the image's sides."""
    height, width = piece.alpha.shape[:2]
    x, y = int(item["x"]) + piece.offset[0], int(item["y"]) + piece.offset[1]
    across = (max(x, 0) + min(x + width, seed.width)) / (2 * seed.width)
    down = (max(y, 0) + min(y + height, seed.height)) / (2 * seed.height)
    return min(max(across, 0.0), 1.0), min(max(down, 0.0), 1.0)


def _paste(
    image: Image,
    piece: Cutout,
    item: PlacedObject,
    allow: NDArray[np.uint8],
    shade: NDArray[np.uint8],
    distance: NDArray[np.float32] | None,
    touched: NDArray[np.uint8],
) -> tuple[int, float]:
    """Blend one object into ``image`` in place; return its pixel count and least distance from the lesion.

    Its pixels are marked in ``touched`` (uint8 H×W).
    """
    height, width = piece.alpha.shape[:2]
    x, y = int(item["x"]) + piece.offset[0], int(item["y"]) + piece.offset[1]
    x0, y0 = max(x, 0), max(y, 0)
    x1, y1 = min(x + width, image.shape[1]), min(y + height, image.shape[0])
    if x1 <= x0 or y1 <= y0:
        return 0, float("inf")
    target = (slice(y0, y1), slice(x0, x1))
    part = (slice(y0 - y, y1 - y), slice(x0 - x, x1 - x))
    # Outside the allowed region both masks are 0, so the background's factor is exactly 1 and nothing is added.
    alpha = cv2.bitwise_and(piece.alpha[part], allow[target])
    colour = cv2.multiply(piece.colour[part], shade[target], scale=float(item["gain"]) / 255)
    background = cv2.multiply(image[target], cv2.bitwise_not(alpha), scale=1 / 255)
    cv2.add(background, cv2.min(colour, alpha), dst=image[target])
    solid = cv2.inRange(cv2.extractChannel(alpha, 0), SOLID, 255)
    cv2.bitwise_or(touched[target], solid.astype(np.uint8), dst=touched[target])
    covered = int(cv2.countNonZero(solid))
    if distance is None or covered == 0:
        return covered, float("inf")
    return covered, float(cv2.minMaxLoc(distance[target], mask=solid)[0])


class PastedInstrument(_Objects):
    """Insertion of a cut-out of an instrument (report 3.4.1).

    It stays outside the lesion and near its original position and orientation, and its shaft is
    cut by the rim of the field. Its edge is blended by Gaussian blur.
    """

    Settings = InstrumentSettings
    kind: ClassVar[str] = "instrument"
    effects: ClassVar[frozenset[str]] = frozenset({"insert_instrument"})

    def _place(
        self, seed: PreparedSeed, rng: np.random.Generator, level: Any, options: PlacingOptions
    ) -> list[PlacedObject]:
        settings = self.settings
        options = replace(options, turn=settings.turn, spread=settings.spread, reach=settings.reach)
        return [place_instrument(seed, rng, self.library, self.infos, area=level.area / 100, options=options)]


class PastedPieces(_Objects):
    """Insertion of several objects anywhere outside the lesion."""

    Settings = PiecesSettings
    effects: ClassVar[frozenset[str]] = frozenset({"insert_finding"})

    def _place(
        self, seed: PreparedSeed, rng: np.random.Generator, level: Any, options: PlacingOptions
    ) -> list[PlacedObject]:
        area, count = level.area / 100, level.count
        return place_free(seed, rng, self.library, self.infos, area=area, count=count, options=options)
