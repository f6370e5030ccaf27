"""Artefacts that the relations of a suite make, one picture at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from medtest.core.cases import UNCHANGED, Address, Image, Mask, PreparedSeed
from medtest.core.errors import Mistake
from medtest.core.probes import Need
from medtest.realism.measures import scaled
from medtest.realism.outlines import changed_area
from medtest.runner.privacy.rules import ShownNames
from medtest.runner.units.parts import Parts
from medtest.suite.checking.misfits.inputs import check_images
from medtest.suite.model import Invocation, Suite


@dataclass(frozen=True, kw_only=True, eq=False)
class SourcePicture:
    """A source picture in its own shape, at the size at which pictures are measured.

    Attributes:
        seed: The prepared seed.
        shape: Height and width of its file.
        image: uint8 H×W×3 RGB.
        view: The field of view, bool H×W.
        lesion: The lesion, bool H×W; empty if unknown.
        group: Its video or patient, as shown in tables.
        name: Its data set and id, as shown in tables.
    """

    seed: PreparedSeed
    shape: tuple[int, int]
    image: Image
    view: Mask
    lesion: Mask
    group: str
    name: str

    def of(self, image: Image) -> Image:
        """Return a picture made from the seed in the shape of the source's file."""
        return scaled(image, shape=self.shape)[0]

    def changed(self, image: Image) -> Mask:
        """Return the area in which a picture made from the seed differs from it, in the shape of the source's file."""
        area = changed_area(self.seed.image, image, np.logical_not(self.seed.frame))
        return scaled(image, area, shape=self.shape)[1][0]


class ArtefactMaker:
    """Seeds and relations of a suite.

    Args:
        suite: The suite.
        invocation: Only ``data``, ``limit`` and ``only`` are used.

    Raises:
        UserMistakes: The suite's cases are not pictures.

    Attributes:
        parts: Name of the part by relation id, without the floor and relations that need a system or make sequences.
        skipped: Chosen cases by relation and severity that the relation does not apply to.
    """

    def __init__(self, suite: Suite, invocation: Invocation) -> None:
        check_images(suite, "medtest realism")
        if suite.task.series:
            actual = f"seeds that expect {suite.task.noun}"
            raise Mistake(where="suite", key="seeds", found=actual, allowed="pictures, as of polyp_seg").as_error()
        self.suite = suite
        self._making = Parts(suite, invocation.data, invocation.batch_size)
        self._names = ShownNames.of(suite.privacy, invocation.home)
        self._refs = self._making.needed_refs(limit=invocation.limit, only=invocation.only)
        self._cases: list[tuple[int, list[Address]]] = []
        selected = invocation.only.relations
        self.parts = {
            plan.id: plan.info.name
            for plan in suite.relations
            if plan.id != UNCHANGED and (not selected or plan.id in selected) and self._drawable(plan.id)
        }
        plan = self._making.plan(self._refs)
        for unit in plan.units():
            chosen = unit.chosen(limit=invocation.limit, only=invocation.only)
            if chosen:  # all questions of a picture share its follow-ups, so the first one's cases are enough
                self._cases.append((unit.index, [unit.cases[place] for place in chosen if place < unit.row]))
        self.skipped: Counter[tuple[str, int]] = Counter()

    def _drawable(self, relation: str) -> bool:
        part = self._making.relations[relation]
        return part.needs is Need.NOTHING and part.frames() == 1

    @property
    def seeds(self) -> list[int]:
        """Places of the seeds with chosen cases."""
        return [place for place, _ in self._cases]

    def scene(self, place: int) -> SourcePicture:
        """Load and prepare a seed."""
        source, ref = self._refs[place]
        loaded = self._making.sources[source].load(ref)
        seed = self._making.prepare(loaded)
        shape = loaded.image.shape[:2] if self.suite.prepare.resize is None else seed.image.shape[:2]
        lesion = np.zeros(seed.frame.shape, np.bool_) if seed.mask is None else seed.mask
        image, (view, lesion) = scaled(seed.image, np.logical_not(seed.frame), lesion, shape=shape)
        group = f"{ref.dataset}/{self._names.cluster(ref)}"
        name = f"{ref.dataset}/{self._names.seed_id(ref.dataset, ref.seed_id)}"
        return SourcePicture(seed=seed, shape=shape, image=image, view=view, lesion=lesion, group=group, name=name)

    def chosen(self, relations: Collection[str], most: int) -> list[tuple[int, list[Address]]]:
        """Return up to ``most`` cases of each relation by seed: seeds evenly spaced, severities taking turns."""
        picked: dict[int, list[Address]] = {}
        for relation in relations:
            own = [
                (place, cases)
                for place, every in self._cases
                if (cases := _turned([case for case in every if case.relation == relation], place))
            ]
            if not own:
                continue
            each = max(1, min(max(len(cases) for _, cases in own), -(-most // len(own))))
            count = max(1, min(len(own), most // each))
            for step in np.unique(np.round(np.linspace(0, len(own) - 1, count)).astype(int)):
                place, cases = own[int(step)]
                picked.setdefault(place, []).extend(cases[:each])
        return sorted(picked.items())

    def make(self, scene: SourcePicture, cases: Sequence[Address]) -> Iterator[tuple[Address, Image, Mask]]:
        """Yield the artefacts of a seed; cases that a relation does not apply to are counted.

        Each is its case, the follow-up in the shape of the source's file (uint8 H×W×3 RGB), and the changed area.
        """
        for address in cases:
            made_case = self._making.make(scene.seed, address)
            if made_case.follow is None:
                self.skipped[address.relation, address.severity] += 1
                continue
            image = made_case.follow.image
            yield address, scene.of(image), scene.changed(image)


def _turned(cases: Sequence[Address], place: int) -> list[Address]:
    """Return the cases of a seed in an order that starts elsewhere for every seed, so that severities take turns."""
    start = place % max(1, len(cases))
    return [*cases[start:], *cases[:start]]
