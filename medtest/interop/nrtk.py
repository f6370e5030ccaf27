"""Relations as perturbers of NRTK 1.x: https://nrtk.readthedocs.io; it needs the extra ``nrtk``."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from copy import deepcopy
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.core.errors import MedtestError
from medtest.interop.pictures import PictureChange, covered_by

try:
    from nrtk.interfaces import PerturbImage
    from smqtk_image_io.bbox import AxisAlignedBoundingBox
except ImportError as error:
    raise MedtestError("perturbers need NRTK: pip install 'medtest[nrtk]'") from error

Boxes: TypeAlias = Iterable[tuple[Any, dict[Hashable, float]]]


class RelationPerturber(PerturbImage):  # type: ignore[misc]
    """One severity of a relation as perturber, alone, in a ``ComposePerturber`` or in an augmentation of NRTK.

    Boxes move as the relation's effect says; those that leave the picture are left out. Objects and text stay off
    them. Random numbers come from ``seed`` and the picture's ``id`` (a keyword of the call, which NRTK's augmentations
    for MAITE pass on), else from its pixels. Arguments are those of
    :class:`medtest.interop.pictures.PictureChange`.

    Raises:
        UserMistakes: There is no such relation, or its settings do not fit.
    """

    def __init__(
        self, relation: str = "blur", severity: int = 3, seed: int = 0, settings: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__()
        self._change = PictureChange(relation, severity=severity, seed=seed, settings=settings)

    def perturb(
        self, *, image: NDArray[Any], boxes: Boxes | None = None, **kwargs: Any
    ) -> tuple[NDArray[Any], Boxes | None]:
        """Change a picture, H×W×3, H×W×1 or H×W, uint8 or floats in [0, 1], and move its boxes.

        Raises:
            ValueError: The image has another shape, type or range.
        """
        boxes_before = None if boxes is None else list(boxes)
        rows = [[*box.min_vertex, *box.max_vertex] for box, _ in boxes_before or ()]
        corners = np.array(rows, np.float64).reshape(-1, 4)
        covered = None if boxes_before is None else covered_by(corners, image.shape[:2])
        result = self._change.change(image, str(kwargs.get("id", "")), covered=covered)
        if boxes_before is None or not result.effect.moves:
            return result.image, deepcopy(boxes_before)
        places, visible = result.boxes(corners)
        moved = [
            (
                AxisAlignedBoundingBox(min_vertex=tuple(place[:2]), max_vertex=tuple(place[2:])),
                dict(boxes_before[index][1]),
            )
            for place, index in zip(places, visible, strict=True)
        ]
        return result.image, moved

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of an equal perturber."""
        return {**super().get_config(), **self._change.config()}
