"""Reuse of stored follow-ups instead of making them, if the store holds exactly the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from medtest.core.cases import REMOVE, Address, FollowUp, PreparedSeed
from medtest.core.errors import MedtestError
from medtest.runner.followups.recipe import SuiteKeys
from medtest.runner.followups.store import FollowUpStore, default_folder
from medtest.runner.privacy.rules import ShownNames
from medtest.suite.model import Suite

_MEMO = "medtest.runner.followups.reuse:source_key"


@dataclass(kw_only=True)
class StoredFollowUps:
    """Value of :attr:`medtest.suite.model.Invocation.kept` under ``followups=store``; pickled for workers.

    A follow-up is reused if its key is the same: content of the source, preparation, the relation's class, revision,
    settings and files, the suite's seed, the address. The relation then draws nothing; pixels and parameters come from
    the store, so that records are equal with and without a store.

    Attributes:
        folder: The store's folder.
        recipe: Makes keys.
    """

    folder: Path
    recipe: SuiteKeys
    _store: FollowUpStore | None = field(default=None, repr=False)

    @classmethod
    def of(cls, suite: Suite, home: Path, folder: Path | None = None) -> StoredFollowUps:
        """Create an instance for one suite.

        Args:
            suite: The suite.
            home: The invocation's home folder.
            folder: The store's folder; :func:`default_folder` if None.

        Raises:
            MedtestError: There is no store.
        """
        chosen = default_folder() if folder is None else folder
        store = FollowUpStore.open(chosen)
        store.close()
        names = ShownNames.of(suite.privacy, home)
        return cls(folder=chosen.resolve(), recipe=SuiteKeys(suite, suite.build_relations(), names))

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self.folder, "recipe": self.recipe, "_store": None}

    def find(self, seed: PreparedSeed, address: Address) -> FollowUp | None:
        """Return the stored follow-up, or None if the store has none: the case is made, or skipped, as without a store.

        A missing or damaged picture, or an unreadable store, counts as lacking: remaking gives the same result.
        """
        source = seed.memo(_MEMO, lambda: self.recipe.source_key(seed))
        try:
            if self._store is None:
                self._store = FollowUpStore.open(self.folder)
            entry = self._store.by_key(self.recipe.followup_key(source, address))
            if entry is None or entry.skipped or entry.effect.kind in ("warp", REMOVE):  # not all of these is stored
                return None
            image = self._store.image(entry.followup_sha256)
        except MedtestError:
            return None
        return FollowUp(
            image=image, params=entry.params, scale=entry.scale or 0.0, effect=entry.effect, facts=entry.facts
        )
