"""Labelled pictures, and the card of a reader based on them."""

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
"""Area of a box above which an object counts as present: COCO's limit for small objects."""
_LEAST_ASKED: Final = 4
_MOST_BYTES: Final = 512 << 20
_MOST_SIDE: Final = 100_000


@dataclass(frozen=True, kw_only=True)
class LabelledPicture:
    """A picture with its labels.

    Attributes:
        name: Name for messages.
        pixels: Returns uint8 H×W×3 RGB; called once.
        truth: What the picture shows.
        doubtful: Classes for which the labels claim neither presence nor absence.
    """

    name: str
    pixels: Callable[[], Image]
    truth: Scene
    doubtful: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LabelledPictures:
    """Pictures with the same kind of labels.

    Attributes:
        pictures: The pictures.
        classes: Classes covered by the labels, named as in pools.
        predicates: Predicates covered by the labels; empty if there are no relations.
        attributes: Attributes covered by the labels.
        data: Description for people who read the card.
    """

    pictures: Sequence[LabelledPicture]
    classes: frozenset[str]
    predicates: frozenset[str] = frozenset()
    attributes: frozenset[str] = frozenset()
    data: str = ""


# -------------------------------------------------------------------------------------------------------- COCO's files


def coco_pictures(place: Path, *, limit: int | None = None) -> LabelledPictures:
    """Return pictures with box labels in the style of COCO.

    Two layouts are supported: COCO's own (``images``, ``annotations``, ``categories``), and a list of ``{"file",
    "width", "height", "objects": [{"class", "box_xywh"}]}``. Objects no larger than :data:`LEAST_PIXELS` make a class
    doubtful. Relations follow from boxes (:mod:`medtest.readers.pictures.spatial`); if entries of the list have
    ``"triples": [[0, "riding", 1]]``, by index of the objects, only these are used. Objects in the list may have
    ``"attributes": ["red"]``.

    Args:
        place: The JSON file, or a folder that contains one: ``annotations.json`` or ``instances*.json``, also in
            ``annotations/``.
        limit: Maximum number of pictures, taken from the start; None for all.

    Raises:
        MedtestError: The file is missing or unsuitable, or a picture is missing.
    """
    path = _labels_file(place)
    entries, classes = _entries(path)
    pictures = [_labelled(entry, path, place) for entry in entries[:limit]]
    every = frozenset(pool_class(name) for name in classes)
    count = "1 picture" if len(pictures) == 1 else f"{len(pictures):,} pictures"
    relation_names = [name for entry in entries for _, name, _ in entry.triples or ()]
    return LabelledPictures(
        pictures=pictures,
        classes=every,
        predicates=frozenset(PREDICATES if all(entry.triples is None for entry in entries) else relation_names),
        attributes=frozenset(name for entry in entries for its in entry.attributes.values() for name in its),
        data=f"{count} of {path.name}",
    )


def _labels_file(place: Path) -> Path:
    if place.is_file():
        return place
    inside = [place / "annotations.json", *sorted(place.glob("instances*.json"))]
    inside += sorted((place / "annotations").glob("instances*.json"))
    files = [path for path in inside if path.is_file()]
    if not files:
        raise MedtestError(f"{place.name}: holds no annotations.json and no instances*.json")
    return files[0]


@dataclass(frozen=True, kw_only=True)
class _Entry:
    """A picture's labels in the file: boxes are left, top, width, height in pixels; a crowd has None."""

    file: str
    width: float
    height: float
    objects: list[tuple[str, tuple[float, float, float, float] | None]]
    attributes: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    triples: list[tuple[int, str, int]] | None = None


def _entries(path: Path) -> tuple[list[_Entry], frozenset[str]]:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ValueError("the file is larger than labels are")
        value = json.loads(path.read_bytes())
        entries = _list_entries(value) if isinstance(value, list) else _coco(value)
        classes = [name for entry in entries for name, _ in entry.objects]
        if isinstance(value, dict):
            classes = [str(category["name"]) for category in value["categories"]]
        for entry in entries:
            if not (0 < entry.width <= _MOST_SIDE and 0 < entry.height <= _MOST_SIDE):
                raise ValueError(f"{entry.file[:80]} has no size")
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise MedtestError(
            f"{path.name}: no labels as COCO's, nor a list of file, width, height, objects ({error})"
        ) from None
    if not entries:
        raise MedtestError(f"{path.name}: names no picture")
    return entries, frozenset(classes)


