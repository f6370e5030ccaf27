"""Colour differences compared with the published pairs and scikit-image."""

from __future__ import annotations

import numpy as np
import pytest
from skimage.color import deltaE_ciede2000, rgb2lab

from medtest.preparation.colour_difference import colour_differences, lab_colours

PUBLISHED = [
    (50.0, 2.6772, -79.7751, 50.0, 0.0, -82.7485, 2.0425),
    (50.0, 3.1571, -77.2803, 50.0, 0.0, -82.7485, 2.8615),
    (50.0, -1.3802, -84.2814, 50.0, 0.0, -82.7485, 1.0000),
    (50.0, 0.0, 0.0, 50.0, -1.0, 2.0, 2.3669),
    (50.0, 2.49, -0.001, 50.0, -2.49, 0.0009, 7.1792),
    (50.0, 2.49, -0.001, 50.0, -2.49, 0.0011, 7.2195),
    (50.0, 2.5, 0.0, 50.0, 0.0, -2.5, 4.3065),
    (50.0, 2.5, 0.0, 58.0, 24.0, 15.0, 19.4535),
    (60.2574, -34.0099, 36.2677, 60.4626, -34.1751, 39.4387, 1.2644),
    (22.7233, 20.0904, -46.6940, 23.0331, 14.9730, -42.5619, 2.0373),
    (90.8027, -2.0831, 1.4410, 91.1528, -1.6435, 0.0447, 1.4441),
    (2.0776, 0.0795, -1.1350, 0.9033, -0.0636, -0.5514, 0.9082),
]
"""Pairs of Sharma, Wu and Dalal (2005), table 1: two CIELAB colours and their difference."""


def test_differences_are_those_published() -> None:
    pairs = np.array(PUBLISHED)
    for first, second in ((pairs[:, :3], pairs[:, 3:6]), (pairs[:, 3:6], pairs[:, :3])):
        assert colour_differences(np.concatenate([first, second]).T) == pytest.approx(pairs[:, 6], abs=1e-4)


def test_colours_and_differences_are_those_of_scikit_image() -> None:
    colours = np.random.default_rng(0).uniform(0, 255, (2000, 3))
    colours[:40, 1:] = colours[:40, :1]  # greys
    colours[40:50] = 0.0
    lab = lab_colours(colours)
    assert np.abs(lab.T - rgb2lab(colours / 255.0)).max() < 1e-4
    expected = deltaE_ciede2000(lab.T[:1000], lab.T[1000:])
    assert colour_differences(lab) == pytest.approx(expected, rel=5e-5, abs=1e-4)


def test_opposite_hues_have_a_difference() -> None:
    assert colour_differences(np.array([[50.0, 50.0], [10.0, -10.0], [0.0, 0.0]]))[0] > 15
