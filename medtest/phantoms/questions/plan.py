"""What a picture shows, before anything is drawn: place, findings, instruments, text, box.

Twenty scenes hold every answer that the phantoms can give. Pictures 0 to 19 are these scenes as they stand, in an order
that the suite's seed draws; each further run of twenty keeps their places, findings and instruments and draws
colours, sizes, types and positions anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

ROWS, COLUMNS = ("upper", "center", "lower"), ("left", "center", "right")
CELLS: tuple[str, ...] = tuple(
    "center" if row == column == "center" else f"{row}-{column}" for row in ROWS for column in COLUMNS
)
"""The 3 × 3 grid over the whole picture, row by row, as the contest names it."""

BOX_CELL = "lower-left"
"""The cell that the display's box lies over: nothing that a question asks about is put there."""

REGIONS: dict[str, str] = {
    "colon": "colonoscopy",
    "cecum": "colonoscopy",
    "ileum": "colonoscopy",
    "stomach": "gastroscopy",
    "pylorus": "gastroscopy",
    "oesophagus": "gastroscopy",
}
"""Where the scope is, and what the examination is called."""

LANDMARKS: dict[str, str] = {"cecum": "cecum", "ileum": "ileum", "pylorus": "pylorus", "oesophagus": "z-line"}
"""The landmark of a region; the others have none."""

SIZES: dict[str, tuple[float, float]] = {
    "<5mm": (3.0, 4.4),
    "5-10mm": (5.8, 9.2),
    "11-20mm": (12.0, 18.5),
    ">20mm": (22.0, 25.0),
}
"""Diameters in millimetres that a class is drawn with, clear of its bounds."""

SIDE_MM = 45.0
"""Millimetres that a picture's side stands for: all pictures are taken from one distance."""

TYPES = ("ip", "is", "iia")
"""Paris types (Gastrointest Endosc 2003;58(6 Suppl):S3–43): pedunculated, sessile, slightly elevated."""

COLOURS = ("red", "pink", "white", "yellow", "orange", "brown", "purple", "blue")
"""Colours of polyps. The contest's grey, black, green and flesh are not drawn: instruments, the lumen, the box and the
wall have them."""

INSTRUMENTS = ("biopsy forceps", "polyp snare", "injection needle", "metal clip", "tube")