def _list_entries(value: Sequence[Mapping[str, Any]]) -> list[_Entry]:
    return [
        _Entry(
            file=str(entry["file"]),
            width=float(entry["width"]),
            height=float(entry["height"]),
            objects=[
                (str(labelled_object["class"]), _numbers(labelled_object["box_xywh"]))
                for labelled_object in entry["objects"]
            ],
            attributes={
                place: alphabetical(map(str, labelled_object["attributes"]))
                for place, labelled_object in enumerate(entry["objects"])
                if "attributes" in labelled_object
            },
            triples=_triples(entry["triples"], len(entry["objects"])) if "triples" in entry else None,
        )
        for entry in value
    ]


def _coco(value: Mapping[str, Any]) -> list[_Entry]:
    names = {category["id"]: str(category["name"]) for category in value["categories"]}
    entries = {
        picture["id"]: _Entry(
            file=str(picture["file_name"]), width=float(picture["width"]), height=float(picture["height"]), objects=[]
        )
        for picture in value["images"]
    }
    for annotation in value["annotations"]:
        box = None if annotation.get("iscrowd") else _numbers(annotation["bbox"])
        entries[annotation["image_id"]].objects.append((names[annotation["category_id"]], box))
    return list(entries.values())


def _triples(raw_triples: Sequence[Any], object_count: int) -> list[tuple[int, str, int]]:
    triples = [(int(a), str(predicate), int(b)) for a, predicate, b in raw_triples]
    if any(not (0 <= a < object_count and 0 <= b < object_count) for a, _, b in triples):
        raise ValueError("a triple names an object that is not there")
    return [(a, vg150().predicate_of(predicate) or predicate, b) for a, predicate, b in triples]


def _numbers(box: Sequence[Any]) -> tuple[float, float, float, float]:
    left, top, width, height = (float(number) for number in box)
    if not np.isfinite([left, top, width, height]).all() or width < 0 or height < 0:
        raise ValueError(f"{list(box)!r} is not a box")
    return left, top, width, height


def _labelled(entry: _Entry, labels: Path, place: Path) -> LabelledPicture:
    folders = [labels.parent, labels.parent / "images", labels.parent.parent, labels.parent.parent / "images"]
    folders += [labels.parent.parent / labels.stem.rpartition("_")[2]]
    if Path(entry.file).is_absolute() or ".." in Path(entry.file).parts:
        raise MedtestError(f"{labels.name}: {entry.file[:80]} is not in the folder")
    path = next((folder / entry.file for folder in folders if (folder / entry.file).is_file()), None)
    if path is None:
        raise MedtestError(f"{labels.name}: the picture {entry.file[:80]} is missing")
    large = [place for place, (_, box) in enumerate(entry.objects) if box is None or box[2] * box[3] > LEAST_PIXELS]
    entities = tuple(
        SeenEntity(
            name=pool_class(entry.objects[place][0]),
            box=_shares(entry.objects[place][1], entry),
            attributes=entry.attributes.get(place, ()),
        )
        for place in large
    )
    triples = triples_of(entities, entry.width / entry.height)
    if entry.triples is not None:
        at = {place: index for index, place in enumerate(large)}
        kept_triples = [(at[a], name, at[b]) for a, name, b in entry.triples if a in at and b in at]
        triples = tuple(Triple(subject=a, predicate=name, object=b) for a, name, b in kept_triples)
    truth = Scene(entities=entities, triples=triples)
    present = {entity.name for entity in entities}
    small = {pool_class(name) for name, _ in entry.objects} - present
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


# ---------------------------------------------------------------------------------------------------------------- card


def make_card(
    reader: PictureReader,
    labelled: LabelledPictures,
    *,
    seed: int = 0,
    progress: Callable[[int], None] = lambda done: None,
) -> Card:
    """Return a reader's card from labelled pictures.

    A reader that receives words is asked about what is present and about as many absent things, in two pools, like
    those of a case and its source; what it was not asked about has no rows.

    Args:
        reader: An open reader. Its own card, if any, is not applied.
        labelled: The pictures.
        seed: Seed for drawing the absent things to ask about.
        progress: Called with the number of pictures done.

    Raises:
        MedtestError: A picture cannot be read, or the reader fails on one.
    """
    counts = CardCounts(classes=labelled.classes, predicates=labelled.predicates, attributes=labelled.attributes)
    for start in range(0, len(labelled.pictures), reader.at_once):
        batch = labelled.pictures[start : start + reader.at_once]
        images = [picture.pixels() for picture in batch]
        pool_pairs = [
            _pools_to_ask(picture, labelled, seed, start + at) if reader.asks_words else ()
            for at, picture in enumerate(batch)
        ]
        contents = [
            PictureContent(image_sha256(image), tuple(dumped(pool.as_json()) for pool in pools))
            for image, pools in zip(images, pool_pairs, strict=True)
        ]
        for picture, pools, scene in zip(batch, pool_pairs, _scenes(reader, images, contents, batch), strict=True):
            counts.add(picture.truth, scene, scene.tells, doubtful=picture.doubtful, **_questions_asked(pools))
        progress(start + len(batch))
    return counts.card(data=labelled.data, reader=reader.print_without_card)


