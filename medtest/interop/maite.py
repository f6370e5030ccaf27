"""Relations as augmentations of MAITE: https://mit-ll-ai-technology.github.io/maite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.core import __version__
from medtest.interop.pictures import ChangedPicture, PictureChange, covered_by

if TYPE_CHECKING:
    from maite.protocols import AugmentationMetadata

Batch: TypeAlias = tuple[Sequence[Any], Sequence[Any], Sequence[Any]]
APPLIED = "medtest"
"""Key of a datum's metadata: one entry for each augmentation of medtest, in order."""


class RelationAugmentation:
    """One severity of a relation as augmentation for image classification and object detection.

    Images are C×H×W with 1 or 3 channels, uint8 or floats in [0, 1]. Targets of classification pass unchanged. Boxes
    (and ``masks``, N×H×W, if a target has them) move as the relation's effect says; those that leave the picture are
    left out. Objects and text stay off the boxes. Random numbers come from ``seed`` and the ``id`` of a datum, never
    from the order of the batch. Where a relation does not apply, the picture is unchanged and ``skipped`` has the
    reason. Arguments are those of :class:`medtest.interop.pictures.PictureChange`.

    Attributes:
        metadata: ``id``, and the configuration under ``medtest``.

    Raises:
        UserMistakes: There is no such relation, or its settings do not fit.
    """

    def __init__(
        self, relation: str, *, severity: int = 3, seed: int = 0, settings: Mapping[str, Any] | None = None
    ) -> None:
        self._change = PictureChange(relation, severity=severity, seed=seed, settings=settings)
        self.metadata: AugmentationMetadata = {  # type: ignore[typeddict-unknown-key, unused-ignore]
            "id": f"medtest-{relation}-{severity}",
            APPLIED: {**self._change.config(), "version": __version__},
        }

    def __call__(self, batch: Batch, /) -> Batch:
        """Return a changed batch of the same length; the given one is not modified."""
        images, targets, metadata = batch
        changed = [
            self._datum(image, target, details)
            for image, target, details in zip(images, targets, metadata, strict=True)
        ]
        return [datum[0] for datum in changed], [datum[1] for datum in changed], [datum[2] for datum in changed]

    def _datum(self, image: Any, target: Any, details: Mapping[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
        picture = np.ascontiguousarray(np.moveaxis(np.asarray(image), 0, -1))
        boxes = np.asarray(target.boxes, np.float64).reshape(-1, 4) if hasattr(target, "boxes") else None
        covered = None if boxes is None else covered_by(boxes, picture.shape[:2])
        result = self._change.change(picture, str(details["id"]), covered=covered)
        applied = {
            **self._change.config(),
            "params": dict(result.params),
            "scale": result.scale,
            "effect": result.effect.kind,
            "skipped": result.skipped,
        }
        moved = target if boxes is None else _moved(target, boxes, result)
        return (
            np.ascontiguousarray(np.moveaxis(result.image, -1, 0)),
            moved,
            {**details, APPLIED: [*details.get(APPLIED, ()), applied]},
        )


def _moved(target: Any, boxes: NDArray[np.float64], result: ChangedPicture) -> Any:
    """Return a target of object detection after its boxes, and its masks if it has some, have moved."""
    if not result.effect.moves:
        return target
    places, visible = result.boxes(boxes)
    labels, scores = np.asarray(target.labels)[visible], np.asarray(target.scores)[visible]
    moved = SimpleNamespace(boxes=places, labels=labels, scores=scores)
    if hasattr(target, "masks"):
        masks = [result.mask(mask) for mask in np.asarray(target.masks, np.bool_)[visible]]
        moved.masks = np.stack(masks) if masks else np.zeros((0, *result.image.shape[:2]), np.bool_)
    return moved
