"""Records of a text-to-image service with set defects, as the oracle makes them in a run; no picture is drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from medtest.core.address import Address
from medtest.core.cases import NO_IMAGE, Effect, PictureOutput, PreparedSeed, Prompt, Reason, SeedRef
from medtest.core.plugins import parts
from medtest.core.scenes import Entity, Pool, Scene, SeenEntity, Tells, Triple, difference, pool_of
from medtest.results.records.records_io import Records
from medtest.suite.model import Criterion
from medtest.tasks.depict.oracle import Scenes

NAMES = ("dog", "cat", "sofa", "cup", "table", "tree", "car", "bench", "horse", "lamp")
PREDICATES = ("on", "near", "left of")
EVERYTHING = Tells()
Draw = Callable[[Pool, np.random.Generator, str], "Scene | str"]
"""A service: it draws from a pool, with new random numbers at each call, and the prompt, which seeds steady defects.
A returned text is the state of a refusal."""


def entity(name: str, count: int | None = 1, *attributes: str) -> Entity:
    """Return an entity."""
    return Entity(name=name, count=count, attributes=tuple(sorted(attributes)))


def drawn(pool: Pool, tells: Tells = EVERYTHING) -> Scene:
    """Return the scene that a perfect reader sees in a right picture of a pool; three things where it has no number."""
    entities: list[SeenEntity] = []
    indices: list[list[int]] = []
    for entity in pool.entities:
        count = 3 if entity.count is None else entity.count
        indices.append(list(range(len(entities), len(entities) + count)))
        box = (0.1 * len(indices), 0.2, 0.1 * len(indices) + 0.08, 0.6)
        entities += [SeenEntity(name=entity.name, attributes=entity.attributes, box=box)] * count
    triples = [
        Triple(subject=a, predicate=triple.predicate, object=b)
        for triple in pool.triples
        for a in indices[triple.subject]
        for b in indices[triple.object]
        if a != b
    ]
    return Scene(entities=tuple(entities), triples=tuple(triples), tells=tells)


def right(pool: Pool, rng: np.random.Generator, prompt: str) -> Scene:
    """Return the scene of the prompt."""
    return drawn(pool)


def without_last(pool: Pool) -> Pool:
    """Return a pool without the entity that was named last."""
    last = len(pool.entities) - 1
    triples = tuple(triple for triple in pool.triples if last not in (triple.subject, triple.object))
    return Pool(entities=pool.entities[:-1], triples=triples)


def source_pool(number: int) -> Pool:
    """Return the pool of a prompt: two relations between three things."""
    a, b, c = (NAMES[(number * step + place) % len(NAMES)] for place, step in enumerate((1, 3, 7)))
    names = list(dict.fromkeys((a, b, c, *NAMES)))[:3]
    predicates = PREDICATES[number % 3], PREDICATES[(number // 3) % 3]
    return pool_of(
        [entity(names[0], 1 + number % 2, "red"), entity(names[1]), entity(names[2])],
        [(0, predicates[0], 1), (1, predicates[1], 2)],
    )


def operators(pool: Pool) -> dict[str, Pool]:
    """Return the pool after each operator."""
    names = {entity.name for entity in pool.entities}
    new, more = [name for name in NAMES if name not in names][:2]
    exchanged = Pool(entities=(replace(pool.entities[0], name=new), *pool.entities[1:]), triples=pool.triples)
    return {
        "ec": exchanged,
        "er_r": without_last(pool),
        "er_a": pool_of([*pool.entities, entity(more)], [*_plain(pool), (3, "near", 1)]),
        "ss": pool,
        "ec_er_r": without_last(exchanged),
        "ec_er_a": pool_of([*exchanged.entities, entity(more)], [*_plain(exchanged), (3, "near", 1)]),
        "unchanged": pool,
    }


def _plain(pool: Pool) -> list[tuple[int, str, int]]:
    return [(triple.subject, triple.predicate, triple.object) for triple in pool.triples]


def oracle(rules: str = "strict", *, against: str = "source", score: str = "whole") -> Scenes:
    """Return the oracle of scenes."""
    scenes: Scenes = parts("oracles")["scenes"].load()(
        Scenes.Settings(rules=rules),
        primary=Criterion(score=score, threshold=0.0, against=against),  # type: ignore[arg-type]
    )
    return scenes


def rows(
    seeds: int, draw: Draw = right, *, rules: str = "strict", seed: int = 0, system: str = "service", repeats: int = 1
) -> Iterator[dict[str, Any]]:
    """Yield records of a service.

    Args:
        seeds: Number of prompts.
        draw: The service.
        rules: The suite's rules.
        seed: Seed of the random numbers.
        system: Name of the system.
        repeats: Number of times that every prompt is sent.
    """
    judge, rng = oracle(rules), np.random.default_rng(seed)
    for number in range(seeds):
        pool = source_pool(number)
        prompt = Prompt(text=f"prompt {number}", pool=pool)
        ref = SeedRef(dataset="captions", seed_id=f"{number:05d}")
        prepared = PreparedSeed(
            ref=ref,
            image=NO_IMAGE,
            mask=None,
            original_mask=None,
            frame=np.zeros((0, 0), bool),
            grey=np.zeros((0, 0), np.float32),
            kind="depiction",
            prompt=prompt,
        )
        source = _answer(ref, "source", 0, prompt, draw, rng)
        yield _row(judge, prepared, source, source, Effect(), system)
        for relation, after in operators(pool).items():
            for repeat in range(repeats if relation == "unchanged" else 1):
                words = prompt.text if relation == "unchanged" else f"{prompt.text} {relation}"
                follow = Prompt(text=words, pool=after)
                effect = Effect(kind="scene", data=difference(pool, after)) if relation != "unchanged" else Effect()
                answer = _answer(ref, relation, repeat, follow, draw, rng)
                yield _row(judge, prepared, answer, source, effect, system)


def _answer(
    ref: SeedRef, relation: str, repeat: int, prompt: Prompt, draw: Draw, rng: np.random.Generator
) -> PictureOutput:
    address = Address(dataset=ref.dataset, seed_id=ref.seed_id, relation=relation, repeat=repeat)
    shown = draw(prompt.pool, rng, prompt.text)
    if isinstance(shown, str):
        return PictureOutput(address=address, prompt=prompt, state=shown, why="the service said no", attempts=1)
    costs: dict[str, Any] = {"cost_usd": 0.02, "seconds": 0.5, "attempts": 1}
    return PictureOutput(address=address, prompt=prompt, picture="ab" * 32, **costs).read_as(shown)


def _row(
    judge: Scenes, seed: PreparedSeed, answer: PictureOutput, source: PictureOutput, effect: Effect, system: str
) -> dict[str, Any]:
    own = answer.address.is_source
    scores = judge.score(answer=answer, source=source, seed=seed, effect=effect)
    before = judge.score(answer=source, source=source, seed=seed, effect=Effect())
    texts = judge.describe(answer=answer, source=source, seed=seed, effect=effect)
    row: dict[str, Any] = {
        "suite": "t2i",
        "suite_version": "1",
        "system": system,
        "dataset": answer.address.dataset,
        "seed_id": answer.address.seed_id,
        "cluster": answer.address.seed_id,
        "item": "",
        "relation": answer.address.relation,
        "group": "source" if own else "prompts",
        "severity": 0,
        "scale": 0.0 if own else 1.0,
        "frame": 0,
        "repeat": answer.address.repeat,
        **scores,
        **{f"source_{name}": before[name] for name in judge.scores},
        **texts,
        **judge.measure(answer),
    }
    verdict, reason = ("PASS", Reason()) if own else judge.verdict(row)
    return {**row, "verdict": str(verdict), "reason_code": str(reason.code), "reason": reason.text}


def records(seeds: int, draw: Draw = right, reader: Mapping[str, Any] | None = None, **options: Any) -> Records:
    """Return records of a service as tables read them."""
    return Records.of(pd.DataFrame(list(rows(seeds, draw, **options))), reader=reader)


def failing(share: float, *, steady: bool) -> Draw:
    """Return a service that leaves out the last entity in a share of pictures.

    Args:
        share: Share of all pictures.
        steady: Whether the same prompt always fails, instead of a new draw at each call.
    """

    def draw(pool: Pool, rng: np.random.Generator, prompt: str) -> Scene:
        chance = np.random.default_rng(list(prompt.encode())).random() if steady else rng.random()
        return drawn(without_last(pool) if chance < share else pool)

    return draw
