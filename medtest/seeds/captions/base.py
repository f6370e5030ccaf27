"""What sources of prompts share: pools on one side, words on the other, and which of a population are drawn."""

from __future__ import annotations

import hashlib
import json
import unicodedata
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
from medtest.language.captions.render import Unsayable, render
from medtest.seeds.base import Faults, Remarks, SeedProblem, SeedSource

DENSITY = "density"
"""Stratum of every prompt: its level, 1 to 5."""
WEIGHT = "weight"
"""Stratum of prompts drawn by density: for how much of the population each stands, 1 on average."""
UNUSABLE = "unusable"
"""Key in the locator of a row that only keeps its place."""
OTHER_SCRIPT = "words in another script; prompts are read as English"


class PromptSeedSettings(PartSettings):
    """What a suite may set of any source of prompts.

    Attributes:
        words: ``template``: sources are asked in the words of templates, as their follow-ups are, so that the operator
            alone is between them; ``own``: in their own words.
        min_triples: Prompts with fewer relations are left out; 2 leaves ER_R none out.
        sample: How many are drawn of them; None for all.
        sampling: How: ``uniform``, or ``density`` (equation 2 of ACTesting: a level by its share, then one of it).
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
    """A prompt that may become a seed.

    Attributes:
        seed_id: Its id.
        text: Its own words; "" where it has none but those of templates.
        pool: What they say.
        cluster: What intervals resample; the id where "".
        strata: Columns that stratify tables.
        wrong: Why its row cannot be used and only keeps its place; None for a good one.
    """

    seed_id: str
    text: str
    pool: Pool
    cluster: str = ""
    strata: tuple[tuple[str, str], ...] = ()
    wrong: SeedProblem | None = None


@dataclass(slots=True, kw_only=True)
class Prompts(Remarks):
    """What one look at a source found.

    Attributes:
        candidates: Prompts in order.
        loose: Rows that cannot be used and have no place.
    """

    candidates: list[Candidate] = field(default_factory=list)
    loose: list[SeedProblem] = field(default_factory=list)


class PromptSource(SeedSource):
    """A source of prompts: it lists candidates, and this draws seeds of them.

    Loading needs a reference alone: words and pool stand in its locator.
    """

    Settings: ClassVar[type[PartSettings]] = PromptSeedSettings
    task: ClassVar[str] = "depiction"

    settings: PromptSeedSettings

    def __init__(self, *, dataset: str, settings: Any, root: Path | None, suite_seed: int) -> None:
        super().__init__(dataset=dataset, settings=settings, root=root, suite_seed=suite_seed)
        self._said: dict[Pool, str | None] = {}
        self._found: tuple[tuple[SeedRef, ...], Prompts] | None = None

    # ------------------------------------------------------------------------------------------------- interface

    def refs(self) -> Sequence[SeedRef]:
        """Return the seeds that were drawn, in the source's order.

        Raises:
            UserMistakes: The source cannot be read, or has no prompt that can be used, or a row that cannot.
        """
        problems = self.faults().all()
        if problems:
            raise self.refusal(problems)
        return self.places()

    def places(self) -> Sequence[SeedRef]:
        """Return the seeds that were drawn in their places, rows that cannot be used among them.

        Raises:
            UserMistakes: The source cannot be read, or has no prompt that can be used.
        """
        return self._listed()[0]

    def faults(self) -> Faults:
        """Return the rows that cannot be used and were not left out."""
        refs, found = self._listed()
        there = {ref.seed_id for ref in refs}
        wrong = [one for one in found.candidates if one.wrong is not None]
        of_seeds = {(self.dataset, one.seed_id): (one.wrong,) for one in wrong if one.seed_id in there and one.wrong}
        others = [one.wrong for one in wrong if one.seed_id not in there and one.wrong]
        return Faults(of_seeds=of_seeds, others=(*others, *found.loose))

    def load(self, ref: SeedRef) -> Seed:
        """Return a seed's prompt.

        Raises:
            UserMistakes: Its row cannot be used and only keeps its place.
        """
        given = json.loads(ref.locator)
        if UNUSABLE in given:
            raise Mistake(where=ref.seed_id, found=given[UNUSABLE]).as_error()
        prompt = Prompt(text=given["text"], pool=Pool.of_json(given["pool"]))
        return Seed(ref=ref, kind=self.task, prompt=prompt)

    def digest(self) -> str:
        """Return a SHA-256 over the seeds in order: ids, clusters, strata, words and pools."""
        head = [digest_name(type(self)).rpartition(":")[2], self.revision]
        total = hashlib.sha256(json.dumps(head, ensure_ascii=True).encode())
        for ref in self.places():
            line = [ref.dataset, ref.seed_id, ref.cluster, list(ref.strata), ref.locator]
            total.update(json.dumps(line, ensure_ascii=True).encode() + b"\n")
        return total.hexdigest()

    def problems(self) -> Sequence[SeedProblem]:
        """Return the rows left out under ``on_bad_seed: skip``."""
        return tuple(self._listed()[1].problems)

    def notices(self) -> Sequence[str]:
        """Return how many prompts were left out and why, and how seeds were drawn."""
        return tuple(self._listed()[1].notices)

    # -------------------------------------------------------------------------------------- what a source says

    @abstractmethod
    def _look(self, found: Prompts) -> None:
        """Write down every prompt, and what is wrong with others."""

    # --------------------------------------------------------------------------------------------------- listing

    def _listed(self) -> tuple[tuple[SeedRef, ...], Prompts]:
        if self._found is None:
            found = Prompts()
            self._look(found)
            self._found = (self._drawn(found), found)
            self._said.clear()
        return self._found

    def _drawn(self, found: Prompts) -> tuple[SeedRef, ...]:
        settings = self.settings
        left_out: Counter[str] = Counter()
        kept: list[tuple[Candidate, str]] = []
        for one in found.candidates:
            if one.wrong is not None:
                # Of a sample nobody knows whether the row would be in it: then it has no place.
                if settings.sample is None:
                    kept.append((one, ""))
            elif not one.pool.entities:
                left_out[OTHER_SCRIPT if in_other_script(one.text) else "nothing named"] += 1
            elif len(one.pool.triples) < settings.min_triples:
                left_out[f"fewer relations than min_triples, {settings.min_triples}"] += 1
            elif (text := self._words(one)) is None:
                left_out["a pool that no template says"] += 1
            else:
                kept.append((one, text))
        found.notices += [
            f"{count:,} of {len(found.candidates):,} prompts are left out: {why}." for why, count in left_out.items()
        ]
        if not any(one.wrong is None for one, _ in kept):
            wrong = [one.wrong for one in found.candidates if one.wrong is not None]
            raise self.refusal([*wrong, *found.loose]) if wrong or found.loose else self._nothing(left_out)
        levels = [0 if one.wrong is not None else level(one.pool) for one, _ in kept]
        drawn = self._draw([one.seed_id for one, _ in kept], levels)
        if settings.sample is not None:
            found.notices.append(f"{len(drawn.chosen):,} of {len(kept):,} prompts are drawn ({settings.sampling}).")
        weighed = settings.sampling == "density"
        return tuple(
            self._ref(*kept[at], levels[at], weight if weighed else None)
            for at, weight in zip(drawn.chosen, drawn.weights, strict=True)
        )

    def _words(self, one: Candidate) -> str | None:
        """Return what a prompt is asked with; None where no template says its pool, as follow-ups have to."""
        said = self._by_templates(one.pool)
        return one.text if said and self.settings.words == "own" and one.text else said

    def _by_templates(self, pool: Pool) -> str | None:
        """Return the words of a pool, which takes a while; None where no template says it."""
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
            there = ", ".join(str(one) for one in sorted(set(levels)))
            raise Mistake(
                where="suite",
                key=f"seeds.{self.dataset}.shares",
                found=str(settings.shares),
                allowed=f"a share above 0 of a level that is there: {there}",
            ).as_error()
        return drawn

    def _ref(self, one: Candidate, text: str, density: int, weight: float | None) -> SeedRef:
        if one.wrong is not None:
            locator = json.dumps({UNUSABLE: f"{one.wrong.where}: {one.wrong.reason}"}, ensure_ascii=False)
            return SeedRef(dataset=self.dataset, seed_id=one.seed_id, cluster=one.cluster, locator=locator)
        strata = (*one.strata, (DENSITY, str(density)))
        if weight is not None:
            strata = (*strata, (WEIGHT, repr(round(weight, 12))))
        return SeedRef(
            dataset=self.dataset,
            seed_id=one.seed_id,
            cluster=one.cluster,
            strata=strata,
            locator=json.dumps({"text": text, "pool": one.pool.as_json()}, ensure_ascii=False),
        )

    def _nothing(self, left_out: Counter[str]) -> Exception:
        why = "; ".join(f"{count:,} with {reason}" for reason, count in left_out.items())
        return Mistake(
            where="suite",
            key=f"seeds.{self.dataset}",
            found=f"no prompt that can be used: {why or 'there is none at all'}",
            allowed="prompts with entities and relations",
            fix=_mended(left_out),
        ).as_error()


def _mended(left_out: Counter[str]) -> str:
    if set(left_out) == {OTHER_SCRIPT}:
        return "name a file of English prompts"
    return (
        "lower min_triples, or name another file"
        if any("min_triples" in why for why in left_out)
        else ("name another file")
    )


def in_other_script(text: str) -> bool:
    """Say whether a text has letters, and fewer than half of them are Latin."""
    letters = [sign for sign in text if sign.isalpha()]
    latin = sum(unicodedata.name(sign, "").startswith(("LATIN", "FULLWIDTH LATIN")) for sign in letters)
    return bool(letters) and 2 * latin < len(letters)
