"""Items with known answers: the training round, and hidden catch items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import cv2
import numpy as np

from medtest.core.cases import Address, Image, Mask
from medtest.relations.controls.erasing import erase
from medtest.study.model import Item
from medtest.study.plan import generator, preferred
from medtest.study.questions import AGREE, ARTEFACTS, LEVELS, REJECT, Role, StudyKind
from medtest.study.workshop import LesionImage, Workshop, picture_of

_YES = [AGREE, LEVELS]
_NO = [1, REJECT]
_TRIES = 60

_MILD = (
    "The frame was changed ({name}), the lesion was not: the same finding is still there at the same place, so the "
    "diagnosis is the same."
)
_ERASED = (
    "The lesion is gone from the follow-up: Outline shows where it was, Flicker shows it coming and going. This "
    "frame no longer shows it, so the diagnosis is different."
)
_UNNATURAL = "The lesion is still there, but no examination shows tissue in such colours: this could not occur."
_MARKED = "This frame was made to show: {name} ({looks}). Other artefacts may be in it too."


@dataclass(frozen=True, kw_only=True)
class Extras:
    """Shared state of the functions below.

    Attributes:
        workshop: Provides the images.
        kind: Kind of the study.
        seed: Seed of the study.
        numbers: Yields item numbers.
        trained: Seeds of the training round.
    """

    workshop: Workshop
    kind: StudyKind
    seed: int
    numbers: Iterator[int]
    trained: list[Address] = field(default_factory=list)


def training_items(extras: Extras, count: int) -> list[Item]:
    """Return up to ``count`` training items; their seeds are left out of the study if enough others remain."""
    items = _training_pairs(extras, count) if extras.kind.compares else _marked(extras, count, "training")
    if len(extras.workshop.sources) > 4 * len(extras.trained):
        extras.workshop.leave_out(extras.trained)
    return items


def _drawn(extras: Extras, name: str, count: int) -> Iterator[Address]:
    return islice(preferred(extras.workshop.sources, generator(extras.seed, "extras", name)), count)


def _training_pairs(extras: Extras, count: int) -> list[Item]:
    """Return in turn a mild change, an erased lesion, impossible colours, another mild change, and so on."""
    items: list[Item] = []
    makers = (_mild, _erased, _unnatural, _mild)
    for turn, source in enumerate(_drawn(extras, "training", count)):
        item = makers[turn % len(makers)](extras, source, turn) or _mild(extras, source, turn)
        if item is not None:
            items.append(item)
            extras.trained.append(source)
    return items


def _mild(extras: Extras, source: Address, turn: int) -> Item | None:
    """Return a follow-up of the lowest severity, cycling through the relations."""
    shop = extras.workshop
    names = list(shop.addresses)
    for step in range(len(names)):
        name = names[(2 * turn + step) % len(names)]
        own = [a for a in shop.addresses[name] if (a.dataset, a.seed_id) == (source.dataset, source.seed_id)]
        address = min(own, key=lambda a: (a.severity, a.repeat), default=None)
        shown = None if address is None else shop.picture(address)
        if address is not None and shown is not None:
            words = _MILD.format(name=ARTEFACTS.get(shop.parts[name], (name,))[0].lower())
            expected = {"diagnosis": _YES, "words": words}
            return shop.item(next(extras.numbers), address, shown, phase="training", expected=expected)
    return None


def _erased(extras: Extras, source: Address, _: int) -> Item | None:
    shop = extras.workshop
    seed = shop.seed(source)
    rng = generator(extras.seed, "erase", source)
    gone = None if seed.mask is None else erase_lesion(seed.image, seed.mask, seed.frame, rng)
    if gone is None:
        return None
    return shop.item(
        next(extras.numbers),
        source,
        picture_of(gone, seed.mask),
        role=Role.ERASED,
        phase="training",
        expected={"diagnosis": _NO, "words": _ERASED},
    )


def _unnatural(extras: Extras, source: Address, _: int) -> Item | None:
    shop = extras.workshop
    seed = shop.seed(source)
    return shop.item(
        next(extras.numbers),
        source,
        picture_of(unnatural(seed.image, seed.frame), seed.mask),
        role=Role.UNNATURAL,
        phase="training",
        expected={"realism": _NO, "words": _UNNATURAL},
    )


def _marked(extras: Extras, count: int, name: str) -> list[Item]:
    """Return follow-ups of the highest severity, cycling through the artefacts, which have to be marked."""
    shop = extras.workshop
    names = [r for r in shop.addresses if shop.parts[r] in ARTEFACTS]
    rng = generator(extras.seed, "extras", name)
    items: list[Item] = []
    order = [names[i] for i in rng.permutation(len(names))]
    candidates = {relation: _severest(shop.addresses[relation], rng) for relation in order}
    for turn in range(count if order else 0):
        relation = order[turn % len(order)]
        for address in islice(candidates[relation], _TRIES):
            shown = shop.picture(address)
            if shown is not None:
                part = shop.parts[relation]
                title, looks = ARTEFACTS[part]
                expected = {"marks": [part], "words": _MARKED.format(name=title.lower(), looks=looks)}
                if name == "training":
                    extras.trained.append(address)
                items.append(
                    shop.item(
                        next(extras.numbers),
                        address,
                        shown,
                        role=Role.MARKED,
                        phase="training" if name == "training" else "main",
                        expected=expected,
                    )
                )
                break
    return items


def _severest(cases: Sequence[Address], rng: np.random.Generator) -> Iterator[Address]:
    """Yield a relation's follow-ups of its highest severity, each once."""
    top = max((a.severity for a in cases), default=0)
    return preferred([a for a in cases if a.severity == top], rng)


