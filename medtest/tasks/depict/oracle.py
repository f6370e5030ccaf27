"""The oracle of pictures that are drawn from prompts: is what a picture shows what the change of the prompt made true?

What a picture shows says the suite's reader (a :class:`medtest.core.scenes.Scene`); what a prompt says is its pool;
what a relation did is the difference of two pools. Nothing is parsed here, and everything stands in the record: the
same record is judged by other rules, or as another reader sees the pictures, without asking anybody.

Scores of a case are 1 or 0, or None where nothing can be told: ``entities``, ``relations``, ``attributes``,
``counts``, and ``whole`` of all of them, against the truth (the case's own pool) and as ``self_…`` against the source's
picture under the suite's ``rules`` (:mod:`medtest.tasks.depict.rules`). ``drawn`` says whether there is a picture. A
service that refuses to draw what it drew for the source has violated everything (0 throughout; tables count it apart);
where it refused the source too, nothing is judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from medtest.core.cases import SOURCE, Effect, Json, Output, PictureOutput, PreparedSeed, Verdict
from medtest.core.errors import Mistake
from medtest.core.oracles import criteria
from medtest.core.oracles.base import Oracle
from medtest.core.plugins import PartSettings
from medtest.core.scenes import Scene, dumped
from medtest.results.fidelity.settings import FigureSettings
from medtest.tasks.depict.rules import KINDS, JudgedPair, against_source, against_truth
from medtest.tasks.depict.views import NO_CHANGE, PoolChange, Said, SceneLook, change_of, look_of, said_of

ANSWERED, FILTERED, REFUSED = "answered", "content_filter", "refusal"
WITHHELD = (FILTERED, REFUSED)
"""States in which a service says that it will not draw."""
CHANGED = "scene"
"""Kind of the effect of relations on prompts."""
WHOLE = "whole"
"""Score of all kinds of error together."""

NO_SCENE = "no reader has seen the picture"
SOURCE_WITHHELD = "the service refused to draw the source's prompt"
NO_SOURCE_PICTURE = "there is no picture of the source's prompt"
NOT_TOLD = "the reader cannot tell what the change of the prompt did"
NOTHING_TOLD = "the reader can tell nothing that the prompt says"
NO_PICTURE = "the reply holds no picture"


class ScenesSettings(PartSettings):
    """Settings of ``scenes``.

    Attributes:
        rules: How a pair of pictures is judged: ``strict``; ``paper``, by the equations of ACTesting; ``released``, as
            its published code does.
        figures: What figures of the pictures are made with (FID, IS, R-precision, near-duplicates, GenEval's rule).
    """

    rules: Literal["strict", "paper", "released"] = "strict"
    figures: FigureSettings = FigureSettings()


class Scenes(Oracle):
    """Judges pictures by what a reader saw in them; see the module for what each score means."""

    Settings = ScenesSettings
    task: ClassVar[str] = "depiction"
    reads: ClassVar[str] = "bundled"
    scores: ClassVar[tuple[str, ...]] = (WHOLE, *KINDS, "drawn")
    self_scores: ClassVar[tuple[str, ...]] = (WHOLE, *KINDS)
    criteria: ClassVar[tuple[str, ...]] = (WHOLE, *KINDS)
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
    revision: ClassVar[int] = 1

    @classmethod
    def check(cls, settings: Any) -> list[Mistake]:
        """Return what is wrong with paths that figures are made with."""
        return settings.figures.check() if isinstance(settings, ScenesSettings) else []

    def score(
        self, *, answer: Output, source: Output | None, seed: PreparedSeed, effect: Effect
    ) -> dict[str, float | None]:
        """Return the score columns of one case; None where nothing can be told."""
        if not isinstance(answer, PictureOutput) or not isinstance(source, PictureOutput | None):
            raise TypeError(f"scenes judges pictures, not an answer of kind {answer.kind}")
        return self._scores(self._case(answer, source, effect))

    def describe(
        self, *, answer: Output | None, source: Output | None, seed: PreparedSeed, effect: Effect
    ) -> dict[str, str | None]:
        """Return the words, the pools, what was drawn and what a reader saw."""
        columns: dict[str, str | None] = dict.fromkeys(self.texts)
        if not isinstance(answer, PictureOutput):
            return columns
        own = answer.address.is_source
        given = source if isinstance(source, PictureOutput) else None
        before = None if own else given
        columns |= {
            "prompt": answer.prompt.text,
            "pool": dumped(answer.prompt.pool.as_json()),
            "effect": "" if own or effect.kind != CHANGED else dumped(_data(effect)),
            "picture": answer.picture,
            "answer_state": answer.state,
            "answer_why": answer.why,
            "revised_prompt": answer.revised_prompt,
            "model": answer.model,
            **_seen("", answer),
        }
        if not own and seed.prompt is not None:
            columns["source_pool"] = dumped(seed.prompt.pool.as_json())
        if before is not None:
            columns |= {"source_state": before.state, "source_picture": before.picture, **_seen("source_", before)}
        columns["why"] = self._why(self._case(answer, given, effect))
        return columns

    def measure(self, answer: Output) -> dict[str, float | None]:
        """Return cost in US dollars, tokens, seconds and calls sent."""
        if not isinstance(answer, PictureOutput):
            return dict.fromkeys(self.measures)
        return {name: None if (value := getattr(answer, name)) is None else float(value) for name in self.measures}

    def verdict(self, row: Mapping[str, Any]) -> tuple[Verdict, str]:
        """Return the verdict under the suite's primary criterion; a SKIP says what could not be told."""
        wanted = self.primary
        found, reason = criteria.verdict(row, score=wanted.score, threshold=wanted.threshold, against=wanted.against)
        return found, (str(row.get("why") or "") or reason) if found == Verdict.SKIP else ""

    def judging(self) -> dict[str, Json]:
        """Return revision and rules."""
        return {"revision": self.revision, "rules": self.settings.rules}

    def of_source(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return what was seen in the source's picture, as its follow-ups hold it."""
        held = {"source_state": row["answer_state"], "source_picture": row["picture"]}
        return held | {f"source_{name}": row[name] for name in ("scene", "tells")}

    def rejudged(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a record's scores under these rules, from its texts."""
        if not row["answer_state"]:
            return {}
        own = row["relation"] == SOURCE
        found = _Case(
            state=str(row["answer_state"]),
            look=_look(row["scene"], row["tells"]),
            said=said_of(row["pool"]),
            change=change_of(row["effect"] or ""),
            source_state=None if own else row["source_state"],
            source=None if own else _look(row["source_scene"], row["source_tells"]),
            own=own,
        )
        scores = self._scores(found)
        if own:
            before = {f"source_{name}": scores[name] for name in self.scores}
        else:
            before = self._source_scores(row)
        return scores | before | {"why": self._why(found)}

    def _source_scores(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the scores of the source of a follow-up's record."""
        state, pool = row["source_state"], row.get("source_pool")
        if not state or not pool:
            return {f"source_{name}": None for name in self.scores}
        look = _look(row["source_scene"], row["source_tells"])
        scores = self._scores(_Case(state=str(state), look=look, said=said_of(pool), change=NO_CHANGE, own=True))
        return {f"source_{name}": scores[name] for name in self.scores}

    def _case(self, answer: PictureOutput, source: PictureOutput | None, effect: Effect) -> _Case:
        own = answer.address.is_source
        return _Case(
            state=answer.state,
            look=_look_of(answer),
            said=Said.of(answer.prompt.pool),
            change=PoolChange.of(effect.data) if effect.kind == CHANGED and not own else NO_CHANGE,
            source_state=None if own or source is None else source.state,
            source=None if own or source is None else _look_of(source),
            own=own,
        )

    def _scores(self, case: _Case) -> dict[str, float | None]:
        """Return the score columns of a case."""
        if case.withheld:
            known = dict.fromkeys((WHOLE, *KINDS), 0.0) if case.source_state == ANSWERED else {}
            return {
                **{name: known.get(name) for name in (WHOLE, *KINDS)},
                "drawn": 0.0,
                **{f"self_{name}": known.get(name) for name in self.self_scores},
            }
        truth = None if case.look is None else against_truth(case.look, case.said, case.change)
        pair = self.pair(case)
        drawn = {"drawn": None if case.state != ANSWERED else 1.0}
        return {**_columns(truth, ""), **drawn, **_columns(pair, "self_")}

    def pair(self, case: _Case) -> JudgedPair | None:
        """Return what the rules say of a pair; None where there are no two pictures that were seen."""
        if case.look is None or case.source is None:
            return None
        return against_source(self.settings.rules, case.source, case.look, case.said, case.change)

    def _why(self, case: _Case) -> str:
        """Return why a case is not judged under the suite's criterion, "" where it is."""
        if case.own:
            return ""
        against = self.primary.against
        if case.withheld:
            return "" if case.source_state == ANSWERED else SOURCE_WITHHELD
        if case.state != ANSWERED:
            return NO_PICTURE
        if case.look is None:
            return NO_SCENE
        if against == "source":
            if case.source_state in WITHHELD:
                return SOURCE_WITHHELD
            if case.source is None:
                return NO_SOURCE_PICTURE if case.source_state != ANSWERED else NO_SCENE
        judged = against_truth(case.look, case.said, case.change) if against == "truth" else self.pair(case)
        if judged is None:
            return NO_SCENE
        known = judged.whole if self.primary.score == WHOLE else judged.right.get(self.primary.score)
        return "" if known is not None else NOT_TOLD if not judged.told else NOTHING_TOLD


class _Case:
    """What a case is judged by."""

    __slots__ = ("change", "look", "own", "said", "source", "source_state", "state")

    def __init__(
        self,
        *,
        state: str,
        look: SceneLook | None,
        said: Said,
        change: PoolChange,
        source_state: str | None = None,
        source: SceneLook | None = None,
        own: bool = False,
    ) -> None:
        self.state, self.look, self.said, self.change = state, look, said, change
        self.source_state, self.source, self.own = source_state, source, own

    @property
    def withheld(self) -> bool:
        return self.state in WITHHELD


def _columns(judged: JudgedPair | None, prefix: str) -> dict[str, float | None]:
    values: dict[str, bool | None] = dict.fromkeys((WHOLE, *KINDS))
    if judged is not None:
        values = {WHOLE: judged.whole, **judged.right}
    return {f"{prefix}{name}": None if value is None else float(value) for name, value in values.items()}


def _data(effect: Effect) -> dict[str, Any]:
    return {name: effect.data.get(name) or {} for name in ("removed", "added")}


def _seen(prefix: str, answer: PictureOutput) -> dict[str, str | None]:
    seen = answer.facts
    if not isinstance(seen, Scene):
        return {f"{prefix}scene": None, f"{prefix}tells": None}
    return {f"{prefix}scene": dumped(seen.as_json()), f"{prefix}tells": dumped(seen.tells.as_json())}


def _look_of(answer: PictureOutput) -> SceneLook | None:
    return SceneLook.of(answer.facts) if isinstance(answer.facts, Scene) and answer.state == ANSWERED else None


def _look(scene: str | None, tells: str | None) -> SceneLook | None:
    return look_of(scene, tells or "") if scene else None
