"""Campaigns on the simulated product that draws: what follows from its defects' rates, and how often it is covered.

Made prompts, the operator's follow-up, the product's own function, a perfect reader that reads the layout, the rules,
rate and net with their 95 % intervals: no HTTP, no pixels. What follows from a rate is derived here from the defect's
description and the pools alone, not from the product's code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from math import comb

from medtest.core.cases import UNCHANGED, Address, Prompt
from medtest.core.errors import NotApplicable
from medtest.core.plugins import part
from medtest.core.scenes import Pool, Scene, SeenEntity, Triple, difference
from medtest.preparation.prepare import prepare
from medtest.results.cube.intervals import paired_score, wilson_ends
from medtest.runner.units.asker import answer_seed
from medtest.simlab.drawing.artist import Artist, Drawing, Drawings
from medtest.simlab.drawing.defects import DrawingDefects
from medtest.tasks.depict.rules import STRICT, JudgedPair, against_source, against_truth
from medtest.tasks.depict.views import NO_CHANGE, PoolChange, Said, SceneLook

SUITE_SEED = 16
RATES = (0.05, 0.15, 0.4)
MOST, CAP = 2, 1
"""``most_entities`` and ``cap`` of the product."""
SHARE = 0.95
WITHHELD = "withheld"
"""What counts where the product draws nothing: refusals, and white pictures as services treat them."""


SHARED = Drawings()
"""Drawings depend on prompt, request's seed and what goes wrong, not on the product's seed: campaigns share them."""

# ------------------------------------------------------------------------------------------------------------- prompts


@dataclass(frozen=True, eq=False)
class Asked:
    """A prompt as the product is asked it: its words, its pool, the request's seed, what came before."""

    prompt: Prompt
    seed: int
    earlier: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "said", Said.of(self.prompt.pool))

    said: Said = field(init=False)


@dataclass(frozen=True, eq=False)
class Pair:
    """A source, its follow-up under one operator, and the source asked anew."""

    source: Asked
    after: Asked
    again: Asked
    change: PoolChange


@cache
def pairs_of(operator: str, prompts: int) -> tuple[Pair, ...]:
    """Return pairs of an operator whose pictures, drawn soundly, are what their prompts say."""
    made = part("relations", operator)
    given = {**made.defaults, **({"world": "drawn"} if "world" in made.defaults else {})}
    relation = made.load()(made.load().Settings(**given))
    info = part("seeds", "caption_phantoms")
    settings = info.load().Settings(**{**info.defaults, "count": 6 * prompts, "fewest": 2, "most": 5})
    source = info.load()(dataset="drawn", settings=settings, root=None, suite_seed=SUITE_SEED)
    sound, found = Artist(drawings=SHARED), []
    for ref in source.refs():
        seed = prepare(source.load(ref), size=None)
        own = seed.prompt
        at = Address(dataset="drawn", seed_id=ref.seed_id)
        to = replace(at, relation=operator)
        try:
            follow = relation.follow_up(seed, 0, to.generator(SUITE_SEED))
        except NotApplicable:
            continue
        if own is None or follow.prompt is None:
            raise SystemExit(f"{operator} gives no prompt")
        pair = Pair(
            source=Asked(own, answer_seed(SUITE_SEED, at)),
            after=Asked(follow.prompt, answer_seed(SUITE_SEED, to), own.text),
            again=Asked(own, answer_seed(SUITE_SEED, replace(at, relation=UNCHANGED))),
            change=PoolChange.of(difference(own.pool, follow.prompt.pool)),
        )
        drawn = [picture_of(sound, one) for one in (pair.source, pair.after, pair.again)]
        if all(_whole(one, asked) for one, asked in zip(drawn, (pair.source, pair.after, pair.again), strict=True)):
            found.append(pair)
        if len(found) == prompts:
            break
    return tuple(found)


def _whole(drawing: Drawing, asked: Asked) -> bool:
    return not drawing.layout.unmet and bool(truth(look_of(drawing), asked, NO_CHANGE).whole)


