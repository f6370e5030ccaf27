"""Oracle base class: score columns from answers, and verdicts from the primary criterion."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from medtest.core.cases import SOURCE, Effect, Json, Output, PreparedSeed, Reason, ReasonCode, Verdict
from medtest.core.errors import Mistake
from medtest.core.oracles import criteria
from medtest.core.oracles.controls import control_verdict
from medtest.core.plugins import Part, PartSettings
from medtest.core.records import CHANCE, KEPT, SEED_FACTORS

_UNANSWERED = (ReasonCode.NO_PREDICTION, ReasonCode.NO_SOURCE_PREDICTION, ReasonCode.SOURCE_FAILED)


class Oracle(Part, ABC):
    """Judge of one kind of answer.

    Args:
        settings: An instance of the class's ``Settings``.
        primary: The suite's ``Criterion`` (score, threshold, against).

    Attributes:
        task: Name of the task whose answers it judges.
        scores: Names of the score columns, in order; ``source_<score>`` is filled by the runner.
        criteria: Names allowed in a criterion: scores for which higher is better, or rules over them; ``scores`` by
            default.
        reads: Name of the default reader whose facts it judges by (``oracles.reader``); the facts are ``answer.facts``
            and are recorded in its ``texts``. "" for none.
        references: Allowed values of a criterion's ``against``.
        self_scores: Scores that also exist as ``self_<score>`` (follow-up's output against the source's).
        texts: Names of the text columns filled by :meth:`describe`.
        measures: Names of the number columns filled by :meth:`measure`, e.g. the cost of an answer.
        seed_factors: Factor columns that belong to seeds of this kind.
        needs: Scores that need more of a stored answer than ``compact`` keeps, each with its need: ``maps``. They are
            recorded only under ``answers: maps`` or if a suite names them.
        recorded: Those of ``scores`` recorded under this suite; all of them until the suite sets it.
        relations: The suite's relation ids with the names of their parts; empty until the suite sets it.
        effects: The same ids with the relation's declared effect on the picture (``Relation.effects``), None if
            undeclared; ids of relations that are not installed are missing.
        controls: Ids of the suite's controls with their roles (:mod:`medtest.core.oracles.controls`).
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
        self.controls: Mapping[str, str] = {}

    @classmethod
    def check(cls, settings: Any) -> list[Mistake]:
        """Return mistakes in settings that are visible before a run, e.g. a missing folder."""
        return []

    @abstractmethod
    def score(
        self, *, answer: Output, source: Output | None, seed: PreparedSeed, effect: Effect
    ) -> dict[str, float | None]:
        """Return the case's score columns and ``self_`` columns.

        Args:
            answer: The system's answer to this image.
            source: The system's answer to the source image; ``answer`` itself for the source case; None if that failed.
            seed: The source case, with the expected answer if there is one.
            effect: The relation's effect on the expected answer.

        Returns:
            A value for every name in ``scores`` and ``self_<name>`` for ``self_scores``; None where undefined (no
            truth, no source answer).
        """

    def describe(
        self, *, answer: Output | None, source: Output | None, seed: PreparedSeed, effect: Effect
    ) -> dict[str, str | None]:
        """Return the case's text columns: a value for every name in ``texts``, None if there is no text.

        Args:
            answer: The system's answer to this image; None if it has no valid answer.
            source: The system's answer to the source image; ``answer`` itself for the source case; None if that failed.
            seed: The source case.
            effect: The relation's effect on the expected answer.
        """
        return dict.fromkeys(self.texts)

    def measure(self, answer: Output) -> dict[str, float | None]:
        """Return the number columns of an answer other than scores: a value for every name in ``measures``."""
        return dict.fromkeys(self.measures)

    def kept(self, *, answer: Output, source: Output, seed: PreparedSeed, effect: Effect) -> float | Reason:
        """Return the share of the source's answer that the answer to a control keeps.

        Args:
            answer: The system's answer to the control.
            source: Its answer to the source.
            seed: The source case.
            effect: Effect of the control, of kind ``remove``.

        Returns:
            In [0, 1], or the reason why it cannot be judged.
        """
        return Reason(ReasonCode.NOT_JUDGED, "this oracle does not judge controls")

    def kept_by_chance(self, *, item: str, seed: PreparedSeed, effect: Effect) -> float | None:
        """Return :meth:`kept` for the expected answers of the case and of the one shown instead of it.

        A system that sees agrees that often by chance.

        Args:
            item: The question; "" for other tasks.
            seed: The source case.
            effect: Effect of a control that shows another case.

        Returns:
            None without two expected answers, or if there is nothing to lose.
        """
        return None

    def kept_again(self, row: Mapping[str, Any]) -> float | Reason | None:
        """Return :meth:`kept` from a control's record under these settings; None if the recorded value stays."""
        return None

    def notices(self) -> list[str]:
        """Return notices for the user about judging under this suite, shown before a run."""
        return []

    def unknown_items(self, items: Collection[str]) -> list[Mistake]:
        """Return mistakes in settings that name questions asked by no seed; checked once seeds are listed.

        Args:
            items: Names of all questions that the seeds ask.
        """
        return []

    @property
    def from_records(self) -> bool:
        """True if a new revision can judge from records; False if it needs the answers that runs keep."""
        return bool(self.reads) and type(self).rejudged is not Oracle.rejudged

    @property
    def judged_columns(self) -> tuple[str, ...]:
        """Number columns of a record that hold the oracle's judgement of an answer."""
        self_columns = tuple(f"self_{name}" for name in self.self_scores)
        of_controls = (KEPT, CHANCE) if self.controls else ()
        return (*self.recorded, *(f"source_{name}" for name in self.recorded), *self_columns, *of_controls)

    def judging(self) -> dict[str, Json]:
        """Return the settings that affect scores and texts; records made under others are judged again.

        Empty if scores depend on no setting and no reader: then only verdicts are recomputed.
        """
        return {"revision": self.revision} if self.reads else {}

    def of_source(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the texts that follow-ups copy from their source's record; none by default."""
        return {}

    def rejudged(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a record's scores (including ``source_`` and ``self_`` columns) and texts under these settings.

        Args:
            row: A record of the same oracle under other settings: its scores and texts, ``relation`` and ``item``.
        """
        return {}

    def judged_again(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a record's scores, texts, verdict and reason under these settings, from the record alone.

        Records without an answer, or with a verdict that does not depend on scores, are unchanged.
        """
        # A missing source answer already decides the verdict; nothing else about the case changes it.
        if row["verdict"] == Verdict.ERROR or row["reason_code"] in _UNANSWERED:
            return {}
        if row["relation"] in self.controls:
            return self._control_again(row)
        new = self.rejudged(row) if self.judging() else {}
        names = [*self.recorded, *(f"self_{name}" for name in self.self_scores)]
        whole = {**row, **new}
        if row["relation"] != SOURCE and (new or any(row.get(name) is not None for name in names)):
            verdict, reason = self.verdict(whole)
            new |= {"verdict": str(verdict), "reason_code": str(reason.code), "reason": reason.text}
        return new

    def _control_again(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the columns of a control's record, which depend on no criterion."""
        kept = self.kept_again(row) if self.judging() else None
        if kept is None:
            return {}
        reason = kept if isinstance(kept, Reason) else Reason()
        share = None if isinstance(kept, Reason) else kept
        verdict = Verdict.SKIP if share is None else control_verdict(share, self.controls[row["relation"]])
        return {KEPT: share, "verdict": str(verdict), "reason_code": str(reason.code), "reason": reason.text}

    def verdict(self, row: Mapping[str, Any]) -> tuple[Verdict, Reason]:
        """Return PASS, FAIL or SKIP under the primary criterion, and the reason for SKIP, from the record alone.

        Args:
            row: The record's score columns, including ``source_<score>`` and ``self_<score>``, and its texts.
        """
        criterion = self.primary
        return criteria.verdict(row, score=criterion.score, threshold=criterion.threshold, against=criterion.against)
