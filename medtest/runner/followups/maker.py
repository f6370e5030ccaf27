"""Conversion of finished cases to entries of a store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from medtest.core.cases import FollowUp, Mask, PreparedSeed, SeedRef, image_sha256
from medtest.core.oracles.moves import moved_mask
from medtest.runner.followups.entry import Entry
from medtest.runner.followups.recipe import SuiteKeys
from medtest.runner.privacy.rules import Scrubber
from medtest.runner.units.made_case import MadeCase
from medtest.runner.units.parts import Parts


@dataclass(frozen=True, kw_only=True, eq=False)
class LoadedSeed:
    """Prepared seed with its key in a store and the SHA-256 of its image file's pixels."""

    seed: PreparedSeed
    key: str
    original: str


class EntryMaker:
    """Loader of a suite's seeds and maker of store entries.

    Args:
        parts: The suite's parts.
        recipe: Makes its keys.
        scrub: Removes private texts.
    """

    def __init__(self, parts: Parts, recipe: SuiteKeys, scrub: Scrubber) -> None:
        self._parts, self.recipe, self._scrub = parts, recipe, scrub
        self._names = {plan.id: plan.info.name for plan in parts.suite.relations}

    def load(self, source: int, ref: SeedRef) -> LoadedSeed:
        """Load and prepare a seed of a seed source."""
        loaded = self._parts.sources[source].load(ref)
        seed = self._parts.prepare(loaded)
        return LoadedSeed(seed=seed, key=self.recipe.source_key(seed), original=image_sha256(loaded.image))

    def entry(self, loaded: LoadedSeed, key: str, case: MadeCase, *, source_mask: str, mask: str) -> Entry:
        """Return the entry of a case.

        Args:
            loaded: Its seed.
            key: Its key.
            case: The case; one without a follow-up was skipped.
            source_mask: SHA-256 of the seed's mask, or "".
            mask: SHA-256 of the expected mask, or "".
        """
        ref, follow = loaded.seed.ref, case.follow
        relation = self._parts.relations[case.address.relation]
        common: dict[str, Any] = {"skipped": self._scrub.reason(case.reason.text, ref)}
        if follow is not None:
            common = {
                "params": self._scrub.params(dict(follow.params), ref),
                "scale": float(follow.scale),
                "effect": follow.effect,
                "facts": {name: float(value) for name, value in follow.facts.items()},
            }
        return Entry(
            key=key,
            address=self.recipe.shown(case.address),
            cluster=self.recipe.names.cluster(ref),
            strata=ref.strata,
            part=self._names[case.address.relation],
            revision=relation.revision,
            group=relation.group,
            original_sha256=loaded.original,
            source_sha256=loaded.seed.sha256,
            source_mask_sha256=source_mask,
            followup_sha256=case.sha256,
            mask_sha256=mask,
            **common,
        )


def expected_mask(seed: PreparedSeed, follow: FollowUp) -> Mask | None:
    """Return the expected mask of a follow-up: the source's, moved if the relation moves it; None without a mask."""
    return None if seed.mask is None else moved_mask(seed.mask, follow.effect)