def picture_of(artist: Artist, asked: Asked) -> Drawing:
    """Return what a product draws when it is asked."""
    return artist.draw(asked.prompt.text, seed=asked.seed, earlier=asked.earlier)


# ------------------------------------------------------------------------------------------------- reading and judging


_LOOKS: dict[int, tuple[Drawing, SceneLook]] = {}


def look_of(drawing: Drawing) -> SceneLook:
    """Return what a perfect reader sees: everything that stands, and all that was made to lie somehow to another."""
    kept = _LOOKS.get(id(drawing))
    if kept is not None and kept[0] is drawing:
        return kept[1]
    entities = tuple(SeenEntity(name=n.name, box=n.box, attributes=(n.colour,)) for n in drawing.layout.things)
    triples = tuple(Triple(subject=a, predicate=side, object=b) for a, side, b in drawing.layout.held)
    look = SceneLook.of(Scene(entities=entities, triples=triples))
    _LOOKS[id(drawing)] = (drawing, look)
    return look


_TRUTHS: dict[tuple[int, int, int], tuple[object, JudgedPair]] = {}
_PAIRED: dict[tuple[object, ...], tuple[object, JudgedPair]] = {}


def truth(look: SceneLook, asked: Asked, change: PoolChange) -> JudgedPair:
    """Return what the rules say of a picture against its own prompt."""
    key = (id(look), id(asked), id(change))
    if key not in _TRUTHS:  # what is looked at is kept beside, or its id might be another's
        _TRUTHS[key] = ((look, asked, change), against_truth(look, asked.said, change))
    return _TRUTHS[key][1]


def paired(rule: str, before: SceneLook, after: SceneLook, asked: Asked, change: PoolChange, shape: str) -> JudgedPair:
    """Return what a rule says of a pair of pictures."""
    key = (rule, id(before), id(after), id(asked), id(change), shape)
    if key not in _PAIRED:
        judged = against_source(rule, before, after, asked.said, change, shape)
        _PAIRED[key] = ((before, after, asked, change), judged)
    return _PAIRED[key][1]


def is_wrong(judged: JudgedPair, kind: str) -> bool | None:
    """Say whether a kind is wrong; None where it is not judged."""
    right = judged.whole if kind == "whole" else judged.right[kind]
    return None if right is None else not right


def is_withheld(drawing: Drawing) -> bool:
    """Say whether nothing comes of a request."""
    return bool(drawing.refused) or drawing.blank


# ---------------------------------------------------------------------------------------------------------- experiments


