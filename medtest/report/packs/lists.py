"""Lists of a suite's pack: its seeds and some of its follow-ups, by the hashes of their pixels."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, TypeVar

import numpy as np

from medtest.core.cases import PreparedSeed, Seed, SeedRef, Verdict, image_sha256
from medtest.core.errors import MedtestError
from medtest.core.files import json_sha256
from medtest.core.files.by_content import mask_sha256
from medtest.relations.base import CraftedRelation
from medtest.report.packs.contents import no_pack
from medtest.runner.privacy.hidden_words import HiddenWords
from medtest.runner.privacy.rules import ShownNames, key_fingerprint
from medtest.runner.units.made_case import describe
from medtest.runner.units.parts import Parts
from medtest.suite.model import Invocation, Suite
from medtest.suite.plan import Plan, Step

Progress = Callable[[int, int], None]
MOST_CASES = 240
"""Maximum number of follow-ups in a list; a few per relation and severity suffice to compare bytes."""
CRAFTED = "they are crafted on a system, and gradients differ between processors"
_TRIES = 4
"""Number of seeds tried for a relation that does not apply to the first."""

Line = TypeVar("Line", bound="SeedLine | CaseLine")


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedLine:
    """A seed of the list.

    Attributes:
        dataset: Data set id.
        seed_id: Seed id as shown in records.
        image_sha256: SHA-256 of the prepared image or prompt, as ``source_sha256`` of records.
        expected_sha256: SHA-256 of the expected output and of everything that decides where objects go; "" where ids
            are hashed, since a label could be found by trying.
    """

    dataset: str
    seed_id: str
    image_sha256: str
    expected_sha256: str

    @property
    def key(self) -> tuple[str, str]:
        """Key of the seed: data set and seed id."""
        return self.dataset, self.seed_id


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseLine:
    """A follow-up of the list.

    Attributes:
        dataset: Data set id.
        seed_id: Id of its seed as shown in records.
        relation: Relation id.
        severity: Severity.
        frame: Frame.
        repeat: Repeat.
        followup_sha256: SHA-256 as in records; "" where there is none.
        reason: Reason why there is none.
    """

    dataset: str
    seed_id: str
    relation: str
    severity: int
    frame: int
    repeat: int
    followup_sha256: str
    reason: str = ""

    @property
    def step(self) -> Step:
        """The transformation step of the follow-up."""
        return Step(self.relation, self.severity, self.repeat, self.frame)


class SeedPlace(NamedTuple):
    """A seed covered by a list: its number, its source and reference."""

    number: int
    source: int
    ref: SeedRef


class Surveyor:
    """Prepares the seeds of a suite one by one and makes follow-ups of them.

    Args:
        suite: The suite.
        invocation: Only ``data``, ``home`` and ``limit`` are used.
    """

    def __init__(self, suite: Suite, invocation: Invocation) -> None:
        self.parts = Parts(suite, invocation.data, invocation.batch_size)
        self.names = ShownNames.of(suite.privacy, invocation.home)
        self.words = HiddenWords.of(suite, self.names.word_key)
        refs = self.parts.needed_refs(limit=invocation.limit, only=invocation.only)
        plan = Plan([ref for _, ref in refs], self.parts.relations, invocation.batch_size)
        chosen = [seed.unit for seed in plan.chosen_seeds(limit=invocation.limit, only=invocation.only)]
        self.places = [SeedPlace(number, *refs[unit]) for number, unit in enumerate(chosen)]
        self.shape = plan.planned

    @property
    def hashed(self) -> dict[str, str]:
        """Fingerprints of the keys by which ids of seeds and words of prompts are hashed."""
        keys = {"seed_ids": self.names.key, "prompts": self.words.key}
        return {name: key_fingerprint(key) for name, key in keys.items() if key is not None}

    def load(self, place: SeedPlace) -> Seed:
        """Load a seed.

        Raises:
            MedtestError: It cannot be loaded.
        """
        try:
            return self.parts.sources[place.source].load(place.ref)
        except MedtestError:
            raise
        except Exception as error:  # seed sources may be third-party plug-ins
            shown = self.names.seed_id(place.ref.dataset, place.ref.seed_id)
            raise MedtestError(f"{place.ref.dataset}/{shown} cannot be loaded: {describe(error)}") from error

    def line(self, seed: PreparedSeed) -> SeedLine:
        """Return the list entry of a seed."""
        return SeedLine(
            dataset=seed.ref.dataset,
            seed_id=self.names.seed_id(seed.ref.dataset, seed.ref.seed_id),
            image_sha256=self.words.sha256(seed.sha256),
            expected_sha256="" if self.hashed else expected_sha256(seed),
        )

    def case(self, seed: PreparedSeed, step: Step) -> tuple[Verdict, CaseLine]:
        """Make a follow-up and return its verdict and its list entry."""
        case = self.parts.make(seed, step.address(seed.ref))
        return case.verdict, CaseLine(
            dataset=seed.ref.dataset,
            seed_id=self.names.seed_id(seed.ref.dataset, seed.ref.seed_id),
            relation=step.relation,
            severity=step.severity,
            frame=step.frame,
            repeat=step.repeat,
            followup_sha256=self.words.sha256(case.sha256),
            reason="" if case.follow is not None else f"{case.verdict}: {self._plain(case.reason.text)}",
        )

    def _plain(self, reason: str) -> str:
        return "" if self.hashed else " ".join(reason.split())[:200]

    def crafted(self) -> dict[str, str]:
        """Return the relations whose follow-ups are not compared, with the reason."""
        return {
            name: CRAFTED for name, relation in self.parts.relations.items() if isinstance(relation, CraftedRelation)
        }

    def cells(self) -> list[Step]:
        """Return one follow-up of each relation and severity, the last of its frames, at most :data:`MOST_CASES`."""
        left_out = self.crafted()
        last_steps: dict[tuple[str, int], Step] = {}
        for step in self.shape:
            if step.repeat == 0 and step.relation not in left_out:
                last_steps[step.relation, step.severity] = step
        cells = list(last_steps.values())
        if len(cells) <= MOST_CASES:
            return cells
        return [cells[number * len(cells) // MOST_CASES] for number in range(MOST_CASES)]


def make_lists(
    surveyor: Surveyor, *, progress: Progress | None = None, each: Callable[[SeedPlace, Seed], None] | None = None
) -> tuple[list[SeedLine], list[CaseLine]]:
    """Return the lists of a suite: every seed, and follow-ups that cycle through seeds, relations and severities.

    Args:
        surveyor: Prepares the seeds.
        progress: Called with the number of finished seeds and their total.
        each: Called with every seed as loaded from its file.

    Raises:
        MedtestError: A seed cannot be loaded.
    """
    seeds: list[SeedLine] = []
    waiting: dict[int, list[tuple[Step, int]]] = {}
    total, cells = len(surveyor.places), surveyor.cells()
    for number, step in enumerate(cells):
        at = number * total // len(cells) if len(cells) < total else number % total
        waiting.setdefault(at, []).append((step, 1))
    numbered_cases: list[tuple[Step, CaseLine]] = []
    for place in surveyor.places:
        loaded = surveyor.load(place)
        if each is not None:
            each(place, loaded)
        seed = surveyor.parts.prepare(loaded)
        seeds.append(surveyor.line(seed))
        for step, tries in waiting.pop(place.number, ()):
            verdict, line = surveyor.case(seed, step)
            if verdict is Verdict.SKIP and tries < _TRIES and place.number + 1 < total:
                waiting.setdefault(place.number + 1, []).append((step, tries + 1))
            else:
                numbered_cases.append((step, line))
        if progress is not None:
            progress(place.number + 1, total)
    order = {step: number for number, step in enumerate(surveyor.shape)}
    return seeds, [line for _, line in sorted(numbered_cases, key=lambda pair: order[pair[0]])]


def expected_sha256(seed: PreparedSeed) -> str:
    """Return one SHA-256 of a seed's expected output and of the masks that keep objects off, without its image."""
    masks = {"mask": seed.mask, "original": seed.original_mask, "avoid": seed.avoid}
    images = {"clean": seed.clean, "wide": seed.wide}
    content: dict[str, Any] = {
        "labels": None if seed.labels is None else list(seed.labels),
        "classes": None if seed.classes is None else [list(seed.classes.names), seed.classes.multi],
        "asks": [[ask.item, ask.text, ask.kind, None if ask.truth is None else list(ask.truth)] for ask in seed.asks],
        **{name: mask_sha256(mask) for name, mask in masks.items() if mask is not None},
        **{name: image_sha256(np.ascontiguousarray(image)) for name, image in images.items() if image is not None},
    }
    return json_sha256(content)


