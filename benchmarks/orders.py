"""Do the operators on orders find the defects of the simulated product, and nothing where it has none?

``python benchmarks/orders.py [--campaigns N] [--prompts N] [--rate R] [--workers N] [--write FILE]`` runs campaigns on
records, without HTTP and without pixels: made orders, every operator's follow-up and every prompt asked again, the
product's own drawing of each, and a reader that errs. It misses findings, sees others, mistakes sides, numbers, sizes,
types and colours, each picture anew, at the rates of :data:`READER`. Net rates under the rule ``strict``, by operator
and kind of error, have McNemar's exact test and Holm's correction over all of a campaign's rates, as in the tables.

With all defects off a campaign is sound if no net rate differs from 0 after Holm's correction: 93 of 100 must be. With
a defect at the rate R its operator must find it in 80 of 100: a net rate above 0 after the correction, or, for
refusals, a share of refused follow-ups whose 95 % interval lies above 0. The benchmark ends with 1 otherwise.
``--write`` puts the table between the marks of a page.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from benchmarks._sizes import options
from medtest.core.cases import SOURCE, UNCHANGED, Address, PreparedSeed, Prompt
from medtest.core.errors import NotApplicable
from medtest.core.plugins import part
from medtest.core.portable import key_generator
from medtest.core.scenes import Scene, SeenEntity, alphabetical, difference
from medtest.language.orders import vocabulary
from medtest.language.orders.contents import PARIS, SIZES, size_class
from medtest.preparation.prepare import prepare
from medtest.results.cube.intervals import wilson_ends
from medtest.results.cube.paired import clustered, holm
from medtest.runner.units.asker import answer_seed
from medtest.simlab.drawing.artist import Artist
from medtest.simlab.drawing.clinical.artist import ClinicalDrawing
from medtest.simlab.drawing.clinical.defects import CLINICAL, ClinicalDefects
from medtest.simlab.drawing.clinical.reading import NamedFinding
from medtest.tasks.depict.oracle import WHOLE
from medtest.tasks.depict.rules import STRICT, JudgedPair, against_source
from medtest.tasks.depict.tables.cases import ALL_KINDS
from medtest.tasks.depict.views import NO_CHANGE, PoolChange, Said, SceneLook

SUITE_SEED = 29
LEVEL = 0.05
SOUND, FOUND = 0.93, 0.80
"""Least share of sound campaigns without a finding, and of campaigns that find a defect."""
READER = {"missed": 0.02, "imagined": 0.002, "side": 0.015, "attribute": 0.015, "count": 0.015}
"""Rates at which the reader errs: by ordered finding, by class of the kind of picture, and by what it says of one."""
FINDS: dict[str, str] = {
    "sides_swapped": "side",
    "negated_drawn": "negation",
    "findings_dropped": "paraphrase",
    "counts_ignored": "count",
    "sizes_ignored": "size",
    "synonyms_missed": "paraphrase",
    "anatomy_refused": "bystander",
    "bystanders_leaked": "bystander",
}
"""Operator that shall find a defect."""
OPERATORS: dict[str, dict[str, Any]] = {
    **{name: {} for name in ("side", "negation", "count", "attribute", "paraphrase", "bystander")},
    **{name: {} for name in ("ec", "er_r", "er_a", "ss")},
    "size": {"use": "attribute", "among": ["size"]},
}
"""Operators with their settings, as the suite ``t2i_medical`` has them."""
MARKS = ("<!-- made by benchmarks/orders.py -->", "<!-- end of orders -->")
_SIDES = {"left": "right", "right": "left", "bilateral": "left"}


@dataclass(frozen=True, eq=False)
class Case:
    """A prompt as the product is asked it.

    Attributes:
        address: Its address.
        prompt: Its words and pool.
        change: The change of the source's pool.
        seed: Seed of the request.
        said: View of the pool.
    """

    address: Address
    prompt: Prompt
    change: PoolChange
    seed: int
    said: Said


@cache
def cases(prompts: int) -> tuple[tuple[Case, ...], ...]:
    """Return the cases of some made orders: of each its source, its repeat, and the follow-ups of every operator."""
    info = part("seeds", "order_phantoms")
    settings = info.load().Settings(**{**info.defaults, "count": prompts})
    source = info.load()(dataset="orders", settings=settings, root=None, suite_seed=SUITE_SEED)
    return tuple(tuple(_cases_of(prepare(source.load(ref), size=None))) for ref in source.refs())


def _cases_of(seed: PreparedSeed) -> Iterator[Case]:
    own = seed.prompt
    if own is None:
        raise SystemExit("a made order has no prompt")
    at = Address(dataset="orders", seed_id=seed.ref.seed_id)
    for address in (at, replace(at, relation=UNCHANGED)):
        yield _case(address, own, NO_CHANGE)
    for operator, own_settings in OPERATORS.items():
        info = part("relations", str(own_settings.get("use", operator)))
        settings = {key: value for key, value in own_settings.items() if key != "use"}
        relation = info.load()(info.load().Settings(**{**info.defaults, **settings}))
        to = replace(at, relation=operator)
        try:
            follow = relation.follow_up(seed, 0, to.generator(SUITE_SEED))
        except NotApplicable:
            continue
        yield _case(to, follow.prompt, PoolChange.of(difference(own.pool, follow.prompt.pool)))


def _case(address: Address, prompt: Prompt, change: PoolChange) -> Case:
    return Case(address, prompt, change, answer_seed(SUITE_SEED, address), Said.of(prompt.pool))


# ---------------------------------------------------------------------------------------------------------- the reader


def seen(drawing: ClinicalDrawing, rng: np.random.Generator, rates: dict[str, float]) -> Scene:
    """Return what a reader that errs sees in a picture."""
    by_name: dict[str, list[NamedFinding]] = {}
    for shown in drawing.shown:
        by_name.setdefault(shown.name, []).append(shown)
    entities: list[SeenEntity] = []
    for name in vocabulary().modalities[_MODALITY[drawing.prompt.picture]].findings:
        instances = by_name.get(name, [])
        if not instances:
            if rng.random() < rates["imagined"]:
                entities.append(SeenEntity(name=name))
            continue
        if rng.random() < rates["missed"]:
            continue
        if vocabulary().findings[name].counted and rng.random() < rates["count"]:
            instances = instances[1:] if len(instances) > 1 else instances * 2
        entities += [SeenEntity(name=name, attributes=_attributes(shown, rng, rates)) for shown in instances]
    return Scene(entities=tuple(entities))


_MODALITY = {"film": "chest film", "scope": "endoscopy", "capsule": "capsule"}


def _attributes(shown: NamedFinding, rng: np.random.Generator, rates: dict[str, float]) -> tuple[str, ...]:
    """Return side, size, type and colour as they are read, each mistaken at its rate."""
    told = []
    if shown.side:
        told.append(_SIDES[shown.side] if rng.random() < rates["side"] else shown.side)
    colours = vocabulary().lists["colours"]
    own = (
        (SIZES, None if shown.millimetres is None else size_class(shown.millimetres)),
        (PARIS, next((paris for paris in PARIS if paris.lower() == f"paris {shown.type}"), None)),
        (colours, shown.colour or None),
    )
    for values, value in own:
        if value is not None:
            mistaken = rng.random() < rates["attribute"]
            told.append(values[(values.index(value) + 1) % len(values)] if mistaken else value)
    return alphabetical(told)


# ----------------------------------------------------------------------------------------------------------- campaigns


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a campaign finds.

    Attributes:
        nets: Net rates above 0 after Holm's correction, by operator.
        other: Whether a net rate is below 0 after the correction.
        refused: Follow-ups that were refused although the source was drawn, and all follow-ups, by operator.
        mean: Net rate over all kinds of error, by operator.
    """

    nets: frozenset[str]
    other: bool
    refused: dict[str, tuple[int, int]]
    mean: dict[str, float]


