"""One severity of a relation, applied to pictures, boxes and masks of other frameworks."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Address, Effect, Image, Mask, Params, Seed, SeedRef
from medtest.core.errors import Mistake, NotApplicable, UserMistakes
from medtest.core.oracles.moves import moved_mask, moved_points
from medtest.core.plugins import part
from medtest.core.tasks.base import PICTURE, PROMPT
from medtest.preparation.prepare import prepare
from medtest.relations.base import CraftedRelation, Relation
from medtest.relations.calibration.relation import calibrated
from medtest.relations.series import follow_up
from medtest.suite.checking.validation import validate
from medtest.suite.reading.library import Origin, deep_merge

_DATASET = "interop"
_EDGE = 33
"""Points on each edge of a box that moves."""
_WHITE = 255.0


@dataclass(frozen=True, kw_only=True, eq=False)
class ChangedPicture:
    """Picture of a follow-up.

    Attributes:
        image: Of the shape and dtype of the source.
        params: Sampled parameters.
        scale: Physical distance from identity.
        effect: Effect on what is expected of the picture.
        skipped: Reason for which the relation did not apply, and the picture is unchanged; else "".
    """

    image: Image
    params: Params
    scale: float
    effect: Effect
    skipped: str = ""

    def boxes(self, boxes: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Move boxes along with the pixels; each is the box around what its edges became, within the picture.

        Args:
            boxes: N×4 of left, top, right, bottom in pixels from the picture's corner.

        Returns:
            The boxes, and the indices of those that are still in the picture.
        """
        corners = np.asarray(boxes, np.float64).reshape(-1, 4)
        if not self.effect.moves:
            return corners, np.arange(len(corners))
        height, width = self.image.shape[:2]
        share = np.linspace(0.0, 1.0, _EDGE)
        moved = []
        for left, top, right, bottom in corners:
            x, y = left + (right - left) * share, top + (bottom - top) * share
            edges = [(x, np.full(_EDGE, top)), (x, np.full(_EDGE, bottom))]
            edges += [(np.full(_EDGE, left), y), (np.full(_EDGE, right), y)]
            outline = np.concatenate([np.stack(edge, axis=1) for edge in edges])
            points = moved_points(outline - 0.5, self.effect) + 0.5  # the middle of the first pixel is (0, 0) there
            low, high = points.min(axis=0), points.max(axis=0)
            moved.append(np.clip([*low, *high], 0, [width, height, width, height]))
        result = np.array(moved).reshape(-1, 4)
        visible = np.flatnonzero((result[:, 2] > result[:, 0]) & (result[:, 3] > result[:, 1]))
        return result[visible], visible

    def mask(self, mask: Mask) -> Mask:
        """Move a mask, bool H×W, along with the pixels."""
        return moved_mask(mask, self.effect)


