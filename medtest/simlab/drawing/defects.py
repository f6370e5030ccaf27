"""What is wrong with the product that draws, each defect with a rate, steady or drawn anew.

A *steady* defect is drawn from product seed and prompt: the same words asked again have it again, other words have
draws of their own. A defect that is named in ``anew`` is drawn from the request's seed as well: it differs from one
asking to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

from medtest.simlab.answering.draws import Draws
from medtest.simlab.drawing.sides import TURNED
from medtest.simlab.drawing.wishes import Wish, WishedRelation, WishList

DEFAULT = "ball"
"""What is drawn for a word that is not understood."""
EMBELLISHMENTS = ("flower", "bird")
"""What a rewritten prompt asks for besides: the first that it does not name."""
REFUSALS = ("policy", "empty_list", "empty_base64")
"""How it refuses: 400 with a policy's code, 200 with no picture, 200 with an empty one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawingDefects:
    """Rates, each in [0, 1]; 0 switches a defect off.

    Attributes:
        entities_dropped: Things named after the first ``most_entities`` are not drawn.
        most_entities: How many are.
        sides_swapped: Left is drawn for right, above for under, in front for behind, and the other way round.
        colours_leaked: Every thing has the colour that is named first.
        counts_capped: Of more than ``cap`` things of a kind ``cap`` are drawn.
        cap: How many are.
        unknown_default: For a noun that is not the plain name of a thing it draws (a synonym, say) the product draws
            a ball.
        removed_kept: What the session's earlier prompt asked for and this one does not is drawn as well.
        added_ignored: Of the relation that is said last, the thing that is named later is not drawn.
        prompts_rewritten: A flower (a bird, where flowers are asked for) is asked for besides.
        refusals: Nothing is drawn; how that is said is drawn from ``refused_as``.
        one_picture: One and the same picture is drawn, whatever is asked for.
        blank_pictures: The picture is white.
        clutter_dropped: The thing named last is not drawn, at this rate for each thing beyond the first: a prompt of n
            things loses one at n - 1 times the rate, at most always.
        anew: Names of defects that are drawn anew at each asking.
        refused_as: Some of :data:`REFUSALS`.
    """

    entities_dropped: float = 0.0
    most_entities: int = 2
    sides_swapped: float = 0.0
    colours_leaked: float = 0.0
    counts_capped: float = 0.0
    cap: int = 1
    unknown_default: float = 0.0
    removed_kept: float = 0.0
    added_ignored: float = 0.0
    prompts_rewritten: float = 0.0
    refusals: float = 0.0
    one_picture: float = 0.0
    blank_pictures: float = 0.0
    clutter_dropped: float = 0.0
    anew: tuple[str, ...] = ()
    refused_as: tuple[str, ...] = REFUSALS


RATES: tuple[str, ...] = tuple(one.name for one in fields(DrawingDefects) if isinstance(one.default, float))
"""Names of the defects."""


class Slips(NamedTuple):
    """What goes wrong with one drawing.

    Attributes:
        names: The defects that it has, in the order of :data:`RATES`.
        refused_as: How it is refused, where it is.
    """

    names: tuple[str, ...] = ()
    refused_as: str = ""


def slips(defects: DrawingDefects, wanted: WishList, *, steady: Draws, fresh: Draws) -> Slips:
    """Draw what goes wrong with one drawing.

    Args:
        defects: The rates.
        wanted: What the prompt asks for: some defects go by how much that is.
        steady: Draws of product seed and prompt.
        fresh: Draws of these and of the request's seed.
    """
    found = []
    for name in RATES:
        rate = getattr(defects, name)
        if name == "clutter_dropped":
            rate *= max(0, len(wanted.wishes) - 1)
        if rate and (fresh if name in defects.anew else steady).share(name) < rate:
            found.append(name)
    if "refusals" not in found:
        return Slips(tuple(found))
    draws = fresh if "refusals" in defects.anew else steady
    return Slips(tuple(found), draws.one_of("refused as", defects.refused_as))


def erring(wanted: WishList, found: Sequence[str], defects: DrawingDefects, earlier: WishList | None) -> WishList:
    """Return what is drawn instead of what is wanted.

    Args:
        wanted: What the prompt asks for.
        found: Names of the defects that this drawing has.
        defects: Their limits.
        earlier: What the session's earlier prompt asked for; None for a session that begins.
    """
    if "prompts_rewritten" in found:
        wanted = replace(wanted, wishes=(*wanted.wishes, embellishment(wanted)))
    if "unknown_default" in found:
        wishes = tuple(one if one.plain else replace(one, name=DEFAULT) for one in wanted.wishes)
        wanted = replace(wanted, wishes=wishes)
    if "counts_capped" in found:
        wanted = replace(wanted, wishes=tuple(replace(one, count=min(one.count, defects.cap)) for one in wanted.wishes))
    if "sides_swapped" in found:
        turned = (replace(one, side=TURNED.get(one.side, one.side)) for one in wanted.links)
        wanted = replace(wanted, links=tuple(turned))
    if "colours_leaked" in found:
        colour = next((one.colour for one in wanted.wishes if one.colour), None)
        wanted = replace(wanted, wishes=tuple(replace(one, colour=colour or one.colour) for one in wanted.wishes))
    gone: set[int] = set()
    if "added_ignored" in found and wanted.links:
        gone.add(max(wanted.links[-1].one, wanted.links[-1].other))
    if "clutter_dropped" in found and wanted.wishes:
        gone.add(len(wanted.wishes) - 1)
    if "entities_dropped" in found:
        gone |= set(range(defects.most_entities, len(wanted.wishes)))
    wanted = wanted.without(frozenset(gone))
    if "removed_kept" in found and earlier is not None:
        there = {one.name for one in wanted.wishes}
        kept = tuple(one for one in earlier.wishes if one.name is not None and one.name not in there)
        wanted = _with(wanted, kept, earlier)
    return wanted


def embellishment(wanted: WishList) -> Wish:
    """Return what a rewritten prompt asks for besides."""
    named = {one.name for one in wanted.wishes}
    name = next((one for one in EMBELLISHMENTS if one not in named), EMBELLISHMENTS[0])
    return Wish(name=name, word=name)


def _with(wanted: WishList, kept: Sequence[Wish], earlier: WishList) -> WishList:
    """Return a list with wishes of an earlier one, which lie to what is still there as they did."""
    wishes = [*wanted.wishes, *kept]
    place: dict[int, int] = {}
    for at, wish in enumerate(earlier.wishes):
        same = [index for index, one in enumerate(wishes) if one.name == wish.name]
        if len(same) == 1 and wish.name is not None:
            place[at] = same[0]
    old = {at for at, wish in enumerate(earlier.wishes) if wish in kept}
    links = [
        WishedRelation(one=place[link.one], side=link.side, other=place[link.other])
        for link in earlier.links
        if link.one in place and link.other in place and {link.one, link.other} & old
    ]
    return WishList(wishes=tuple(wishes), links=(*wanted.links, *links))
