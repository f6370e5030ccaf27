"""Drawing of clinical prompts: what a picture shows is decided before it is painted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from medtest.core.portable import key_generator
from medtest.simlab.answering.draws import Draws
from medtest.simlab.drawing.clinical.defects import clinical_erring
from medtest.simlab.drawing.clinical.reading import CAPSULE, FILM, SCOPE, ClinicalPrompt, NamedFinding, nouns
from medtest.simlab.drawing.defects import Slips

_TYPES = ("ip", "is", "iia")
_MOST = {"polyp": 4, "nodule": 4, "mass": 3, "angiectasia": 5, "ulcer": 5, "erosion": 5}
"""Most instances of a finding that fit into a picture; one of any other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClinicalDrawing:
    """The drawing of a clinical prompt, before painting.

    Attributes:
        prompt: The prompt's content.
        shown: Findings in the picture, an entry for each instance, with what is drawn.
        slips: Defects of the drawing.
        paint: Key of the painting.
        revised: The drawn prompt, if it differs from the request: never.
    """

    prompt: ClinicalPrompt
    shown: tuple[NamedFinding, ...]
    slips: Slips
    paint: int = 0
    revised: str = ""

    @property
    def refused(self) -> str:
        """Kind of refusal; "" if it is drawn."""
        return self.slips.refused_as


def drawn_order(prompt: ClinicalPrompt, text: str, seed: int, slips: Slips) -> ClinicalDrawing:
    """Return the drawing of a prompt.

    Args:
        prompt: Its content.
        text: Its words.
        seed: Seed of the request.
        slips: Defects of this drawing.
    """
    # Neither depends on the product's seed, so that campaigns with many seeds share drawings.
    key = int(Draws("clinical", text, seed).share("where") * 2**32)
    if slips.refused_as:
        return ClinicalDrawing(prompt=prompt, shown=(), slips=slips)
    rng = Random(key)  # noqa: S311 - not security-relevant
    shown: list[NamedFinding] = []
    for finding in clinical_erring(prompt, slips.names):
        instances = _instances(finding, prompt.picture, rng)
        if finding.presence != "perhaps" or rng.random() < 0.5:
            shown += instances
    return ClinicalDrawing(prompt=prompt, shown=tuple(shown), slips=slips, paint=key)


def _instances(finding: NamedFinding, picture: str, rng: Random) -> list[NamedFinding]:
    """Return the instances of a finding, with what the prompt leaves open drawn at random."""
    side = finding.side or rng.choice(("left", "right"))
    colour, kind, size = rng.choice(nouns()["colours"]), rng.choice(_TYPES), rng.uniform(6.0, 9.0)
    count = max(1, min(finding.count, _MOST.get(finding.name, 1)))
    if picture == FILM:
        is_sided = finding.name in nouns()[FILM]["sided"]
        halves = ("left", "right") if side == "bilateral" and finding.name in _MOST else (side,)
        instances = max(count, len(halves))
        sides = [halves[number % len(halves)] if is_sided else "" for number in range(instances)]
        return [NamedFinding(name=finding.name, side=half, millimetres=finding.millimetres) for half in sides]
    if finding.name != "polyp":
        return [NamedFinding(name=finding.name)] * count
    polyp = NamedFinding(
        name="polyp",
        millimetres=finding.millimetres or size,
        type=finding.type or kind,
        colour=finding.colour or colour,
    )
    return [polyp] * count


def paint_order(drawing: ClinicalDrawing, size: int) -> NDArray[np.uint8]:
    """Return a drawing's pixels, uint8 ``size``×``size``×3 RGB."""

    def part(name: str) -> np.random.Generator:
        return key_generator([drawing.paint, "clinical", name])

    return np.asarray(_PAINT[drawing.prompt.picture](drawing, part, size), np.uint8)


_Part = Callable[[str], np.random.Generator]


def _film(drawing: ClinicalDrawing, part: _Part, size: int) -> NDArray[np.uint8]:
    from medtest.phantoms.chest.ordered import FilmFinding, draw_film

    findings = [
        FilmFinding(name=finding.name, side=finding.side, millimetres=finding.millimetres) for finding in drawing.shown
    ]
    portable = True if drawing.prompt.portable else None
    return draw_film(part, findings, size=size, portable=portable).image


def _scope(drawing: ClinicalDrawing, part: _Part, size: int) -> NDArray[np.uint8]:
    from medtest.phantoms.questions.ordered import OrderedPolyp, draw_endoscopy

    words = nouns()
    names = [shown.name for shown in drawing.shown]
    polyps = [
        OrderedPolyp(millimetres=shown.millimetres, colour=shown.colour, type=shown.type)
        for shown in drawing.shown
        if shown.name == "polyp"
    ]
    disease = next((name for name in names if name in words["diseases"]), "")
    tools = [name for name in names if name in words["tools"]]
    region = drawing.prompt.region or "colon"
    return draw_endoscopy(part, region=region, polyps=polyps, disease=disease, tools=tools, size=size).image


def _capsule(drawing: ClinicalDrawing, part: _Part, size: int) -> NDArray[np.uint8]:
    from medtest.phantoms.capsule.ordered import draw_capsule

    names = [shown.name for shown in drawing.shown]
    return draw_capsule(part, {name: names.count(name) for name in dict.fromkeys(names)}, size=size).image


_PAINT = {FILM: _film, SCOPE: _scope, CAPSULE: _capsule}
