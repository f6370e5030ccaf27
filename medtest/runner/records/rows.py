"""From an answer to a record: tuples in the order of the schema."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from medtest.api.redact import visible
from medtest.core.address import address_text
from medtest.core.cases import Address, FollowUp, SeedRef, Verdict
from medtest.core.oracles.base import Oracle
from medtest.core.records import CASE_FACTORS, CRAFTING_COLUMNS, FIXED_COLUMNS, REVISION, schema
from medtest.runner.privacy.hidden_words import HiddenWords
from medtest.runner.privacy.rules import Scrubber, ShownNames
from medtest.runner.records.answers import KeptAnswer

SOURCE_GROUP = "source"
_FACTS = {"factor_object_area": "object_area", "factor_lesion_distance": "lesion_distance"}


def strata_of(refs: Sequence[SeedRef]) -> tuple[str, ...]:
    """Return the names of all columns that stratify tables, in the order in which seeds bring them."""
    return tuple(dict.fromkeys(name for ref in refs for name, _ in ref.strata))


def records_schema(oracle: Oracle, strata: tuple[str, ...], *, crafts: bool = False) -> pa.Schema:
    """Return the schema of a run's records; ``crafts``: whether any relation needs a system."""
    return schema(
        oracle.recorded,
        oracle.self_scores,
        strata,
        texts=oracle.texts,
        measures=oracle.measures,
        factors=oracle.seed_factors,
        crafts=crafts,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedCase:
    """What became of one case of one system.

    Attributes:
        verdict: The verdict.
        reason: Why, for ERROR and SKIP.
        follow: The follow-up, or None where none could be made.
        sha256: Its image's, or "".
        elapsed_ms: The case's share of its batch's time, or None where the system was not asked.
        scores: The oracle's columns.
        source_scores: The oracle's columns of the source case.
        texts: The oracle's text columns.
        measures: The oracle's number columns that are no scores.
        crafting: Columns of :data:`medtest.core.records.CRAFTING_COLUMNS`, where records have them.
        answer: What the run keeps of the answer; None where it keeps nothing.
    """

    verdict: Verdict
    reason: str = ""
    follow: FollowUp | None = None
    sha256: str = ""
    elapsed_ms: float | None = None
    scores: Mapping[str, float | None] = field(default_factory=dict)
    source_scores: Mapping[str, float | None] = field(default_factory=dict)
    texts: Mapping[str, str | None] = field(default_factory=dict)
    measures: Mapping[str, float | None] = field(default_factory=dict)
    crafting: Mapping[str, float | str | None] = field(default_factory=dict)
    answer: KeptAnswer | None = None


class RowMaker:
    """Makes the rows of one run.

    Args:
        suite: Name and version.
        groups: Group of every relation by id.
        oracle: Whose columns there are.
        strata: Names of the columns that stratify tables.
        names: How ids are shown.
        scrub: What must not show.
        crafts: Whether any relation needs a system.
        words: How words of prompts are kept.
    """

    def __init__(
        self,
        *,
        suite: tuple[str, str],
        groups: Mapping[str, str],
        oracle: Oracle,
        strata: tuple[str, ...],
        names: ShownNames,
        scrub: Scrubber,
        crafts: bool = False,
        words: HiddenWords | None = None,
    ) -> None:
        self._words = words or HiddenWords()
        self._suite = suite
        self._groups = dict(groups)
        self._scores = oracle.recorded
        self._revision = oracle.revision
        self._self_scores = tuple(f"self_{name}" for name in oracle.self_scores)
        self._texts = oracle.texts
        self._measures = oracle.measures
        self._factors = oracle.seed_factors
        self._strata = strata
        self._names = names
        self._scrub = scrub
        self._crafting = tuple(name for name, _ in CRAFTING_COLUMNS) if crafts else ()

    def row(
        self,
        system: str,
        address: Address,
        ref: SeedRef,
        factors: Mapping[str, float | None],
        source_sha: str,
        case: FinishedCase,
    ) -> tuple[Any, ...]:
        """Return one record's values in the order of :func:`records_schema`."""
        follow = case.follow
        facts = follow.facts if follow is not None else {}
        strata, words = dict(ref.strata), self._words
        texts = words.texts(case.texts)
        shown = self._names.seed_id(address.dataset, address.seed_id)
        case_of = (address.relation, address.severity, address.frame, address.repeat, address.item)
        return (
            *self._suite,
            system,
            address.dataset,
            shown,
            self._names.cluster(ref),
            address.item,
            address.relation,
            SOURCE_GROUP if address.is_source else self._groups[address.relation],
            address.severity,
            None if follow is None else float(follow.scale),
            address.frame,
            address.repeat,
            address_text(address.dataset, shown, *case_of),
            "" if follow is None else visible(params_text(words.value(self._scrub.params(follow.params, ref)))),
            words.sha256(source_sha),
            words.sha256(case.sha256),
            "" if case.answer is None else case.answer.sha256,
            str(case.verdict),
            words.reason(self._scrub.reason(case.reason, ref)) if case.reason else "",
            self._revision,
            case.elapsed_ms,
            *(case.scores.get(name) for name in self._scores),
            *(case.source_scores.get(name) for name in self._scores),
            *(case.scores.get(name) for name in self._self_scores),
            *(_kept(texts.get(name)) for name in self._texts),
            *(case.measures.get(name) for name in self._measures),
            *(factors.get(name) for name in self._factors),
            *(facts.get(_FACTS[name]) for name in CASE_FACTORS),
            *(case.crafting.get(name) for name in self._crafting),
            # a column may repeat file names
            *(_kept(self._scrub.params(strata.get(name), ref)) for name in self._strata),
        )

    def judged_again(self, old: tuple[Any, ...], address: Address, ref: SeedRef, case: FinishedCase) -> tuple[Any, ...]:
        """Return a record with what an oracle says of it now; what was shown and how long it took stay as they were.

        Args:
            old: The record as it stands.
            address: Its case.
            ref: Its seed.
            case: What became of it under the oracle; nothing else of it is looked at.
        """
        new = self.row("", address, ref, {}, "", case)
        first = len(FIXED_COLUMNS)
        judged = (2 * len(self._scores)) + len(self._self_scores) + len(self._texts) + len(self._measures)
        row = [*old[:first], *new[first : first + judged], *old[first + judged :]]
        for name in ("verdict", "reason", REVISION):
            row[COLUMN[name]] = new[COLUMN[name]]
        return tuple(row)


def _kept(text: str | None) -> str | None:
    """Return a text as a file of records can hold it: an oracle or a system may be anybody's."""
    return None if text is None else visible(str(text))


def restated(old: tuple[Any, ...], revision: int) -> tuple[Any, ...]:
    """Return the record of a case without an answer, under another revision of the oracle."""
    at = COLUMN[REVISION]
    return (*old[:at], revision, *old[at + 1 :])


def params_text(params: Any) -> str:
    """Return parameters as JSON text.

    Raises:
        TypeError: They hold something else than JSON values.
        ValueError: They hold NaN or an infinite number.
    """
    return json.dumps(params, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


COLUMN: dict[str, int] = {name: index for index, (name, _) in enumerate(FIXED_COLUMNS)}
"""Place of the fixed columns in a row."""
