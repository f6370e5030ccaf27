"""Pictures of which somebody says what they show, and the card that a reader gets of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from medtest.core.cases import Image, image_sha256
from medtest.core.errors import BadOutput, MedtestError
from medtest.core.files.images import BadFileError, read_rgb
from medtest.core.scenes import Box, Entity, NamedTriple, Pool, Scene, SeenEntity, Triple, alphabetical, dumped
from medtest.language.captions.vocabulary import vg150
from medtest.readers.pictures.base import PictureContent, PictureReader
from medtest.readers.pictures.card import Card, CardCounts
from medtest.readers.pictures.detectors.coco import pool_class
from medtest.readers.pictures.spatial import PREDICATES, triples_of

LEAST_PIXELS: Final = 32 * 32
"""Area of a box above which a thing counts as there: COCO's line between small things and others."""
_LEAST_ASKED: Final = 4
_MOST_BYTES: Final = 512 << 20
_MOST_SIDE: Final = 100_000


@dataclass(frozen=True, kw_only=True)
class LabelledPicture:
    """A picture and what it shows.

    Attributes:
        name: What messages call it.
        pixels: Returns uint8 H×W×3 RGB; called once.
        truth: What it shows.
        doubtful: Classes of which its labels say neither presence nor absence.
    """

    name: str
    pixels: Callable[[], Image]
    truth: Scene
    doubtful: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LabelledPictures:
    """Pictures that are labelled alike.

    Attributes:
        pictures: The pictures.
        classes: Classes that the labels speak of, as pools name them.
        predicates: Predicates that they speak of; empty where they say no relations.
        attributes: The same of attributes.
        data: What they are, in words, for people who read the card.
    """

    pictures: Sequence[LabelledPicture]
    classes: frozenset[str]
    predicates: frozenset[str] = frozenset()
    attributes: frozenset[str] = frozenset()
    data: str = ""


# --------------------------------------------------------------------------------------------------------- COCO's files


def coco_pictures(place: Path, *, limit: int | None = None) -> LabelledPictures:
    """Return pictures that are labelled with boxes as COCO's are.

    Two layouts are read: COCO's own (``images``, ``annotations``, ``categories``), and a list of ``{"file", "width",
    "height", "objects": [{"class", "box_xywh"}]}``. Things no larger than :data:`LEAST_PIXELS` make a class doubtful.
    Relations are those that boxes tell (:mod:`medtest.readers.pictures.spatial`); where entries of the list have
    ``"triples": [[0, "riding", 1]]``, by the places of their objects, they are these and no others. Its objects may
    have ``"attributes": ["red"]``.

    Args:
        place: The JSON file, or a folder with one: ``annotations.json``, ``instances*.json``, also in ``annotations/``.
        limit: Most pictures, the first ones; None for all.

    Raises:
        MedtestError: There is no such file, it is something else, or a picture is missing.
    """
    path = _labels_file(place)
    entries, classes = _entries(path)
    pictures = [_labelled(one, path, place) for one in entries[:limit]]
    every = frozenset(pool_class(name) for name in classes)
    count = "1 picture" if len(pictures) == 1 else f"{len(pictures):,} pictures"
    said = [name for one in entries for _, name, _ in one.triples or ()]
    return LabelledPictures(
        pictures=pictures,
        classes=every,
        predicates=frozenset(PREDICATES if all(one.triples is None for one in entries) else said),
        attributes=frozenset(name for one in entries for its in one.attributes.values() for name in its),
        data=f"{count} of {path.name}",
    )


def _labels_file(place: Path) -> Path:
    if place.is_file():
        return place
    inside = [place / "annotations.json", *sorted(place.glob("instances*.json"))]
    inside += sorted((place / "annotations").glob("instances*.json"))
    found = [path for path in inside if path.is_file()]
    if not found:
        raise MedtestError(f"{place.name}: holds no annotations.json and no instances*.json")
    return found[0]


@dataclass(frozen=True, kw_only=True)
class _Entry:
    """A picture's labels as the file has them: boxes are left, top, width, height in pixels; a crowd has None."""

    file: str
    width: float
    height: float
    things: list[tuple[str, tuple[float, float, float, float] | None]]
    attributes: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    triples: list[tuple[int, str, int]] | None = None


def _entries(path: Path) -> tuple[list[_Entry], frozenset[str]]:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ValueError("the file is larger than labels are")
        value = json.loads(path.read_bytes())
        entries = _own(value) if isinstance(value, list) else _coco(value)
        classes = [name for one in entries for name, _ in one.things]
        if isinstance(value, dict):
            classes = [str(one["name"]) for one in value["categories"]]
        for one in entries:
            if not (0 < one.width <= _MOST_SIDE and 0 < one.height <= _MOST_SIDE):
                raise ValueError(f"{one.file[:80]} has no size")
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise MedtestError(
            f"{path.name}: no labels as COCO's, nor a list of file, width, height, objects ({error})"
        ) from None
    if not entries:
        raise MedtestError(f"{path.name}: names no picture")
    return entries, frozenset(classes)


