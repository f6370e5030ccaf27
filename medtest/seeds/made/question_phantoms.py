"""Made endoscopy pictures with the 18 questions of MEDVQA-GI and their true answers.

They exercise a suite where no clinical images are at hand, and never stand for clinical evidence.
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
    """What a suite may set; the size of their own is 512.

    Attributes:
        count: How many, 1 to 100,000. Each run of twenty shows every answer that there is.
    """

    count: int = Field(default=20, ge=1, le=100_000)


class QuestionPhantoms(NumberedPhantoms):
    """Pictures with questions, made when they are loaded: ``scene-00000``, ``scene-00001``, ….

    ``Seed.expected`` is what must not be covered for the answers to stay true.
    """

    Settings: ClassVar[type[PartSettings]] = QuestionPhantomSettings
    task: ClassVar[str] = "answer"

    settings: QuestionPhantomSettings

    def questions(self) -> tuple[Question, ...]:
        """Return the questions that are asked of every picture."""
        return among(official(), self.settings.questions)

    def generator_name(self) -> str:
        """Return :data:`GENERATOR`."""
        return GENERATOR

    def named(self) -> str:
        """Return ``scene``."""
        return "scene"

    def items(self) -> tuple[str, ...]:
        """Return the questions' names."""
        return tuple(one.name for one in self.questions())

    def facts(self) -> dict[str, Any]:
        """Return the questions, their words, and how they are asked."""
        return {
            "generator": "medtest.phantoms.questions",  # as digests know it, wherever it lies
            "questions": [[one.name, one.text, one.kind.value] for one in self.questions()],
            "ask": self.settings.ask,
        }

    def load(self, ref: SeedRef) -> Seed:
        """Draw one picture."""
        made = self.make(ref)
        return Seed(
            ref=ref,
            image=made.image,
            expected=made.mask,
            kind="answer",
            asks=tuple(ask_of(one, made.answers[one.name]) for one in self.questions()),
            together=self.settings.ask == "together",
        )
