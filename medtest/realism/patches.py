"""Classifier two-sample test: patches of made artefacts against patches of real ones, less what cameras make of it.

A classifier also tells clean tissue of two cameras apart. So it is asked twice, about artefacts and about clean tissue
of the same two sources, and the difference of both areas under the ROC curve is what the artefacts add
(D. Lopez-Paz and M. Oquab, "Revisiting Classifier Two-Sample Tests", ICLR 2017).
"""

from __future__ import annotations

import cv2
import numpy as np

from medtest.core.cases import Image, Mask
from medtest.realism.classifier import Auc, Patches, Rows, auc_difference
from medtest.realism.features import FEATURES, PatchReader, free_places

MADE, REAL = 1, 0
INSIDE = 0.85
"""Least share of an artefact's patch that the artefact covers."""
CLEAR = 8
"""Distance in pixels that clean tissue keeps from artefacts and lesions."""
MOST_GAIN = 0.10
"""Target: the difference of both areas under the ROC curve is no larger."""


class PatchTest:
    """Patches of one relation.

    Args:
        relation: Relation id.
        count: Patches of each picture, inside and in clean tissue.
    """

    def __init__(self, relation: str, count: int) -> None:
        self.relation, self._count = relation, count
        self._artefact, self._clean = Patches(), Patches()

    def add(
        self,
        label: int,
        group: str,
        rng: np.random.Generator,
        *,
        image: Image,
        mask: Mask,
        view: Mask,
        source: Image | None = None,
        lesion: Mask | None = None,
    ) -> None:
        """Add the patches of one picture.

        Args:
            label: :data:`MADE` or :data:`REAL`.
            group: Its video or patient.
            rng: Random generator of the places.
            image: The picture with the artefact, uint8 H×W×3.
            mask: The artefact, bool H×W.
            view: The field of view, bool H×W.
            source: The picture without it, which gives clean tissue; ``image`` by default.
            lesion: The lesion, bool H×W.
        """
        side = "made" if label == MADE else "real"
        blocked = mask if lesion is None else mask | lesion
        kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * CLEAR + 1, 2 * CLEAR + 1))
        clean = view & (cv2.dilate(blocked.astype(np.uint8), kernel) == 0)
        reader = PatchReader(image)
        inside = reader.read(free_places(mask & view, self._count, rng, INSIDE))
        self._artefact.add(inside, label, f"{side}/{group}")
        reader = reader if source is None else PatchReader(source)
        self._clean.add(reader.read(free_places(clean, self._count, rng)), label, f"{side}/{group}")

    def differences(self) -> list[tuple[str, float]]:
        """Return the features by how much more artefacts differ than clean tissue, made less real, largest first.

        Differences of means are in standard deviations. The sign is that of the artefacts' own difference less that of
        clean tissue; without patches of each sort there are none.
        """
        sides = [_shift(patches) for patches in (self._artefact, self._clean)]
        if sides[0] is None or sides[1] is None:
            return []
        beyond = sides[0] - sides[1]
        order = np.argsort(-np.abs(beyond), kind="stable")
        return [(FEATURES[int(place)], float(beyond[place])) for place in order]

    def result(self) -> tuple[Auc, Auc, Auc]:
        """Return the areas for artefacts and for clean tissue, and their difference."""
        return auc_difference(self._artefact, self._clean, f"patches/{self.relation}")


def _shift(patches: Patches) -> Rows | None:
    """Return made less real means in standard deviations, one of each feature; None without patches of a sort."""
    if not min(patches.count(MADE), patches.count(REAL)):
        return None
    features, labels = np.concatenate(patches.features), np.concatenate(patches.labels)
    sd = np.maximum(features.std(axis=0), 1e-9)
    return np.asarray((features[labels == MADE].mean(axis=0) - features[labels == REAL].mean(axis=0)) / sd, np.float64)
