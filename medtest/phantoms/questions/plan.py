"""Plan of a picture: place, findings, instruments, text, box.

Twenty scenes cover every answer that the phantoms can give. Pictures 0 to 19 are these scenes unchanged, in an order
drawn from the suite's seed; each further run of twenty keeps their places, findings and instruments and draws new
colours, sizes, types and positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from medtest.core.files.paths import read_yaml

ROWS, COLUMNS = ("upper", "center", "lower"), ("left", "center", "right")
CELLS: tuple[str, ...] = tuple(
    "center" if row == column == "center" else f"{row}-{column}" for row in ROWS for column in COLUMNS
)
"""The 3 × 3 grid over the whole picture, row by row, with the contest's names."""

BOX_CELL = "lower-left"
"""Cell under the display's box, which is kept free of everything that questions ask about."""

REGIONS: dict[str, str] = {
    "colon": "colonoscopy",
    "cecum": "colonoscopy",
    "ileum": "colonoscopy",
    "stomach": "gastroscopy",
    "pylorus": "gastroscopy",
    "oesophagus": "gastroscopy",
}
"""Examination of each region."""

LANDMARKS: dict[str, str] = {"cecum": "cecum", "ileum": "ileum", "pylorus": "pylorus", "oesophagus": "z-line"}
"""Landmark of each region that has one."""

SIZES: dict[str, tuple[float, float]] = {
    "<5mm": (3.0, 4.4),
    "5-10mm": (5.8, 9.2),
    "11-20mm": (12.0, 18.5),
    ">20mm": (22.0, 25.0),
}
"""Diameters in millimetres drawn for each class, clear of its bounds."""

SIDE_MM = 45.0
"""Side of a picture in millimetres; all pictures have the same distance."""

TYPES = ("ip", "is", "iia")
"""Paris types (Gastrointest Endosc 2003;58(6 Suppl):S3–43): pedunculated, sessile, slightly elevated."""

COLOURS = ("red", "pink", "white", "yellow", "orange", "brown", "purple", "blue")
"""Colours of polyps.

The contest's grey, black, green and flesh are not drawn, because instruments, the lumen, the box and the wall have
them.
"""

INSTRUMENTS = ("biopsy forceps", "polyp snare", "injection needle", "metal clip", "tube")

DISEASES: dict[str, tuple[str, ...]] = {
    "ulcerative colitis": ("red", "yellow"),
    "hemorrhoids": ("purple",),
    "oesophagitis": ("red", "white"),
    "barretts": ("red",),
    "short-segment barretts": ("red",),
}
"""Findings other than polyps, with their colours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolypPlan:
    """Planned polyp.

    Attributes:
        size: One of :data:`SIZES`.
        colour: One of :data:`COLOURS`.
        type: One of :data:`TYPES`.
        cell: The cell of its centre.
        millimetres: Diameter of a circle of its area.
    """

    size: str
    colour: str
    type: str
    cell: str
    millimetres: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class InstrumentPlan:
    """Planned instrument: one of :data:`INSTRUMENTS`, its tip in ``cell``."""

    kind: str
    cell: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionScene:
    """Content of a picture.

    Attributes:
        region: One of :data:`REGIONS`.
        polyps: At most three.
        disease: One of :data:`DISEASES`, or "".
        disease_cell: Cell of its centre, if it is local.
        removed: Whether the site of a removed polyp is in view (and no polyp is).
        removed_cell: Cell of that site.
        instruments: At most two.
        landmark_cell: Cell of the landmark.
        landmark_colour: Its colour.
        text: Whether the display prints text.
        box: Whether the display has its green and black box.
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
        """Number of findings: each polyp, and a disease as one."""
        return len(self.polyps) + bool(self.disease)


def _scene(fields: dict[str, Any]) -> QuestionScene:
    polyps = tuple(PolypPlan(**polyp) for polyp in fields.pop("polyps", ()))
    instruments = tuple(InstrumentPlan(**tool) for tool in fields.pop("instruments", ()))
    return QuestionScene(**fields, polyps=polyps, instruments=instruments)


SCENES: tuple[QuestionScene, ...] = tuple(
    _scene(fields) for fields in read_yaml(Path(__file__).with_name("scenes.yaml"))
)
"""Scenes of the first twenty pictures."""

