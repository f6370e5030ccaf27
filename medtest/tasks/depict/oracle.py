"""Oracle of pictures generated from prompts: whether a picture reflects the change of its prompt.

The suite's reader gives the content of a picture (a :class:`medtest.core.scenes.Scene`), the pool that of a prompt, and
the difference of two pools the effect of a relation. Nothing is parsed here and everything is in the record: records
can be judged again by other rules, or with another reader's scenes, without calling a system.

Scores of a case are 1 or 0, or None if they cannot be determined: ``entities``, ``relations``, ``attributes``,
``counts``, and ``whole`` for all of them, against the truth (the case's own pool) and as ``self_…`` against the
source's picture under the suite's ``rules`` (:mod:`medtest.tasks.depict.rules`). ``drawn`` says whether there is a
picture. ``soft`` and ``vqascore`` are probabilities by the reader's model, against the truth alone
(:mod:`medtest.tasks.depict.questions`): the mean over the picture's questions, and that of the whole prompt. If a
service refuses a prompt although it drew the source, all scores are 0 (tables count this separately); if
it refused the source too, nothing is judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from medtest.core.cases import SOURCE, Effect, Json, Output, PictureOutput, PreparedSeed, Reason, ReasonCode, Verdict
from medtest.core.errors import Mistake
from medtest.core.oracles import criteria
from medtest.core.oracles.base import Oracle
from medtest.core.oracles.controls import NOTHING_TO_LOSE
from medtest.core.plugins import PartSettings
from medtest.core.scenes import Scene, dumped
from medtest.results.fidelity.settings import FigureSettings
from medtest.tasks.depict.questions import questions_about, soft_score
from medtest.tasks.depict.rules import KINDS, JudgedPair, against_source, against_truth
from medtest.tasks.depict.views import NO_CHANGE, PoolChange, Said, SceneLook, change_of, look_of, said_of

ANSWERED, FILTERED, REFUSED = "answered", "content_filter", "refusal"
WITHHELD = (FILTERED, REFUSED)
"""States in which a service refuses to draw."""
CHANGED = "scene"
"""Kind of the effect of relations on prompts."""
WHOLE = "whole"
"""Score over all kinds of error."""

SOFT = ("soft", "vqascore")
"""Scores that are probabilities."""
PROMPT = "prompt"
"""Kind of the question about a whole prompt."""

WHY: dict[str, str] = {
    ReasonCode.PICTURE_UNREAD: "no reader has read the picture",
    ReasonCode.SOURCE_REFUSED: "the service refused to draw the source prompt",
    ReasonCode.NO_SOURCE_PICTURE: "there is no picture of the source prompt",
    ReasonCode.CHANGE_UNREADABLE: "the reader cannot detect what the prompt change affects",
    ReasonCode.PROMPT_UNREADABLE: "the reader cannot detect anything that the prompt names",
    ReasonCode.NO_PICTURE: "the reply holds no picture",
}
"""Texts of the reasons for a SKIP, by the reason code in ``why``."""


class ScenesSettings(PartSettings):
    """Settings of ``scenes``.

    Attributes:
        rules: How a pair of pictures is judged: ``strict``; ``paper``, by the equations of ACTesting; ``released``, as
            its
            published code does.
        soft: How ``soft`` is made of the probabilities of a picture's right answers: their ``mean``, or the
            ``geometric`` one.
        figures: Settings of the figures of pictures (FID, IS, R-precision, near-duplicates, GenEval's rule).
    """

    rules: Literal["strict", "paper", "released"] = "strict"
    soft: Literal["mean", "geometric"] = "mean"
    figures: FigureSettings = FigureSettings()


class Scenes(Oracle):
    """Oracle of generated pictures by the scenes that a reader detected; the module's docstring defines the scores."""

    Settings = ScenesSettings
    task: ClassVar[str] = "depiction"
    reads: ClassVar[str] = "bundled"
    scores: ClassVar[tuple[str, ...]] = (WHOLE, *KINDS, "drawn", *SOFT)
    self_scores: ClassVar[tuple[str, ...]] = (WHOLE, *KINDS)
    criteria: ClassVar[tuple[str, ...]] = (WHOLE, *KINDS, *SOFT)
    texts: ClassVar[tuple[str, ...]] = (
        "prompt",
        "pool",
        "source_pool",
        "effect",
        "picture",
        "answer_state",
        "answer_why",
        "revised_prompt",
        "model",
        "scene",
        "tells",
        "source_picture",
        "source_scene",
        "source_tells",
        "source_state",
        "why",
    )
    measures: ClassVar[tuple[str, ...]] = ("cost_usd", "prompt_tokens", "completion_tokens", "seconds", "attempts")
    seed_factors: ClassVar[tuple[str, ...]] = ()
    revision: ClassVar[int] = 2

    @classmethod
    def check(cls, settings: Any) -> list[Mistake]:
        """Return the mistakes in the paths of the figure settings."""
        return settings.figures.check() if isinstance(settings, ScenesSettings) else []

    def score(
        self, *, answer: Output, source: Output | None, seed: PreparedSeed, effect: Effect
    ) -> dict[str, float | None]:
        """Return the score columns of one case; None if they cannot be determined."""
        if not isinstance(answer, PictureOutput) or not isinstance(source, PictureOutput | None):
            raise TypeError(f"scenes judges pictures, not an answer of kind {answer.kind}")
        return self._scores(self._case(answer, source, effect))

    def describe(
        self, *, answer: Output | None, source: Output | None, seed: PreparedSeed, effect: Effect
    ) -> dict[str, str | None]:
        """Return the texts, the pools, the picture and the detected scene."""
        columns: dict[str, str | None] = dict.fromkeys(self.texts)
        if not isinstance(answer, PictureOutput):
            return columns
        is_source = answer.address.is_source
        source_picture = source if isinstance(source, PictureOutput) else None
        compared_source = None if is_source else source_picture
        columns |= {
            "prompt": answer.prompt.text,
            "pool": dumped(answer.prompt.pool.as_json()),
            "effect": "" if is_source or effect.kind != CHANGED else dumped(_data(effect)),
            "picture": answer.picture,
            "answer_state": answer.state,
            "answer_why": answer.why,
            "revised_prompt": answer.revised_prompt,
            "model": answer.model,
            **_seen("", answer),
        }
        if not is_source and seed.prompt is not None:
            columns["source_pool"] = dumped(seed.prompt.pool.as_json())
        if compared_source is not None:
            columns |= {
                "source_state": compared_source.state,
                "source_picture": compared_source.picture,
                **_seen("source_", compared_source),
            }
        columns["why"] = str(self._why(self._case(answer, source_picture, effect)))
        return columns

    def kept(self, *, answer: Output, source: Output, seed: PreparedSeed, effect: Effect) -> float | Reason:
        """Return the share of the things in the source's picture that are still drawn; none if a prompt is refused."""
        if not isinstance(answer, PictureOutput) or not isinstance(source, PictureOutput):
            raise TypeError(f"scenes judges pictures, not an answer of kind {answer.kind}")
        return _still_drawn(answer.state, _look_of(answer), source.state, _look_of(source))

    def kept_by_chance(self, *, item: str, seed: PreparedSeed, effect: Effect) -> float | None:
        """Return the share of the things in the prompt that the other prompt names as well."""
        if effect.other is None or effect.other.prompt is None or seed.prompt is None:
            return None
        names = seed.prompt.pool.names()
        return (names & effect.other.prompt.pool.names()).total() / names.total() if names else None

    def kept_again(self, row: Mapping[str, Any]) -> float | Reason | None:
        """Return the share from the recorded scenes."""
        if not row["answer_state"] or not row["source_state"]:
            return None
        looks = (_look(row[f"{side}scene"], row[f"{side}tells"]) for side in ("", "source_"))
        after, before = looks
        return _still_drawn(str(row["answer_state"]), after, str(row["source_state"]), before)

    def measure(self, answer: Output) -> dict[str, float | None]:
        """Return cost in US dollars, tokens, seconds and number of calls."""
        if not isinstance(answer, PictureOutput):
            return dict.fromkeys(self.measures)
        return {name: None if (value := getattr(answer, name)) is None else float(value) for name in self.measures}

    def verdict(self, row: Mapping[str, Any]) -> tuple[Verdict, Reason]:
        """Return the verdict under the suite's primary criterion, with the reason of a SKIP."""
        criterion = self.primary
        verdict, reason = criteria.verdict(
            row, score=criterion.score, threshold=criterion.threshold, against=criterion.against
        )
        why = str(row.get("why") or "")
        return verdict, Reason(ReasonCode(why), WHY[why]) if why and verdict == Verdict.SKIP else reason

    def judging(self) -> dict[str, Json]:
        """Return revision, rules and kind of mean."""
        return {"revision": self.revision, "rules": self.settings.rules, "soft": self.settings.soft}

    def of_source(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the scene of the source's picture in the columns of its follow-ups."""
        columns = {"source_state": row["answer_state"], "source_picture": row["picture"]}
        return columns | {f"source_{name}": row[name] for name in ("scene", "tells")}

    def rejudged(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a record's scores under these rules, from its texts."""
        if not row["answer_state"]:
            return {}
        is_source = row["relation"] == SOURCE
        case = _Case(
            state=str(row["answer_state"]),
            look=_look(row["scene"], row["tells"]),
            prompt=said_of(row["pool"]),
            change=change_of(row["effect"] or ""),
            source_state=None if is_source else row["source_state"],
            source=None if is_source else _look(row["source_scene"], row["source_tells"]),
            own=is_source,
        )
        scores = self._scores(case)
        if is_source:
            source_scores = {f"source_{name}": scores[name] for name in self.scores}
        else:
            source_scores = self._source_scores(row)
        return scores | source_scores | {"why": str(self._why(case))}

    def _source_scores(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the scores of the source of a follow-up's record."""
        state, pool = row["source_state"], row.get("source_pool")
        if not state or not pool:
            return {f"source_{name}": None for name in self.scores}
        look = _look(row["source_scene"], row["source_tells"])
        scores = self._scores(_Case(state=str(state), look=look, prompt=said_of(pool), change=NO_CHANGE, own=True))
        return {f"source_{name}": scores[name] for name in self.scores}

    def _case(self, answer: PictureOutput, source: PictureOutput | None, effect: Effect) -> _Case:
        is_source = answer.address.is_source
        return _Case(
            state=answer.state,
            look=_look_of(answer),
            prompt=Said.of(answer.prompt.pool),
            change=PoolChange.of(effect.data) if effect.kind == CHANGED and not is_source else NO_CHANGE,
            source_state=None if is_source or source is None else source.state,
            source=None if is_source or source is None else _look_of(source),
            own=is_source,
        )

    def _scores(self, case: _Case) -> dict[str, float | None]:
        """Return the score columns of a case."""
        if case.withheld:
            refused = dict.fromkeys((WHOLE, *KINDS), 0.0) if case.source_state == ANSWERED else {}
            return {
                **{name: refused.get(name) for name in (WHOLE, *KINDS)},
                "drawn": 0.0,
                **self._soft_of_refusal(case),
                **{f"self_{name}": refused.get(name) for name in self.self_scores},
            }
        truth = None if case.look is None else against_truth(case.look, case.prompt, case.change)
        pair = self.pair(case)
        drawn = {"drawn": None if case.state != ANSWERED else 1.0}
        return {**_columns(truth, ""), **drawn, **self._soft(case), **_columns(pair, "self_")}

    def _soft_of_refusal(self, case: _Case) -> dict[str, float | None]:
        """Return 0 for the scores that the drawn source has."""
        beliefs = case.source.beliefs if case.source is not None and case.source_state == ANSWERED else {}
        return {"soft": 0.0 if beliefs else None, "vqascore": 0.0 if (PROMPT,) in beliefs else None}

    def _soft(self, case: _Case) -> dict[str, float | None]:
        """Return the scores by probabilities; None if the reader's model tells none."""
        if case.look is None or not case.look.beliefs:
            return dict.fromkeys(SOFT)
        whole_prompt = case.look.beliefs.get((PROMPT,))
        return {
            "soft": soft_score(questions_about(case.look, case.prompt), self.settings.soft),
            "vqascore": None if whole_prompt is None else whole_prompt[0],
        }

    def pair(self, case: _Case) -> JudgedPair | None:
        """Return the judgement of a pair under the rules; None without two detected scenes."""
        if case.look is None or case.source is None:
            return None
        return against_source(self.settings.rules, case.source, case.look, case.prompt, case.change)

    def _why(self, case: _Case) -> ReasonCode:
        """Return the reason why a case is not judged under the suite's criterion."""
        if case.own:
            return ReasonCode.NONE
        against = self.primary.against
        if case.withheld:
            return ReasonCode.NONE if case.source_state == ANSWERED else ReasonCode.SOURCE_REFUSED
        if case.state != ANSWERED:
            return ReasonCode.NO_PICTURE
        if case.look is None:
            return ReasonCode.PICTURE_UNREAD
        if against == "source":
            if case.source_state in WITHHELD:
                return ReasonCode.SOURCE_REFUSED
            if case.source is None:
                return ReasonCode.PICTURE_UNREAD if case.source_state == ANSWERED else ReasonCode.NO_SOURCE_PICTURE
        judged = against_truth(case.look, case.prompt, case.change) if against == "truth" else self.pair(case)
        if judged is None:
            return ReasonCode.PICTURE_UNREAD
        if self.primary.score in SOFT:
            return ReasonCode.NONE if self._soft(case)[self.primary.score] is not None else ReasonCode.PROMPT_UNREADABLE
        right = judged.whole if self.primary.score == WHOLE else judged.right.get(self.primary.score)
        if right is not None:
            return ReasonCode.NONE
        return ReasonCode.PROMPT_UNREADABLE if judged.detectable else ReasonCode.CHANGE_UNREADABLE


@dataclass(slots=True, kw_only=True)
class _Case:
    """Data that determine the judgement of a case."""

    state: str
    look: SceneLook | None
    prompt: Said
    change: PoolChange
    source_state: str | None = None
    source: SceneLook | None = None
    own: bool = False

    @property
    def withheld(self) -> bool:
        return self.state in WITHHELD


def _still_drawn(state: str, after: SceneLook | None, source_state: str, before: SceneLook | None) -> float | Reason:
    """Return the share of the things drawn before that are still drawn, or the reason if that is unknown."""
    why = None
    if source_state in WITHHELD:
        why = ReasonCode.SOURCE_REFUSED
    elif source_state != ANSWERED:
        why = ReasonCode.NO_SOURCE_PICTURE
    elif state not in (ANSWERED, *WITHHELD):
        why = ReasonCode.NO_PICTURE
    elif before is None or (after is None and state == ANSWERED):
        why = ReasonCode.PICTURE_UNREAD
    if why is not None:
        return Reason(why, WHY[why])
    if before is None or not before.names:
        return NOTHING_TO_LOSE
    still = 0 if after is None else (before.names & after.names).total()
    return still / before.names.total()


def _columns(judgement: JudgedPair | None, prefix: str) -> dict[str, float | None]:
    values: dict[str, bool | None] = dict.fromkeys((WHOLE, *KINDS))
    if judgement is not None:
        values = {WHOLE: judgement.whole, **judgement.right}
    return {f"{prefix}{name}": None if value is None else float(value) for name, value in values.items()}


def _data(effect: Effect) -> dict[str, Any]:
    return {name: effect.data.get(name) or {} for name in ("removed", "added")}


def _seen(prefix: str, answer: PictureOutput) -> dict[str, str | None]:
    scene = answer.facts
    if not isinstance(scene, Scene):
        return {f"{prefix}scene": None, f"{prefix}tells": None}
    return {f"{prefix}scene": dumped(scene.as_json()), f"{prefix}tells": dumped(scene.tells.as_json())}


def _look_of(answer: PictureOutput) -> SceneLook | None:
    return SceneLook.of(answer.facts) if isinstance(answer.facts, Scene) and answer.state == ANSWERED else None


def _look(scene: str | None, tells: str | None) -> SceneLook | None:
    return look_of(scene, tells or "") if scene else None
