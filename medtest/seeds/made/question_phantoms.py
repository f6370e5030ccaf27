"""Made endoscopy pictures with the 18 questions of MEDVQA-GI and their true answers.

They exercise a suite where no clinical images are at hand, and never stand for clinical evidence.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import Field

from medtest.cases import Seed, SeedRef
from medtest.phantoms.labelled import MAX_SIZE, MIN_SIZE
from medtest.plugins import PartSettings
from medtest.seeds.base import SeedSource
from medtest.seeds.questions.settings import AskSettings, among, ask_of
from medtest.vqa.questions import Question, official

GENERATOR = "medtest.phantoms.questions"


class QuestionPhantomSettings(AskSettings):
    """What a suite may set.

    Attributes:
        count: How many, 1 to 100,000. Each run of twenty shows every answer that there is.
        start: Number of the first, so that two data sets of one suite share none.
        size: Pixels a side, 128 to 1024; None for 512.
    """

    count: int = Field(default=20, ge=1, le=100_000)
    start: int = Field(default=0, ge=0, le=10_000_000)
    size: int | None = Field(default=None, ge=MIN_SIZE, le=MAX_SIZE)


class QuestionPhantoms(SeedSource):
    """Pictures with questions, made when they are loaded.

    Picture ``i`` depends on the suite's seed, ``size`` and ``i`` alone, however many are made. Each is a cluster of its
    own. ``Seed.expected`` is what must not be covered for the answers to stay true.
    """

    Settings: ClassVar[type[PartSettings]] = QuestionPhantomSettings
    task: ClassVar[str] = "answer"
    phantom: ClassVar[bool] = True

    settings: QuestionPhantomSettings

    def questions(self) -> tuple[Question, ...]:
        """Return the questions that are asked of every picture."""
        return among(official(), self.settings.questions)

    def refs(self) -> Sequence[SeedRef]:
        """Return ``scene-00000``, ``scene-00001``, … from ``start`` on."""
        first = self.settings.start
        items = tuple(one.name for one in self.questions())
        return tuple(
            SeedRef(dataset=self.dataset, seed_id=f"scene-{index:05d}", items=items, locator=str(index))
            for index in range(first, first + self.settings.count)
        )

    def make(self, ref: SeedRef) -> Any:
        """Draw one picture with all that is known about it (:class:`~medtest.phantoms.questions.QuestionPhantom`)."""
        generator = self._generator()
        size = generator.SIZE if self.settings.size is None else self.settings.size
        return generator.make(int(ref.locator), self.suite_seed, size=size)

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

    def digest(self) -> str:
        """Return a SHA-256 over generator, which pictures, their size, the suite's seed, questions and their words."""
        generator = self._generator()
        content: dict[str, Any] = {
            "generator": "medtest.phantoms.questions",  # as digests know it, wherever it lies
            "revision": generator.REVISION,
            "first": self.settings.start,
            "count": self.settings.count,
            "size": generator.SIZE if self.settings.size is None else self.settings.size,
            "suite_seed": self.suite_seed,
            "questions": [[one.name, one.text, one.kind.value] for one in self.questions()],
            "ask": self.settings.ask,
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def _generator(self) -> Any:
        return importlib.import_module(GENERATOR)
