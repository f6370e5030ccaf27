"""Detection of the black frame around the field of view by fitting a shape.

The report (4.1.2) states that thresholds and region growing fail and uses a trained model. This module uses a fit: each
pixel of a small copy votes for field or frame by its brightness, and the :class:`FieldShape` with the most votes wins.
Such a shape cannot lose a dark lumen that touches the frame, or gain text on the frame. Fitted parts are kept only if
they follow a sharp edge of the image, so that vignetting and dark corners do not count as frame.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from medtest.core.cases import Image, Mask
from medtest.preparation.corners import common_kind, fit_cuts, keep_sharp
from medtest.preparation.evidence import EDGE_SHIFT, gather
from medtest.preparation.field_shape import Box, FieldShape
from medtest.preparation.fit import (
    Score,
    ellipse_is_sharp,
    first_box,
    fit_ellipse,
    open_sides,
    refine_box,
    without_thin,
)
from medtest.preparation.insets import black_out, display_boxes, find_insets, leave_out

LEAST_BLACK = 0.002
"""Least part of black pixels in an image with a frame."""

ROUND = 0.1
"""Least bulge of corners that may belong to an ellipse."""

ELLIPSE_CREDIT = 0.003
"""Votes, as a fraction of the pixels, by which an ellipse may lose: four separate corners follow noise better."""


def find_frame(image: Image) -> Mask:
    """Return bool H×W, True on the black frame of an image (uint8 H×W×3); all True if nothing is visible."""
    return fit_field(image).frame(image.shape[0], image.shape[1])


def fit_field(image: Image, aspect: float | None = None) -> FieldShape:
    """Fit the visible field.

    Args:
        image: uint8 H×W×3 RGB.
        aspect: Width over height of the scene if the image was resized to another shape; None for its own.
    """
    evidence = gather(image, aspect)
    votes = evidence.votes
    if np.count_nonzero(votes < 0) < LEAST_BLACK * votes.size:
        return FieldShape()
    displays = display_boxes(evidence.rgb)
    black_out(votes, displays)
    votes = without_thin(votes)
    box = first_box(votes)
    if box is None:
        return FieldShape(empty=True)
    insets = find_insets(votes, box)
    rest = leave_out(votes, insets)
    kind, rough = common_kind(rest, box)
    opened = open_sides(rest, box, rough)
    if opened != box:
        box = opened
        insets = find_insets(votes, box)
        rest = leave_out(votes, insets)
        kind, rough = common_kind(rest, box)
    box = refine_box(evidence, rest, box, rough)
    cuts = fit_cuts(rest, box, kind)
    shape = FieldShape(box=box, cuts=keep_sharp(rest, box, cuts))
    if kind[1] >= ROUND:
        score = Score(rest)
        other = fit_ellipse(rest, box)
        if score.of(other) + ELLIPSE_CREDIT * votes.size > score.of(shape) and ellipse_is_sharp(rest, other):
            shape = other
    height, width = votes.shape
    # Small steps next to a cut only show once the cut is removed.
    rest[shape.frame(height, width)] = 0
    insets += find_insets(rest, shape.box)
    return replace(
        shape,
        insets=tuple(
            Box(
                left=(left - EDGE_SHIFT) / width,
                top=(top - EDGE_SHIFT) / height,
                right=(right + EDGE_SHIFT) / width,
                bottom=(bottom + EDGE_SHIFT) / height,
            )
            for left, top, right, bottom in [*displays, *insets]
        ),
    )
