"""Outlines of changed areas and of stool."""

from __future__ import annotations

import numpy as np
from realism_parts import disc, picture

from medtest.realism.outlines import changed_area, stool

SIZE = 256
WHOLE = np.ones((SIZE, SIZE), np.bool_)


def _overlap(first: np.ndarray, second: np.ndarray) -> float:
    return float(np.count_nonzero(first & second) / np.count_nonzero(first | second))


def test_the_outline_of_a_soft_object_lies_at_half_its_opacity():
    mask = disc(SIZE, (120, 120), 50)
    source = picture(~WHOLE)
    changed = changed_area(source, picture(mask, blur=2.5, colour=(60, 20, 10)), WHOLE)
    assert _overlap(changed, mask) > 0.96
    assert not changed_area(source, source, WHOLE).any()


def test_holes_of_the_tissues_colour_are_filled_and_the_frame_is_left_out():
    mask = disc(SIZE, (120, 120), 50)
    follow = picture(mask)
    follow[118:124, 118:124] = picture(~WHOLE)[0, 0]
    field = WHOLE.copy()
    field[:, :100] = False
    changed = changed_area(picture(~WHOLE), follow, field)
    assert changed[121, 121]
    assert not changed[:, :100].any()


def test_stool_is_found_by_its_hue_and_mucosa_is_not():
    mask = disc(SIZE, (60, 60), 50)
    outline = stool(picture(mask, noise=2), WHOLE)
    assert outline is not None
    assert _overlap(outline, mask) > 0.95
    assert stool(picture(~WHOLE, noise=2), WHOLE) is None