Implied = Callable[[Pair, float], float]


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A defect, the operator that brings it out, and what follows from its rate.

    Attributes:
        defect: Its name.
        operator: Id of the relation.
        kind: Which errors are counted.
        truth: How likely the follow-up's picture is not what its prompt says.
        pair: How likely a pair violates its relation under ``strict``, with the defect steady.
        anew: The same, with the defect drawn anew.
        floor: How likely a source asked anew violates the same relation with the defect drawn anew (steady: never).
        prompts: Whether a pair takes part.
    """

    defect: str
    operator: str
    kind: str
    truth: Implied
    pair: Implied
    anew: Implied
    floor: Implied
    prompts: Callable[[Pair], bool] = lambda _: True

    @property
    def name(self) -> str:
        """Defect, operator and kind in words."""
        return f"`{self.defect}` (`{self.operator}`, {self.kind})"


def differ(p: float, q: float | None = None) -> float:
    """Return how likely one alone of two independent events is."""
    other = p if q is None else q
    return p * (1 - other) + other * (1 - p)


def pool(one: Asked) -> Pool:
    """Return what a prompt says."""
    return one.prompt.pool


DIRECTED = ("left of", "right of", "above", "under", "in front of", "behind")


def _directed(pair: Pair) -> bool:
    return any(one.predicate in DIRECTED for one in pool(pair.source).triples)


def _two_colours(pair: Pair) -> bool:
    return len({one.attributes for one in pool(pair.source).entities if one.attributes}) > 1


def _no_flowers_and_birds(pair: Pair) -> bool:
    return not {"flower", "bird"} <= {one.name for one in pool(pair.source).entities}


def _clutter(one: Asked, rate: float) -> float:
    return min(1.0, rate * max(0, len(pool(one).entities) - 1))


def _first_changed(pair: Pair) -> int:
    before, after = pool(pair.source).entities, pool(pair.after).entities
    return next(at for at, (a, b) in enumerate(zip(before, after, strict=True)) if a.name != b.name)


def _baseline(defect: str, kind: str, applies: Callable[[Pair], bool]) -> Experiment:
    """Return the experiment of a defect that shows wherever it happens and is the same in both pictures: SS."""
    return Experiment(
        defect=defect, operator="ss", kind=kind, prompts=applies,
        truth=lambda _, p: p, pair=lambda _, p: differ(p), anew=lambda _, p: differ(p), floor=lambda _, p: differ(p),
    )  # fmt: skip


EXPERIMENTS: tuple[Experiment, ...] = (
    _baseline("entities_dropped", "entities", lambda pair: len(pool(pair.source).entities) > MOST),
    # EC: what is changed is beyond the first two as well, or stays; where it goes, one drop of two is enough.
    Experiment(
        defect="entities_dropped", operator="ec", kind="entities",
        prompts=lambda pair: len(pool(pair.source).entities) > MOST,
        truth=lambda _, p: p,
        pair=lambda pair, p: differ(p) if _first_changed(pair) < MOST else 1 - (1 - p) ** 2,
        anew=lambda pair, p: differ(p) if _first_changed(pair) < MOST else 1 - (1 - p) ** 2,
        floor=lambda _, p: differ(p),
    ),
    _baseline("sides_swapped", "relations", _directed),
    _baseline("colours_leaked", "attributes", _two_colours),
    _baseline("counts_capped", "counts", lambda pair: any((n.count or 0) > CAP for n in pool(pair.source).entities)),
    # Only the follow-up has a word that is no plain name.
    Experiment(
        defect="unknown_default", operator="ss", kind="entities",
        truth=lambda _, p: p, pair=lambda _, p: p, anew=lambda _, p: p, floor=lambda *_: 0.0,
    ),
    # Only the follow-up has something before it; a removal may take no entity along.
    *(
        Experiment(
            defect="removed_kept", operator=operator, kind="entities", prompts=lambda pair: bool(pair.change.removed),
            truth=lambda _, p: p, pair=lambda _, p: p, anew=lambda _, p: p, floor=lambda *_: 0.0,
        )
        for operator in ("er_r", "ec")
    ),
    # What the added triple brings is missing, or came because the source's last thing was missing.
    Experiment(
        defect="added_ignored", operator="er_a", kind="entities", prompts=lambda pair: bool(pool(pair.source).triples),
        truth=lambda _, p: p,
        pair=lambda _, p: 1 - (1 - p) ** 2, anew=lambda _, p: 1 - (1 - p) ** 2, floor=lambda _, p: differ(p),
    ),
    # A flower besides is no error against the prompt: nothing that it says is missing.
    # Of a prompt that names both flowers and birds there is one flower more: a number, and no class.
    replace(_baseline("prompts_rewritten", "entities", _no_flowers_and_birds), truth=lambda *_: 0.0),
    _baseline(
        "one_picture", "entities", lambda pair: not {n.name for n in pool(pair.source).entities} <= {"house", "tree"}
    ),
    *(
        Experiment(
            defect=defect, operator="er_a", kind=WITHHELD,
            truth=lambda _, p: p, pair=lambda _, p: p, anew=lambda _, p: p, floor=lambda _, p: p,
        )
        for defect in ("refusals", "blank_pictures")
    ),
    Experiment(
        defect="clutter_dropped", operator="ss", kind="entities",
        truth=lambda pair, p: _clutter(pair.after, p),
        **{
            name: lambda pair, p: differ(_clutter(pair.source, p)) for name in ("pair", "anew", "floor")
        },
    ),
)  # fmt: skip


# ------------------------------------------------------------------------------------------------------------ campaigns


@dataclass(kw_only=True)
class Coverage:
    """How often intervals of campaigns cover what the rate implies."""

    name: str
    anew: bool
    rate: float
    what: str
    implied: float
    campaigns: int
    covered: int = 0
    total: float = 0.0

    @property
    def mean(self) -> float:
        """Mean of what the campaigns found."""
        return self.total / self.campaigns

    def note(self, value: float, low: float, high: float) -> None:
        """Take a campaign's figure with its interval."""
        self.total += value
        self.covered += low - 1e-9 <= self.implied <= high + 1e-9

    def p(self) -> float:
        """Return how likely so few or fewer cover where 95 % do (one-sided exact binomial test)."""
        return float(sum(comb(self.campaigns, k) * SHARE**k * (1 - SHARE) ** (self.campaigns - k)
                         for k in range(self.covered + 1)))  # fmt: skip


