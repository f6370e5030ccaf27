"""Scene layout: requested relations hold plainly, and things overlap only if requested."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from medtest.phantoms.scenes import ASPECTS, COLOURS, Placed
from medtest.simlab.drawing.sides import Area, around, gap, is_on_side, shared_area, ways
from medtest.simlab.drawing.wishes import Link, WishList

MOST_THINGS = 14
"""Maximum number of things in one picture; further ones are left out."""
_ROUNDS, _TRIES, _CHOICES = 60, 40, 16
_EDGE, _APART = 0.015, 0.06
_OVERLAP = frozenset(("in", "in front of", "behind"))
_LARGEST, _GOOD, _LEAST = 0.4, 0.22, 0.14
"""Square roots of areas: largest allowed thing; smallest thing at which the search stops, and without ``lax``."""


@dataclass(frozen=True, slots=True)
class SceneLayout:
    """A picture before painting.

    Attributes:
        things: The placed things; later ones are painted over earlier ones.
        unmet: Indices of links that could not be met.
        held: Intended relations: index of a thing, side, index of the other.
    """

    things: tuple[Placed, ...] = ()
    unmet: tuple[int, ...] = ()
    held: tuple[Link, ...] = ()


_Thing = tuple[int, str]
"""A thing to place: index of its wish, and class of the renderer."""


def laid_out(wish_list: WishList, draw: Random) -> SceneLayout:
    """Return a layout of a wish list.

    Every thing of one wish is related as requested to every thing of the other. If that leaves no room for things of
    :data:`_LEAST`, at least one pair is; if there is no room at all, or the request contradicts itself, the last link
    is dropped.

    Args:
        wish_list: The wish list; wishes without a drawing are left out.
        draw: Random generator of positions, and of colours that are not requested.
    """
    things = [
        (at, wish.name) for at, wish in enumerate(wish_list.wishes) if wish.name is not None for _ in range(wish.count)
    ][:MOST_THINGS]
    if not things:
        return SceneLayout()
    links = list(range(len(wish_list.links)))
    while True:
        best: tuple[float, dict[int, Area], list[Link]] | None = None
        for every, lax in ((True, False), (True, True), (False, True)):
            bonds = _bonds(wish_list, links, things, every=every)
            size, boxes = _placed(things, bonds, draw, lax=lax)
            if boxes is not None and (best is None or size > best[0]):
                best = size, boxes, bonds
            if best is not None and best[0] >= _LEAST:
                break
        if best is not None:
            _, boxes, bonds = best
            colours = _coloured(wish_list, things, bonds, draw)
            order = _order(len(things), bonds)
            place = {at: number for number, at in enumerate(order)}
            return SceneLayout(
                tuple(Placed(name=things[at][1], colour=colours[at], box=_rounded(boxes[at])) for at in order),
                tuple(sorted(set(range(len(wish_list.links))) - set(links))),
                tuple((place[first], side, place[other]) for first, side, other in bonds),
            )
        if links:
            links.pop()
        else:
            things.pop()


def _bonds(wish_list: WishList, links: Sequence[int], things: Sequence[_Thing], *, every: bool) -> list[Link]:
    bonds: list[Link] = []
    for number in links:
        subject_wish, side, other_wish = wish_list.links[number]
        subjects = [at for at, (wish, _) in enumerate(things) if wish == subject_wish]
        others = [at for at, (wish, _) in enumerate(things) if wish == other_wish]
        pairs = [(subject, other) for subject in subjects for other in others]
        bonds += [(subject, side, other) for subject, other in (pairs if every else pairs[:1])]
    return bonds


def _placed(
    things: Sequence[_Thing], bonds: Sequence[Link], draw: Random, *, lax: bool
) -> tuple[float, dict[int, Area] | None]:
    """Return a box for each thing: of the layouts found, the one whose smallest thing is largest.

    Things are placed on an unbounded sheet, which is then cropped to them, so that relations do not depend on the
    displayed size.

    Args:
        things: The things.
        bonds: Relations between them.
        draw: Random generator of positions.
        lax: Whether things related to a thing inside another may overlap that other.

    Returns:
        Square root of the smallest thing's area, and the boxes; 0 and None if no layout was found.
    """
    if any((other, side, first) in bonds or first == other for first, side, other in bonds if side != "near"):
        return 0.0, None
    order = _walk(len(things), bonds)
    held: list[list[Link]] = [[bond for bond in bonds if at in (bond[0], bond[2])] for at in range(len(things))]
    overlapping = {frozenset((first, other)) for first, side, other in bonds if side in _OVERLAP}
    standing = {frozenset((first, other)) for first, side, other in bonds if side == "on"}
    if lax:
        overlapping |= _reaching(bonds)
    best: dict[int, Area] | None = None
    largest, layouts = 0.0, 0
    for number in range(_ROUNDS):
        sizes = _sizes(things, bonds, 0.85 if layouts or number < _ROUNDS // 3 else 0.45, draw)
        boxes: dict[int, Area] = {}
        for at in order:
            box = _place(at, sizes, boxes, held[at], overlapping, standing, draw)
            if box is None:
                break
            boxes[at] = box
        else:
            layouts += 1
            shown = _shown(boxes, draw)
            size = min(_root(box) for box in shown.values())
            if size > largest:
                best, largest = shown, size
            if layouts >= _CHOICES or largest >= _GOOD:
                break
    return largest, best


def _root(box: Area) -> float:
    return float(((box[2] - box[0]) * (box[3] - box[1])) ** 0.5)


def _shown(boxes: dict[int, Area], draw: Random) -> dict[int, Area]:
    """Return boxes as fractions of a picture that shows them all, as large as possible."""
    left, top = (min(box[edge] for box in boxes.values()) for edge in (0, 1))
    right, bottom = (max(box[edge] for box in boxes.values()) for edge in (2, 3))
    scale = min((1 - 2 * _EDGE) / max(right - left, bottom - top), _LARGEST / max(map(_root, boxes.values())))
    x = _EDGE + draw.random() * (1 - 2 * _EDGE - scale * (right - left)) - scale * left
    y = _EDGE + draw.random() * (1 - 2 * _EDGE - scale * (bottom - top)) - scale * top
    return {
        at: (x + scale * box[0], y + scale * box[1], x + scale * box[2], y + scale * box[3])
        for at, box in boxes.items()
    }


def _reaching(bonds: Sequence[Link]) -> set[frozenset[int]]:
    """Return pairs that may overlap because of a third thing.

    Things related to a thing inside another may overlap that other; a thing in front of or behind another may be so to
    the things that support it or that it supports.
    """
    pairs = set()
    for first, side, other in bonds:
        if side == "in":
            pairs |= {frozenset((other, end)) for end in _tied(bonds, first) - {first, other}}
        elif side == "on":
            deep = [bond for bond in bonds if bond[1] in ("in front of", "behind")]
            pairs |= {frozenset((other, end)) for end in _tied(deep, first) - {first, other}}
            pairs |= {frozenset((first, end)) for end in _tied(deep, other) - {first, other}}
    return pairs


def _tied(bonds: Sequence[Link], at: int) -> set[int]:
    return {end for first, _, other in bonds if at in (first, other) for end in (first, other)}


def _place(
    at: int,
    sizes: Sequence[tuple[float, float]],
    boxes: dict[int, Area],
    bonds: Sequence[Link],
    overlapping: set[frozenset[int]],
    standing: set[frozenset[int]],
    draw: Random,
) -> Area | None:
    ready = [bond for bond in bonds if (bond[2] if bond[0] == at else bond[0]) in boxes]
    size = sizes[at]
    for number in range(_TRIES):
        if ready:
            first, side, other = ready[draw.randrange(len(ready))]
            centre = _towards(first == at, side, size, boxes[other if first == at else first], draw)
        else:
            wide = 0.6 * len(boxes) ** 0.5 * (1 + 2 * number / _TRIES)
            centre = (_middle(boxes, 0) + draw.uniform(-wide, wide), _middle(boxes, 1) + draw.uniform(-wide, wide))
        box = around(size, centre)
        placed = {**boxes, at: box}
        if all(is_on_side(side, placed[first], placed[other]) for first, side, other in ready) and all(
            _apart(box, its, frozenset((at, number)), overlapping, standing) for number, its in boxes.items()
        ):
            return box
    return None


def _middle(boxes: dict[int, Area], axis: int) -> float:
    """Return the middle of the placed boxes along an axis."""
    if not boxes:
        return 0.0
    return (min(box[axis] for box in boxes.values()) + max(box[axis + 2] for box in boxes.values())) / 2


def _towards(first: bool, side: str, size: tuple[float, float], other: Area, draw: Random) -> tuple[float, float]:
    """Draw a centre for the first or the second thing of a bond."""
    turned = {"left of": "right of", "right of": "left of", "above": "under", "under": "above", "near": "near"}
    turned |= {"in front of": "behind", "behind": "in front of"}
    if first:
        return ways(side, size, other, draw)
    if side in turned:
        return ways(turned[side], size, other, draw)
    x, y = (other[0] + other[2]) / 2, (other[1] + other[3]) / 2
    width, height = other[2] - other[0], other[3] - other[1]
    if side == "on":  # the box supports the other
        room = 0.5 * abs(width - size[0]) + 0.15 * min(width, size[0])
        return x + draw.uniform(-room, room), other[3] + size[1] / 2 - draw.uniform(0.0, 0.015) * (height + size[1])
    free = max(0.0, size[0] - width) / 2, max(0.0, size[1] - height) / 2  # the box contains the other
    return x + draw.uniform(-0.8, 0.8) * free[0], y - draw.uniform(-0.7, 0.5) * free[1]


def _apart(
    box: Area, other: Area, pair: frozenset[int], overlapping: set[frozenset[int]], standing: set[frozenset[int]]
) -> bool:
    """Return True if two boxes keep the required distance."""
    if pair in overlapping:
        return True
    shared = shared_area(box, other)
    if pair in standing:
        least = min((b[2] - b[0]) * (b[3] - b[1]) for b in (box, other))
        return shared <= 0.08 * least
    if shared > 0 or gap(box, other) < _APART:
        return False
    # Touching edges would make one stand on the other by chance.
    high = box[3] - box[1] + other[3] - other[1]
    across = min(box[2], other[2]) - max(box[0], other[0])
    return across <= 0 or min(abs(box[3] - other[1]), abs(other[3] - box[1])) > 0.07 * high


def _sizes(things: Sequence[_Thing], bonds: Sequence[Link], least: float, draw: Random) -> list[tuple[float, float]]:
    """Return width and height of each thing, in natural proportions, smaller if it is to be inside another.

    Args:
        things: The things.
        bonds: Relations between them.
        least: Least square root of a thing's area; 1 is the maximum, except for things that contain another.
        draw: Random generator of the share.
    """
    sizes = []
    inner = {first for first, side, _ in bonds if side == "in"}
    holders = {other for _, side, other in bonds if side == "in"}
    bearing = [(first, other) for first, side, other in bonds if side == "on"]
    for at, (_, name) in enumerate(things):
        aspect = ASPECTS[name]
        large = draw.uniform(least, 1.0) * (1.5 if at in holders - inner else 1.0)
        width = min(large * aspect**0.5, large * 1.35)
        sizes.append((width, width / aspect))
    for first, other in bearing:
        for crowd, beside, small in (
            ([a for a, b in bearing if b == other], other, first),
            ([b for a, b in bearing if a == first], first, other),
        ):
            if len(crowd) > 1:
                sizes[small] = _scaled(sizes[small], 0.85 * sizes[beside][0] / len(crowd) / sizes[small][0])
    for _ in range(3):  # for things nested several levels deep
        for first, side, other in bonds:
            if side == "in":
                crowd = [a for a, kind, b in bonds if kind == "in" and b == other]
                room = (0.6 if len(crowd) == 1 else 0.8 / len(crowd)) * sizes[other][0], 0.55 * sizes[other][1]
                sizes[first] = _scaled(sizes[first], min(room[0] / sizes[first][0], room[1] / sizes[first][1]))
    return sizes


def _scaled(size: tuple[float, float], scale: float) -> tuple[float, float]:
    least = min(1.0, scale)
    return size[0] * least, size[1] * least


def _walk(count: int, bonds: Sequence[Link]) -> list[int]:
    """Return the order of placing: things with most bonds first, then those related to placed ones."""
    ties = [_tied(bonds, at) - {at} for at in range(count)]
    order: list[int] = []
    while len(order) < count:
        near = [at for at in range(count) if at not in order and any(tie in order for tie in ties[at])]
        free = near or [at for at in range(count) if at not in order]
        order.append(max(free, key=lambda at: (sum(tie in order for tie in ties[at]), len(ties[at]), -at)))
    return order


def _order(count: int, bonds: Sequence[Link]) -> list[int]:
    """Return the order of painting: a thing in front of, on or in another comes after it."""
    below: dict[int, set[int]] = {at: set() for at in range(count)}
    for first, side, other in bonds:
        if side in ("in front of", "on", "in"):
            below[first].add(other)
        elif side == "behind":
            below[other].add(first)
    order: list[int] = []
    while len(order) < count:
        remaining = [at for at in range(count) if at not in order]
        order.append(next((at for at in remaining if below[at] <= set(order)), remaining[0]))
    return order


def _coloured(wish_list: WishList, things: Sequence[_Thing], bonds: Sequence[Link], draw: Random) -> list[str]:
    """Return a colour for each thing: the requested one, or else one not used by things it touches."""
    colours: list[str] = []
    touching = [(first, other) for first, side, other in bonds if side in _OVERLAP | {"on"}]
    for at, (wish, _) in enumerate(things):
        requested = wish_list.wishes[wish].colour
        beside = {other if first == at else first for first, other in touching if at in (first, other)}
        used = {wish_list.wishes[things[other][0]].colour for other in beside}
        used |= {colours[other] for other in beside if other < at}
        free = [colour for colour in COLOURS if colour not in used]
        drawn = free[draw.randrange(len(free))] if free else COLOURS[draw.randrange(len(COLOURS))]
        colours.append(requested or drawn)
    return colours


def _rounded(box: Area) -> Area:
    return (round(box[0], 5), round(box[1], 5), round(box[2], 5), round(box[3], 5))