def list_text(lines: Sequence[SeedLine] | Sequence[CaseLine], kind: type[SeedLine] | type[CaseLine]) -> str:
    """Return list entries as CSV text."""
    names = [field.name for field in fields(kind)]
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(names)
    table.writerows([getattr(line, name) for name in names] for line in lines)
    return text.getvalue()


def read_list(content: str, kind: type[Line], where: str) -> list[Line]:
    """Read list entries from CSV text.

    Raises:
        UserMistakes: The text is not such a list.
    """
    try:
        return list(_lines(content, kind))
    except (csv.Error, ValueError, TypeError, KeyError) as error:
        raise no_pack(where, f"an unreadable list ({str(error)[:100]})") from error


def _lines(content: str, kind: type[Line]) -> Iterator[Line]:
    numbers = {field.name for field in fields(kind) if field.type == "int"}
    names = [field.name for field in fields(kind)]
    rows = csv.DictReader(io.StringIO(content, newline=""))
    if list(rows.fieldnames or ()) != names:
        raise ValueError(f"the columns {', '.join(names)} are expected")
    for row in rows:
        values: Mapping[str, Any] = {name: int(row[name]) if name in numbers else row[name] for name in names}
        if None in row or None in values.values():
            raise ValueError(f"line {rows.line_num} is cut off")
        yield kind(**values)