def campaign(number: int, defects: ClinicalDefects, prompts: int, rates: dict[str, float] | None = None) -> Outcome:
    """Run one campaign; products and readers of other numbers draw other random numbers."""
    artist, reader = Artist(number, clinical=defects), READER if rates is None else rates
    nets: dict[tuple[str, str], list[int]] = {}
    refused: dict[str, tuple[int, int]] = {}
    for order in cases(prompts):
        looks = {case.address.relation: _look(artist, number, case, reader) for case in order}
        source, again = looks[SOURCE], looks[UNCHANGED]
        for case in order[1:]:
            name = case.address.relation
            if source is not None:
                withheld, whole = refused.get(name, (0, 0))
                refused[name] = (withheld + (looks[name] is None), whole + 1)
            after = looks[name]
            if name == UNCHANGED or source is None or after is None or again is None:
                continue
            own = against_source(STRICT, source, after, case.said, case.change)
            floor = against_source(STRICT, source, again, order[0].said, NO_CHANGE)
            for kind in ALL_KINDS:
                wrong = [_wrong(judged, kind) for judged in (own, floor)]
                if None not in wrong:
                    nets.setdefault((name, kind), []).append(bool(wrong[0]) - bool(wrong[1]))
    return _outcome(nets, refused)


def _look(artist: Artist, number: int, case: Case, rates: dict[str, float]) -> SceneLook | None:
    """Return what the reader sees in the picture of a case; None if it is refused."""
    drawing = artist.draw(case.prompt.text, seed=case.seed)
    if not isinstance(drawing, ClinicalDrawing):
        raise SystemExit(f"the product does not understand {case.prompt.text!r}")
    if drawing.refused:
        return None
    rng = key_generator([number, "reader", case.address.seed_id, case.address.relation])
    return SceneLook.of(seen(drawing, rng, rates))


