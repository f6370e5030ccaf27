"""The product's vision: a picture in, a description of its content out."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.simlab.answering.writing import writing_of
from medtest.simlab.config import engine_of
from medtest.simlab.seeing.colours import Palette, palette_of
from medtest.simlab.seeing.places import (
    LocatedThing,
    colitis,
    ileum,
    is_cushions,
    is_velvet,
    oesophagus,
    ringed_opening,
    site_of_removal,
)
from medtest.simlab.seeing.polyps import blobs, describe
from medtest.simlab.seeing.sight import Sight, Thing
from medtest.simlab.seeing.tools import find_tools
from medtest.simlab.seeing.traits import traits_of
from medtest.simlab.seeing.view import FINE, Bools, PictureView, cells_of, grown, view_of

UPPER = frozenset({"oesophagus", "stomach", "pylorus"})
"""Linings seen by a gastroscope."""


PLAIN = frozenset({"colon", "stomach", "pylorus"})
"""Linings on which anything of another colour is a separate object."""


class SightReader:
    """Looks at pictures.

    Args:
        ocr: Detection of writing: ``rapidocr``, ``edges`` or ``auto``.
    """

    def __init__(self, ocr: str = "auto") -> None:
        self.ocr = engine_of(ocr)

    def __call__(self, picture: NDArray[np.uint8]) -> Sight:
        """Return the content of a picture, uint8 RGB H×W×3."""
        view, fine = view_of(picture), view_of(picture, FINE)
        palette = palette_of(view, velvet=is_velvet(view))
        text, letters = writing_of(fine.rgb, self.ocr)
        covered = cv2.resize(letters.astype(np.uint8), view.shape[::-1], interpolation=cv2.INTER_AREA).astype(np.bool_)
        tools = find_tools(view, covered, spotted=palette.lining not in PLAIN)
        for tool in tools:
            covered |= tool.mask
        covered = grown(covered, 7)
        site = site_of_removal(view) if palette.lining in PLAIN else None
        if site is not None:
            covered |= grown(site, 17)
        landmark, disease = _fixed(view, palette, covered)
        findings: list[Thing] = [] if disease is None else [disease.thing]
        if palette.lining in PLAIN:
            findings += _on_wall(view, fine, palette, covered, landmark)
        polyps = any(finding.name == "polyp" for finding in findings)
        return Sight(
            procedure="Gastroscopy" if palette.lining in UPPER else "Colonoscopy",
            findings=tuple(findings),
            tools=tuple(tool.thing for tool in tools),
            landmark=None if landmark is None else landmark.thing,
            box=view.box,
            text=text,
            removed=False if polyps else True if site is not None else None,
            easy=min(finding.contrast for finding in findings) > 0.5 if findings else None,
            traits=traits_of(fine),
        )


def _fixed(view: PictureView, palette: Palette, covered: Bools) -> tuple[LocatedThing | None, LocatedThing | None]:
    """Return landmark and disease for linings that have them."""
    if palette.lining == "oesophagus":
        return oesophagus(view, palette, covered)
    if palette.lining == "colitis":
        return None, colitis(view)
    if palette.lining in ("ileum", "pink ileum"):
        return ileum(view, palette), None
    return ringed_opening(view, palette, covered), None


def _on_wall(
    view: PictureView, fine: PictureView, palette: Palette, covered: Bools, landmark: LocatedThing | None
) -> list[Thing]:
    """Return polyps and hemorrhoids."""
    excluded = covered if landmark is None else covered | grown(landmark.mask, 9)
    things: list[Thing] = []
    for colour, region in blobs(view, palette, excluded):
        if colour == "purple" and palette.lining == "colon" and is_cushions(region):
            things.append(Thing(name="hemorrhoids", cells=cells_of(region.mask), colours=("purple",)))
        else:
            things.append(describe(fine, colour, region))
    return things
