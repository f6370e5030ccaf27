"""True answers to the 18 questions about a picture, in the contest's words, derived from the scene."""

from __future__ import annotations

from collections.abc import Sequence

from medtest.phantoms.questions.plan import CELLS, DISEASES, LANDMARKS, REGIONS, SIZES, TYPES, QuestionScene

NOT_RELEVANT = "Not relevant"
_COUNTS = ("Zero", "One", "Two", "Three", "Four", "Five")
_TYPES = {kind: f"Paris {kind}" for kind in TYPES}

QUESTIONS: tuple[str, ...] = (
    "procedure", "all_removed", "easy", "box", "text", "abnormality_colour", "landmark_colour", "findings", "polyps",
    "instrument_count", "abnormality_place", "instrument_place", "abnormalities", "landmarks", "instruments",
    "landmark_place", "size", "polyp_type",
)  # fmt: skip
"""Short names of the questions in the order of the contest's ids, 0 to 17."""


def true_answers(
    scene: QuestionScene,
    *,
    finding_cells: Sequence[str],
    landmark_cells: Sequence[str],
    instrument_cells: Sequence[str],
) -> dict[str, tuple[str, ...]]:
    """Return the answers by question; several if several hold.

    A question that does not apply is answered "Not relevant"; an empty list "No"; an empty count "Zero".
    A disease counts as one finding, a removed polyp as none. ``easy`` is "No" if a finding is faint.

    Args:
        scene: The drawn scene.
        finding_cells: Cells of the grid with findings.
        landmark_cells: Cells with the landmark.
        instrument_cells: Cells with instruments.
    """
    landmark = LANDMARKS.get(scene.region, "")
    kinds = [tool.kind for tool in scene.instruments]
    colours = [polyp.colour for polyp in scene.polyps] + list(DISEASES.get(scene.disease, ()))
    names = (["polyp"] if scene.polyps else []) + ([scene.disease] if scene.disease else [])
    sizes = [name for name in SIZES if any(polyp.size == name for polyp in scene.polyps)]
    return {
        "procedure": _words([REGIONS[scene.region]]),
        "all_removed": ("No",) if scene.polyps else ("Yes",) if scene.removed else (NOT_RELEVANT,),
        "easy": ((NOT_RELEVANT,) if not scene.findings else ("No",) if scene.hard else ("Yes",)),
        "box": _yes_no(scene.box),
        "text": _yes_no(scene.text),
        "abnormality_colour": _words(colours) or (NOT_RELEVANT,),
        "landmark_colour": _words([scene.landmark_colour] if landmark else []) or (NOT_RELEVANT,),
        "findings": (_COUNTS[scene.findings],),
        "polyps": (_COUNTS[len(scene.polyps)],),
        "instrument_count": (_COUNTS[len(kinds)],),
        "abnormality_place": _cells(finding_cells),
        "instrument_place": _cells(instrument_cells),
        "abnormalities": _words(names) or ("No",),
        "landmarks": _words([landmark] if landmark else []) or ("No",),
        "instruments": _words(kinds) or ("No",),
        "landmark_place": _cells(landmark_cells),
        "size": tuple(sizes) or (NOT_RELEVANT,),
        "polyp_type": tuple(_TYPES[kind] for kind in TYPES if any(polyp.type == kind for polyp in scene.polyps))
        or (NOT_RELEVANT,),
    }


def _yes_no(true: bool) -> tuple[str, ...]:
    return ("Yes",) if true else ("No",)


def _words(names: Sequence[str]) -> tuple[str, ...]:
    """Return distinct names in the contest's spelling, with a capital first letter."""
    return tuple(dict.fromkeys(name[:1].upper() + name[1:] for name in names))


def _cells(names: Sequence[str]) -> tuple[str, ...]:
    return _words([cell for cell in CELLS if cell in names]) or (NOT_RELEVANT,)