DISEASES: dict[str, tuple[str, ...]] = {
    "ulcerative colitis": ("red", "yellow"),
    "hemorrhoids": ("purple",),
    "oesophagitis": ("red", "white"),
    "barretts": ("red",),
    "short-segment barretts": ("red",),
}
"""Findings that are no polyps, with their colours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolypPlan:
    """A polyp that is to be drawn.

    Attributes:
        size: One of :data:`SIZES`.
        colour: One of :data:`COLOURS`.
        type: One of :data:`TYPES`.
        cell: The cell of its centre.
        millimetres: Its diameter: that of a circle of its area.
    """

    size: str
    colour: str
    type: str
    cell: str
    millimetres: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class InstrumentPlan:
    """An instrument that is to be drawn: one of :data:`INSTRUMENTS`, its tip in ``cell``."""

    kind: str
    cell: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionScene:
    """What a picture shows.

    Attributes:
        region: One of :data:`REGIONS`.
        polyps: At most three.
        disease: One of :data:`DISEASES`, or "".
        disease_cell: Where it is centred, if it has a place.
        removed: Whether the site of a removed polyp is in view (and no polyp is).
        removed_cell: Where.
        instruments: At most two.
        landmark_cell: Where the landmark lies.
        landmark_colour: Its colour.
        text: Whether the display prints text.
        box: Whether the display shows its green and black box.
        hard: Whether the finding is hard to detect: faint against the wall.
    """

    region: str
    polyps: tuple[PolypPlan, ...] = ()
    disease: str = ""
    disease_cell: str = "center"
    removed: bool = False
    removed_cell: str = "center"
    instruments: tuple[InstrumentPlan, ...] = ()
    landmark_cell: str = "center"
    landmark_colour: str = ""
    text: bool = False
    box: bool = False
    hard: bool = False

    @property
    def findings(self) -> int:
        """How many findings there are: each polyp, and a disease as one."""
        return len(self.polyps) + bool(self.disease)


def _scene(given: dict[str, Any]) -> QuestionScene:
    polyps = tuple(PolypPlan(**one) for one in given.pop("polyps", ()))
    instruments = tuple(InstrumentPlan(**one) for one in given.pop("instruments", ()))
    return QuestionScene(**given, polyps=polyps, instruments=instruments)


SCENES: tuple[QuestionScene, ...] = tuple(
    _scene(given) for given in yaml.safe_load(Path(__file__).with_name("scenes.yaml").read_text(encoding="utf-8"))
)
"""The scenes of the first twenty pictures."""

_LANDMARK_COLOURS: dict[str, tuple[str, ...]] = {
    "cecum": ("yellow", "pink"),
    "ileum": ("yellow", "pink"),
    "pylorus": ("red", "pink"),
    "oesophagus": ("red", "pink"),
}


def scene_of(rng: np.random.Generator, scene: QuestionScene, *, anew: bool) -> QuestionScene:
    """Return a scene with every free choice made.

    Args:
        rng: The stream of the picture's plan.
        scene: One of :data:`SCENES`.
        anew: Whether colours, sizes, types, positions, text and box are drawn and not the scene's.
    """
    if anew:
        scene = _drawn_anew(rng, scene)
    polyps = tuple(replace(one, millimetres=float(rng.uniform(*SIZES[one.size]))) for one in scene.polyps)
    return replace(scene, polyps=polyps)


def _pick(rng: np.random.Generator, names: Sequence[str]) -> str:
    return names[int(rng.integers(len(names)))]


def _drawn_anew(rng: np.random.Generator, scene: QuestionScene) -> QuestionScene:
    text, box = bool(rng.random() < 0.45), bool(rng.random() < 0.3)
    landmark_cell, colour = scene.landmark_cell, scene.landmark_colour
    if colour and not scene.disease:  # what has grown over a z-line is red, and the line is not
        colour = _pick(rng, _LANDMARK_COLOURS[scene.region])
    if scene.region in ("cecum", "pylorus"):
        landmark_cell = _pick(rng, [cell for cell in CELLS if not (box and cell == BOX_CELL)])
    free = [cell for cell in CELLS if cell not in _taken(scene, landmark_cell, box=box)]
    polyps = []
    # The largest first; the cells beside one of more than 10 mm are full, and of several one at most is so large.
    most = tuple(SIZES) if len(scene.polyps) == 1 else ("<5mm", "5-10mm", "11-20mm")
    sizes = [_pick(rng, most), *(_pick(rng, ("<5mm", "5-10mm")) for _ in scene.polyps[1:])][: len(scene.polyps)]
    for size in sizes:
        # A large one in the middle would leave no cell to the others.
        fitting = [one for one in free if one != "center"] if len(scene.polyps) > 1 and size == "11-20mm" else free
        cell = _pick(rng, fitting) if fitting else "center"
        free = [one for one in free if one not in ({cell} if size in ("<5mm", "5-10mm") else beside(cell))]
        hard = scene.hard
        polyps.append(
            PolypPlan(
                size=_pick(rng, ("<5mm", "5-10mm")) if hard else size,
                colour="pink" if hard else _pick(rng, COLOURS),
                type="iia" if hard else _pick(rng, TYPES),
                cell=cell,
            )
        )
    tools = []
    for one in scene.instruments:
        cell = _pick(rng, free) if free else one.cell
        free = [other for other in free if other != cell]
        tools.append(replace(one, cell=cell))
    return replace(
        scene,
        polyps=tuple(polyps),
        instruments=tuple(tools),
        landmark_cell=landmark_cell,
        landmark_colour=colour,
        removed_cell=_pick(rng, free) if scene.removed and free else scene.removed_cell,
        disease_cell=_pick(rng, free) if scene.disease == "hemorrhoids" and free else scene.disease_cell,
        text=text,
        box=box,
    )


def _taken(scene: QuestionScene, landmark_cell: str, *, box: bool) -> set[str]:
    taken = {BOX_CELL} if box else set()
    return taken | ({landmark_cell} if scene.landmark_colour else set())


def beside(cell: str) -> set[str]:
    """Return a cell and those that touch it."""
    row, column = divmod(CELLS.index(cell), 3)
    return {name for k, name in enumerate(CELLS) if abs(k // 3 - row) <= 1 and abs(k % 3 - column) <= 1}


def middle(cell: str, inwards: float = 0.0) -> tuple[float, float]:
    """Return a cell's middle in half sides of the picture from its centre, moved towards that by a share."""
    row, column = divmod(CELLS.index(cell), 3)
    return (column - 1) * 2.0 / 3.0 * (1.0 - inwards), (row - 1) * 2.0 / 3.0 * (1.0 - inwards)
