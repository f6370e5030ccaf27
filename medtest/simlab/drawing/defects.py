"""Defects of the drawing product, each with a rate, steady or drawn per request.

A *steady* defect is drawn from product seed and prompt: repeating the prompt repeats it. A defect listed in ``anew``
also depends on the request's seed and varies between requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

from medtest.simlab.answering.draws import Draws
from medtest.simlab.drawing.sides import TURNED
from medtest.simlab.drawing.wishes import Wish, WishList

DEFAULT = "ball"
"""Drawn for a word that is not understood."""
EMBELLISHMENTS = ("flower", "bird")
"""Additional content of a rewritten prompt: the first that it does not name."""
REFUSALS = ("policy", "empty_list", "empty_base64")
"""Kinds of refusal: status 400 with a policy code, 200 without a picture, 200 with an empty one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawingDefects:
    """Rates, each in [0, 1]; 0 switches a defect off.

    Attributes:
        entities_dropped: Things named after the first ``most_entities`` are not drawn.
        most_entities: Number of things that are drawn.
        sides_swapped: Left is swapped with right, above with under, in front with behind.
        colours_leaked: Every thing has the colour named first.
        counts_capped: Of more than ``cap`` things of a kind, only ``cap`` are drawn.
        cap: Maximum number of things of a kind.
        unknown_default: A noun other than the plain name of a known thing (such as a synonym) is drawn as a ball.
        removed_kept: Things of the session's earlier prompt that this one does not mention are drawn as well.
        added_ignored: The thing named second in the last spatial relation is not drawn.
        prompts_rewritten: A flower (or a bird, if flowers are requested) is added to the request.
        refusals: Nothing is drawn; the kind of refusal is drawn from ``refused_as``.
        one_picture: The same picture is drawn for every request.
        blank_pictures: The picture is white.
        clutter_dropped: The thing named last is not drawn, at this rate for each thing beyond the first: a prompt of n
            things loses one at n - 1 times the rate, at most always.
        anew: Names of defects that are drawn per request.
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


RATES: tuple[str, ...] = tuple(field.name for field in fields(DrawingDefects) if isinstance(field.default, float))
"""Names of the defects."""


class Slips(NamedTuple):
    """Defects of one drawing.

    Attributes:
        names: Names of its defects, in the order of :data:`RATES`.
        refused_as: Kind of refusal, if refused.
    """

    names: tuple[str, ...] = ()
    refused_as: str = ""


def slips(defects: DrawingDefects, wishes: WishList, *, steady: Draws, fresh: Draws) -> Slips:
    """Draw the defects of one drawing.

    Args:
        defects: The rates.
        wishes: Content requested by the prompt, whose amount affects some defects.
        steady: Draws of product seed and prompt.
        fresh: Draws that also depend on the request's seed.
    """
    names = []
    for name in RATES:
        rate = getattr(defects, name)
        if name == "clutter_dropped":
            rate *= max(0, len(wishes.wishes) - 1)
        if rate and (fresh if name in defects.anew else steady).share(name) < rate:
            names.append(name)
    if "refusals" not in names:
        return Slips(tuple(names))
    draws = fresh if "refusals" in defects.anew else steady
    return Slips(tuple(names), draws.one_of("refused as", defects.refused_as))


def erring(wish_list: WishList, active: Sequence[str], defects: DrawingDefects, earlier: WishList | None) -> WishList:
    """Return the content to draw, after applying the defects.

    Args:
        wish_list: Content requested by the prompt.
        active: Names of the defects of this drawing.
        defects: Their limits.
        earlier: Content requested by the session's earlier prompt; None at the start of a session.
    """
    if "prompts_rewritten" in active:
        wish_list = replace(wish_list, wishes=(*wish_list.wishes, embellishment(wish_list)))
    if "unknown_default" in active:
        wishes = tuple(wish if wish.plain else replace(wish, name=DEFAULT) for wish in wish_list.wishes)
        wish_list = replace(wish_list, wishes=wishes)
    if "counts_capped" in active:
        wish_list = replace(
            wish_list, wishes=tuple(replace(wish, count=min(wish.count, defects.cap)) for wish in wish_list.wishes)
        )
    if "sides_swapped" in active:
        turned = tuple((subject, TURNED.get(side, side), other) for subject, side, other in wish_list.links)
        wish_list = replace(wish_list, links=turned)
    if "colours_leaked" in active:
        colour = next((wish.colour for wish in wish_list.wishes if wish.colour), None)
        wish_list = replace(
            wish_list, wishes=tuple(replace(wish, colour=colour or wish.colour) for wish in wish_list.wishes)
        )
    gone: set[int] = set()
    if "added_ignored" in active and wish_list.links:
        subject, _, other = wish_list.links[-1]
        gone.add(max(subject, other))
    if "clutter_dropped" in active and wish_list.wishes:
        gone.add(len(wish_list.wishes) - 1)
    if "entities_dropped" in active:
        gone |= set(range(defects.most_entities, len(wish_list.wishes)))
    wish_list = wish_list.without(frozenset(gone))
    if "removed_kept" in active and earlier is not None:
        present = {wish.name for wish in wish_list.wishes}
        removed = tuple(wish for wish in earlier.wishes if wish.name is not None and wish.name not in present)
        wish_list = _with(wish_list, removed, earlier)
    return wish_list


def embellishment(wish_list: WishList) -> Wish:
    """Return the additional wish of a rewritten prompt."""
    named = {wish.name for wish in wish_list.wishes}
    name = next((name_choice for name_choice in EMBELLISHMENTS if name_choice not in named), EMBELLISHMENTS[0])
    return Wish(name=name, word=name)


def _with(base: WishList, extra: Sequence[Wish], earlier: WishList) -> WishList:
    """Return a list with wishes of an earlier one, keeping their relations to things that are still present."""
    wishes = [*base.wishes, *extra]
    place: dict[int, int] = {}
    for at, wish in enumerate(earlier.wishes):
        same = [index for index, candidate in enumerate(wishes) if candidate.name == wish.name]
        if len(same) == 1 and wish.name is not None:
            place[at] = same[0]
    old = {at for at, wish in enumerate(earlier.wishes) if wish in extra}
    links = [(place[a], side, place[b]) for a, side, b in earlier.links if a in place and b in place and {a, b} & old]
    return WishList(wishes=tuple(wishes), links=(*base.links, *links))
