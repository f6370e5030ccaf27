"""frame (in progress)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from medtest.cases import Image, Mask
from medtest.preparation.evidence import gather
from medtest.preparation.field_shape import Box, FieldShape
from medtest.preparation.fit import NO_CUTS, Score, first_box, fit_cuts, fit_ellipse, refine_box
from medtest.preparation.insets import black_out, display_boxes, find_insets, leave_out


def fit_field(image: Image, aspect: float | None = None) -> FieldShape:
    """Fit."""
    evidence = gather(image, aspect)
    votes = evidence.votes
    if np.count_nonzero(votes < 0) < 0.002 * votes.size:
        return FieldShape()
    displays = display_boxes(evidence.rgb)
    black_out(votes, displays)
    box = first_box(votes)
    if box is None:
        return FieldShape(empty=True)
    insets = find_insets(evidence, votes, box)
    rest = leave_out(votes, insets)
    cuts = fit_cuts(rest, box)
    box = refine_box(evidence, votes, box, cuts)
    cuts = fit_cuts(rest, box)
    shape = FieldShape(box=box, cuts=cuts)
    score = Score(rest)
    round_ = fit_ellipse(score, box, shape)
    if score.of(round_) > score.of(shape):
        shape = round_
    h, w = votes.shape
    return replace(
        shape,
        insets=tuple(Box(left=l / w, top=t / h, right=r / w, bottom=b / h) for l, t, r, b in [*displays, *insets]),
    )


def find_frame(image: Image) -> Mask:
    """Return True on the black frame of an uint8 H×W×3 image."""
    return fit_field(image).frame(image.shape[0], image.shape[1])