def catch_items(extras: Extras, count: int, notices: list[str]) -> list[Item]:
    """Return ``count`` catch items: half identical pairs, half follow-ups with an erased lesion."""
    if count == 0:
        return []
    if not extras.kind.compares:
        return _note_shortage(_marked(extras, count, "catch"), count, notices)
    erased = _erased_followups(extras, count // 2)
    if len(erased) < count // 2:
        notices.append(
            f"{len(erased)} of {count // 2} catch items have an erased lesion. The other seeds have no mask, or too "
            "little tissue to cover the lesion; identical pairs replace them."
        )
    return _note_shortage([*erased, *_identical(extras, count - len(erased))], count, notices)


def _note_shortage(items: list[Item], count: int, notices: list[str]) -> list[Item]:
    if len(items) < count:
        notices.append(f"{len(items)} of {count} catch items: the suite has no seeds for more.")
    return items


def _identical(extras: Extras, count: int) -> list[Item]:
    shop = extras.workshop
    items = []
    for source in _drawn(extras, "identical", count):
        seed = shop.seed(source)
        shown = LesionImage(image=seed.image, mask=seed.mask, sha256=seed.sha256)
        number = next(extras.numbers)
        items.append(shop.item(number, source, shown, role=Role.IDENTICAL, expected={"diagnosis": _YES}))
    return items


def _erased_followups(extras: Extras, count: int) -> list[Item]:
    shop = extras.workshop
    mild: list[Address] = []
    for cases in shop.addresses.values():
        low = min((a.severity for a in cases), default=0)
        mild += [a for a in cases if a.severity == low]
    items: list[Item] = []
    used: set[str] = set()
    for address in islice(preferred(mild, generator(extras.seed, "extras", "erased")), count * _TRIES):
        if len(items) == count:
            break
        shown = shop.picture(address)
        if shown is None or shown.mask is None or address.seed_id in used:
            continue
        frame = shop.seed(address).frame
        gone = erase_lesion(shown.image, shown.mask, frame, generator(extras.seed, "erase", address))
        if gone is None:
            continue
        used.add(address.seed_id)
        picture = picture_of(gone, shown.mask)
        items.append(shop.item(next(extras.numbers), address, picture, role=Role.ERASED, expected={"diagnosis": _NO}))
    return items


def erase_lesion(image: Image, lesion: Mask, frame: Mask, rng: np.random.Generator) -> Image | None:
    """Return the image with the lesion replaced by tissue, or None if there is no room (:func:`erase`).

    Args:
        image: uint8 H×W×3 RGB.
        lesion: bool H×W.
        frame: bool H×W, the black frame, which provides no tissue.
        rng: Random generator of the direction in which tissue is looked for first.
    """
    return erase(image, lesion, frame, float(rng.random()))


def unnatural(image: Image, frame: Mask) -> Image:
    """Return the image with hues inside the field rotated by 180°, so that tissue becomes blue and green."""
    hsv = cv2.cvtColor(image, cv2.COLOR_RGB2HSV)
    hsv[..., 0] = (hsv[..., 0].astype(np.int64) + 90) % 180
    turned = cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB)
    return np.where(frame[..., None], image, turned).astype(np.uint8)
