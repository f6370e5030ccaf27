"""Controls that show nothing of a case: no picture, or another case's."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import cv2
import numpy as np
from pydantic import Field

from medtest.core.cases import FollowUp, Image, Params, PreparedSeed
from medtest.core.plugins import PartSettings
from medtest.relations.base import RelationSettings
from medtest.relations.controls.base import ControlRelation, other_case, peers_of, removal, strangers
from medtest.relations.levels import noise_seed, number

OTHER = "other image"
"""What is shown if the image is exchanged: the agreement of answers is then that of chance."""
GREY = 127
_MEMO = "medtest.relations.controls.removed:mean"
_MOST = 32
"""Most cases that the mean image is taken of, evenly spaced over the data set."""


class Filling(PartSettings):
    """Level of ``image_removed``.

    Attributes:
        fill: ``grey``, ``mean`` (mean image of the data set), ``noise``, or ``other`` (another patient's image).
    """

    fill: Literal["grey", "mean", "noise", "other"]


class ImageRemovedSettings(RelationSettings):
    """Settings of ``image_removed``.

    Attributes:
        levels: What each severity shows.
        severities: Severities to run.
        no_finding: Labels that say "no finding": keeping them without the image is right, and is not judged.
    """

    levels: dict[int, Filling] = Field(min_length=1)
    severities: list[int] = [1, 2, 3, 4]
    no_finding: list[str] = []


class ImageRemoved(ControlRelation):
    """Image without content: grey, the data set's mean, noise, or another patient's image."""

    Settings: ClassVar[type[RelationSettings]] = ImageRemovedSettings
    takes: ClassVar[frozenset[str]] = frozenset({"mask", "label", "answer"})
    touches_frame: ClassVar[bool] = True
    effects: ClassVar[frozenset[str]] = frozenset({"remove_image"})

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Draw the noise, or the other case.

        Raises:
            NotApplicable: The data set has no other case.
        """
        fill = self.settings.levels[severity].fill
        if fill == "noise":
            return {"fill": fill, "noise_seed": noise_seed(rng)}
        if fill == "other":
            return {"fill": fill, "case": int(strangers(seed, rng)[0])}
        if fill == "mean":
            peers_of(seed)
        return {"fill": fill}

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        """Return the image that is shown; the black frame stays unless another image is shown."""
        fill = str(params["fill"])
        if fill == "other":
            other = other_case(seed, params)
            image = _fitted(other.image, seed)
            effect = removal(OTHER, other, no_finding=list(self.settings.no_finding))
            return FollowUp(image=image, params=dict(params), scale=1.0, effect=effect)
        if fill == "noise":
            rng = np.random.Generator(np.random.PCG64(int(number(params, "noise_seed"))))
            shown = rng.integers(0, 256, seed.image.shape, np.uint8)
        else:
            shown = np.full_like(seed.image, GREY) if fill == "grey" else _fitted(_mean(seed), seed)
        image = np.where(seed.frame[..., None], seed.image, shown)
        effect = removal(fill, no_finding=list(self.settings.no_finding))
        return FollowUp(image=image, params=dict(params), scale=1.0, effect=effect)


def _fitted(image: Image, seed: PreparedSeed) -> Image:
    """Return a copy of an image in the size of a seed's."""
    if image.shape == seed.image.shape:
        return image.copy()
    return np.asarray(cv2.resize(image, (seed.width, seed.height), interpolation=cv2.INTER_AREA), np.uint8)


def _mean(seed: PreparedSeed) -> Image:
    """Return the mean image of a seed's data set, in the size of its first image."""
    peers = peers_of(seed)

    def make() -> Image:
        numbers = sorted({int(at) for at in np.linspace(0, len(peers) - 1, min(_MOST, len(peers)))})
        first = peers.case(numbers[0])
        total = np.zeros(first.image.shape, np.int64)
        for place in numbers:
            total += _fitted(peers.case(place).image, first)
        return ((2 * total + len(numbers)) // (2 * len(numbers))).astype(np.uint8)

    image: Image = peers.memo(_MEMO, make)
    return image
