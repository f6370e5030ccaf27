"""Settings of questions: which are asked, and how."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from pydantic import field_validator

from medtest.core.cases import Ask
from medtest.core.errors import did_you_mean
from medtest.core.plugins import PartSettings
from medtest.language.questions.questions import Question, in_slide_order, kept
from medtest.seeds.folders.settings import FolderSettings, inside

ALL, KEPT = "all", "kept"


class AskSettings(PartSettings):
    """Settings shared by all sources of questions.

    Attributes:
        ask: ``each``: one call for each question. ``together``: one call for all questions of an image.
        questions: ``all``; ``kept``: the 14 of the 18 over which the MedTest slides average; or names of questions.
    """

    ask: Literal["each", "together"] = "each"
    questions: Literal["all", "kept"] | list[str] = "all"

    @field_validator("questions", mode="before")
    @classmethod
    def _check_selection(cls, value: object) -> object:
        if isinstance(value, str):
            if value not in (ALL, KEPT):
                raise ValueError(_allowed(value))
            return value
        if not isinstance(value, list) or not value:
            raise ValueError(_allowed(""))
        if len(set(map(str, value))) < len(value):
            raise ValueError("must name each question once")
        for name in value:
            cls.check_name(str(name))
        return [str(name) for name in value]

    @classmethod
    def check_name(cls, name: str) -> None:
        """Check that a name is one of the 18 questions.

        Raises:
            ValueError: The name is unknown.
        """
        if name not in official_names():
            raise ValueError(_allowed(name))


def _allowed(name: str) -> str:
    meant = did_you_mean(name, (*official_names(), ALL, KEPT)) if name else "."
    return f"{name!r} is not a question{meant} It must be all, kept, or a list of these: {', '.join(official_names())}"


def official_names() -> tuple[str, ...]:
    """Return the short names of the 18 questions in the order of the MedTest slides."""
    return tuple(question.name for question in in_slide_order())


def among(questions: Iterable[Question], selection: str | Sequence[str]) -> tuple[Question, ...]:
    """Return the requested questions: the 18 in the order of the slides, then others in the given order.

    Args:
        questions: Available questions.
        selection: ``all``, ``kept``, or names.
    """
    by_name = {question.name: question for question in questions}
    ordered = [by_name[name] for name in official_names() if name in by_name]
    ordered += [question for question in by_name.values() if question.id is None]
    if selection == ALL:
        return tuple(ordered)
    names = {question.name for question in kept()} if selection == KEPT else set(selection)
    return tuple(question for question in ordered if question.name in names)


def ask_of(question: Question, truth: Sequence[str]) -> Ask:
    """Return a question as a seed asks it; ``truth`` is empty if no answer is known."""
    return Ask(
        item=question.name,
        text=question.text,
        kind=question.kind.value,
        id=question.id,
        truth=tuple(truth) or None,
    )


_OTHER = re.compile(r"q_[0-9a-f]{8}")
"""Names of questions other than the 18 (:func:`medtest.language.questions.questions.question_of`)."""


class QuestionFolderSettings(AskSettings, FolderSettings):
    """Settings of a folder of images with questions; see ``docs/question-data.md``.

    Attributes:
        file: Question file below the root, JSON or CSV; "" finds it. Without one, the 18 questions are
            asked of every image, and no answer is known.
        masks: Folder below the root of masks of regions to keep uncovered, named like their images; "" for none.
    """

    file: str = ""

    _file_below = field_validator("file")(inside)

    @classmethod
    def check_name(cls, name: str) -> None:
        """Check a name, also allowing other questions (``q_1a2b3c4d``) as named in tables."""
        if not _OTHER.fullmatch(name):
            super().check_name(name)
