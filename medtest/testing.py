"""What a package needs to test its own parts: a seed, a relation with its defaults, and what medtest holds both to.

Nothing here loads a network or reads a file of images.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import cv2
import numpy as np

from medtest.core.cases import Address, Classes, FollowUp, Params, PreparedSeed, Prompt, Seed, SeedRef, image_sha256
from medtest.core.errors import BadOutput, NotApplicable
from medtest.core.plugins import part
from medtest.core.probes import CraftCase, Probe
from medtest.core.scenes import Entity, difference, pool_of
from medtest.core.tasks.base import SystemInput, task_of
from medtest.preparation.prepare import prepare
from medtest.relations.base import PUBLISHED_SEVERITY, CraftedRelation, Relation
from medtest.relations.series import follow_up
from medtest.runner.units.parts import check_follow_up
from medtest.suite.reading.library import deep_merge
from medtest.systems.base import Missing, System

SUITE_SEED = 20261121
"""The suite's seed under which everything here is drawn."""
_CLASSES = Classes(names=("healthy", "lesion"))
_OFF_LESIONS = ("objects", "non_objects")
"""Groups of relations that put something on a picture."""
_FRAMES = 3
"""Frames of a sequence that are looked at."""


def load_relation(name: str, **settings: Any) -> Relation:
    """Return an installed relation with the defaults of its YAML file.

    Args:
        name: As suites name it.
        settings: What a suite would set: ``severities=[1, 3]``; mappings are merged with the defaults.

    Raises:
        UserMistakes: No relation has this name.
        ValueError: The settings are none of its own.
    """
    info = part("relations", name)
    made = info.load()
    relation: Relation = made(made.Settings(**deep_merge(info.defaults, settings)))
    return relation


def check_relation(
    relation: Relation, seed: PreparedSeed, *, may_skip: bool = False, probe: Probe | None = None
) -> tuple[FollowUp, ...]:
    """Check what every relation promises, on one seed: each severity, two draws of each.

    * One address gives the same bytes, whatever was made before it; stored parameters give them again.
    * The image keeps shape and dtype, shares no memory with the seed, and the seed stays as it was.
    * The black frame stays as it is, unless ``touches_frame``; what puts something on the picture leaves lesions alone.
    * Parameters are JSON; scale and facts are finite numbers; the effect is none, move or add, of prompts the
      difference of the pools (``scene``).
    * The scale belongs to the severity and grows with it.
    * One that needs a system says how it crafted (``crafting``), needs no more than the probe gives, and draws nothing
      but from its parameters; it is crafted one case at a time, for its pixels may depend on the batch.

    Args:
        relation: The relation, as :func:`load_relation` gives it.
        seed: Any seed, as :func:`synthetic_seed` gives it.
        may_skip: Whether it may have no room on this seed at any severity.
        probe: Of one that needs a system: any probe, as ``medtest.systems.pytorch.probe.probe_of`` gives it, or one of
            yours.

    Returns:
        The follow-ups, for checks of your own.

    Raises:
        AssertionError: It breaks one of these; the message says which and where.
    """
    before = _arrays(seed)
    copied = {name: value.copy() for name, value in before.items()}
    fresh = replace(seed, **copied, _memo={})
    addresses = list(_addresses(relation, seed))
    made = {address: _made(relation, seed, address, probe) for address in addresses}
    again = {address: _made(relation, fresh, address, probe) for address in reversed(addresses)}
    name, after = type(relation).__name__, _arrays(seed)
    _hold(all(np.array_equal(before[key], after[key]) for key in before), name, "it wrote to the seed's arrays")
    scales: dict[int, float] = {}
    for address, one in made.items():
        where = f"{address.relation}, severity {address.severity}, frame {address.frame}, repeat {address.repeat}"
        other = again[address]
        if isinstance(one, str) or isinstance(other, str):
            _hold(one == other, where, "one address is applicable at one time and not at another")
            _hold(bool(one), where, "NotApplicable is raised without a reason")
            continue
        _check_one(relation, seed, one, where)
        _hold(_same(one, other), where, "one address gives other bytes when it is made again; draw from rng alone")
        stored = json.loads(json.dumps(dict(one.params), allow_nan=False))
        if isinstance(relation, CraftedRelation):
            _hold(one.crafting is not None, where, "it was crafted, and crafting does not say how")
            replayed = _crafted(relation, fresh, stored, probe)
        else:
            replayed = relation.apply(fresh, stored)
        _hold(_same(one, replayed), where, "the stored parameters give other bytes; draw in sample alone")
        if address.severity != PUBLISHED_SEVERITY:
            known = scales.setdefault(address.severity, one.scale)
            _hold(known == one.scale, where, f"the scale is {one.scale:g} and {known:g} in another draw")
    grown = [scales[severity] for severity in sorted(scales)]
    rises = all(low < high for low, high in zip([0.0, *grown], grown, strict=False))
    _hold(rises or relation.group == "floor", name, f"scales do not grow from 0: {grown}")
    found = tuple(one for one in made.values() if isinstance(one, FollowUp))
    _hold(bool(found) or may_skip, name, f"has no room on this seed: {', '.join(_reasons(made))}")
    return found