class PictureChange:
    """One severity of a relation, with its settings, as a function of pictures.

    The same picture under the same id is changed alike, independently of earlier calls.

    Args:
        relation: Name of a relation of pictures, as in suites.
        severity: Severity, or number of a target of ``calibrate``.
        seed: Seed of all random numbers, as in suites.
        settings: Settings of the relation, as in suites.

    Raises:
        UserMistakes: There is no such relation, or its settings do not fit.
    """

    def __init__(
        self, relation: str, *, severity: int = 3, seed: int = 0, settings: Mapping[str, Any] | None = None
    ) -> None:
        self.name, self.severity, self.seed = relation, severity, seed
        self.settings = dict(settings or {})
        self._relation = self._built()

    def config(self) -> dict[str, Any]:
        """Return the keywords that create an equal change, as plain data."""
        return {
            "relation": self.name,
            "severity": self.severity,
            "seed": self.seed,
            "settings": self.settings,
        }

    def change(self, image: NDArray[Any], picture_id: str = "", *, covered: Mask | None = None) -> ChangedPicture:
        """Change a picture.

        Args:
            image: H×W×3 or H×W×1 or H×W; uint8, or floats in [0, 1], which are rounded to 8 bits. It is not modified.
            picture_id: Id of the picture, from which random numbers are drawn; "" takes its SHA-256.
            covered: bool H×W, places that objects and text must leave free.

        Raises:
            ValueError: The image has another shape, type or range.
        """
        colours = _as_colours(image)
        name = picture_id or hashlib.sha256(colours.tobytes()).hexdigest()
        ref = SeedRef(dataset=_DATASET, seed_id=name)
        seed = prepare(Seed(ref=ref, image=colours, avoid=covered), size=None)
        address = Address(dataset=_DATASET, seed_id=name, relation=self.name, severity=self.severity)
        try:
            follow = follow_up(self._relation, seed, address, self.seed)
        except NotApplicable as reason:
            words = str(reason) or "the relation does not apply"
            return ChangedPicture(image=image.copy(), params={}, scale=0.0, effect=Effect(), skipped=words)
        changed = _like(follow.image, image)
        return ChangedPicture(image=changed, params=follow.params, scale=follow.scale, effect=follow.effect)

    def _built(self) -> Relation:
        info = part("relations", self.name, where=_DATASET, key="relation")
        cls, mistakes = info.load(), list[Mistake]()
        if issubclass(cls, CraftedRelation) or PICTURE not in cls.takes:
            others = "prompts" if PROMPT in cls.takes else "the answers of a system"
            needs = "a system to be crafted on" if issubclass(cls, CraftedRelation) else others
            raise _mistake("relation", f"{self.name}, which needs {needs}", "a relation of pictures")
        settings = validate(
            cls.Settings,
            deep_merge(info.defaults, self.settings),
            at=("settings",),
            origin=lambda key: Origin(where=_DATASET),
            mistakes=mistakes,
            given=self.settings,
        )
        if settings is None:
            raise UserMistakes(mistakes)
        relation = calibrated(cls(settings))
        if relation.frames() > 1:
            raise _mistake("settings", "a relation of sequences", "relations of single pictures")
        if self.severity not in relation.severities():
            allowed = ", ".join(map(str, relation.severities()))
            raise _mistake("severity", str(self.severity), allowed)
        return relation


def covered_by(boxes: NDArray[np.float64], shape: tuple[int, ...]) -> Mask:
    """Return the pixels that any of N×4 boxes touches, bool of a picture's height and width."""
    mask = np.zeros(shape, np.bool_)
    for left, top, right, bottom in boxes:
        first_row, first_column = max(0, int(np.floor(top))), max(0, int(np.floor(left)))
        mask[first_row : max(0, int(np.ceil(bottom))), first_column : max(0, int(np.ceil(right)))] = True
    return mask


def _mistake(key: str, actual: str, allowed: str) -> Exception:
    return Mistake(where=_DATASET, key=key, found=actual, allowed=allowed).as_error()


def _as_colours(image: NDArray[Any]) -> Image:
    """Return a picture as uint8 H×W×3.

    Raises:
        ValueError: It is none.
    """
    shape_fits = image.ndim == 2 or (image.ndim == 3 and image.shape[2] in (1, 3))
    if not shape_fits or 0 in image.shape:
        raise ValueError(f"a picture has the shape height × width (× 1 or 3), not {image.shape}")
    if np.issubdtype(image.dtype, np.floating):
        if not (np.isfinite(image).all() and image.min() >= 0 and image.max() <= 1):
            raise ValueError("a picture of floats has finite values between 0 and 1")
        image = np.rint(image * _WHITE).astype(np.uint8)
    if image.dtype != np.uint8:
        raise ValueError(f"a picture is uint8 or floats in [0, 1], not {image.dtype}")
    plane = image[..., 0] if image.ndim == 3 and image.shape[2] == 1 else image
    return np.ascontiguousarray(cv2.cvtColor(plane, cv2.COLOR_GRAY2RGB) if plane.ndim == 2 else plane)


def _like(changed: Image, image: NDArray[Any]) -> Image:
    """Return a changed picture in the shape and dtype of its source."""
    if image.ndim == 2 or image.shape[2] == 1:
        changed = np.asarray(cv2.cvtColor(changed, cv2.COLOR_RGB2GRAY)).reshape(image.shape)
    if np.issubdtype(image.dtype, np.floating):
        return np.asarray(changed / _WHITE, image.dtype)
    return changed.copy()
