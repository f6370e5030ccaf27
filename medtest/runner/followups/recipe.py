"""Keys of follow-ups: digests of everything that determines one, so that it is never made twice.

A follow-up is determined by the content of its prepared source (image, masks), the preparation, the relation's class,
revision, settings and files, the suite's ``seed`` and the address. The chosen severities and number of repeats do not
affect a follow-up, nor do the suite's name, systems and oracle, so that suites share follow-ups.

A follow-up crafted on a system is also determined by that system (class, settings, weights), whether the suite names it
or crafts on each, and by the relation's severities and repeats, which are crafted together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from medtest.core.cases import Address, Json, PreparedSeed, image_sha256
from medtest.core.files.by_content import mask_sha256
from medtest.preparation import REVISION as PREPARATION_REVISION
from medtest.relations.adversarial.gathering import feeding
from medtest.relations.base import CraftedRelation, Relation
from medtest.runner.privacy.rules import ShownNames, key_fingerprint
from medtest.seeds.base import SeedSource
from medtest.suite.digest import crafter_of, digest_of, relation_entry, system_entry
from medtest.suite.model import PartPlan, Suite

_CHOICES = ("severities", "repeats")
"""Settings of every relation that select cases without changing them."""


class SuiteKeys:
    """Maker of the keys of one suite.

    Args:
        suite: The suite.
        relations: Its relations by id.
        names: Display of ids; keys are made from displayed ids, so that private names cannot be guessed from them.
    """

    def __init__(self, suite: Suite, relations: Mapping[str, Relation], names: ShownNames) -> None:
        self._seed = suite.seed
        self.names = names
        self._preparation: dict[str, Json] = {**suite.prepare.covers(), "revision": PREPARATION_REVISION}
        self._relations = {plan.id: _entry(suite, plan, relations) for plan in suite.relations}
        self._short = {name: _without_choices(covers) for name, covers in self._relations.items()}

    def shown(self, address: Address) -> Address:
        """Return an address with the ids shown by the store."""
        if self.names.key is None:
            return address
        return replace(address, seed_id=self.names.seed_id(address.dataset, address.seed_id), item="")

    def source_key(self, seed: PreparedSeed) -> str:
        """Return the key of a prepared source case."""
        address = self.shown(seed.ref.source)
        masks = {
            name: None if mask is None else mask_sha256(mask)
            for name, mask in (("mask", seed.mask), ("original", seed.original_mask), ("avoid", seed.avoid))
        }
        return digest_of(
            {
                "dataset": address.dataset,
                "seed_id": address.seed_id,
                "hash_key": self._hash_key(),
                "image": seed.sha256,
                "masks": masks,
                "preparation": self._preparation,
                **({} if seed.wide is None else {"wide": image_sha256(seed.wide)}),
            }
        )

    def followup_key(self, source_key: str, address: Address) -> str:
        """Return the key of a follow-up; ``address`` may have plain or shown ids."""
        return digest_of(
            {
                "source": source_key,
                "suite_seed": self._seed,
                "relation": self._short[address.relation],
                "case": [address.relation, address.severity, address.frame, address.repeat],
            }
        )

    def suite_key(self, suite: Suite, sources: Sequence[SeedSource]) -> str:
        """Return the key of all the suite's follow-ups; it needs the seeds listed."""
        return digest_of(
            {
                "suite_seed": self._seed,
                "hash_key": self._hash_key(),
                "preparation": self._preparation,
                "relations": list(self._relations.items()),
                "seeds": [
                    [plan.id, plan.info.digest_name, type(source).revision, source.digest()]
                    for plan, source in zip(suite.seeds, sources, strict=True)
                ],
            }
        )

    def _hash_key(self) -> str:
        return "" if self.names.key is None else key_fingerprint(self.names.key)


def _entry(suite: Suite, plan: PartPlan, relations: Mapping[str, Relation]) -> dict[str, Any]:
    """Return the parts of a relation covered by keys.

    For a crafted relation they include its system, named or not, and for a relation that gathers, the relations that it
    gathers from.
    """
    relation = relations[plan.id]
    crafter = crafter_of(suite, plan.id)
    if isinstance(relation, CraftedRelation) and crafter is None and len(suite.systems) == 1:
        (system,) = suite.build_systems().values()
        crafter = (suite.systems[0], system)
    entry = relation_entry(plan, relation, crafter=crafter, task=suite.kind)
    if isinstance(relation, CraftedRelation) and crafter is not None:
        entry["crafted_on"] = system_entry(*crafter, suite.task)
    names = feeding(relations, plan.id)
    if names:
        gathered = [plan_entry for plan_entry in suite.relations if plan_entry.id in names]
        entry["beside"] = {plan_entry.id: digest_of(_entry(suite, plan_entry, relations)) for plan_entry in gathered}
    return entry


def _without_choices(covers: dict[str, Any]) -> dict[str, Any]:
    if "crafted_on" in covers:  # pixels made from gradients depend on the other cases of their batch
        return covers
    settings = {name: value for name, value in covers["settings"].items() if name not in _CHOICES}
    return {**covers, "settings": settings}