def _wrong(judged: JudgedPair, kind: str) -> bool | None:
    right = judged.whole if kind == WHOLE else judged.right[kind]
    return None if right is None else not right


def _outcome(nets: dict[tuple[str, str], list[int]], refused: dict[str, tuple[int, int]]) -> Outcome:
    corrected = holm([clustered(np.asarray(values)) for values in nets.values()])
    mean = {key: float(np.mean(values)) for key, values in nets.items()}
    significant = [key for key, p_value in zip(nets, corrected, strict=True) if p_value < LEVEL]
    return Outcome(
        nets=frozenset(name for name, kind in significant if mean[name, kind] > 0),
        other=any(mean[key] < 0 for key in significant),
        refused=refused,
        mean={name: value for (name, kind), value in mean.items() if kind == WHOLE},
    )


def finds(outcome: Outcome, defect: str) -> bool:
    """Return whether a campaign finds a defect with its operator."""
    operator = FINDS[defect]
    if defect != "anatomy_refused":
        return operator in outcome.nets
    refused, whole = outcome.refused[operator]
    return refused > 0 and wilson_ends(refused, whole)[0] > 0


@dataclass(frozen=True, slots=True)
class Line:
    """Campaigns of one defect ("" for none): how many meet what is expected, and the mean net of its operator."""

    defect: str
    right: int
    campaigns: int
    net: float

    @property
    def accepted(self) -> bool:
        """Whether enough of them do."""
        return self.right >= (FOUND if self.defect else SOUND) * self.campaigns


def line_of(job: tuple[str, float, int, int]) -> Line:
    """Run the campaigns of one defect."""
    defect, rate, campaigns, prompts = job
    defects = ClinicalDefects(**({defect: rate} if defect else {}))  # type: ignore[arg-type]
    outcomes = [campaign(number, defects, prompts) for number in range(campaigns)]
    if not defect:
        sound = sum(not outcome.nets and not outcome.other for outcome in outcomes)
        furthest = max((np.mean([outcome.mean[name] for outcome in outcomes]) for name in outcomes[0].mean), key=abs)
        return Line("", sound, campaigns, float(furthest))
    found = sum(finds(outcome, defect) for outcome in outcomes)
    if defect == "anatomy_refused":
        shares = [outcome.refused[FINDS[defect]] for outcome in outcomes]
        return Line(defect, found, campaigns, sum(a for a, _ in shares) / sum(b for _, b in shares))
    return Line(defect, found, campaigns, float(np.mean([outcome.mean[FINDS[defect]] for outcome in outcomes])))


def table(lines: Sequence[Line]) -> list[str]:
    """Return the lines of a table in Markdown."""
    rows = ["| defect | operator | campaigns | mean net |", "|---|---|---|---|"]
    for line in lines:
        operator = f"`{FINDS[line.defect]}`" if line.defect else "all: no net rate differs from 0"
        share = f"{line.right} of {line.campaigns}{'' if line.accepted else ' **too few**'}"
        name = f"`{line.defect}`" if line.defect else "none"
        rows.append(f"| {name} | {operator} | {share} | {100 * line.net:.1f} % |")
    return rows


def main() -> int:
    """Run, print, and return the exit code."""
    parser = argparse.ArgumentParser(description="Operators on orders against the simulated product's defects.")
    parser.add_argument("--campaigns", type=int, default=100)
    parser.add_argument("--prompts", type=int, default=240)
    parser.add_argument("--rate", type=float, default=0.3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--write", type=Path, help="a page with the marks")
    asked = options(parser, campaigns=2, prompts=45, workers=1)
    began = time.perf_counter()
    cases(asked.prompts)  # the workers, which are forked, find them made
    jobs = [(defect, asked.rate, asked.campaigns, asked.prompts) for defect in ("", *CLINICAL)]
    with ProcessPoolExecutor(asked.workers, get_context("fork")) as pool:
        lines = list(pool.map(line_of, jobs))
    text = "\n".join(table(lines))
    sys.stdout.write(f"{text}\n{time.perf_counter() - began:.0f} s\n")
    if asked.write:
        page = asked.write.read_text(encoding="utf-8")
        first, last = (page.index(mark) for mark in MARKS)
        asked.write.write_text(f"{page[:first]}{MARKS[0]}\n\n{text}\n\n{page[last:]}", encoding="utf-8")
    return 0 if all(line.accepted for line in lines) else 1


if __name__ == "__main__":
    raise SystemExit(main())
