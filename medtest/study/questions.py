"""Questions and guidelines for annotators, with figures of the published study for comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

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


QUESTIONS: tuple[PairQuestion, ...] = (
    PairQuestion(
        name="diagnosis",
        text="The follow-up keeps the same diagnosis as the source.",
        hint="Would you report the same finding, at the same place, from both?",
        published=4.5,
    ),
    PairQuestion(
        name="realism",
        text="The follow-up could occur in the clinic.",
        hint="Could a frame with this change come from a real examination?",
        published=4.79,
    ),
)

PUBLISHED_FRAMES = 2553
"""Number of frames in the published pilot (MedTest report, 3.1), judged by ten annotators."""

PUBLISHED_WITH_ARTEFACT = 1199
"""Number of those frames with any artefact by consensus."""

ARTEFACTS: Mapping[str, tuple[str, str]] = {
    "saturation": ("Saturation", "too much light: bright, washed-out or glaring colours"),
    "contrast": ("Contrast", "too little light: dark, flat, structures hard to tell apart"),
    "white_balance": ("White balance", "a green, purple or other colour cast over the frame"),
    "specularity": ("Specularity", "small white mirror-like reflections on wet tissue"),
    "blur": ("Blur", "the frame is out of focus or smeared by motion"),
    "instrument": ("Instrument", "forceps, snare, needle or another tool in view"),
    "feces": ("Feces", "stool or residue: the bowel is not clean"),
    "blood": ("Blood", "bleeding, pools or streaks of blood"),
    "text": ("Text", "letters or numbers written on the frame"),
}
"""The nine artefacts of the report's table 1, by id of the relation that produces them: name and appearance."""

TITLES: Mapping[StudyKind, str] = {
    StudyKind.PAIRS: "Is it still the same diagnosis, and could it occur?",
    StudyKind.ARTEFACTS: "Which artefacts does the frame show?",
    StudyKind.BLIND: "Real or made?",
}
"""Title of the page for annotators."""

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


GUIDELINES: Mapping[StudyKind, tuple[str, ...]] = {
    StudyKind.PAIRS: (
        "You see two frames: a source, and a follow-up that was made from it by a computer. Some follow-ups differ "
        "much, some hardly at all.",
        "First question: would you make the same diagnosis from both? Judge the finding alone: the same lesion, at the "
        "same place, still to be seen. A worse picture of the same finding keeps the diagnosis.",
        "Second question: could the follow-up come from a real examination? Judge what was changed (light, focus, "
        "objects, letters), not whether you like the picture.",
        "1 means strongly disagree, 5 means strongly agree. Use the whole scale, and 3 when you cannot decide.",
        "Look at every pair afresh. Some come back later on purpose, so do not try to remember what you said.",
        "Flicker (hold F) shows the source in the follow-up's place: the eye then finds any difference at once. O "
        "draws the outline of the lesion as it is known for the source.",
    ),
    StudyKind.ARTEFACTS: (
        "You see one frame at a time. Mark every artefact that you can see in it; there may be none, one or several.",
        "Mark an artefact when it is plainly there, even if it does no harm. Reflections on wet tissue, for instance, "
        "are artefacts wherever they are.",
        "If the frame shows none of the nine, say so with the last box.",
        "Some frames come back later on purpose, so do not try to remember what you said.",
    ),
    StudyKind.BLIND: (
        "You see one frame at a time. Some are real: the camera saw everything in them. In the others a computer added "
        "stool, blood, an instrument or letters, or changed light, colour or focus.",
        "Say which it is. Take a guess when you are not sure; there is no third answer.",
        "Judge what the frame shows. Resolution, black borders and compression differ between cameras and say nothing.",
        "Some frames come back later on purpose, so do not try to remember what you said.",
    ),
}
