"""Defects of the product's medical pictures, each with a rate, steady or drawn per request."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from medtest.simlab.answering.draws import Draws
from medtest.simlab.drawing.clinical.reading import ClinicalPrompt, NamedFinding, nouns
from medtest.simlab.drawing.defects import REFUSALS, Slips

ONE_SIZE = 12.0
"""Diameter in millimetres under ``sizes_ignored``."""
_OTHER = {"left": "right", "right": "left"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClinicalDefects:
    """Rates, each in [0, 1]; 0 switches a defect off.

    Attributes:
        sides_swapped: Findings are drawn on the other side.
        negated_drawn: Findings that the prompt excludes are drawn.
        findings_dropped: The finding named last is not drawn.
        counts_ignored: One instance is drawn of every finding.
        sizes_ignored: Every finding with a size measures :data:`ONE_SIZE`.
        synonyms_missed: Findings are drawn only under their plain names.
        anatomy_refused: Nothing is drawn; the kind of refusal is drawn from ``refused_as``.
        bystanders_leaked: If the prompt names an age, a sex or a scanner, a further finding is drawn.
        anew: Names of defects that are drawn per request.
        refused_as: Some of :data:`~medtest.simlab.drawing.defects.REFUSALS`.
    """

    sides_swapped: float = 0.0
    negated_drawn: float = 0.0
    findings_dropped: float = 0.0
    counts_ignored: float = 0.0
    sizes_ignored: float = 0.0
    synonyms_missed: float = 0.0
    anatomy_refused: float = 0.0
    bystanders_leaked: float = 0.0
    anew: tuple[str, ...] = ()
    refused_as: tuple[str, ...] = REFUSALS


CLINICAL: tuple[str, ...] = tuple(field.name for field in fields(ClinicalDefects) if isinstance(field.default, float))
"""Names of the defects."""


def clinical_slips(defects: ClinicalDefects, *, steady: Draws, fresh: Draws) -> Slips:
    """Draw the defects of one drawing.

    Args:
        defects: The rates.
        steady: Draws of product seed and prompt.
        fresh: Draws that also depend on the request's seed.
    """
    by_name = {name: fresh if name in defects.anew else steady for name in CLINICAL}
    names = tuple(name for name, draws in by_name.items() if draws.share(name) < getattr(defects, name))
    refused = "anatomy_refused" in names
    return Slips(names, by_name["anatomy_refused"].one_of("refused as", defects.refused_as) if refused else "")


def clinical_erring(prompt: ClinicalPrompt, active: tuple[str, ...]) -> tuple[NamedFinding, ...]:
    """Return the findings to draw, after applying the defects."""
    findings = list(prompt.findings)
    if "synonyms_missed" in active:
        findings = [finding for finding in findings if finding.plain or finding.presence != "wanted"]
    if "findings_dropped" in active:
        last = max((at for at, finding in enumerate(findings) if finding.presence == "wanted"), default=None)
        findings = [finding for at, finding in enumerate(findings) if at != last]
    if "negated_drawn" in active:
        findings = [replace(finding, presence="wanted") if _is_excluded(finding) else finding for finding in findings]
    if "sides_swapped" in active:
        findings = [replace(finding, side=_OTHER.get(finding.side, finding.side)) for finding in findings]
    if "counts_ignored" in active:
        findings = [replace(finding, count=1) for finding in findings]
    if "sizes_ignored" in active:
        findings = [replace(finding, millimetres=finding.millimetres and ONE_SIZE) for finding in findings]
    if "bystanders_leaked" in active and prompt.bystanders:
        named = {finding.name for finding in findings}
        findings += [NamedFinding(name=leak) for leak in nouns()[prompt.picture]["leaks"] if leak not in named][:1]
    return tuple(finding for finding in findings if finding.presence != "unwanted")


def _is_excluded(finding: NamedFinding) -> bool:
    return finding.presence == "unwanted"
