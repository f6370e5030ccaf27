"""What an oracle is: it turns answers into score columns, and those into the primary criterion's verdict."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from medtest.core.cases import SOURCE, Effect, Json, Output, PreparedSeed, Verdict
from medtest.core.errors import Mistake
from medtest.core.oracles import criteria
from medtest.core.plugins import Part, PartSettings
from medtest.core.records import NO_PREDICTION, SEED_FACTORS, SOURCE_FAILED


class Oracle(Part, ABC):
    """Judges one kind of answer.

    Args:
        settings: An instance of the class's ``Settings``.
        primary: The suite's ``Criterion`` (score, threshold, against).

    Attributes:
        task: Name of the task whose answers it judges.
        scores: Names of the score columns, in order; ``source_<score>`` is filled by the runner.
        criteria: What a criterion may name: scores of which more is better, or rules over them; ``scores`` by default.
        reads: Name of the reader whose facts it judges by, where a suite names no other (``oracles.reader``); they are
            ``answer.facts``, and stand in its ``texts``. "" for none.
        references: What a criterion may be ``against``.
        self_scores: Scores that also exist as ``self_<score>`` (follow-up's output against the source's).
        texts: Names of the text columns that :meth:`describe` fills.
        measures: Names of number columns that :meth:`measure` fills: what an answer cost, which is no score.
        seed_factors: Factor columns that belong to seeds of this kind.
        needs: Scores by name that need more of a stored answer than ``compact`` keeps, with what they need: ``maps``.
            They are recorded only under ``answers: maps``, or where a suite names them.
        recorded: Those of ``scores`` that records have under this suite; all of them until the suite says so.
        relations: The suite's relation ids with the name of their part; empty until the suite says so.
        effects: The same ids with what the relation says it does to the picture (``Relation.effects``), None where it
            does not say; an id whose relation is not installed is missing.
    """

    Settings: ClassVar[type[PartSettings]] = PartSettings
    task: ClassVar[str] = "mask"
    reads: ClassVar[str] = ""
    scores: ClassVar[tuple[str, ...]] = ()
    self_scores: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[Mapping[str, str]] = {}
    references: ClassVar[tuple[str, ...]] = ("truth", "source")
    texts: ClassVar[tuple[str, ...]] = ()
    measures: ClassVar[tuple[str, ...]] = ()
    seed_factors: ClassVar[tuple[str, ...]] = SEED_FACTORS

    def __init__(self, settings: Any, *, primary: Any) -> None:
        self.settings = settings
        self.primary = primary
        self.recorded: tuple[str, ...] = self.scores
        self.relations: Mapping[str, str] = {}
        self.effects: Mapping[str, frozenset[str] | None] = {}

    @classmethod
    def check(cls, settings: Any) -> list[Mistake]:
        """Return the user's mistakes in settings that can be seen before anything runs: a folder that is not there."""
        return []

    @abstractmethod
    def score(
        self, *, answer: Output, source: Output | None, seed: PreparedSeed, effect: Effect
    ) -> dict[str, float | None]:
        """Return the case's score columns and ``self_`` columns.

        Args:
            answer: What the system said of this image.
            source: What it said of the source image; ``answer`` itself for the source case; None when that failed.
            seed: The source case, with the expected answer if there is one.
            effect: What the relation did to the expected answer.

        Returns:
            A value for every name in ``scores`` and ``self_<name>`` for ``self_scores``; None where undefined
            (no truth, no source answer).
        """

    def describe(
        self, *, answer: Output | None, source: Output | None, seed: PreparedSeed, effect: Effect
    ) -> dict[str, str | None]:
        """Return the case's text columns: a value for every name in ``texts``, None where there is nothing to say.

        Args:
            answer: What the system said of this image; None where it has no valid answer.
            source: What it said of the source image; ``answer`` itself for the source case; None when that failed.
            seed: The source case.
            effect: What the relation did to the expected answer.
        """
        return dict.fromkeys(self.texts)

    def measure(self, answer: Output) -> dict[str, float | None]:
        """Return the number columns of an answer that are no scores: a value for every name in ``measures``."""
        return dict.fromkeys(self.measures)

    def notices(self) -> list[str]:
        """Return lines for the user about what is judged under this suite, before anything runs."""
        return []

    def unknown_items(self, items: Collection[str]) -> list[Mistake]:
        """Return what the settings say of questions that are not asked, which is known once seeds are listed.

        Args:
            items: Names of all questions that the seeds ask.
        """
        return []

    @property
    def from_records(self) -> bool:
        """Whether a raised revision judges what records hold; else it judges the answers that runs keep."""
        return bool(self.reads) and type(self).rejudged is not Oracle.rejudged

    @property
    def judged_columns(self) -> tuple[str, ...]:
        """Number columns of a record that say what the oracle makes of an answer."""
        own = tuple(f"self_{name}" for name in self.self_scores)
        return (*self.recorded, *(f"source_{name}" for name in self.recorded), *own)

    def judging(self) -> dict[str, Json]:
        """Return what of the settings goes into scores and texts; records made under something else are judged anew.

        Empty where scores depend on no setting and on no reader: verdicts alone are then made anew.
        """
        return {"revision": self.revision} if self.reads else {}

    def of_source(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the texts that the follow-ups of a source take over from its record; none by default."""
        return {}

    def rejudged(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a record's scores (``source_`` and ``self_`` columns too) and texts under these settings.

        Args:
            row: A record of the same oracle under other settings: its scores and texts, ``relation`` and ``item``.
        """
        return {}

    def judged_again(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a record's scores, texts, verdict and reason under these settings, from the record alone.

        What has no answer, and what was not judged for another reason than its scores, stays as it is.
        """
        # Where the source has no answer the reason says so, and what else is known of the case changes nothing of that.
        if row["verdict"] == Verdict.ERROR or str(row["reason"] or "").startswith((SOURCE_FAILED, NO_PREDICTION)):
            return {}
        new = self.rejudged(row) if self.judging() else {}
        names = [*self.recorded, *(f"self_{name}" for name in self.self_scores)]
        whole = {**row, **new}
        if row["relation"] != SOURCE and (new or any(row.get(name) is not None for name in names)):
            verdict, new["reason"] = self.verdict(whole)
            new["verdict"] = str(verdict)
        return new

    def verdict(self, row: Mapping[str, Any]) -> tuple[Verdict, str]:
        """Return PASS, FAIL or SKIP under the primary criterion, and the reason for SKIP, from the record alone.

        Args:
            row: The record's score columns, ``source_<score>`` and ``self_<score>`` among them, and its texts.
        """
        wanted = self.primary
        return criteria.verdict(row, score=wanted.score, threshold=wanted.threshold, against=wanted.against)
