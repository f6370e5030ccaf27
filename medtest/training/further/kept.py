"""Follow-ups of training images, loaded from the follow-up store or generated and stored there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from medtest.core.cases import Address, FollowUp, Image, Mask, Params, PreparedSeed, image_sha256
from medtest.core.files.by_content import DamagedFile, mask_sha256
from medtest.core.oracles.moves import moved_mask
from medtest.core.probes import Need
from medtest.runner.followups.entry import Entry
from medtest.runner.followups.recipe import SuiteKeys
from medtest.runner.followups.store import FollowUpStore
from medtest.runner.privacy.rules import ShownNames
from medtest.runner.units.made_case import MadeCase
from medtest.runner.units.parts import Parts
from medtest.training.crafted import check_crafted


@dataclass(frozen=True, kw_only=True, eq=False)
class Perturbed:
    """Perturbed training image.

    Attributes:
        image: uint8 H×W×3 RGB at the prepared size.
        mask: bool H×W, its expected mask.
        params: Parameters drawn by the relation.
        sha256: SHA-256 of the image.
    """

    image: Image
    mask: Mask
    params: Params
    sha256: str


class Kept:
    """Generates follow-ups of training images, with an optional store.

    Args:
        parts: The training suite's parts.
        folder: The store's folder, created if missing; None generates every follow-up and stores none.

    Attributes:
        made: Number of generated follow-ups.
        reused: Number of follow-ups from the store.
    """

    def __init__(self, parts: Parts, folder: Path | None) -> None:
        self._parts = parts
        self._store = None if folder is None else FollowUpStore.open(folder, create=True)
        self._recipe = SuiteKeys(parts.suite, parts.relations, ShownNames(None))
        self._part_names = {plan.id: plan.info.name for plan in parts.suite.relations}
        self._fresh: list[Entry] = []
        self._seed: PreparedSeed | None = None
        self._key = ""
        self._original = ""
        self.made = 0
        self.reused = 0

    def begin(self, seed: PreparedSeed, original: Image) -> None:
        """Start with the next training image.

        Args:
            seed: The prepared image.
            original: The image as in its file.
        """
        self.flush()
        self._seed = seed
        if self._store is not None:
            self._key = self._recipe.source_key(seed)
            self._original = image_sha256(original)

    def take(self, address: Address) -> Perturbed | None:
        """Return a follow-up of the image; None if the relation has no room or failed.

        Args:
            address: Its case.
        """
        seed = self._seed
        if seed is None or seed.mask is None:
            return None
        crafted = self._parts.relations[address.relation].needs is not Need.NOTHING
        store = None if crafted else self._store  # crafted follow-ups are stored by a run
        key = self._recipe.followup_key(self._key, address) if store is not None else ""
        stored = None if store is None else self._stored(key)
        if stored is not None:
            self.reused += 1
            return stored
        case = self._parts.make(seed, address)
        check_crafted(self._parts, case)
        if case.follow is None:
            return None
        self.made += 1
        follow = case.follow
        mask = moved_mask(seed.mask, follow.effect)
        if store is not None:
            self._fresh.append(self._entry(store, key, seed, case, follow, mask))
        return Perturbed(image=follow.image, mask=mask, params=follow.params, sha256=case.sha256)

    def _stored(self, key: str) -> Perturbed | None:
        entry = self._store.by_key(key) if self._store is not None else None
        if self._store is None or entry is None or entry.skipped or not entry.mask_sha256:
            return None
        try:
            image = self._store.image(entry.followup_sha256)
            mask = self._store.mask(entry.mask_sha256)
        except DamagedFile:
            return None  # it is generated again and overwritten
        return Perturbed(image=image, mask=mask, params=entry.params, sha256=entry.followup_sha256)

    def _entry(
        self, store: FollowUpStore, key: str, seed: PreparedSeed, case: MadeCase, follow: FollowUp, mask: Mask
    ) -> Entry:
        relation = self._parts.relations[case.address.relation]
        source_mask = seed.mask
        for image in (seed.image, follow.image):
            store.put_image(image)
        for plane in (source_mask, mask):
            if plane is not None:
                store.put_mask(plane)
        return Entry(
            key=key,
            address=case.address,
            cluster=seed.ref.cluster,
            strata=seed.ref.strata,
            part=self._part_names[case.address.relation],
            revision=relation.revision,
            group=relation.group,
            params=dict(follow.params),
            scale=float(follow.scale),
            effect=follow.effect,
            facts={name: float(value) for name, value in follow.facts.items()},
            original_sha256=self._original,
            source_sha256=seed.sha256,
            source_mask_sha256="" if source_mask is None else mask_sha256(source_mask),
            followup_sha256=case.sha256,
            mask_sha256=mask_sha256(mask),
        )

    def flush(self) -> None:
        """Add the follow-ups of the last image to the index."""
        if self._store is not None and self._fresh:
            self._store.put(self._key, self._fresh)
        self._fresh = []

    def close(self) -> None:
        """Add the last image's follow-ups to the index and close the store."""
        self.flush()
        if self._store is not None:
            self._store.close()