LANDMARK_COLOURS: dict[str, tuple[str, ...]] = {
    "cecum": ("yellow", "pink"),
    "ileum": ("yellow", "pink"),
    "pylorus": ("red", "pink"),
    "oesophagus": ("red", "pink"),
}


def scene_of(rng: np.random.Generator, scene: QuestionScene, *, redraw: bool) -> QuestionScene:
    """Return a scene with all free choices made.

    Args:
        rng: The stream of the picture's plan.
        scene: One of :data:`SCENES`.
        redraw: Whether colours, sizes, types, positions, text and box are drawn instead of the scene's.
    """
    if redraw:
        scene = _redraw_details(rng, scene)
    polyps = tuple(replace(polyp, millimetres=float(rng.uniform(*SIZES[polyp.size]))) for polyp in scene.polyps)
    return replace(scene, polyps=polyps)


def pick(rng: np.random.Generator, names: Sequence[str]) -> str:
    """Draw one of several names, each as often."""
    return names[int(rng.integers(len(names)))]


def _redraw_details(rng: np.random.Generator, scene: QuestionScene) -> QuestionScene:
    text, box = bool(rng.random() < 0.45), bool(rng.random() < 0.3)
    landmark_cell, colour = scene.landmark_cell, scene.landmark_colour
    if colour and not scene.disease:  # lining grown over a z-line is red, so the line is not
        colour = pick(rng, LANDMARK_COLOURS[scene.region])
    if scene.region in ("cecum", "pylorus"):
        landmark_cell = pick(rng, [cell for cell in CELLS if not (box and cell == BOX_CELL)])
    free = [cell for cell in CELLS if cell not in _blocked_cells(scene, landmark_cell, box=box)]
    polyps = []
    # Largest first: the cells beside a polyp of more than 10 mm are full, and at most one of several is that large.
    most = tuple(SIZES) if len(scene.polyps) == 1 else ("<5mm", "5-10mm", "11-20mm")
    sizes = [pick(rng, most), *(pick(rng, ("<5mm", "5-10mm")) for _ in scene.polyps[1:])][: len(scene.polyps)]
    for size in sizes:
        # A large polyp in the centre would leave no cell for the others.
        fitting = (
            [candidate for candidate in free if candidate != "center"]
            if len(scene.polyps) > 1 and size == "11-20mm"
            else free
        )
        cell = pick(rng, fitting) if fitting else "center"
        free = [
            candidate for candidate in free if candidate not in ({cell} if size in ("<5mm", "5-10mm") else beside(cell))
        ]
        hard = scene.hard
        polyps.append(
            PolypPlan(
                size=pick(rng, ("<5mm", "5-10mm")) if hard else size,
                colour="pink" if hard else pick(rng, COLOURS),
                type="iia" if hard else pick(rng, TYPES),
                cell=cell,
            )
        )
    tools = []
    for tool in scene.instruments:
        cell = pick(rng, free) if free else tool.cell
        free = [other for other in free if other != cell]
        tools.append(replace(tool, cell=cell))
    return replace(
        scene,
        polyps=tuple(polyps),
        instruments=tuple(tools),
        landmark_cell=landmark_cell,
        landmark_colour=colour,
        removed_cell=pick(rng, free) if scene.removed and free else scene.removed_cell,
        disease_cell=pick(rng, free) if scene.disease == "hemorrhoids" and free else scene.disease_cell,
        text=text,
        box=box,
    )


def _blocked_cells(scene: QuestionScene, landmark_cell: str, *, box: bool) -> set[str]:
    blocked = {BOX_CELL} if box else set()
    return blocked | ({landmark_cell} if scene.landmark_colour else set())


def beside(cell: str) -> set[str]:
    """Return a cell and its neighbours."""
    row, column = divmod(CELLS.index(cell), 3)
    return {name for k, name in enumerate(CELLS) if abs(k // 3 - row) <= 1 and abs(k % 3 - column) <= 1}


def middle(cell: str, inwards: float = 0.0) -> tuple[float, float]:
    """Return a cell's centre in half sides of the picture, moved towards the picture's centre by a share."""
    row, column = divmod(CELLS.index(cell), 3)
    return (column - 1) * 2.0 / 3.0 * (1.0 - inwards), (row - 1) * 2.0 / 3.0 * (1.0 - inwards)
