"""Schema of an order: modality, findings, bystanders and style."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Presence: TypeAlias = Literal["ordered", "negated", "uncertain"]
"""Whether a finding shall be in the picture, shall not be, or may be."""
Side: TypeAlias = Literal["left", "right", "bilateral", "midline"]
"""The patient's side. On a film the patient's left is the right half of the picture."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedFinding:
    """Finding in an order.

    Attributes:
        name: Its name in the vocabulary.
        presence: Whether it is ordered, negated or uncertain.
        side: The side of the patient; None if the text names none. ``midline`` only if the text says so.
        count: Number of instances; None if the text gives none ("nodules", "pulmonary edema").
        size_mm: Diameter of each instance in millimetres.
        paris: Paris type (Gastrointest Endosc 2003;58(6 Suppl):S3-43): ``Ip``, ``Is``, ``IIa``, or "".
        colour: A colour, or "".
    """

    name: str
    presence: Presence = "ordered"
    side: Side | None = None
    count: int | None = None
    size_mm: float | None = None
    paris: str = ""
    colour: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """Two statements of a text that exclude each other; neither counts in the order.

    Attributes:
        finding: Name of the finding.
        about: ``presence``, ``side``, ``count``, ``size``, ``Paris type`` or ``colour``.
        statements: The two statements.
    """

    finding: str
    about: str
    statements: tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Order of a medical picture.

    Attributes:
        modality: ``chest film``, ``endoscopy`` or ``capsule``.
        region: Part of the body in view, one of the modality's regions; "" if the text names none.
        findings: Findings in the order of the text.
        normal: Whether the text says "normal" or "no findings": all findings of the modality are negated.
        age: The patient's age in years.
        sex: ``female``, ``male``, or "".
        scanner: Device or projection, one of the modality's scanners, or "".
        style: Style of the picture, one of the vocabulary's styles, or "".
        contradictions: Statements that exclude each other.
    """

    modality: str
    region: str = ""
    findings: tuple[OrderedFinding, ...] = ()
    normal: bool = False
    age: int | None = None
    sex: Literal["female", "male", ""] = ""
    scanner: str = ""
    style: str = ""
    contradictions: tuple[Contradiction, ...] = ()

    @property
    def kind(self) -> str:
        """``contradictory``, ``normal``, ``uncertain``, ``negated`` or ``plain``: the first that applies."""
        present = {finding.presence for finding in self.findings}
        if self.contradictions:
            return "contradictory"
        if self.normal:
            return "normal"
        return "uncertain" if "uncertain" in present else "negated" if "negated" in present else "plain"


class NotControlled(ValueError):
    """A text is not in the controlled English.

    Args:
        code: Reason for counting, one of :data:`REASONS`.
        message: Text of the reason, with the words of the prompt that it concerns.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


REASONS: dict[str, str] = {
    "no_modality": "names no kind of picture",
    "two_modalities": "names two kinds of pictures",
    "unknown_words": "has words outside the vocabulary",
    "ambiguous_negation": "does not say how far a negation or a doubt reaches",
    "loose_words": "has a side, size, type, colour or number without a finding",
    "two_statements": "says twice what can be said once",
    "no_content": "orders nothing",
    "too_long": "is too long",
}
"""Reasons why a text is not read, by code."""
