"""Questions and guidelines for annotators, with figures of the published study for comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from medtest.core.files.paths import read_yaml

LEVELS = 5
"""Answers range from 1 (strongly disagree) to 5 (strongly agree): MedTest report, RQ1."""

AGREE = 4
"""Lowest level that counts as agreement."""

REJECT = 2
"""Highest level that counts as a disagreement needing a second look."""

LEVEL_WORDS = ("strongly disagree", "disagree", "undecided", "agree", "strongly agree")


class StudyKind(StrEnum):
    """Kind of a study."""

    PAIRS = "pairs"
    ARTEFACTS = "artefacts"
    BLIND = "blind"

    @property
    def is_blind(self) -> bool:
        """True if annotators say whether a frame is real or made."""
        return self is StudyKind.BLIND

    @property
    def names_artefacts(self) -> bool:
        """True if annotators name the artefacts of a frame."""
        return self is StudyKind.ARTEFACTS

    @property
    def compares(self) -> bool:
        """True if a source and its follow-up are shown side by side; else single frames are marked."""
        return self.value == "pairs"


class Role(StrEnum):
    """Purpose of an item, hidden from annotators."""

    ITEM = "item"
    IDENTICAL = "identical"
    ERASED = "erased"
    UNNATURAL = "unnatural"
    MARKED = "marked"


CATCHES: tuple[Role, ...] = (Role.IDENTICAL, Role.ERASED, Role.MARKED)
"""Roles with a known answer, hidden among the items."""


@dataclass(frozen=True, kw_only=True)
class PairQuestion:
    """One of the two questions on a pair.

    Attributes:
        name: Column of the answer.
        text: Text of the question.
        hint: Additional line of explanation.
        published: Mean of the published study (MedTest report, RQ1: 900 pairs, three annotators).
    """

    name: str
    text: str
    hint: str
    published: float


_CONTENT: dict[str, Any] = read_yaml(Path(__file__).with_name("questions.yaml"))
QUESTIONS = tuple(PairQuestion(**question) for question in _CONTENT["questions"])
PUBLISHED_FRAMES = 2553
"""Number of frames in the published pilot (MedTest report, 3.1), judged by ten annotators."""

PUBLISHED_WITH_ARTEFACT = 1199
"""Number of those frames with any artefact by consensus."""

ARTEFACTS: Mapping[str, tuple[str, str]] = {name: tuple(words) for name, words in _CONTENT["artefacts"].items()}
"""The nine artefacts of the report's table 1, by id of the relation that produces them: name and appearance."""

TITLES: Mapping[StudyKind, str] = {kind: _CONTENT["titles"][kind.value] for kind in StudyKind}
"""Title of the page for annotators."""

GUIDELINES: Mapping[StudyKind, tuple[str, ...]] = {
    kind: tuple(_CONTENT["guidelines"][kind.value]) for kind in StudyKind
}
REAL, MADE = "real", "made"
CHOICES: Mapping[str, tuple[str, str]] = {
    REAL: ("Real", "the camera saw it like this"),
    MADE: ("Made", "a computer put something in, or changed the frame"),
}
"""The two answers of a blind study: name and meaning."""

PUBLISHED_ACCURACY = 61.0
"""Accuracy in percent with which 32 gastroenterologists told real endoscopic images from augmented or synthetic ones
(Biomedicines 13:1561)."""


def expected_choice(choice: str) -> dict[str, object]:
    """Return the expected answer of an item of a blind study."""
    return {"marks": [choice]}


def marks_of(kind: StudyKind) -> Mapping[str, tuple[str, str]]:
    """Return the marks of a study of single frames: id, name and appearance."""
    return CHOICES if kind.is_blind else ARTEFACTS
