"""What a study consists of, as data: items, the places of everyone's list, and answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from medtest.core.address import address_text
from medtest.study.questions import Role

Phase: TypeAlias = Literal["training", "main"]
PHASES: tuple[Phase, ...] = ("training", "main")
MAX_COMMENT = 2000
"""Characters of a comment."""
MAX_ELAPSED_MS = 3_600_000
"""An item that was in view for longer counts as an hour."""


@dataclass(frozen=True, kw_only=True)
class Item:
    """One thing to judge.

    Attributes:
        id: Its number in the study.
        phase: training or main.
        role: What it is there for; annotators never see it.
        dataset: Data set of the seed.
        seed_id: The seed (hashed where the suite wants it).
        relation: The relation's id in the suite; "source" for a frame as it is.
        severity: Its severity.
        frame: Its frame.
        repeat: Its draw.
        part: Name of the relation's part (``blur`` for a relation called ``mild_blur``).
        source_sha256: Of the source image's pixels.
        followup_sha256: Of the shown follow-up's pixels.
        source_file: File of the source below ``images/``.
        followup_file: File of the follow-up (or of the single frame).
        width: Pixels.
        height: Pixels.
        outlines: Contours of the lesion on source and follow-up: ``{"source": [[[x, y] …] …], "followup": …}``.
        expected: What a right answer looks like and what training says of it: ``{"diagnosis": [4, 5], "words": …}``.
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
        """The case's address, as records and reports write it."""
        return address_text(self.dataset, self.seed_id, self.relation, self.severity, self.frame, self.repeat)

    @property
    def source(self) -> str:
        """The source case's address."""
        return f"{self.dataset}/{self.seed_id}"


@dataclass(frozen=True, kw_only=True)
class Place:
    """One place in an annotator's list.

    Attributes:
        annotator: Whose.
        phase: training or main.
        position: From 1.
        item: The item's number.
        showing: 1, or 2 where the item comes back.
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
class Given:
    """What an annotator answers; checked by who makes it.

    Attributes:
        diagnosis: 1–5, None in a study of artefacts.
        realism: 1–5, None in a study of artefacts.
        marks: Ids of the artefacts marked, None in a study of pairs.
        comment: Free text.
        elapsed_ms: Time that the item was in view.
        request: The browser's own id of this request: sent twice, it is saved once.
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