def _own(value: Sequence[Mapping[str, Any]]) -> list[_Entry]:
    return [
        _Entry(
            file=str(one["file"]),
            width=float(one["width"]),
            height=float(one["height"]),
            things=[(str(thing["class"]), _numbers(thing["box_xywh"])) for thing in one["objects"]],
            attributes={
                place: alphabetical(map(str, thing["attributes"]))
                for place, thing in enumerate(one["objects"])
                if "attributes" in thing
            },
            triples=_triples(one["triples"], len(one["objects"])) if "triples" in one else None,
        )
        for one in value
    ]


def _coco(value: Mapping[str, Any]) -> list[_Entry]:
    names = {one["id"]: str(one["name"]) for one in value["categories"]}
    entries = {
        one["id"]: _Entry(file=str(one["file_name"]), width=float(one["width"]), height=float(one["height"]), things=[])
        for one in value["images"]
    }
    for one in value["annotations"]:
        box = None if one.get("iscrowd") else _numbers(one["bbox"])
        entries[one["image_id"]].things.append((names[one["category_id"]], box))
    return list(entries.values())


def _triples(told: Sequence[Any], things: int) -> list[tuple[int, str, int]]:
    found = [(int(a), str(predicate), int(b)) for a, predicate, b in told]
    if any(not (0 <= a < things and 0 <= b < things) for a, _, b in found):
        raise ValueError("a triple names an object that is not there")
    return [(a, vg150().predicate_of(predicate) or predicate, b) for a, predicate, b in found]


def _numbers(box: Sequence[Any]) -> tuple[float, float, float, float]:
    left, top, width, height = (float(one) for one in box)
    if not np.isfinite([left, top, width, height]).all() or width < 0 or height < 0:
        raise ValueError(f"{list(box)!r} is no box")
    return left, top, width, height


def _labelled(entry: _Entry, labels: Path, place: Path) -> LabelledPicture:
    folders = [labels.parent, labels.parent / "images", labels.parent.parent, labels.parent.parent / "images"]
    folders += [labels.parent.parent / labels.stem.rpartition("_")[2]]
    if Path(entry.file).is_absolute() or ".." in Path(entry.file).parts:
        raise MedtestError(f"{labels.name}: {entry.file[:80]} does not lie below the folder")
    path = next((folder / entry.file for folder in folders if (folder / entry.file).is_file()), None)
    if path is None:
        raise MedtestError(f"{labels.name}: the picture {entry.file[:80]} is missing")
    large = [place for place, (_, box) in enumerate(entry.things) if box is None or box[2] * box[3] > LEAST_PIXELS]
    entities = tuple(
        SeenEntity(
            name=pool_class(entry.things[place][0]),
            box=_shares(entry.things[place][1], entry),
            attributes=entry.attributes.get(place, ()),
        )
        for place in large
    )
    triples = triples_of(entities, entry.width / entry.height)
    if entry.triples is not None:
        at = {place: index for index, place in enumerate(large)}
        told = [(at[a], name, at[b]) for a, name, b in entry.triples if a in at and b in at]
        triples = tuple(Triple(subject=a, predicate=name, object=b) for a, name, b in told)
    truth = Scene(entities=entities, triples=triples)
    there = {one.name for one in entities}
    small = {pool_class(name) for name, _ in entry.things} - there
    return LabelledPicture(name=entry.file, pixels=partial(_read, path), truth=truth, doubtful=tuple(sorted(small)))


def _shares(box: tuple[float, float, float, float] | None, entry: _Entry) -> Box | None:
    if box is None:
        return None
    left, top, width, height = box
    edges = np.array([left, top, left + width, top + height]) / ([entry.width, entry.height] * 2)
    edges = np.clip(edges, 0.0, 1.0)
    return float(edges[0]), float(edges[1]), float(edges[2]), float(edges[3])


def _read(path: Path) -> Image:
    try:
        return read_rgb(path)
    except (BadFileError, OSError) as error:
        raise MedtestError(f"{path.name}: {error}") from None


# ------------------------------------------------------------------------------------------------------------ the card


