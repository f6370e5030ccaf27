"""Base class of prompt sources: listing candidates, wording them and drawing a sample."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from medtest.core.cases import Prompt, Seed, SeedRef
from medtest.core.errors import Mistake
from medtest.core.plugins import PartSettings, digest_name, wrong_at
from medtest.core.scenes import Pool
from medtest.language.captions.density import LEVELS, Draw, draw_by_density, draw_uniform, level
from medtest.language.captions.reading.content import in_other_script
from medtest.language.captions.reading.result import MEANINGS, REFUSING, ReadingReason
from medtest.language.captions.render import Unsayable, render
from medtest.seeds.base import Remarks, SeedFaults, SeedProblem, SeedSource

DENSITY = "density"
"""Stratum of every prompt: its level, 1 to 5."""
WEIGHT = "weight"
"""Stratum of prompts drawn by density: weight of the prompt in the population, 1 on average."""
UNUSABLE = "unusable"
"""Locator key of an unusable row that only keeps its place."""
OTHER_SCRIPT = "is in another script; prompts are read as English"


class PromptSeedSettings(PartSettings):
    """Settings shared by all sources of prompts.

    Attributes:
        words: ``template``: source prompts are worded by templates like their follow-ups, so that only the operator
            differs; ``own``: prompts keep their own words.
        min_triples: Minimum number of relations; 2 keeps every prompt that ER_R can use.
        sample: Sample size; None for all.
        sampling: ``uniform``, or ``density`` (equation 2 of ACTesting: draw a level by its share, then a prompt of it).
        shares: Share of each level, 1 to 5, in the sample by density.
    """

    words: Literal["template", "own"] = "template"
    min_triples: int = Field(default=0, ge=0, le=20)
    sample: int | None = Field(default=None, ge=1, le=1_000_000)
    sampling: Literal["uniform", "density"] = "uniform"
    shares: list[float] = [1.0, 1.0, 1.0, 1.0, 1.0]

    @model_validator(mode="after")
    def _drawn(self) -> Self:
        if len(self.shares) != len(LEVELS) or min(self.shares) < 0 or sum(self.shares) <= 0:
            raise wrong_at("shares", "five shares, none below 0 and one above it: of levels 1 to 5")
        if self.sampling == "density" and self.sample is None:
            raise wrong_at("sampling", "density where sample says how many are drawn")
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Prompt that may become a seed.

    Attributes:
        seed_id: Its id.
        text: Its own words; "" if templates word it.
        pool: Entities and relations of the text.
        cluster: Resampling unit of intervals; the id if "".
        strata: Columns that stratify tables.
        wrong: Problem of an unusable row, which only keeps its place; None for a usable one.
        own: True if follow-ups change one phrase of its words alone, instead of being worded by templates.
        refusal: Why it is not understood, a reason of :data:`~medtest.language.captions.reading.result.REFUSING`; "" if
            it is.
    """

    seed_id: str
    text: str
    pool: Pool
    cluster: str = ""
    strata: tuple[tuple[str, str], ...] = ()
    wrong: SeedProblem | None = None
    own: bool = False
    refusal: ReadingReason | Literal[""] = ""


@dataclass(slots=True, kw_only=True)
class Prompts(Remarks):
    """Candidates and problems listed from a source.

    Attributes:
        candidates: Prompts in order.
        loose: Problems of rows that have no place.
    """

    candidates: list[Candidate] = field(default_factory=list)
    loose: list[SeedProblem] = field(default_factory=list)


