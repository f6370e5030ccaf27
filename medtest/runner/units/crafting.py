"""Crafting of follow-ups on a system, one batch of one seed at a time.

The plan defines the batches: the cases of one relation and one seed, all severities and repeats, divided by the run's
batch size. A batch is always crafted whole, on one thread of torch, because pixels that follow gradients differ by a
level or two between batches and threads: records are then the same for any number of workers, after a kill, and under
``only=``. A relation that keeps the worst of all attacks receives the images that the others made; their batches are
crafted for it, and kept for their own cases.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from medtest.core.cases import Address, FollowUp, Image, PreparedSeed, image_sha256
from medtest.core.deferred import torch
from medtest.core.errors import BadOutput
from medtest.core.probes import CraftCase, Need, Probe
from medtest.relations.base import CraftedRelation
from medtest.runner.pool.messages import SHARED, Place
from medtest.runner.records.crafted import CraftedCases, keep
from medtest.runner.units.beside import beside
from medtest.runner.units.made_case import MadeCase, SystemAnswer, given_up_case, not_made
from medtest.runner.units.parts import Parts, check_follow_up, with_facts
from medtest.suite.plan import CraftBatch, craft_batches
from medtest.systems.base import System

if TYPE_CHECKING:
    from medtest.runner.units.open_units import OpenUnit


@dataclass(kw_only=True)
class Crafter:
    """Crafter of follow-ups in a worker.

    Attributes:
        parts: The suite's parts.
        systems: The opened systems under test.
        named: By relation, the opened crafting system if the relation names one.
        digests: Digest of each system, by :func:`id`.
        folders: The systems' folders for pixels; empty to store none.
        began: Called with the unit's number and the place before each call of a network.
        earlier: Runs that may have crafted a case already, which is then reused. None crafts every case.
    """

    parts: Parts
    systems: Sequence[System]
    named: Mapping[str, System]
    digests: Mapping[int, str]
    folders: Sequence[Path]
    began: Callable[[int, Place], None]
    earlier: CraftedCases | None = None
    _cases: dict[tuple[int, int], dict[int, MadeCase]] = field(default_factory=dict)
    _unit: Any = None

    def crafts(self, address: Address) -> bool:
        """Return True if a case is crafted."""
        return isinstance(self.parts.relations.get(address.relation), CraftedRelation)

    def made(self, opened: OpenUnit, system: int, case: int) -> MadeCase:
        """Return a crafted case for one system; its pixels are on disk if its record will be written.

        Args:
            opened: The unit.
            system: The system's index.
            case: The case's index.
        """
        if self.earlier is not None:
            earlier = self.parts.make(opened.seed, opened.unit.cases[case], system)
            if earlier.follow is not None:
                return earlier
        if self._unit is not opened:  # one unit at a time: a batch's pixels are kept only for its unit
            self._unit, self._cases = opened, {}
            crafted = {name for name, relation in self.parts.relations.items() if isinstance(relation, CraftedRelation)}
            self._batches = craft_batches(opened.unit, crafted, self.parts.batch_size)
        crafted_case = self._from_batch(opened, system, case)
        if crafted_case.follow is not None and self.folders and opened.task.todo[system][case]:
            keep(self.folders[system], crafted_case.sha256, crafted_case.follow.image)
        return crafted_case

    def _from_batch(self, opened: OpenUnit, system: int, case: int) -> MadeCase:
        """Return a case of the current unit, crafting its batch once."""
        if case not in self._batches:
            return self.parts.make(opened.seed, opened.unit.cases[case])  # noise: no system is needed
        batch = self._batches[case]
        crafter = SHARED if batch.relation in self.named else system
        if (crafter, batch.number) not in self._cases:
            self._cases[crafter, batch.number] = self._craft(opened, (crafter, batch.number), batch)
        return self._cases[crafter, batch.number][case]

    def _craft(self, opened: OpenUnit, place: Place, batch: CraftBatch) -> dict[int, MadeCase]:
        given_up = opened.task.given_up.get(place)
        addresses = {index: opened.unit.cases[index] for index in batch.cases}
        if given_up is not None:
            return {index: given_up_case(address, given_up) for index, address in addresses.items()}
        system = self.named.get(batch.relation) or self.systems[place[0]]
        relation = self.parts.relations[batch.relation]
        assert isinstance(relation, CraftedRelation)  # noqa: S101 - craft_batches returns only these
        images_beside = {
            index: beside(self.parts.relations, opened.unit.cases, index, partial(self._from_batch, opened, place[0]))
            for index in (addresses if relation.gathers else ())
        }
        return self.batch(
            relation, system, opened.seed, addresses, partial(self.began, opened.task.index, place), images_beside
        )

    def batch(
        self,
        relation: CraftedRelation,
        system: System,
        seed: PreparedSeed,
        addresses: Mapping[int, Address],
        began: Callable[[], None],
        images_beside: Mapping[int, Sequence[tuple[str, Image]]] | None = None,
    ) -> dict[int, MadeCase]:
        """Craft the cases of one relation and seed together.

        Args:
            relation: The relation.
            system: The opened crafting system.
            seed: The prepared source case.
            addresses: The cases by their index in the unit, those of one whole batch of the plan.
            began: Called before each call of the network.
            images_beside: By index, the images made by other attacks, for a relation that gathers.
        """
        made_cases: dict[int, MadeCase] = {}
        cases: dict[int, CraftCase] = {}
        for index, address in addresses.items():
            try:
                rng = relation.generator(address, self.parts.suite.seed)
                params = relation.sample(seed, address.severity, rng)
                cases[index] = CraftCase(seed=seed, params=params, beside=(images_beside or {}).get(index, ()))
            except Exception as error:  # noqa: BLE001 - a relation may come from a plug-in
                made_cases[index] = not_made(address, error)
        if cases:
            made_cases |= self._crafted(relation, system, seed, addresses, cases, began)
        return made_cases

    def _crafted(
        self,
        relation: CraftedRelation,
        system: System,
        seed: PreparedSeed,
        addresses: Mapping[int, Address],
        cases: Mapping[int, CraftCase],
        began: Callable[[], None],
    ) -> dict[int, MadeCase]:
        """Craft cases together, or one by one if that raises, so that one bad case does not fail the others."""
        with one_thread():
            began()
            try:
                results = self.craft(relation, system, seed, list(cases.values()), began)
            except Exception as error:  # noqa: BLE001 - relation and network may come from plug-ins
                results = [error]
                if len(cases) > 1:
                    results = [self._craft_one(relation, system, seed, case, began) for case in cases.values()]
        return {
            index: self._to_case(seed, addresses[index], result, system)
            for index, result in zip(cases, results, strict=True)
        }

    def _craft_one(
        self, relation: CraftedRelation, system: System, seed: PreparedSeed, case: CraftCase, began: Callable[[], None]
    ) -> FollowUp | Exception:
        try:
            return self.craft(relation, system, seed, [case], began)[0]
        except Exception as error:  # noqa: BLE001 - as above; this is what a verdict ERROR means
            return error

    def craft(
        self,
        relation: CraftedRelation,
        system: System,
        seed: PreparedSeed,
        cases: Sequence[CraftCase],
        began: Callable[[], None],
    ) -> Sequence[FollowUp | Exception]:
        """Let a relation make follow-ups on a system, with random numbers of a network derived from the cases.

        Raises:
            Exception: Any exception of relation or network.
        """
        from medtest.relations.adversarial.strongest.draws import seeded

        probe = self.probe(system, seed, began)
        seed_text = json.dumps([seed.sha256, *(dict(case.params) for case in cases)], sort_keys=True, default=str)
        with probe.attached(), seeded(int(hashlib.sha256(seed_text.encode()).hexdigest()[:12], 16), probe.device):
            followups = relation.craft(cases, probe)
        if len(followups) != len(cases):
            raise BadOutput(f"gave {len(followups)} follow-ups for {len(cases)} cases")
        return followups

    def probe(self, system: System, seed: PreparedSeed, began: Callable[[], None]) -> Probe:
        """Return a probe of an opened system, for the classes of a seed."""
        from medtest.systems.pytorch.probe import probe_of

        probe: Probe = probe_of(system, classes=seed.classes, digest=self.digests.get(id(system), ""), began=began)
        return probe

    def _to_case(self, seed: PreparedSeed, address: Address, result: FollowUp | Exception, system: System) -> MadeCase:
        if isinstance(result, Exception):
            return not_made(address, result)
        try:
            check_follow_up(result, seed)
            result = with_facts(seed, result)
        except BadOutput as error:
            return not_made(address, error)
        result.image.setflags(write=False)
        details = result.crafting
        columns: dict[str, float | str | None] = {"crafted_on": system.record_name}
        if details is not None:
            columns |= {
                "loss_before": details.loss_before,
                "loss_after": details.loss_after,
                "zero_gradient": details.zero_gradient,
                "float_label": details.float_label,
                "queries": details.queries,
                "attack_reference": details.reference,
                "smallest_epsilon": details.smallest_epsilon,
                "found_by": details.found_by,
                "attack_note": details.note or None,
            }
        return MadeCase(
            address=address,
            follow=result,
            sha256=image_sha256(result.image),
            kind=seed.kind,
            spec=seed.spec,
            classes=seed.classes,
            crafting={**columns, **distances(seed.image, result.image)},
        )

    def of_source(
        self, opened: OpenUnit, system: int, answer: SystemAnswer, again: Callable[[], SystemAnswer]
    ) -> Mapping[str, float | str | None]:
        """Return the differences of a system's probe, and of a repeated answer, from its answer to a source image.

        Args:
            opened: The unit.
            system: The system's index.
            answer: Its answer to the source image.
            again: Asks it once more.
        """
        under_test = self.systems[system]
        if answer.output is None or under_test.offers() is Need.NOTHING:
            return {}
        from medtest.systems.pytorch.probe import output_gap, probe_gap

        try:
            second = again().output
            with one_thread():
                probe = self.probe(under_test, opened.seed, lambda: None)
                gap = probe_gap(probe, opened.seed.image, answer.output)
        except Exception:  # noqa: BLE001 - additional figures; the answers report the failure
            return {}
        repeated = None if second is None else output_gap(answer.output, second)
        return {"probe_gap": gap, "repeat_gap": repeated}


def with_distances(seed: PreparedSeed, case: MadeCase) -> MadeCase:
    """Add the distances to the source to a case of a relation that needs no system."""
    if case.follow is None or case.address.is_source or case.follow.image.dtype != np.uint8:
        return case
    return replace(case, crafting=distances(seed.image, case.follow.image))


def distances(source: Image, followup: Image) -> dict[str, float | str | None]:
    """Return the distances of a follow-up from its source: L∞ and L2 norms in levels of 255, and SSIM.

    Args:
        source: uint8 H×W×3 RGB.
        followup: The same.

    Returns:
        ``linf`` and ``l2`` over all pixels and channels; ``ssim``, the mean structural similarity over the channels
        (Wang et al. 2004, Gaussian window of 1.5), 1 for equal images; None for an image smaller than the window.
    """
    difference = followup.astype(np.int32) - source.astype(np.int32)
    largest = int(np.abs(difference).max(initial=0))
    if not largest:
        return {"linf": 0.0, "l2": 0.0, "ssim": 1.0}
    ssim: float | None = None
    if min(source.shape[:2]) >= 11:
        ssim = float(_similarity()(source, followup))
    flat = difference.ravel().astype(np.int64)
    return {"linf": float(largest), "l2": float(np.sqrt(flat @ flat)), "ssim": ssim}


@cache
def _similarity() -> Callable[[Image, Image], float]:
    from skimage.metrics import structural_similarity

    window = {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False}
    return partial(structural_similarity, channel_axis=-1, data_range=255, **window)


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch on one thread inside the block, and restore its number of threads afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