def _questions_asked(pools: Sequence[Pool]) -> dict[str, Any]:
    """Return the relations and attributes that were asked about; empty for a reader that is not asked."""
    if not pools:
        return {}
    entities = [entity for pool in pools for entity in pool.entities]
    return {
        "asked_relations": {triple for pool in pools for triple in pool.named()},
        "asked_attributes": {(entity.name, attribute) for entity in entities for attribute in entity.attributes},
    }


def _scenes(
    reader: PictureReader,
    images: Sequence[Image],
    contents: Sequence[PictureContent],
    batch: Sequence[LabelledPicture],
) -> Sequence[Scene]:
    try:
        return reader.look(images, contents)
    except BadOutput as error:
        names = ", ".join(picture.name for picture in batch[:3]) + (", …" if len(batch) > 3 else "")
        raise MedtestError(f"{reader.name} {error} ({names})") from error


def _pools_to_ask(picture: LabelledPicture, labelled: LabelledPictures, seed: int, index: int) -> tuple[Pool, Pool]:
    """Return the present and the absent objects as pools."""
    rng = np.random.default_rng([seed, index])
    present = sorted(set(picture.truth.names()) - set(picture.doubtful))
    absent = sorted(labelled.classes - set(present) - set(picture.doubtful))
    drawn = sorted(rng.permutation(len(absent))[: max(len(present), _LEAST_ASKED)].tolist())
    true_attributes = {name: sorted(_attributes(picture.truth, name)) for name in present}
    wrong = {name: _others(labelled.attributes, true_attributes[name], rng) for name in present}
    true = [Entity(name=name, attributes=tuple(true_attributes[name])) for name in present]
    false = [Entity(name=name, attributes=tuple(wrong[name])) for name in present]
    triples = _class_relations(picture.truth, present)
    named = {(present[triple.subject], triple.predicate, present[triple.object]) for triple in triples}
    return (
        Pool(entities=tuple(true), triples=tuple(triples)),
        Pool(
            entities=(*false, *(Entity(name=absent[place]) for place in drawn)),
            triples=tuple(_false_relations(triples, present, named, sorted(labelled.predicates), rng)),
        ),
    )


def _attributes(scene: Scene, name: str) -> set[str]:
    return {attribute for entity in scene.entities if entity.name == name for attribute in entity.attributes}


def _others(every: frozenset[str], true: Sequence[str], rng: np.random.Generator) -> list[str]:
    """Return as many false attributes as there are true ones."""
    rest = sorted(every - set(true))
    return sorted(rest[place] for place in rng.permutation(len(rest))[: len(true)])


def _class_relations(scene: Scene, classes: Sequence[str]) -> list[Triple]:
    """Return the relations between different classes, without duplicates, by index among the classes."""
    places = {name: index for index, name in enumerate(classes)}
    named = {
        triple for triple in scene.named() if triple[0] != triple[2] and triple[0] in places and triple[2] in places
    }
    return [Triple(subject=places[a], predicate=predicate, object=places[b]) for a, predicate, b in sorted(named)]


def _false_relations(
    true: Sequence[Triple],
    classes: Sequence[str],
    named: set[NamedTriple],
    predicates: Sequence[str],
    rng: np.random.Generator,
) -> Iterator[Triple]:
    """Yield for each relation one with the same predicate that does not hold between present objects, if any."""
    used = set(named)
    for triple in true:
        pairs = [
            (a, b)
            for a in range(len(classes))
            for b in range(len(classes))
            if a != b and (classes[a], triple.predicate, classes[b]) not in used
        ]
        if pairs:
            a, b = pairs[int(rng.integers(len(pairs)))]
            used.add((classes[a], triple.predicate, classes[b]))
            yield replace(triple, subject=a, object=b)
