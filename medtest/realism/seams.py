"""Seam test: does the pasting of objects leave an edge that tissue does not have?

Mucosa is cut out of a picture that was turned by 180° (``medtest objects build``) and pasted by the relation into the
same picture, so that camera and colour are the same and only the pasting is seen. A classifier gets patches whose
centre lies on the outline of what was pasted, and the same places of the untouched picture. Two controls say what its
answer is worth: tissue pasted without any blending must be found, and a random half of the untouched patches must not
be told from the other half.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from medtest.core.cases import Address, Image, Params, PreparedSeed
from medtest.core.errors import MedtestError, NotApplicable
from medtest.realism.classifier import Auc, Patches, auc_of
from medtest.realism.features import PatchReader, places_on
from medtest.realism.made import ArtefactMaker, SourcePicture
from medtest.realism.measures import outline_of, scaled
from medtest.realism.tissue import SHAPES, tissue_library, turned
from medtest.relations.base import Relation
from medtest.results.cube.resampling import generator
from medtest.suite.model import PartPlan

FEWEST_PATCHES = 500
"""Patches of each sort below which the test is weak."""
HIGHEST_SEAM, LOWEST_HARD = 0.65, 0.90
"""Targets: upper end of the interval for the relation's pasting, and the area for pasting without blending."""
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
    steps = np.unique(np.round(np.linspace(0, len(seeds) - 1, min(most, len(seeds)))).astype(int))
    test = _SeamTest(plan, maker.suite.seed)
    for step in steps:
        test.add(maker.scene(seeds[int(step)]))
    return test.result()


class _SeamTest:
    """Patches of the seam test of one relation."""

    def __init__(self, plan: PartPlan, suite_seed: int) -> None:
        self._plan, self._suite_seed = plan, suite_seed
        self._seam, self._hard, self._untouched = Patches(), Patches(), Patches()
        self._problem = ""

    def add(self, scene: SourcePicture) -> None:
        """Paste tissue into one picture, twice, and add its patches; nothing if there is no room."""
        donor = turned(scene.seed)
        with tempfile.TemporaryDirectory(prefix="medtest-seam-") as scratch:
            try:
                libraries = tissue_library(donor, self._plan.info.name, Path(scratch) / "library")
                tissue, marker = (_relation(self._plan, library) for library in libraries)
            except MedtestError as error:
                self._problem = "; ".join(line.strip() for line in str(error).splitlines() if "found:" in line)
                return
            self._add(scene, donor, tissue, marker)

    def _add(self, scene: SourcePicture, donor: PreparedSeed, tissue: Relation, marker: Relation) -> None:
        untouched = PatchReader(scene.image)
        severities = tissue.severities()
        for repeat in (0, 1):
            drawn = self._paste(scene.seed, tissue, severities[len(severities) // 2], repeat)
            if drawn is None:
                continue
            params, image = drawn
            area = scene.changed(marker.apply(scene.seed, params).image)
            rng = generator("realism", "seam", self._plan.id, scene.name, repeat)
            places = places_on(outline_of(area), scene.view & ~scene.lesion, ON_OUTLINE, rng)
            if not places:
                continue
            same = untouched.read(places)
            half = rng.permutation(len(places)) < len(places) // 2
            self._untouched.add(same[half], 1, scene.group)
            self._untouched.add(same[~half], 0, scene.group)
            self._seam.add(PatchReader(scene.of(image)).read(places), 1, scene.group)
            self._seam.add(same, 0, scene.group)
            other, (view,) = scaled(donor.image, ~donor.frame, shape=scene.shape)
            hard = np.where((area & view)[:, :, None], other, scene.image)
            places = places_on(outline_of(area & view), scene.view & view & ~scene.lesion, ON_OUTLINE, rng)
            self._hard.add(PatchReader(np.asarray(hard, np.uint8)).read(places), 1, scene.group)
            self._hard.add(untouched.read(places), 0, scene.group)

    def _paste(self, seed: PreparedSeed, relation: Relation, severity: int, repeat: int) -> tuple[Params, Image] | None:
        address = Address(
            dataset=seed.ref.dataset,
            seed_id=seed.ref.seed_id,
            relation=self._plan.id,
            severity=severity,
            repeat=repeat,
        )
        try:
            follow = relation.follow_up(seed, severity, relation.generator(address, self._suite_seed))
        except NotApplicable:
            return None
        return follow.params, follow.image

    def result(self) -> SeamResult:
        """Return the areas under the ROC curves."""
        seam, hard, untouched = (
            auc_of(patches, f"{name}/{self._plan.id}")
            for name, patches in (("seam", self._seam), ("hard", self._hard), ("untouched", self._untouched))
        )
        problem = self._problem or "there was no room for tissue in any picture"
        reason = "" if self._seam.groups else f"nothing was pasted ({problem})"
        return SeamResult(relation=self._plan.id, seam=seam, hard=hard, untouched=untouched, reason=reason)


def _relation(plan: PartPlan, library: Path) -> Relation:
    """Return the suite's relation with another library: matter does not shine, instruments are cut out."""
    fields = type(plan.settings).model_fields
    options = {"wetness": 0.0, "relief": 0.0, "kind": "cutout"}
    changed = {"library_folder": str(library), **{key: value for key, value in options.items() if key in fields}}
    relation: Relation = plan.info.load()(plan.settings.model_copy(update=changed))
    return relation