def check_system(system: System, seed: PreparedSeed, *, device: str = "cpu") -> tuple[Any, ...]:
    """Check what a system that answers pictures promises: a source and a darker follow-up, asked twice.

    * Every answer passes the border of its task, or is :class:`medtest.systems.base.Missing`.
    * The same pictures get the same answers, and are left as they were.

    Args:
        system: The system, not opened.
        seed: Any seed of its task.
        device: ``"cpu"`` or ``"cuda:N"``.

    Returns:
        The raw answers, for checks of your own.

    Raises:
        AssertionError: It breaks one of these.
        BadOutput: An answer is none; the message says why.
    """
    images = [seed.image.copy(), (seed.image // 2).astype(seed.image.dtype)]
    addresses = [_address(seed, "source", 0), _address(seed, "darker", 1)]
    hashes = [image_sha256(image) for image in images]
    system.kind = seed.kind
    system.open(device=device, threads=1)
    try:
        twice = [list(system.task.ask(system, images, [seed.spec] * 2, addresses)) for _ in range(2)]
        for image, first, second in zip(images, *twice, strict=True):
            if not isinstance(first, Missing):
                shown = SystemInput(image=image, spec=seed.spec, classes=seed.classes)
                checked = [vars(system.task.check(raw, shown, system)) for raw in (first, second)]
                same = all(np.array_equal(value, checked[1][name]) for name, value in checked[0].items())
                _hold(same, system.name, "answers otherwise when it is asked again")
    finally:
        system.close()
    _hold(hashes == [image_sha256(image) for image in images], system.name, "wrote to the pictures that it was shown")
    return tuple(twice[0])


def _addresses(relation: Relation, seed: PreparedSeed) -> Iterator[Address]:
    name = type(relation).__name__.lower()
    for severity in relation.severities():
        for frame in range(min(relation.frames(), _FRAMES)):
            for repeat in range(2):
                yield replace(_address(seed, name, severity), frame=frame, repeat=repeat)


def _address(seed: PreparedSeed, relation: str, severity: int) -> Address:
    return Address(dataset=seed.ref.dataset, seed_id=seed.ref.seed_id, relation=relation, severity=severity)


def _made(relation: Relation, seed: PreparedSeed, address: Address, probe: Probe | None) -> FollowUp | str:
    try:
        if isinstance(relation, CraftedRelation):
            params = relation.sample(seed, address.severity, address.generator(SUITE_SEED))
            return _crafted(relation, seed, params, probe)
        return follow_up(relation, seed, address, SUITE_SEED)
    except NotApplicable as reason:
        return str(reason)


def _crafted(relation: CraftedRelation, seed: PreparedSeed, params: Params, probe: Probe | None) -> FollowUp:
    name = type(relation).__name__
    if probe is None:
        raise AssertionError(f"{name}: it needs the {relation.needs} of a system: give a probe")
    _hold(probe.gives.rank >= relation.needs.rank, name, f"it needs {relation.needs}, the probe gives {probe.gives}")
    found = relation.craft([CraftCase(seed=seed, params=params)], probe)
    _hold(len(found) == 1, name, f"craft gave {len(found)} follow-ups for one case")
    if isinstance(found[0], Exception):
        raise found[0]
    return found[0]


def _check_one(relation: Relation, seed: PreparedSeed, made: FollowUp, where: str) -> None:
    try:
        check_follow_up(made, seed)
    except BadOutput as error:
        raise AssertionError(f"{where}: {error}") from None
    _hold(not np.shares_memory(made.image, seed.image), where, "the image is the seed's own memory; return a copy")
    _hold(made.scale >= 0, where, f"the scale {made.scale:g} is below 0")
    _check_effect(seed, made, where)
    facts = [name for name, value in made.facts.items() if not np.isfinite(value)]
    _hold(not facts, where, f"facts are no finite numbers: {', '.join(facts)}")
    if not relation.touches_frame:
        kept = np.array_equal(made.image[seed.frame], seed.image[seed.frame])
        _hold(kept, where, "the black frame changed; leave seed.frame alone, or say touches_frame")
    if relation.group in _OFF_LESIONS and seed.mask is not None:
        _hold(np.array_equal(made.image[seed.mask], seed.image[seed.mask]), where, "something covers the lesion")


def _check_effect(seed: PreparedSeed, made: FollowUp, where: str) -> None:
    effect = made.effect
    if seed.prompt is None or made.prompt is None:
        _hold(effect.kind in ("none", "move", "add"), where, f"the effect {effect.kind!r} is no kind")
        return
    _hold(effect.kind == "scene", where, f"the effect {effect.kind!r} is no scene's; make follow-ups with change()")
    _hold(dict(effect.data) == difference(seed.prompt.pool, made.prompt.pool), where, "the effect is not the pools'")
    _hold(bool(made.prompt.text.strip()), where, "the prompt has no words")


def _same(one: FollowUp, other: FollowUp) -> bool:
    same = one.sha256 == other.sha256
    return same and (one.scale, dict(one.facts)) == (other.scale, dict(other.facts))


def _arrays(seed: PreparedSeed) -> dict[str, Any]:
    return {name: value.copy() for name, value in vars(seed).items() if isinstance(value, np.ndarray)}


def _reasons(made: dict[Address, FollowUp | str]) -> list[str]:
    return sorted({one for one in made.values() if isinstance(one, str)})


def _hold(held: bool, where: str, words: str) -> None:
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
    """Return a small drawn picture as relations see it: a reddish field with a lesion, highlights and a black frame.

    It is drawn in whole numbers, the same on every machine. Its arrays are read-only. Relations that put objects on it
    need room: 288 by 320 are enough for all of ours.

    Args:
        number: Which picture.
        height: Rows, 96 or more.
        width: Columns, 128 or more.
        task: Name of the seed's task; where it answers with labels, the classes are healthy and lesion.
        labelled: Whether what is expected is known.
        framed: Whether it has a black frame with cut corners.
        avoid: Whether it has a rough mask that objects keep off.
        seed_id: Its id; ``s<number>`` by default.
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
    return seed


_NAMES = ("dog", "umbrella", "car", "bench", "kite", "horse", "clock")
_COLOURS = ("red", "blue", "green")


def synthetic_prompt(number: int = 0, *, seed_id: str | None = None) -> PreparedSeed:
    """Return a prompt as relations see it: three things, two relations between them, a colour and a number.

    Args:
        number: Which prompt.
        seed_id: Its id; ``p<number>`` by default.
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
    return prepare(Seed(ref=SeedRef(dataset="synthetic", seed_id=seed_id or f"p{number}"), prompt=prompt), size=None)