def coverage(experiment: Experiment, rate: float, *, anew: bool, campaigns: int, prompts: int) -> list[Coverage]:
    """Run campaigns of one experiment at one rate; return how often truth rate and net are covered."""
    pairs = [pair for pair in pairs_of(experiment.operator, prompts) if experiment.prompts(pair)]
    if len(pairs) < 20:
        raise SystemExit(f"{experiment.defect} applies to {len(pairs)} pairs alone")
    own, floor = (experiment.anew, experiment.floor) if anew else (experiment.pair, lambda *_: 0.0)
    implied = {
        "truth": sum(experiment.truth(pair, rate) for pair in pairs) / len(pairs),
        "net": sum(own(pair, rate) - floor(pair, rate) for pair in pairs) / len(pairs),
    }
    found = {
        what: Coverage(
            name=experiment.name, anew=anew, rate=rate, what=what, implied=value, campaigns=campaigns
        )
        for what, value in implied.items()
    }  # fmt: skip
    defects = DrawingDefects(
        **{experiment.defect: rate}, most_entities=MOST, cap=CAP, anew=(experiment.defect,) if anew else ()
    )  # type: ignore[arg-type]
    for number in range(campaigns):
        wrong, more, less, whole = campaign(Artist(number, defects, SHARED), experiment, pairs)
        found["truth"].note(wrong / whole, *wilson_ends(wrong, whole))
        found["net"].note((more - less) / whole, *paired_score(more, less, whole))
    return list(found.values())


def campaign(artist: Artist, experiment: Experiment, pairs: Sequence[Pair]) -> tuple[int, int, int, int]:
    """Return wrong follow-ups; prompts that err under the operator alone, and asked anew alone; pairs judged."""
    wrong = more = less = whole = 0
    for pair in pairs:
        drawn = [picture_of(artist, one) for one in (pair.source, pair.after, pair.again)]
        if experiment.kind == WITHHELD:
            if is_withheld(drawn[0]):
                continue  # what was never drawn is not judged
            untrue, own, floor = is_withheld(drawn[1]), is_withheld(drawn[1]), is_withheld(drawn[2])
        else:
            looks = [look_of(one) for one in drawn]
            untrue = bool(is_wrong(truth(looks[1], pair.after, pair.change), experiment.kind))
            judged = paired(STRICT, looks[0], looks[1], pair.after, pair.change, pair.change.shape)
            again = paired(STRICT, looks[0], looks[2], pair.again, NO_CHANGE, pair.change.shape)
            own, floor = bool(is_wrong(judged, experiment.kind)), bool(is_wrong(again, experiment.kind))
        whole += 1
        wrong += untrue
        more += own and not floor
        less += floor and not own
    return wrong, more, less, whole
