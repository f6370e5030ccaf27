"""Synthetic endoscopy pictures with the 18 questions of MEDVQA-GI and their true answers.

They exercise a suite without clinical images and are not clinical evidence.
"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from medtest.core.cases import Seed, SeedRef
from medtest.core.plugins import PartSettings
from medtest.language.questions.questions import Question, official
from medtest.seeds.made.base import NumberedPhantoms, NumberedSettings
from medtest.seeds.questions.settings import AskSettings, among, ask_of

GENERATOR = "medtest.phantoms.questions"


class QuestionPhantomSettings(AskSettings, NumberedSettings):
    """Settings of :class:`QuestionPhantoms`; the default size is 512.

    Attributes:
        count: Number of pictures, 1 to 100,000. Each run of twenty covers every possible answer.
    """

    count: int = Field(default=20, ge=1, le=100_000)


class QuestionPhantoms(NumberedPhantoms):
    """Pictures with questions, generated when loaded: ``scene-00000``, ``scene-00001``, ….

    ``Seed.expected`` is the region that must stay uncovered for the answers to hold.
    """

    Settings: ClassVar[type[PartSettings]] = QuestionPhantomSettings
    task: ClassVar[str] = "answer"

    settings: QuestionPhantomSettings

    def questions(self) -> tuple[Question, ...]:
        """Return the questions asked of every picture."""
        return among(official(), self.settings.questions)

    def generator_name(self) -> str:
        """Return :data:`GENERATOR`."""
        return GENERATOR

    def named(self) -> str:
        """Return ``scene``."""
        return "scene"

    def items(self) -> tuple[str, ...]:
        """Return the questions' names."""
        return tuple(question.name for question in self.questions())

    def facts(self) -> dict[str, Any]:
        """Return the questions, their wording, and how they are asked."""
        return {
            "generator": "medtest.phantoms.questions",  # fixed name in digests, independent of the module's location
            "questions": [[question.name, question.text, question.kind.value] for question in self.questions()],
            "ask": self.settings.ask,
        }

    def load(self, ref: SeedRef) -> Seed:
        """Draw one picture."""
        phantom = self.make(ref)
        return Seed(
            ref=ref,
            image=phantom.image,
            expected=phantom.mask,
            kind="answer",
            asks=tuple(ask_of(question, phantom.answers[question.name]) for question in self.questions()),
            together=self.settings.ask == "together",
        )
