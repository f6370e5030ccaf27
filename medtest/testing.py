"""Support for testing parts in other packages: synthetic seeds, relations with their defaults, contract checks.

Nothing here loads a network or reads image files.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import cv2
import numpy as np

from medtest.core.cases import (
    CONTROLS,
    REMOVE,
    Address,
    Classes,
    FollowUp,
    Params,
    Peers,
    PreparedSeed,
    Prompt,
    Seed,
    SeedRef,
    image_sha256,
)
from medtest.core.errors import BadOutput, NotApplicable
from medtest.core.oracles.dots import dot_pattern, dot_shift
from medtest.core.plugins import part
from medtest.core.probes import CraftCase, Probe
from medtest.core.scenes import Entity, difference, pool_of
from medtest.core.tasks.base import SystemInput, task_of
from medtest.preparation.prepare import prepare
from medtest.relations.base import PUBLISHED_SEVERITY, CraftedRelation, Relation
from medtest.relations.calibration.relation import calibrated
from medtest.relations.corruptions.warp import crop_corner, wide_picture
from medtest.relations.series import follow_up
from medtest.runner.units.parts import check_follow_up
from medtest.suite.reading.library import deep_merge
from medtest.systems.base import Missing, System

SUITE_SEED = 20261121
"""Suite seed of everything drawn here."""
_CLASSES = Classes(names=("healthy", "lesion"))
_OFF_LESIONS = ("objects", "non_objects")
"""Groups of relations that add something to a picture."""
_FRAMES = 3
"""Number of checked frames of a sequence."""


def load_relation(name: str, **settings: Any) -> Relation:
    """Return an installed relation with the defaults of its YAML file.

    Args:
        name: Name in suites.
        settings: Settings of a suite: ``severities=[1, 3]``; mappings are merged with the defaults.

    Raises:
        UserMistakes: No relation has this name.
        ValueError: The settings are invalid.
    """
    info = part("relations", name)
    relation_class = info.load()
    return calibrated(relation_class(relation_class.Settings(**deep_merge(info.defaults, settings))))


def check_relation(
    relation: Relation, seed: PreparedSeed, *, may_skip: bool = False, probe: Probe | None = None
) -> tuple[FollowUp, ...]:
    """Check the contract of every relation on one seed: each severity, with two draws of each.

    * One address always gives the same bytes, in any order of calls; stored parameters reproduce them.
    * The image keeps shape and dtype and shares no memory with the seed, which is not modified.
    * The black frame is unchanged, unless ``touches_frame``; relations that add objects leave lesions uncovered.
    * Parameters are JSON; scale and facts are finite numbers; the effect is none, move, warp or add, for prompts the
      difference of the pools (``scene``), for controls remove.
    * Pixels are where the effect says: a pattern of dots in place of the image moves as declared, within one pixel
      (:mod:`medtest.core.oracles.dots`). Not for relations without ``tells_places``.
    * The scale belongs to the severity and grows with it.
    * The relation can be pickled, since workers are processes of their own.
    * A relation that needs a system documents its crafting (``crafting``), needs no more than the probe gives, and
      draws only from its parameters; it is crafted one case at a time, as its pixels may depend on the batch.

    Args:
        relation: The relation, as from :func:`load_relation`.
        seed: Any seed, such as :func:`synthetic_seed`.
        may_skip: Whether it may be inapplicable to this seed at all severities.
        probe: Probe for a relation that needs a system, from ``medtest.systems.pytorch.probe.probe_of`` or your own.

    Returns:
        The follow-ups, for further checks.

    Raises:
        AssertionError: The contract is broken; the message says where.
    """
    before = _arrays(seed)
    copied = {name: value.copy() for name, value in before.items()}
    fresh = replace(seed, **copied, _memo={})
    addresses = list(_addresses(relation, seed))
    results = {address: _make(relation, seed, address, probe) for address in addresses}
    again = {address: _make(relation, fresh, address, probe) for address in reversed(addresses)}
    name, after = type(relation).__name__, _arrays(seed)
    _require(all(np.array_equal(before[key], after[key]) for key in before), name, "it wrote to the seed's arrays")
    scales: dict[int, float] = {}
    for address, result in results.items():
        where = f"{address.relation}, severity {address.severity}, frame {address.frame}, repeat {address.repeat}"
        other = again[address]
        if isinstance(result, str) or isinstance(other, str):
            _require(result == other, where, "one address is applicable in one call and not in another")
            _require(bool(result), where, "NotApplicable is raised without a reason")
            continue
        _check_one(relation, seed, result, where)
        unequal = "one address gives other bytes when it is made again; draw from rng alone"
        _require(_same(result, other), where, unequal)
        stored = json.loads(json.dumps(dict(result.params), allow_nan=False))
        crafted = isinstance(relation, CraftedRelation)
        _require(not crafted or result.crafting is not None, where, "it was crafted, and crafting does not say how")
        replayed = _applied(relation, fresh, stored, probe)
        _require(_same(result, replayed), where, "the stored parameters give other bytes; draw in sample alone")
        if address.severity != PUBLISHED_SEVERITY:
            first_scale = scales.setdefault(address.severity, result.scale)
            unequal = f"the scale is {result.scale:g} and {first_scale:g} in another draw"
            _require(first_scale == result.scale, where, unequal)
    grown = [scales[severity] for severity in sorted(scales)]
    rises = all(low < high for low, high in zip([0.0, *grown], grown, strict=False))
    _require(rises or relation.group in ("floor", CONTROLS), name, f"scales do not grow from 0: {grown}")
    follow_ups = tuple(result for result in results.values() if isinstance(result, FollowUp))
    for address, result in results.items():
        if isinstance(result, FollowUp) and address.repeat == 0 and address.severity == max(relation.severities()):
            _check_places(relation, seed, result, probe)
    _check_pickling(relation, name)
    reasons = sorted({result for result in results.values() if isinstance(result, str)})
    _require(bool(follow_ups) or may_skip, name, f"has no room on this seed: {', '.join(reasons)}")
    return follow_ups


def check_system(system: System, seed: PreparedSeed, *, device: str = "cpu") -> tuple[Any, ...]:
    """Check the contract of a system that answers pictures, on a source and a darker follow-up, each queried twice.

    * Every answer passes the check of its task, or is :class:`medtest.systems.base.Missing`.
    * Equal pictures get equal answers and are not modified.

    Args:
        system: The system, not opened.
        seed: Any seed of its task.
        device: ``"cpu"`` or ``"cuda:N"``.

    Returns:
        The raw answers, for further checks.

    Raises:
        AssertionError: The contract is broken.
        BadOutput: An answer is invalid; the message says why.
    """
    images = [seed.image.copy(), (seed.image // 2).astype(seed.image.dtype)]
    addresses = [_address(seed, "source", 0), _address(seed, "darker", 1)]
    hashes = [image_sha256(image) for image in images]
    system.kind = seed.kind
    system.open(device=device, threads=1)
    try:
        twice = [list(system.answer_batch(images, [seed.spec] * 2, addresses)) for _ in range(2)]
        for image, first, second in zip(images, *twice, strict=True):
            if not isinstance(first, Missing):
                shown = SystemInput(image=image, spec=seed.spec, classes=seed.classes)
                checked = [vars(system.task.border.check(raw, shown, system)) for raw in (first, second)]
                same = all(np.array_equal(value, checked[1][name]) for name, value in checked[0].items())
                _require(same, system.name, "answers differently when asked again")
    finally:
        system.close()
    _require(hashes == [image_sha256(image) for image in images], system.name, "changed its input pictures")
    return tuple(twice[0])


def _addresses(relation: Relation, seed: PreparedSeed) -> Iterator[Address]:
    name = type(relation).__name__.lower()
    for severity in relation.severities():
        for frame in range(min(relation.frames(), _FRAMES)):
            for repeat in range(2):
                yield replace(_address(seed, name, severity), frame=frame, repeat=repeat)


def _address(seed: PreparedSeed, relation: str, severity: int) -> Address:
    return Address(dataset=seed.ref.dataset, seed_id=seed.ref.seed_id, relation=relation, severity=severity)


def _make(relation: Relation, seed: PreparedSeed, address: Address, probe: Probe | None) -> FollowUp | str:
    try:
        if isinstance(relation, CraftedRelation):
            params = relation.sample(seed, address.severity, relation.generator(address, SUITE_SEED))
            return _crafted(relation, seed, params, probe)
        return follow_up(relation, seed, address, SUITE_SEED)
    except NotApplicable as reason:
        return str(reason)


def _applied(relation: Relation, seed: PreparedSeed, params: Params, probe: Probe | None) -> FollowUp:
    if isinstance(relation, CraftedRelation):
        return _crafted(relation, seed, params, probe)
    return relation.apply(seed, params)


def _crafted(relation: CraftedRelation, seed: PreparedSeed, params: Params, probe: Probe | None) -> FollowUp:
    name = type(relation).__name__
    if probe is None:
        raise AssertionError(f"{name}: it needs the {relation.needs} of a system: give a probe")
    _require(probe.gives.rank >= relation.needs.rank, name, f"it needs {relation.needs}, the probe gives {probe.gives}")
    follow_ups = relation.craft([CraftCase(seed=seed, params=params)], probe)
    _require(len(follow_ups) == 1, name, f"craft gave {len(follow_ups)} follow-ups for one case")
    if isinstance(follow_ups[0], Exception):
        raise follow_ups[0]
    return follow_ups[0]


def _check_one(relation: Relation, seed: PreparedSeed, result: FollowUp, where: str) -> None:
    try:
        check_follow_up(result, seed)
    except BadOutput as error:
        raise AssertionError(f"{where}: {error}") from None
    _require(not np.shares_memory(result.image, seed.image), where, "the image is the seed's own memory; return a copy")
    _require(result.scale >= 0, where, f"the scale {result.scale:g} is below 0")
    _check_effect(relation, seed, result, where)
    facts = [name for name, value in result.facts.items() if not np.isfinite(value)]
    _require(not facts, where, f"facts are not finite numbers: {', '.join(facts)}")
    if not relation.touches_frame:
        unchanged = np.array_equal(result.image[seed.frame], seed.image[seed.frame])
        _require(unchanged, where, "the black frame changed; leave seed.frame alone, or say touches_frame")
    if relation.group in _OFF_LESIONS and seed.mask is not None:
        _require(np.array_equal(result.image[seed.mask], seed.image[seed.mask]), where, "something covers the lesion")


def _check_pickling(relation: Relation, name: str) -> None:
    try:
        pickle.dumps(relation)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise AssertionError(f"{name}: workers cannot receive it, {error}") from None


def _check_effect(relation: Relation, seed: PreparedSeed, result: FollowUp, where: str) -> None:
    effect = result.effect
    if seed.prompt is None or result.prompt is None:
        kinds = (REMOVE,) if relation.control else ("none", "move", "warp", "add")
        _require(effect.kind in kinds, where, f"the effect {effect.kind!r} is not a kind")
        return
    if relation.control:
        _require(effect.kind == REMOVE, where, f"the effect of a control is remove, not {effect.kind!r}")
        return
    foreign = f"the effect {effect.kind!r} is not a scene's; make follow-ups with change()"
    _require(effect.kind == "scene", where, foreign)
    same = dict(effect.data) == difference(seed.prompt.pool, result.prompt.pool)
    _require(same, where, "the effect is not the pools'")
    _require(bool(result.prompt.text.strip()), where, "the prompt has no words")


def _check_places(relation: Relation, seed: PreparedSeed, result: FollowUp, probe: Probe | None) -> None:
    """Check that a pattern of dots moves as the effect of a follow-up says; for 8-bit RGB images."""
    rgb = seed.image.dtype == np.uint8 and seed.image.ndim == 3 and seed.image.shape[2] == 3 and seed.spec.coloured
    if seed.prompt is not None or not rgb or not relation.tells_places:
        return
    wide, (top, left) = wide_picture(seed), crop_corner(seed)
    whole = dot_pattern(*wide.shape[:2])
    pattern = np.ascontiguousarray(whole[top : top + seed.height, left : left + seed.width])
    pattern[seed.frame] = seed.image[seed.frame]
    dotted = replace(seed, image=pattern, wide=None if seed.wide is None else whole, _memo={})
    try:
        changed = _applied(relation, dotted, result.params, probe)
    except NotApplicable:
        return
    shift = dot_shift(pattern, changed.image, changed.effect, frame=seed.frame)
    _require(not shift.mirrored, type(relation).__name__, "it mirrors the picture; say so with an effect of kind move")
    _require(
        not shift.differs,
        type(relation).__name__,
        f"pixels are {shift.distance or 0:.1f} px (median) from where the effect {changed.effect.kind!r} puts them; "
        "declare the effect move or warp",
    )


def _same(first: FollowUp, second: FollowUp) -> bool:
    same = first.sha256 == second.sha256
    return same and (first.scale, dict(first.facts)) == (second.scale, dict(second.facts))


def _arrays(seed: PreparedSeed) -> dict[str, Any]:
    return {name: value.copy() for name, value in vars(seed).items() if isinstance(value, np.ndarray)}


def _require(held: bool, where: str, words: str) -> None:
    if not held:
        raise AssertionError(f"{where}: {words}")


def synthetic_seed(
    number: int = 0,
    *,
    height: int = 96,
    width: int = 128,
    task: str = "mask",
    labelled: bool = True,
    framed: bool = True,
    avoid: bool = False,
    seed_id: str | None = None,
) -> PreparedSeed:
    """Return a small synthetic picture as a prepared seed: a reddish field with a lesion, highlights and a black frame.

    It is drawn in integer arithmetic, identical on every machine. Its arrays are read-only. Relations that paste
    objects need room: 288 by 320 suffices for all bundled ones.

    Args:
        number: Number of the picture.
        height: Rows, 96 or more.
        width: Columns, 128 or more.
        task: Name of the seed's task; for label tasks, the classes are healthy and lesion.
        labelled: Whether the expected output is known.
        framed: Whether it has a black frame with cut corners.
        avoid: Whether it has a rough mask that objects must avoid.
        seed_id: Seed id; ``s<number>`` by default.
    """
    labels = task_of(task).labels
    rows, columns = np.mgrid[0:height, 0:width].astype(np.int64)
    wave = (rows * 5 + columns * 3 + number * 37) % 64
    light = 120 + (60 * columns) // width - (50 * rows) // height
    image = np.stack([light + 50 + wave // 4, light - 30 + wave // 3, light - 50 + wave // 5], axis=2)
    mask = np.zeros((height, width), np.uint8)
    centre = (width // 2 + (number * 7) % 11, height // 2 - (number * 5) % 9)
    cv2.ellipse(mask, centre, (width // 9, height // 7), 20.0, 0.0, 360.0, 1, cv2.FILLED)
    image[mask > 0] += np.array([25, -10, -12])
    for x, y in ((20, 30), (23, 32), (90, 70), (93, 69), (70, 20)):
        cv2.circle(image_part := image.astype(np.int32), (x + number % 5, y), 2, (250, 248, 246), cv2.FILLED)
        image = image_part.astype(np.int64)
    image = np.clip(image, 0, 255).astype(np.uint8)
    frame = np.zeros((height, width), bool)
    if framed:
        frame[:4], frame[-3:], frame[:, :6], frame[:, -5:] = True, True, True, True
        frame |= (rows + columns < 30) | (rows + (width - 1 - columns) < 25)
        frame[height - 24 :, :30] = True
        # Frames of real images are nearly black: JPEG leaves a few grey levels.
        image[frame] = ((rows + columns) % 3)[frame][:, None]
    luma = cv2.GaussianBlur(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), (0, 0), 5).astype(np.float32)
    grey = (1.0 / (1.0 + np.exp(-(luma - 90.0) / 25.0))).astype(np.float32)
    grey[frame] = 0.0
    rough = np.zeros((height, width), bool)
    rough[height // 3 : height // 2, width // 3 : width // 2] = True
    seed = PreparedSeed(
        ref=SeedRef(dataset="synthetic", seed_id=seed_id or f"s{number}"),
        image=np.ascontiguousarray(image),
        mask=mask.astype(bool) if labelled else None,
        original_mask=mask.astype(bool) if labelled else None,
        frame=frame,
        grey=grey,
        avoid=rough if avoid else None,
        kind=task,
        classes=_CLASSES if labels else None,
        labels=_CLASSES.names[1:] if labels and labelled else None,
    )
    for array in (seed.image, seed.mask, seed.original_mask, seed.frame, seed.grey, seed.avoid):
        if array is not None:
            array.setflags(write=False)
    shape = {"height": height, "width": width, "task": task, "labelled": labelled, "framed": framed}

    def peer(ref: SeedRef) -> PreparedSeed:
        other = synthetic_seed(int(ref.locator or number), **shape, seed_id=ref.seed_id)  # type: ignore[arg-type]
        return replace(other, labels=_CLASSES.names[:1]) if other.labels and ref.locator == "101" else other

    return replace(seed, peers=_peers(seed.ref, peer))


def _peers(ref: SeedRef, load: Callable[[SeedRef], PreparedSeed]) -> Peers:
    """Return a data set of a case and three others, numbered from 101."""
    others = [SeedRef(dataset=ref.dataset, seed_id=f"{ref.seed_id}-{n}", locator=str(100 + n)) for n in (1, 2, 3)]
    return Peers([ref, *others], load)


_NAMES = ("dog", "umbrella", "car", "bench", "kite", "horse", "clock")
_COLOURS = ("red", "blue", "green")


def synthetic_prompt(number: int = 0, *, seed_id: str | None = None) -> PreparedSeed:
    """Return a synthetic prompt as a prepared seed: three things, two relations between them, a colour and a number.

    Args:
        number: Number of the prompt.
        seed_id: Seed id; ``p<number>`` by default.
    """
    first, second, third = (_NAMES[(number + step) % len(_NAMES)] for step in (0, 2, 3))
    colour, many = _COLOURS[number % 3], ("one", "two", "three")[number % 3]
    entities = (
        Entity(name=first, attributes=(colour,)),
        Entity(name=second),
        Entity(name=third, count=1 + number % 3),
    )
    plural = third if number % 3 == 0 else {"bench": "benches"}.get(third, f"{third}s")
    text = f"A {colour} {first} near a {second}. The {second} is behind {many} {plural}."
    prompt = Prompt(text=text, pool=pool_of(entities, [(0, "near", 1), (1, "behind", 2)]))
    ref = SeedRef(dataset="synthetic", seed_id=seed_id or f"p{number}")
    peers = _peers(ref, lambda other: synthetic_prompt(int(other.locator or number), seed_id=other.seed_id))
    return replace(prepare(Seed(ref=ref, prompt=prompt), size=None), peers=peers)
