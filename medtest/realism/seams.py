"""Seam test: does the pasting of objects leave an edge that tissue does not have?

Mucosa is cut out of the suite's own pictures by ``medtest objects build`` and pasted by the relation into others. A
classifier sees patches whose centre lies on the outline of what was pasted, and the same places of the untouched
picture. Two controls say what its answer is worth: tissue pasted without any blending must be found, and untouched
patches of two random draws of places must not.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from medtest.core.cases import Address, Image, Params, PreparedSeed
from medtest.core.errors import MedtestError, NotApplicable
from medtest.realism.classifier import Auc, Patches, auc_of
from medtest.realism.features import PatchReader, places_on
from medtest.realism.made import ArtefactMaker, Scene
from medtest.realism.measures import outline_of
from medtest.realism.tissue import SHAPES, tissue_library
from medtest.relations.base import Relation
from medtest.results.cube.resampling import generator
from medtest.suite.model import PartPlan

FEWEST_PATCHES = 500
"""Patches of each sort below which the test is weak."""
HIGHEST_SEAM, LOWEST_HARD = 0.65, 0.90
"""Targets: upper end of the interval for the relation's pasting, and the area for pasting without blending."""
DONORS = 12
ON_OUTLINE = 20
"""Most patches of one picture."""


@dataclass(frozen=True, kw_only=True)
class SeamResult:
    """Results of the seam test for one relation.

    Attributes:
        relation: The relation that pasted.
        seam: Its pasting against untouched tissue.
        hard: Pasting without blending against untouched tissue.
        untouched: Untouched against untouched tissue.
        reason: Why there are no figures; "" if there are.
    """

    relation: str
    seam: Auc = Auc()
    hard: Auc = Auc()
    untouched: Auc = Auc()
    reason: str = ""

    @property
    def weak(self) -> bool:
        """True if there are too few patches."""
        return min(self.seam.counts) < FEWEST_PATCHES

    @property
    def valid(self) -> bool:
        """True if both controls came out as they must."""
        return self.hard.value >= LOWEST_HARD and self.untouched.low <= 0.5 <= self.untouched.high

    @property
    def verdict(self) -> str:
        """One of ``met``, ``missed``, ``weak``, ``invalid`` and ``none`` (the test could not be made)."""
        if self.reason or np.isnan(self.seam.value):
            return "none"
        if self.weak:
            return "weak"
        if not self.valid:
            return "invalid"
        return "met" if self.seam.high <= HIGHEST_SEAM else "missed"


def seam_tests(maker: ArtefactMaker, most: int) -> list[SeamResult]:
    """Test every relation of a suite that pastes objects of a library.

    Args:
        maker: The suite's seeds.
        most: Most pictures that tissue is pasted into.
    """
    plans = [plan for plan in maker.suite.relations if plan.info.name in SHAPES and plan.id in maker.parts]
    return [_seam_test(maker, plan, most) for plan in plans]


def _seam_test(maker: ArtefactMaker, plan: PartPlan, most: int) -> SeamResult:
    seeds = maker.seeds
    donors = _evenly(seeds, min(DONORS, max(1, len(seeds) // 3)))
    targets = _evenly([place for place in seeds if place not in donors] or seeds, most)
    with tempfile.TemporaryDirectory(prefix="medtest-seam-") as scratch:
        try:
            pictures = (maker.scene(place).seed for place in donors)
            tissue, marker, shown = tissue_library(pictures, plan.info.name, Path(scratch) / "library")
            relations = [_relation(plan, library) for library in (tissue, marker)]
        except MedtestError as error:
            reason = "; ".join(line.strip() for line in str(error).splitlines() if "found:" in line)
            return SeamResult(relation=plan.id, reason=f"no tissue to paste ({reason or error})")
        test = _SeamTest(plan.id, maker.suite.seed, relations, shown)
        for place in targets:
            test.add(maker.scene(place))
    return test.result()


class _SeamTest:
    """Patches of the seam test of one relation."""

    def __init__(self, relation: str, suite_seed: int, relations: Sequence[Relation], donors: Sequence[Image]) -> None:
        self._relation, self._suite_seed, self._donors = relation, suite_seed, donors
        self._tissue, self._marker = relations
        self._seam, self._hard, self._untouched = Patches(), Patches(), Patches()
        severities = self._tissue.severities()
        self._severity = severities[len(severities) // 2]

    def add(self, scene: Scene) -> None:
        """Paste tissue into one picture, twice, and add its patches; nothing if there is no room."""
        untouched = PatchReader(scene.image)
        for repeat in (0, 1):
            drawn = self._paste(scene.seed, repeat)
            if drawn is None:
                continue
            params, image = drawn
            area = scene.changed(self._marker.apply(scene.seed, params).image)
            rng = generator("realism", "seam", self._relation, scene.name, repeat)
            places = places_on(outline_of(area), scene.view & ~scene.lesion, ON_OUTLINE, rng)
            if not places:
                continue
            same = untouched.read(places)
            self._untouched.add(same, 1 - repeat, scene.group)
            if repeat:
                continue
            self._seam.add(PatchReader(scene.of(image)).read(places), 1, scene.group)
            donor = self._donors[int(rng.integers(len(self._donors)))]
            hard = np.where(area[:, :, None], scene.of(donor), scene.image)
            self._hard.add(PatchReader(np.asarray(hard, np.uint8)).read(places), 1, scene.group)
            for patches in (self._seam, self._hard):
                patches.add(same, 0, scene.group)

    def _paste(self, seed: PreparedSeed, repeat: int) -> tuple[Params, Image] | None:
        address = Address(
            dataset=seed.ref.dataset,
            seed_id=seed.ref.seed_id,
            relation=self._relation,
            severity=self._severity,
            repeat=repeat,
        )
        rng = self._tissue.generator(address, self._suite_seed)
        try:
            follow = self._tissue.follow_up(seed, self._severity, rng)
        except NotApplicable:
            return None
        return follow.params, follow.image

    def result(self) -> SeamResult:
        """Return the areas under the ROC curves."""
        seam, hard, untouched = (
            auc_of(patches, f"{name}/{self._relation}")
            for name, patches in (("seam", self._seam), ("hard", self._hard), ("untouched", self._untouched))
        )
        reason = "" if self._seam.groups else "there was no room for tissue in any picture"
        return SeamResult(relation=self._relation, seam=seam, hard=hard, untouched=untouched, reason=reason)


def _relation(plan: PartPlan, library: Path) -> Relation:
    """Return the suite's relation with another library, and with matter that does not shine."""
    fields = type(plan.settings).model_fields
    changed = {"library_folder": str(library), **({"wetness": 0.0} if "wetness" in fields else {})}
    relation: Relation = plan.info.load()(plan.settings.model_copy(update=changed))
    return relation


def _evenly(places: Sequence[int], most: int) -> list[int]:
    steps = np.unique(np.round(np.linspace(0, len(places) - 1, min(most, len(places)))).astype(int))
    return [places[int(step)] for step in steps]
