"""Orders of medical pictures: prompts in controlled clinical English, asked in their own words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import ClassVar, Literal

from medtest.core.plugins import PartSettings
from medtest.core.scenes import Pool
from medtest.language.orders import NotControlled, order_pool, read_order
from medtest.language.orders.order import REASONS
from medtest.seeds.base import SeedProblem
from medtest.seeds.captions.base import Candidate, Prompts, PromptSeedSettings, PromptSource
from medtest.seeds.captions.files import CaptionRow, read
from medtest.seeds.captions.source import FiledPrompts, FiledSettings
from medtest.seeds.folders.files import ids_in_place
from medtest.seeds.folders.layout import shown

MODALITY, CASE = "modality", "case"
"""Strata of every order: the kind of picture, and ``plain``, ``negated``, ``uncertain``, ``normal`` or
``contradictory``."""


class OrderSeedSettings(PromptSeedSettings):
    """Settings of sources of orders.

    Attributes:
        words: ``own``: orders keep their own words, of which operators change only those that they concern.
    """

    words: Literal["own"] = "own"


class OrderSource(PromptSource):
    """Base class of sources of orders."""

    Settings: ClassVar[type[PartSettings]] = OrderSeedSettings

    def _candidate(self, seed_id: str, text: str, cluster: str = "") -> Candidate:
        """Return an order as a candidate.

        Raises:
            NotControlled: The text is not in controlled clinical English.
        """
        order = read_order(text).order
        strata = ((MODALITY, order.modality), (CASE, order.kind))
        return Candidate(seed_id=seed_id, text=text, pool=order_pool(order), cluster=cluster, strata=strata)

    def _words(self, candidate: Candidate) -> str | None:
        """Return the order's own words."""
        return candidate.text

    def _names_something(self, pool: Pool) -> bool:
        """Return True for every order; one that only excludes or doubts findings is drawn as well."""
        return True


class FiledOrderSettings(FiledSettings):
    """Settings of :class:`Orders`.

    Attributes:
        words: ``own``, as in :class:`OrderSeedSettings`.
        unread: Prompts that are not in controlled English: ``skip`` leaves them out and counts them by reason, ``stop``
            reports them.
    """

    words: Literal["own"] = "own"
    unread: Literal["skip", "stop"] = "skip"


class Orders(OrderSource, FiledPrompts):
    """Orders from a file of prompts: text, CSV, a list, or JSON."""

    Settings: ClassVar[type[PartSettings]] = FiledOrderSettings
    holds: ClassVar[str] = "your file of orders"

    settings: FiledOrderSettings

    def _look(self, listing: Prompts) -> None:
        path = self._file()
        where = shown(PurePosixPath(path.name))
        rows, bad = read(path, where)
        entries = sorted([*rows, *bad], key=lambda entry: entry.number)
        names = ids_in_place(_names(entries), [not entry.wrong for entry in entries])
        clusters: dict[str, str] = {}
        unread: Counter[str] = Counter()
        for name, row in zip(names, entries, strict=True):
            if row.wrong:
                self._keep_place(name, row, where, listing)
                continue
            try:
                cluster = clusters.setdefault(row.image, name) if row.image else ""
                listing.candidates.append(self._candidate(name, row.text, cluster=cluster))
            except NotControlled as error:
                unread[error.code] += 1
                place = f"row {row.number}"
                if self.settings.unread == "stop":
                    broken = replace(row, place=place, wrong=f"it {error}")
                    self._keep_place(name, broken, where, listing)
                else:
                    listing.problems.append(SeedProblem(file=f"{where}, {place}", reason=str(error)))
        listing.notices += [
            f"{count:,} of {len(rows):,} prompts not sent: each {REASONS[code]}."
            for code, count in sorted(unread.items())
        ]


def _names(entries: Sequence[CaptionRow]) -> list[str]:
    """Return a name for each row: its image, with a number from the second prompt of an image on, or its line."""
    named = [entry.image or f"line-{entry.number:06d}" for entry in entries]
    prompts: Counter[str] = Counter()
    for at, entry in enumerate(entries):
        if not entry.wrong:
            prompts[named[at]] += 1
            if prompts[named[at]] > 1:
                named[at] += f"\0{prompts[named[at]]}"  # no image's name has this sign
    return named
