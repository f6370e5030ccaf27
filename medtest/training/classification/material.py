"""Cases of a classifier's further training: originals, and a share of them perturbed by each relation.

As in the slides of MedTest, every relation perturbs one image in eight (``perturbed`` of the recipe), drawn at random,
and held-out patients or videos (0.15 of them) are held out with their perturbed images. Training images have their own
data set name, so that none of their follow-ups has an address of the tested suite.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Address, Classes, SeedRef
from medtest.core.errors import MedtestError
from medtest.core.plugins import part
from medtest.core.probes import Need
from medtest.runner.replaying.crafted_runs import crafted_facts
from medtest.runner.units.parts import Parts
from medtest.suite.digest import digest_of
from medtest.suite.model import PartPlan, Suite
from medtest.training.classification.cases import LabelledCase, LabelledSet, held_out_names, keep
from medtest.training.crafted import check_crafted

DATASET = "training"
FIRST_PHANTOM = 5_000_000
"""Number of the first training phantom, far from any in a tested suite."""
_CHOICE = 21


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelledMaterial:
    """Data of a further training.

    Attributes:
        cases: Originals first, then the perturbed ones.
        trained: Indices of the training cases.
        watched: Indices of the held-out cases.
        perturbed: bool N, whether a case is perturbed.
        counts: Number of cases by kind.
        seed: Seed of images, severities and the split.
    """

    cases: LabelledSet
    trained: NDArray[np.int64]
    watched: NDArray[np.int64]
    perturbed: NDArray[np.bool_]
    counts: Mapping[str, int]
    seed: int

    @property
    def digest(self) -> str:
        """SHA-256 over all cases."""
        return self.cases.digest


def training_suite(suite: Suite, *, phantoms: int) -> Suite:
    """Return the suite with training seeds instead of test seeds.

    Args:
        suite: The suite that tests before and after; its first seeds define the source of labelled images.
        phantoms: Number of training phantoms, of the kind in the suite; 0 for the folder of ``data=``.

    Raises:
        MedtestError: The suite tests on phantoms and no number was given, or vice versa.
    """
    plan = suite.seeds[0]
    synthetic = bool(getattr(plan.info.load(), "phantom", False))
    if synthetic != bool(phantoms):
        hint = "add phantoms=N" if synthetic else "add data=FOLDER"
        raise MedtestError(f"{suite.name} tests on {'made' if synthetic else 'real'} images: {hint}")
    if not phantoms:
        return replace(suite, seeds=(PartPlan(id=DATASET, info=plan.info, settings=plan.settings),))
    info = part("seeds", plan.info.name)
    settings = plan.settings.model_copy(update={"count": phantoms, "start": FIRST_PHANTOM})
    return replace(suite, seeds=(PartPlan(id=DATASET, info=info, settings=settings),))


def prepare_material(
    parts: Parts, *, share: float, held_out: float, side: int, seed: int, folder: Path
) -> LabelledMaterial:
    """Create the cases, or open them if the folder holds them.

    Args:
        parts: Parts of :func:`training_suite`.
        share: Share of the images that each relation perturbs.
        held_out: Share of the patients or videos that is held out.
        side: Side of the stored images.
        seed: Seed of images, severities and the split.
        folder: Folder of the arrays.

    Raises:
        MedtestError: There is no labelled image.
    """
    refs = [(number, ref) for number, source in enumerate(parts.sources) for ref in source.refs()]
    if not refs:
        raise MedtestError("there is no image to train on")
    chosen = drawn(parts, [ref for _, ref in refs], share=share, seed=seed)
    facts = {
        "suite": digest_of({plan.id: plan.settings.counted() for plan in parts.suite.relations}),
        "relations": [plan.id for plan in parts.suite.relations],
        "seeds": [source.digest() for source in parts.sources],
        "prepare": [parts.suite.prepare.size, parts.suite.prepare.resize],
        "drawn": [[str(address) for address in addresses] for addresses in chosen],
        "seed": parts.suite.seed,
        **crafted_facts(parts),
    }
    origin = "further " + hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    classes = _classes(parts, refs)
    cases = keep(_cases(parts, refs, chosen), folder, classes=classes, side=side, origin=origin)
    clusters = [name.removesuffix(_PERTURBED) for name in cases.clusters]
    outside = held_out_names(clusters, share=held_out, seed=seed)
    apart = np.array([name in outside for name in clusters])
    perturbed = np.array([name.endswith(_PERTURBED) for name in cases.clusters])
    counts = {
        "originals": int((~apart & ~perturbed).sum()),
        "perturbed": int((~apart & perturbed).sum()),
        "held_clean": int((apart & ~perturbed).sum()),
        "held_perturbed": int((apart & perturbed).sum()),
    }
    return LabelledMaterial(
        cases=cases,
        trained=np.flatnonzero(~apart),
        watched=np.flatnonzero(apart),
        perturbed=perturbed,
        counts=counts,
        seed=seed,
    )


_PERTURBED = "\x00perturbed"
"""Suffix of the cluster name of a perturbed image; no file name contains such a character."""


def drawn(parts: Parts, refs: list[SeedRef], *, share: float, seed: int) -> list[tuple[Address, ...]]:
    """Return the follow-ups of each image: each relation perturbs a random ``share`` of the images."""
    addresses: list[list[Address]] = [[] for _ in refs]
    for number, (relation_id, relation) in enumerate(parts.relations.items()):
        if relation_id == "unchanged" or share <= 0:
            continue
        if relation.needs is not Need.NOTHING and parts.crafted is None:
            continue  # a defence crafts it in its steps; otherwise it is read from a run, and drawn here
        rng = np.random.Generator(np.random.PCG64([seed, _CHOICE, number]))
        count = max(1, round(share * len(refs)))
        severities = relation.severities()
        for place in np.sort(rng.permutation(len(refs))[:count]):
            ref = refs[int(place)]
            severity = int(severities[int(rng.integers(len(severities)))])
            frame = int(rng.integers(relation.frames()))
            addresses[int(place)].append(
                Address(dataset=ref.dataset, seed_id=ref.seed_id, relation=relation_id, severity=severity, frame=frame)
            )
    return [tuple(group) for group in addresses]


def _cases(parts: Parts, refs: list[tuple[int, SeedRef]], chosen: list[tuple[Address, ...]]) -> Iterator[LabelledCase]:
    """Prepare every image once and yield it and its follow-ups, with one image in memory at a time."""
    for (number, ref), addresses in zip(refs, chosen, strict=True):
        seed = parts.prepared(number, ref)
        if seed.labels is None:
            continue
        cluster = f"{ref.dataset}/{ref.cluster}"
        yield LabelledCase(image=seed.image, labels=seed.labels, mask=seed.mask, cluster=cluster)
        for address in addresses:
            case = parts.make(seed, address)
            check_crafted(parts, case)
            if case.follow is None:
                continue  # no room in this image
            image = case.follow.image
            yield LabelledCase(image=image, labels=seed.labels, mask=seed.mask, cluster=cluster + _PERTURBED)


def _classes(parts: Parts, refs: list[tuple[int, SeedRef]]) -> Classes:
    number, ref = refs[0]
    classes = parts.sources[number].load(ref).classes
    if classes is None:
        raise MedtestError(f"{ref.seed_id} has no classes to train on")
    return classes
