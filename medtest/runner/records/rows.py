"""Conversion of finished cases to records: tuples in the order of the schema."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from medtest.api.redact import visible
from medtest.core.address import address_text
from medtest.core.cases import Address, FollowUp, Reason, SeedRef, Verdict
from medtest.core.oracles.base import Oracle
from medtest.core.records import CASE_FACTORS, CONTROL_COLUMNS, FIXED_COLUMNS, REVISION, made_columns, schema
from medtest.relations.base import Relation
from medtest.relations.calibration.searching.queries import query_at
from medtest.runner.privacy.hidden_words import HiddenWords
from medtest.runner.privacy.rules import Scrubber, ShownNames
from medtest.runner.records.answers import KeptAnswer

SOURCE_GROUP = "source"
_FACTS = {"factor_object_area": "object_area", "factor_lesion_distance": "lesion_distance"}


def strata_of(refs: Sequence[SeedRef]) -> tuple[str, ...]:
    """Return the names of all columns that stratify tables, in the order of their first seeds."""
    return tuple(dict.fromkeys(name for ref in refs for name, _ in ref.strata))


def records_schema(
    oracle: Oracle, strata: tuple[str, ...], *, crafts: bool = False, searches: bool = False
) -> pa.Schema:
    """Return the schema of a run's records.

    Args:
        oracle: The oracle.
        strata: Metadata columns that stratify tables.
        crafts: True if any relation needs a system.
        searches: True if any relation is searched.
    """
    return schema(
        oracle.recorded,
        oracle.self_scores,
        strata,
        texts=oracle.texts,
        measures=oracle.measures,
        factors=oracle.seed_factors,
        crafts=crafts,
        controls=bool(oracle.controls),
        searches=searches,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedCase:
    """Result of one case of one system.

    Attributes:
        verdict: The verdict.
        reason: Reason of ERROR and SKIP.
        follow: The follow-up, or None if it could not be made.
        sha256: SHA-256 of its image, or "".
        elapsed_ms: The case's share of its batch's time, or None if the system was not asked.
        scores: The oracle's columns.
        source_scores: The oracle's columns of the source case.
        texts: The oracle's text columns.
        measures: The oracle's number columns other than scores.
        crafting: Columns of :data:`medtest.core.records.CRAFTING_COLUMNS`, if records have them.
        control: Columns of :data:`medtest.core.records.CONTROL_COLUMNS`, if records have them.
        answer: The stored answer; None if none is stored.
    """

    verdict: Verdict
    reason: Reason = Reason()
    follow: FollowUp | None = None
    sha256: str = ""
    elapsed_ms: float | None = None
    scores: Mapping[str, float | None] = field(default_factory=dict)
    source_scores: Mapping[str, float | None] = field(default_factory=dict)
    texts: Mapping[str, str | None] = field(default_factory=dict)
    measures: Mapping[str, float | None] = field(default_factory=dict)
    crafting: Mapping[str, float | str | None] = field(default_factory=dict)
    control: Mapping[str, float | str | None] = field(default_factory=dict)
    answer: KeptAnswer | None = None


@dataclass(frozen=True, kw_only=True)
class RowMaker:
    """Maker of the rows of one run.

    Attributes:
        suite: Name and version.
        groups: Group of every relation by id.
        oracle: Oracle that defines the columns.
        strata: Names of the columns that stratify tables.
        names: Display of ids.
        scrub: Removes private texts.
        crafts: True if any relation needs a system.
        searched: Relations that are searched, by id.
        words: Hiding rules for words of prompts.
    """

    suite: tuple[str, str]
    groups: Mapping[str, str]
    oracle: Oracle
    strata: tuple[str, ...]
    names: ShownNames
    scrub: Scrubber
    crafts: bool = False
    searched: Mapping[str, Relation] = field(default_factory=dict)
    words: HiddenWords = HiddenWords()

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
        strata, words, oracle = dict(ref.strata), self.words, self.oracle
        texts = words.texts(case.texts)
        shown_id = self.names.seed_id(address.dataset, address.seed_id)
        case_key = (address.relation, address.severity, address.frame, address.repeat, address.item)
        return (
            *self.suite,
            system,
            address.dataset,
            shown_id,
            self.names.cluster(ref),
            address.item,
            address.relation,
            SOURCE_GROUP if address.is_source else self.groups[address.relation],
            address.severity,
            None if follow is None else float(follow.scale),
            address.frame,
            address.repeat,
            address_text(address.dataset, shown_id, *case_key),
            "" if follow is None else visible(params_text(words.value(self.scrub.params(follow.params, ref)))),
            words.sha256(source_sha),
            words.sha256(case.sha256),
            "" if case.answer is None else case.answer.sha256,
            str(case.verdict),
            str(case.reason.code),
            words.reason(self.scrub.reason(case.reason.text, ref)) if case.reason.text else "",
            oracle.revision,
            case.elapsed_ms,
            *(case.scores.get(name) for name in oracle.recorded),
            *(case.source_scores.get(name) for name in oracle.recorded),
            *(case.scores.get(f"self_{name}") for name in oracle.self_scores),
            *(_kept(texts.get(name)) for name in oracle.texts),
            *(case.measures.get(name) for name in oracle.measures),
            *(case.control.get(name) for name, _ in (CONTROL_COLUMNS if oracle.controls else ())),
            *(factors.get(name) for name in oracle.seed_factors),
            *(facts.get(_FACTS[name]) for name in CASE_FACTORS),
            facts.get("visibility"),
            facts.get("source_visibility"),
            None if follow is None else _number(follow.params.get("scale_applied")),
            *self._made(system, address, case),
            # a column may repeat file names
            *(_kept(self.scrub.params(strata.get(name), ref)) for name in self.strata),
        )

    def _made(self, system: str, address: Address, case: FinishedCase) -> Iterator[Any]:
        """Yield the values of the columns on how a follow-up was made on a system."""
        query = query_at(self.searched.get(address.relation), address)
        values = case.crafting
        if query is not None:
            values = {**values, "search": query.name, "queries": float(query.number + 1), "crafted_on": system}
        for name, _ in made_columns(crafts=self.crafts, searches=bool(self.searched)):
            yield values.get(name)

    def judged_again(self, old: tuple[Any, ...], address: Address, ref: SeedRef, case: FinishedCase) -> tuple[Any, ...]:
        """Return a record with the oracle's new judgement; input and timing stay unchanged.

        Args:
            old: The present record.
            address: Its case.
            ref: Its seed.
            case: Its new result under the oracle; only the judgement is used.
        """
        new = self.row("", address, ref, {}, "", case)
        first = len(FIXED_COLUMNS)
        oracle = self.oracle
        judged = len(oracle.judged_columns) + len(oracle.texts) + len(oracle.measures) + bool(oracle.controls)
        row = [*old[:first], *new[first : first + judged], *old[first + judged :]]
        for name in ("verdict", "reason_code", "reason", REVISION):
            row[COLUMN[name]] = new[COLUMN[name]]
        return tuple(row)


def _number(value: Any) -> float | None:
    """Return a parameter that is a number, None for any other value."""
    return float(value) if isinstance(value, int | float) else None


def _kept(text: str | None) -> str | None:
    """Return a text that a file of records can hold: an oracle or a system may come from any plug-in."""
    return None if text is None else visible(str(text))


def restated(old: tuple[Any, ...], revision: int) -> tuple[Any, ...]:
    """Return the record of a case without an answer, under another revision of the oracle."""
    index = COLUMN[REVISION]
    return (*old[:index], revision, *old[index + 1 :])


def params_text(params: Any) -> str:
    """Convert parameters to JSON text.

    Raises:
        TypeError: They are not JSON values.
        ValueError: They contain NaN or an infinite number.
    """
    return json.dumps(params, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


COLUMN: dict[str, int] = {name: index for index, (name, _) in enumerate(FIXED_COLUMNS)}
"""Index of the fixed columns in a row."""