def make_card(
    reader: PictureReader,
    labelled: LabelledPictures,
    *,
    seed: int = 0,
    progress: Callable[[int], None] = lambda done: None,
) -> Card:
    """Return a reader's card on labelled pictures.

    A reader that is told words is asked about what is there and about as much that is not, in two pools, as a case and
    its source would; what it was not asked is in no row.

    Args:
        reader: Opened. What it sees is not restricted by a card that it may have.
        labelled: The pictures.
        seed: Draws what a reader is asked that is not there.
        progress: Told how many pictures were looked at.

    Raises:
        MedtestError: A picture cannot be read, or the reader breaks on one.
    """
    counts = CardCounts(classes=labelled.classes, predicates=labelled.predicates, attributes=labelled.attributes)
    for start in range(0, len(labelled.pictures), reader.at_once):
        batch = labelled.pictures[start : start + reader.at_once]
        images = [one.pixels() for one in batch]
        asked = [_asked(one, labelled, seed, start + at) if reader.asks_words else () for at, one in enumerate(batch)]
        contents = [
            PictureContent(image_sha256(image), tuple(dumped(pool.as_json()) for pool in pools))
            for image, pools in zip(images, asked, strict=True)
        ]
        for one, pools, seen in zip(batch, asked, _seen(reader, images, contents, batch), strict=True):
            counts.add(one.truth, seen, seen.tells, doubtful=one.doubtful, **_asked_of(pools))
        progress(start + len(batch))
    return counts.card(data=labelled.data, reader=reader.print_without_card)


def _asked_of(pools: Sequence[Pool]) -> dict[str, Any]:
    """Return which relations and attributes were asked about; nothing of a reader that is not asked."""
    if not pools:
        return {}
    things = [one for pool in pools for one in pool.entities]
    return {
        "asked": {triple for pool in pools for triple in pool.named()},
        "asked_attributes": {(one.name, attribute) for one in things for attribute in one.attributes},
    }


def _seen(
    reader: PictureReader,
    images: Sequence[Image],
    contents: Sequence[PictureContent],
    batch: Sequence[LabelledPicture],
) -> Sequence[Scene]:
    try:
        return reader.look(images, contents)
    except BadOutput as error:
        names = ", ".join(one.name for one in batch[:3]) + (", …" if len(batch) > 3 else "")
        raise MedtestError(f"{reader.name} {error} ({names})") from error


def _asked(picture: LabelledPicture, labelled: LabelledPictures, seed: int, index: int) -> tuple[Pool, Pool]:
    """Return what is there, and what is not, as pools."""
    rng = np.random.default_rng([seed, index])
    there = sorted(set(picture.truth.names()) - set(picture.doubtful))
    absent = sorted(labelled.classes - set(there) - set(picture.doubtful))
    drawn = sorted(rng.permutation(len(absent))[: max(len(there), _LEAST_ASKED)].tolist())
    said = {name: sorted(_attributes(picture.truth, name)) for name in there}
    wrong = {name: _others(labelled.attributes, said[name], rng) for name in there}
    true = [Entity(name=name, attributes=tuple(said[name])) for name in there]
    false = [Entity(name=name, attributes=tuple(wrong[name])) for name in there]
    triples = _told(picture.truth, there)
    named = {(there[one.subject], one.predicate, there[one.object]) for one in triples}
    return (
        Pool(entities=tuple(true), triples=tuple(triples)),
        Pool(
            entities=(*false, *(Entity(name=absent[place]) for place in drawn)),
            triples=tuple(_untrue(triples, there, named, sorted(labelled.predicates), rng)),
        ),
    )


def _attributes(scene: Scene, name: str) -> set[str]:
    return {attribute for one in scene.entities if one.name == name for attribute in one.attributes}


def _others(every: frozenset[str], true: Sequence[str], rng: np.random.Generator) -> list[str]:
    """Return as many attributes that are not true as are."""
    rest = sorted(every - set(true))
    return sorted(rest[place] for place in rng.permutation(len(rest))[: len(true)])


def _told(scene: Scene, there: Sequence[str]) -> list[Triple]:
    """Return the relations between different classes, each once, by index among the classes."""
    places = {name: index for index, name in enumerate(there)}
    named = {one for one in scene.named() if one[0] != one[2] and one[0] in places and one[2] in places}
    return [Triple(subject=places[a], predicate=predicate, object=places[b]) for a, predicate, b in sorted(named)]


def _untrue(
    true: Sequence[Triple],
    there: Sequence[str],
    named: set[NamedTriple],
    predicates: Sequence[str],
    rng: np.random.Generator,
) -> Iterator[Triple]:
    """Yield for each relation one of the same predicate that does not hold, where there is one among what is there."""
    taken = set(named)
    for one in true:
        pairs = [
            (a, b)
            for a in range(len(there))
            for b in range(len(there))
            if a != b and (there[a], one.predicate, there[b]) not in taken
        ]
        if pairs:
            a, b = pairs[int(rng.integers(len(pairs)))]
            taken.add((there[a], one.predicate, there[b]))
            yield replace(one, subject=a, object=b)
