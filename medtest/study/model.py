"""Data model of a study: items, places in the annotators' lists, answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from medtest.core.address import address_text
from medtest.study.questions import Role

Phase: TypeAlias = Literal["training", "main"]
PHASES: tuple[Phase, ...] = ("training", "main")
MAX_COMMENT = 2000
"""Maximum length of a comment, in characters."""
MAX_ELAPSED_MS = 3_600_000
"""Maximum time recorded for an item, in milliseconds."""


@dataclass(frozen=True, kw_only=True)
class Item:
    """An item to judge.

    Attributes:
        id: Number of the item in the study.
        phase: training or main.
        role: Purpose of the item, hidden from annotators.
        dataset: Data set of the seed.
        seed_id: The seed (hashed if the suite requires it).
        relation: Relation id in the suite; "source" for an unchanged frame.
        severity: Severity.
        frame: Frame.
        repeat: Repeat.
        part: Name of the relation's part (``blur`` for a relation called ``mild_blur``).
        source_sha256: SHA-256 of the source image's pixels.
        followup_sha256: SHA-256 of the shown follow-up's pixels.
        source_file: File of the source below ``images/``.
        followup_file: File of the follow-up (or of the single frame).
        width: Width in pixels.
        height: Height in pixels.
        outlines: Contours of the lesion on source and follow-up: ``{"source": [[[x, y] …] …], "followup": …}``.
        expected: Expected answer and the explanation in training: ``{"diagnosis": [4, 5], "words": …}``.
    """

    id: int
    phase: Phase = "main"
    role: Role = Role.ITEM
    dataset: str
    seed_id: str
    relation: str
    severity: int = 0
    frame: int = 0
    repeat: int = 0
    part: str = ""
    source_sha256: str = ""
    followup_sha256: str = ""
    source_file: str
    followup_file: str
    width: int
    height: int
    outlines: Mapping[str, Any] = field(default_factory=dict)
    expected: Mapping[str, Any] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """Address of the case, as in records and reports."""
        return address_text(self.dataset, self.seed_id, self.relation, self.severity, self.frame, self.repeat)

    @property
    def source(self) -> str:
        """Address of the source case."""
        return f"{self.dataset}/{self.seed_id}"


@dataclass(frozen=True, kw_only=True)
class Place:
    """A place in an annotator's list.

    Attributes:
        annotator: Number of the annotator.
        phase: training or main.
        position: Position, from 1.
        item: The item's number.
        showing: 1, or 2 if the item is repeated.
        source_key: Opaque id of the source image at this place.
        followup_key: Opaque id of the follow-up at this place.
    """

    annotator: int
    phase: Phase
    position: int
    item: int
    showing: int
    source_key: str
    followup_key: str


@dataclass(frozen=True, kw_only=True)
class NewAnswer:
    """An annotator's answer, checked by its creator.

    Attributes:
        diagnosis: 1–5, None in a study of artefacts.
        realism: 1–5, None in a study of artefacts.
        marks: Ids of the marked artefacts, None in a study of pairs.
        comment: Free text.
        elapsed_ms: Time for which the item was in view.
        request: Request id from the browser; a repeated request is saved once.
    """

    diagnosis: int | None = None
    realism: int | None = None
    marks: tuple[str, ...] | None = None
    comment: str = ""
    elapsed_ms: int = 0
    request: str


@dataclass(frozen=True, kw_only=True)
class SavedAnswer:
    """A saved answer."""

    id: int
    annotator: int
    phase: Phase
    position: int
    diagnosis: int | None
    realism: int | None
    marks: tuple[str, ...] | None
    comment: str
    elapsed_ms: int
    saved_at: str
