"""Content of a picture as seen by the product, and its answers before defects."""

from __future__ import annotations

from dataclasses import dataclass, field

from medtest.simlab.answering.topics import Topic

NOT_RELEVANT = "Not relevant"
YES, NO, NONE = "Yes", "No", "None"
GRID: tuple[str, ...] = (
    "Upper-left", "Upper-center", "Upper-right",
    "Center-left", "Center", "Center-right",
    "Lower-left", "Lower-center", "Lower-right",
)  # fmt: skip
"""Cells of the picture, row by row."""
_SUREST = 0.98
"""Probability of the answer about a thing in full contrast, or about one that is not seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    """An object in the picture.

    Attributes:
        name: Name ("polyp", "polyp snare", "cecum").
        cells: Numbers of the cells that it covers, the fullest first.
        colours: Colours, the most common first.
        millimetres: Length; 0 if unknown.
        shape: Shape of a polyp: ``pedunculated``, ``sessile`` or ``flat``; else "".
        contrast: Contrast with the surroundings, 0 to 1.
    """

    name: str
    cells: tuple[int, ...] = ()
    colours: tuple[str, ...] = ()
    millimetres: float = 0.0
    shape: str = ""
    contrast: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureTraits:
    """Traits of the picture itself, on which the product's defects depend.

    Attributes:
        saturated: Over-exposed and glaring.
        blurred: Out of focus, or with motion blur.
        bloody: With much blood in view.
    """

    saturated: bool = False
    blurred: bool = False
    bloody: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """Content of a picture, as seen by the product.

    Attributes:
        procedure: "Colonoscopy", "Gastroscopy" or "Capsule endoscopy".
        findings: Abnormalities, the largest first.
        tools: Instruments, the largest first.
        landmark: The anatomical landmark, or None.
        box: Whether a green or black box covers part of the picture.
        text: Whether there is writing.
        removed: Whether polyps have been removed; None if unknown.
        easy: Whether the finding is easy to see; None without a finding.
        traits: Traits of the picture itself.
    """

    procedure: str = "Colonoscopy"
    findings: tuple[Thing, ...] = ()
    tools: tuple[Thing, ...] = ()
    landmark: Thing | None = None
    box: bool = False
    text: bool = False
    removed: bool | None = None
    easy: bool | None = None
    traits: PictureTraits = field(default_factory=PictureTraits)

    @property
    def polyps(self) -> tuple[Thing, ...]:
        """The findings that are polyps."""
        return tuple(finding for finding in self.findings if finding.name == "polyp")


def answers(sight: Sight, topic: Topic) -> tuple[str, ...]:
    """Return the product's answer to a question in plain words, one text per named thing."""
    match topic:
        case Topic.PROCEDURE:
            return (sight.procedure,)
        case Topic.REMOVED:
            return _yes_no(sight.removed)
        case Topic.EASY:
            return _yes_no(sight.easy)
        case Topic.BOX:
            return _yes_no(sight.box)
        case Topic.TEXT:
            return _yes_no(sight.text)
        case Topic.FINDING_COUNT:
            return (str(len(sight.findings)),)
        case Topic.POLYP_COUNT:
            return (str(len(sight.polyps)),)
        case Topic.TOOL_COUNT:
            return (str(len(sight.tools)),)
        case Topic.SIZE:
            return _sizes(sight.polyps)
        case Topic.POLYP_TYPE:
            return _types(sight.polyps)
    things = _about(sight, topic)
    if topic in (Topic.ABNORMALITIES, Topic.LANDMARKS, Topic.TOOLS):
        return _distinct([_named(thing) for thing in things]) or (NONE,)
    if topic in (Topic.ABNORMALITY_COLOUR, Topic.LANDMARK_COLOUR):
        return _distinct([colour.capitalize() for thing in things for colour in thing.colours]) or (NOT_RELEVANT,)
    return _distinct([GRID[cell] for thing in things for cell in thing.cells]) or (NOT_RELEVANT,)


def shows(sight: Sight, thing: str, trait: str = "") -> tuple[str, ...]:
    """Return whether a picture shows a thing, or one with a trait, in plain words.

    Args:
        sight: Content of the picture.
        thing: Name of a finding or an instrument.
        trait: A size class, a Paris type, or "".
    """
    named = tuple(seen for seen in (*sight.findings, *sight.tools) if seen.name == thing)
    return _yes_no(bool(named) if not trait else trait in (*_sizes(named), *_types(named)))


def sureness(sight: Sight, thing: str) -> float:
    """Return the sureness, 0.5 to 1, with which the product says that a picture shows a thing, or does not."""
    contrasts = [seen.contrast for seen in (*sight.findings, *sight.tools) if seen.name == thing]
    return _SUREST if not contrasts else 0.5 + (_SUREST - 0.5) * max(contrasts)


def _about(sight: Sight, topic: Topic) -> tuple[Thing, ...]:
    if topic in (Topic.TOOLS, Topic.TOOL_PLACE):
        return sight.tools
    if topic in (Topic.LANDMARKS, Topic.LANDMARK_COLOUR, Topic.LANDMARK_PLACE):
        return () if sight.landmark is None else (sight.landmark,)
    return sight.findings


def _yes_no(value: bool | None) -> tuple[str, ...]:
    return (NOT_RELEVANT if value is None else YES if value else NO,)


def _named(thing: Thing) -> str:
    return thing.name[:1].upper() + thing.name[1:]


def _distinct(texts: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))


def _sizes(polyps: tuple[Thing, ...]) -> tuple[str, ...]:
    return _distinct([size_class(polyp.millimetres) for polyp in polyps if polyp.millimetres > 0]) or (NOT_RELEVANT,)


def size_class(millimetres: float) -> str:
    """Return the size class of a length, as endoscopists write it."""
    if millimetres < 5:
        return "<5mm"
    if millimetres <= 10.5:
        return "5-10mm"
    return "11-20mm" if millimetres <= 20 else ">20mm"


def _types(polyps: tuple[Thing, ...]) -> tuple[str, ...]:
    paris = {"pedunculated": "Paris Ip", "sessile": "Paris Is", "flat": "Paris IIa"}
    return _distinct([paris[polyp.shape] for polyp in polyps if polyp.shape in paris]) or (NOT_RELEVANT,)
