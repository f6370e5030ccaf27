"""Pools drawn from the shipped vocabulary, and seeds with prompts for them."""

from __future__ import annotations

from hypothesis import strategies as st

from medtest.core.cases import PreparedSeed, Prompt, Seed, SeedRef
from medtest.core.scenes import Entity, Pool, alphabetical, pool_of
from medtest.language.captions.render import Unsayable, render
from medtest.language.captions.vocabulary import vg150
from medtest.language.orders import made, order_pool, read_order
from medtest.preparation.prepare import prepare

NAMES = vg150().names
PREDICATES = [name for name in vg150().relations if name not in ("and", "says")]
ATTRIBUTES = ("red", "small", "wooden", "white")


@st.composite
def pools(draw: st.DrawFn, fewest_triples: int = 0) -> Pool:
    """Draw up to five entities, some of one class, and up to four triples, as templates can express them."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=2, max_size=5))
    entities = [
        Entity(
            name=name,
            count=draw(st.sampled_from([1, 1, 2, 3, None])) if vg150().counted(name) else None,
            attributes=alphabetical(draw(st.lists(st.sampled_from(ATTRIBUTES), max_size=2))),
        )
        for name in names
    ]
    end = st.integers(0, len(names) - 1)
    triple = st.tuples(end, st.sampled_from(PREDICATES), end).filter(lambda ends: ends[0] != ends[2])
    triples = draw(st.lists(triple, min_size=fewest_triples, max_size=4))
    pool = pool_of(entities, triples)
    try:
        render(pool)
    except Unsayable:
        return draw(st.nothing())
    return pool


def seed_of(pool: Pool, text: str = "", seed_id: str = "s") -> PreparedSeed:
    """Return a prepared seed whose prompt has a pool, by templates if there is no text."""
    prompt = Prompt(text=text or render(pool), pool=pool)
    return prepare(Seed(ref=SeedRef(dataset="d", seed_id=seed_id), kind="depiction", prompt=prompt), size=None)


def ordered_seed(order: int | str) -> PreparedSeed:
    """Return a prepared seed that orders a medical picture: a made order by number, or a text."""
    text = made.make(order, 5) if isinstance(order, int) else order
    return seed_of(order_pool(read_order(text).order), text)
