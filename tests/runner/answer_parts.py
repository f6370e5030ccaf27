"""Parts of a suite of the 18 questions: seeds with true answers, and a model with set errors."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from question_parts import Questions, QuestionSettings
from runner_parts import ODD, Dim, make_suite, plan_of

from medtest.core.cases import AnswerOutput, Ask, Effect, FollowUp, Json, Params, PreparedSeed, Seed, SeedRef
from medtest.core.plugins import parts
from medtest.language.questions.questions import by_name, in_slide_order
from medtest.relations.base import Relation
from medtest.relations.unchanged import Unchanged
from medtest.suite.model import Criterion, Gate, OraclePlan, PartPlan, Suite
from medtest.systems.answering.asking import Asked, Asking, AskingSystem
from medtest.systems.base import SystemSettings

TRUTHS: Mapping[str, tuple[str, str]] = {
    "abnormalities": ("Polyp", "Ulcerative colitis"),
    "landmarks": ("Z-line", "None"),
    "instruments": ("None", "Biopsy forceps"),
    "all_removed": ("No", "Yes"),
    "findings": ("1", "3"),
    "instrument_count": ("0", "1"),
    "polyps": ("1", "2"),
    "box": ("No", "Yes"),
    "text": ("No", "Yes"),
    "easy": ("Yes", "No"),
    "abnormality_colour": ("Pink", "Red; white"),
    "landmark_colour": ("Not relevant", "Pink"),
    "size": ("5-10mm", ">20mm"),
    "polyp_type": ("Paris Is", "Paris Ip"),
    "procedure": ("Colonoscopy", "Gastroscopy"),
    "abnormality_place": ("Center; lower-center", "Upper-left"),
    "landmark_place": ("Not relevant", "Center"),
    "instrument_place": ("Not relevant", "Lower-right"),
}
"""Of every question two answers; the first is true of seeds with even numbers, the second of the others."""


class OfficialSettings(QuestionSettings):
    """Names of the questions to ask; all of them by default."""

    only: list[str] = []


class Official(Questions):
    """Blobs with the 18 questions."""

    Settings = OfficialSettings

    def refs(self) -> Sequence[SeedRef]:
        items = tuple(self.settings.only) or tuple(question.name for question in in_slide_order())
        return tuple(
            SeedRef(dataset=ref.dataset, seed_id=ref.seed_id, items=items, locator=ref.locator)
            for ref in super().refs()
        )

    def load(self, ref: SeedRef) -> Seed:
        image = super(Questions, self).load(ref).image
        return Seed(
            ref=ref,
            image=image,
            kind="answer",
            asks=tuple(_ask(item, int(ref.seed_id[-4:])) for item in ref.items),
            together=self.settings.together,
        )


def _ask(item: str, number: int) -> Ask:
    question = by_name(item)
    assert question is not None
    return Ask(
        item=item,
        text=question.text,
        kind=question.kind.value,
        id=question.id,
        truth=tuple(part.strip() for part in TRUTHS[item][number % 2].split(";")),
    )


class TellerSettings(SystemSettings):
    """Errors of the model.

    Attributes:
        wrong: Share of its answers that are wrong, by relation.
        refuses: Share of its answers that are refusals, on follow-ups.
        unread: Share of its answers that no parser can read, on follow-ups.
        words: Text around every answer.
        odd: ``words``: characters of no text surround it too; ``reason``: it gives them instead of an answer.
    """

    wrong: dict[str, float] = {}
    refuses: float = 0.0
    unread: float = 0.0
    words: str = "{}"
    odd: str = ""


class Teller(AskingSystem):
    """Gives the true answer, or the other one at the rate that is set for the relation."""

    Settings = TellerSettings
    own_limits: ClassVar[bool] = True

    def fingerprint(self) -> dict[str, Json]:
        return {}

    def open(self, *, device: str, threads: int) -> None:
        return

    def ask(self, calls: Iterable[Asking | None]) -> Iterator[Asked]:
        for call in calls:
            if call is not None:
                outputs: tuple[AnswerOutput | str, ...] = tuple(self._say(call, n) for n in range(len(call.asks)))
                if self.settings.odd == "reason" and not call.addresses[0].is_source:
                    outputs = (ODD,) * len(call.asks)
                yield Asked(number=call.number, outputs=outputs, seconds=0.02)

    def _say(self, call: Asking, number: int) -> AnswerOutput:
        ask, address = call.asks[number], call.addresses[number]
        draw = random.Random(f"{call.seed}/{ask.item}")
        truth = "; ".join(ask.truth or ())
        other = next(choice for choice in TRUTHS[ask.item] if choice != truth)
        if self.settings.odd == "words":
            truth, other = f"\ud83d {truth} \x1b[0m", f"{other} \x00"
        wrong = draw.random() < self.settings.wrong.get(address.relation, 0.0)
        text, state = self.settings.words.format(other if wrong else truth), "answered"
        if not address.is_source:
            luck = draw.random()
            if luck < self.settings.refuses:
                text, state = "I'm sorry, I cannot assist with medical images.", "refusal"
            elif luck < self.settings.refuses + self.settings.unread:
                text, state = "The mucosa glistens <b>softly</b>", "length" if luck * 1000 % 2 < 1 else "answered"
        return AnswerOutput(
            address=address,
            text=text,
            state=state,
            model="teller-1",
            prompt_tokens=400.0,
            completion_tokens=float(len(text.split())),
            cost_usd=0.001,
            seconds=0.02,
            attempts=1,
        )


class SimulatedTeller(Teller):
    """The same model, as a simulation."""

    simulated: ClassVar[bool] = True


class Tint(Dim):
    """Dims, with the effect that colours change."""

    effects = frozenset({"recolour"})


class Haze(Dim):
    """Dims, with the effect that detail is lost."""

    effects = frozenset({"hide"})


class Instrument(Dim):
    """Dims, with the effect of an instrument at the lower right."""

    effects = frozenset({"insert_instrument"})

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        dimmed = super().apply(seed, params)
        grid: list[Json] = [0, 0, 0, 0, 0, 0, 0, 0, 1]
        effect = Effect(kind="add", data={"what": "instrument", "count": 1, "grid": grid})
        return FollowUp(image=dimmed.image, params=dimmed.params, scale=dimmed.scale, effect=effect)


def answer_suite(
    *,
    seeds: int = 6,
    systems: Mapping[str, Mapping[str, Any]] | None = None,
    relations: Mapping[str, type[Relation]] | None = None,
    again: int = 2,
    severities: Sequence[int] = (3,),
    simulated: Sequence[str] = (),
    gates: tuple[Gate, ...] = (),
    against: Any = "source",
    oracle: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Suite:
    """Return a suite of the 18 questions.

    Args:
        seeds: Number of images.
        systems: Settings of each :class:`Teller`.
        relations: Relation classes by id; ``unchanged`` is added.
        again: Number of times that the unchanged image is asked about.
        severities: Severities of every relation.
        simulated: Ids of the systems that are simulations.
        gates: Gates of the suite.
        against: Reference of the primary criterion.
        oracle: Settings of the oracle.
        **settings: Settings of the seeds.
    """
    base = make_suite(seeds=1, relations={"dim": Dim}, repeats=1)
    fields = {key: getattr(base, key) for key in ("name", "version", "description", "seed", "privacy", "prepare")}
    plans = [
        plan_of("relations", name, kind, severities=list(severities))
        for name, kind in (relations or {"dim": Dim, "blur": Haze}).items()
    ]
    plans.append(plan_of("relations", "unchanged", Unchanged, repeats=again))
    info = parts("oracles")["answers"]
    loaded = info.load()
    oracle_settings = dict(oracle or {})
    shown = {"scores": ["answer", "exact"], "thresholds": [0.25], "against": ["source", "truth"]}
    primary = {"score": "answer", "threshold": 0.0, "against": against}
    composed = {
        "name": "runner_suite",
        "version": "1",
        "seeds": {"blobs": {"source": "blobs"}},
        "relations": {plan.id: {"relation": plan.id} for plan in plans},
        "systems": {name: {} for name in (systems or {"teller": {}})},
        "oracles": {"oracle": "answers", "primary": primary, **shown, **oracle_settings},
    }
    return Suite(
        **fields,
        seeds=(plan_of("seeds", "blobs", Official, count=seeds, size=64, **settings),),
        relations=tuple(plans),
        systems=tuple(
            plan_of("systems", name, SimulatedTeller if name in simulated else Teller, **dict(options))
            for name, options in (systems or {"teller": {}}).items()
        ),
        oracle=OraclePlan(
            part=PartPlan(id="answers", info=info, settings=loaded.Settings(**oracle_settings)),
            primary=Criterion(score="answer", threshold=0.0, against=against),
            scores=("answer", "exact"),
            thresholds=(0.25,),
            against=("source", "truth"),
        ),
        gates=gates,
        composed=composed,
    )