class PromptSource(SeedSource):
    """Base class of prompt sources: subclasses list candidates, this class draws seeds from them.

    Loading needs only the reference: words and pool are stored in its locator.
    """

    Settings: ClassVar[type[PartSettings]] = PromptSeedSettings
    task: ClassVar[str] = "depiction"

    settings: PromptSeedSettings

    def __init__(self, *, dataset: str, settings: Any, root: Path | None, suite_seed: int) -> None:
        super().__init__(dataset=dataset, settings=settings, root=root, suite_seed=suite_seed)
        self._said: dict[Pool, str | None] = {}
        self._found: tuple[tuple[SeedRef, ...], Prompts] | None = None

    # ------------------------------------------------------------------------------------------------- interface

    def places(self) -> Sequence[SeedRef]:
        """Return the seeds drawn in their places, including unusable rows.

        Raises:
            UserMistakes: The source cannot be read or has no usable prompt.
        """
        return self._listed()[0]

    def faults(self) -> SeedFaults:
        """Return the unusable rows that were not left out."""
        refs, prompts = self._listed()
        seed_ids = {ref.seed_id for ref in refs}
        wrong = [candidate for candidate in prompts.candidates if candidate.wrong is not None]
        of_seeds = {
            (self.dataset, candidate.seed_id): (candidate.wrong,)
            for candidate in wrong
            if candidate.seed_id in seed_ids and candidate.wrong
        }
        others = [candidate.wrong for candidate in wrong if candidate.seed_id not in seed_ids and candidate.wrong]
        return SeedFaults(of_seeds=of_seeds, others=(*others, *prompts.loose))

    def load(self, ref: SeedRef) -> Seed:
        """Return a seed's prompt.

        Raises:
            UserMistakes: The row is unusable and only keeps its place.
        """
        content = json.loads(ref.locator)
        if UNUSABLE in content:
            raise Mistake(where=ref.seed_id, found=content[UNUSABLE]).as_error()
        prompt = Prompt(text=content["text"], pool=Pool.of_json(content["pool"]), own=bool(content.get("own")))
        return Seed(ref=ref, kind=self.task, prompt=prompt)

    def digest(self) -> str:
        """Return a SHA-256 over the seeds in order: ids, clusters, strata, words and pools."""
        head = [digest_name("seeds", type(self)), self.revision]
        total = hashlib.sha256(json.dumps(head, ensure_ascii=True).encode())
        for ref in self.places():
            line = [ref.dataset, ref.seed_id, ref.cluster, list(ref.strata), ref.locator]
            total.update(json.dumps(line, ensure_ascii=True).encode() + b"\n")
        return total.hexdigest()

    def problems(self) -> Sequence[SeedProblem]:
        """Return the rows left out under ``on_bad_seed: skip``."""
        return tuple(self._listed()[1].problems)

    def notices(self) -> Sequence[str]:
        """Return notices on prompts left out and on how the seeds were drawn."""
        return tuple(self._listed()[1].notices)

    # ---------------------------------------------------------------------------------------- implemented by subclasses

    @abstractmethod
    def _look(self, listing: Prompts) -> None:
        """Add every candidate and every problem to ``listing``."""

    # --------------------------------------------------------------------------------------------------- listing

    def _listed(self) -> tuple[tuple[SeedRef, ...], Prompts]:
        if self._found is None:
            prompts = Prompts()
            self._look(prompts)
            self._found = (self._drawn(prompts), prompts)
            self._said.clear()
        return self._found

    def _drawn(self, prompts: Prompts) -> tuple[SeedRef, ...]:
        settings = self.settings
        left_out: Counter[str] = Counter()
        candidates: list[tuple[Candidate, str]] = []
        for candidate in prompts.candidates:
            if candidate.wrong is not None:
                # A sample cannot tell whether it would contain an unusable row, so such a row keeps no place.
                if settings.sample is None:
                    candidates.append((candidate, ""))
            elif candidate.refusal:
                left_out[_meaning(candidate.refusal)] += 1
            elif not self._names_something(candidate.pool):
                nothing = MEANINGS[ReadingReason.NOTHING_NAMED]
                left_out[OTHER_SCRIPT if in_other_script(candidate.text) else nothing] += 1
            elif len(candidate.pool.triples) < settings.min_triples:
                left_out[f"has fewer relations than min_triples, {settings.min_triples}"] += 1
            elif (text := self._words(candidate)) is None:
                left_out["has a pool that no template says"] += 1
            else:
                candidates.append((candidate, text))
        prompts.notices += [
            f"{count:,} of {len(prompts.candidates):,} prompts are left out: each {why}."
            for why, count in left_out.items()
        ]
        if any(candidate.refusal for candidate in prompts.candidates):
            prompts.notices.append("Look at what is not understood, and correct it: medtest prompts review FILE.")
        if not any(candidate.wrong is None for candidate, _ in candidates):
            wrong = [candidate.wrong for candidate in prompts.candidates if candidate.wrong is not None]
            raise (
                self.refusal([*wrong, *prompts.loose]) if wrong or prompts.loose else self._no_prompts_mistake(left_out)
            )
        levels = [0 if candidate.wrong is not None else level(candidate.pool) for candidate, _ in candidates]
        drawn = self._draw([candidate.seed_id for candidate, _ in candidates], levels)
        if settings.sample is not None:
            prompts.notices.append(
                f"{len(drawn.chosen):,} of {len(candidates):,} prompts are drawn ({settings.sampling})."
            )
        weighed = settings.sampling == "density"
        return tuple(
            self._ref(*candidates[at], levels[at], weight if weighed else None)
            for at, weight in zip(drawn.chosen, drawn.weights, strict=True)
        )

    def _words(self, candidate: Candidate) -> str | None:
        """Return the prompt's wording; None if no template can word its pool, which follow-ups in templates need."""
        if candidate.own:
            return candidate.text
        wording = self._by_templates(candidate.pool)
        return candidate.text if wording and self.settings.words == "own" and candidate.text else wording

    def _names_something(self, pool: Pool) -> bool:
        """Return True if there is something to draw."""
        return bool(pool.entities)

    def _by_templates(self, pool: Pool) -> str | None:
        """Return the template wording of a pool (cached, because rendering is slow); None if no template fits."""
        if pool not in self._said:
            try:
                self._said[pool] = render(pool)
            except Unsayable:
                self._said[pool] = None
        return self._said[pool]

    def _draw(self, names: Sequence[str], levels: Sequence[int]) -> Draw:
        settings, seed = self.settings, self.suite_seed
        count = len(names) if settings.sample is None else settings.sample
        if settings.sampling == "uniform":
            return draw_uniform(names, count, seed)
        drawn = draw_by_density(names, levels, count, seed, dict(zip(LEVELS, settings.shares, strict=True)))
        if not drawn.chosen:
            present = ", ".join(str(value) for value in sorted(set(levels)))
            raise Mistake(
                where="suite",
                key=f"seeds.{self.dataset}.shares",
                found=str(settings.shares),
                allowed=f"a share above 0 of a level that is there: {present}",
            ).as_error()
        return drawn

    def _ref(self, candidate: Candidate, text: str, density: int, weight: float | None) -> SeedRef:
        if candidate.wrong is not None:
            locator = json.dumps({UNUSABLE: f"{candidate.wrong.where}: {candidate.wrong.reason}"}, ensure_ascii=False)
            return SeedRef(dataset=self.dataset, seed_id=candidate.seed_id, cluster=candidate.cluster, locator=locator)
        strata = (*candidate.strata, (DENSITY, str(density)))
        if weight is not None:
            strata = (*strata, (WEIGHT, repr(round(weight, 12))))
        return SeedRef(
            dataset=self.dataset,
            seed_id=candidate.seed_id,
            cluster=candidate.cluster,
            strata=strata,
            locator=json.dumps(
                {"text": text, "pool": candidate.pool.as_json(), **({"own": True} if candidate.own else {})},
                ensure_ascii=False,
            ),
        )

    def _no_prompts_mistake(self, left_out: Counter[str]) -> Exception:
        why = " or ".join(f"{reason} ({count:,})" for reason, count in left_out.items())
        return Mistake(
            where="suite",
            key=f"seeds.{self.dataset}",
            found=f"no prompt that can be used: {f'each {why}' if why else 'there is none'}",
            allowed="prompts with entities and relations",
            fix=_fix_for(left_out),
        ).as_error()


def _meaning(refusal: ReadingReason) -> str:
    return f"{MEANINGS[refusal]} ({refusal})"


def _fix_for(left_out: Counter[str]) -> str:
    if not left_out.keys().isdisjoint(map(_meaning, REFUSING)):
        return "correct how they are read (medtest prompts review FILE), or say them in plainer English"
    if set(left_out) == {OTHER_SCRIPT}:
        return "name a file of English prompts"
    return (
        "lower min_triples, or name another file"
        if any("min_triples" in why for why in left_out)
        else ("name another file")
    )
