"""Reconstruction of one case from its address, as printed in reports."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medtest.core.address import stem_text
from medtest.core.cases import SOURCE, Address, Image, Mask, Params, PreparedSeed, Prompt, SeedRef
from medtest.core.errors import MedtestError, UserMistakes, nearest_name, typed_error
from medtest.core.tasks.base import task_of
from medtest.relations.calibration.searching.queries import query_at
from medtest.runner.privacy.rules import ShownNames
from medtest.runner.replaying.crafted_runs import (
    Crafted,
    crafted_again,
    crafted_of,
    crafted_runs,
    crafting_system,
    refusal,
)
from medtest.runner.units.made_case import MadeCase
from medtest.runner.units.parts import Parts
from medtest.suite.model import Invocation, Suite

_ADDRESS = re.compile(
    r"(?P<dataset>[^/]+)/(?P<seed>.+)/(?P<relation>[^/]+)_s(?P<s>\d+)_f(?P<f>\d+)_r(?P<r>\d+)(?:/(?P<item>[a-z0-9_]+))?"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Replay:
    """Reconstructed case.

    Attributes:
        address: Its address, with the plain seed id.
        source: The prepared source image, uint8 RGB H×W×3; for series the original.
        followup: The follow-up, same shape.
        truth: The expected mask of the follow-up, bool H×W, moved if the relation moves it; or None.
        params: The drawn parameters.
        scale: Physical distance from identity.
        source_sha256: As in the record.
        followup_sha256: As in the record: equal if the machine gives the same bytes.
        seed: The prepared source case.
        shown_id: The seed's id as shown in records.
        items: The questions of the address: the one that it names, else all of the seed; empty for tasks without
            questions.
        prompt: The follow-up, if the case's input is a prompt; otherwise None.
        crafted: For a case crafted on a system: its origin.
    """

    address: Address
    source: Image
    followup: Image
    truth: Mask | None
    params: Params
    scale: float
    source_sha256: str
    followup_sha256: str
    seed: PreparedSeed
    shown_id: str = ""
    items: tuple[str, ...] = ()
    crafted: Crafted | None = None
    prompt: Prompt | None = None


def replay_case(suite: Suite, invocation: Invocation, address: str | Address, *, scratch: Path | None = None) -> Replay:
    """Reconstruct one case without any system.

    A case crafted on a system is read from a run that stores it, or else crafted again on that system.

    Args:
        suite: Its suite.
        invocation: Location of the user's data and the home folder.
        address: ``dataset/seed_id/relation_s<severity>_f<frame>_r<repeat>``, optionally followed by a question; the
            seed's id may be the hashed one.
        scratch: A private folder of this call, in which :func:`medtest.runner.replaying.replay_answers.replay_strips`
            finds newly crafted cases.

    Raises:
        UserMistakes: The suite has no such case, the relation does not apply to this seed, or several systems have such
            a case of their own.
        MedtestError: The relation failed.
    """
    parts = Parts(suite, invocation.data, invocation.batch_size)
    source, ref, index = place = find(suite, invocation, parts, address)
    items = _items(ref, address)
    seed = parts.prepared(source, ref)
    crafted: Crafted | None = None
    address_of = parts.unit(ref).cases[index]
    if address_of.relation in crafted_of(parts):
        crafted = crafted_again(suite, invocation, parts, seed, place, scratch)
        case = MadeCase(address=address_of, follow=crafted.follow, sha256=crafted.sha256)
    else:
        if query_at(parts.relations.get(address_of.relation), address_of) is not None:
            crafting_system(suite, address_of.relation)  # refuses several systems, each with a search of its own
            parts.crafted = crafted_runs(suite, invocation, parts)
        case = parts.make(seed, address_of)
    if case.follow is None:
        raise refusal(case.reason.text, case.verdict, case.address)
    return Replay(
        address=case.address,
        source=seed.image,
        followup=case.follow.image,
        truth=task_of(seed.kind).drawing.expected_region(seed, case.follow.effect),
        params=case.follow.params,
        scale=case.follow.scale,
        source_sha256=seed.sha256,
        followup_sha256=case.sha256,
        seed=seed,
        shown_id=_names(suite, invocation).seed_id(ref.dataset, ref.seed_id),
        items=items,
        crafted=crafted,
        prompt=case.follow.prompt,
    )


def replay_sequence(
    suite: Suite, invocation: Invocation, addresses: Sequence[str], parts: Parts | None = None
) -> tuple[Image | None, ...]:
    """Reconstruct the frames of one sequence without any system.

    Args:
        suite: Its suite.
        invocation: Location of the user's data.
        addresses: The frames' addresses, all of one seed, as for :func:`replay_case`.
        parts: The suite's parts, to reconstruct several sequences; None builds them. Crafted frames come from the runs
            that they know (:attr:`~medtest.runner.units.parts.Parts.crafted`).

    Returns:
        uint8 H×W×3 each, None for a frame that the relation cannot make.

    Raises:
        UserMistakes: The suite has no such case.
        MedtestError: The addresses are of several seeds, or the seed cannot be loaded.
    """
    keys = [_parsed(address) for address in addresses]
    if len({(dataset, seed_id) for dataset, seed_id, _ in keys}) != 1:
        raise MedtestError("the frames of a sequence must belong to one seed")
    used_parts = parts or Parts(suite, invocation.data, invocation.batch_size)
    source, ref, _ = find(suite, invocation, used_parts, addresses[0])
    seed = used_parts.prepared(source, ref)
    cases = used_parts.unit(ref).cases
    frames = [used_parts.make(seed, cases[_case(used_parts, ref, key)]) for _, _, key in keys]
    return tuple(None if case.follow is None else case.follow.image for case in frames)


def find(suite: Suite, invocation: Invocation, parts: Parts, address: str | Address) -> tuple[int, SeedRef, int]:
    """Return the number of a case's seed source, its seed, and its index in the seed's unit.

    Raises:
        UserMistakes: The suite has no such case.
    """
    names = _names(suite, invocation)
    dataset, seed_id, key = _parsed(address)
    shown_names: list[str] = []
    for number, ref in parts.needed_refs(needed=()):
        ids = {ref.seed_id, names.seed_id(ref.dataset, ref.seed_id)}
        if ref.dataset == dataset and seed_id in ids:
            return number, ref, _case(parts, ref, key)
        shown_names.append(f"{ref.dataset}/{names.seed_id(ref.dataset, ref.seed_id)}")
    requested = f"{dataset}/{seed_id}"
    raise _unknown(
        "seed",
        requested,
        f"one of {len(shown_names)} seeds, the first: {shown_names[0] if shown_names else 'none'}",
        shown_names,
    )


def _names(suite: Suite, invocation: Invocation) -> ShownNames:
    return ShownNames.of(suite.privacy, invocation.home)


def _items(ref: SeedRef, address: str | Address) -> tuple[str, ...]:
    """Return the questions of an address.

    Raises:
        UserMistakes: It names one that is not asked of the seed.
    """
    match = None if isinstance(address, Address) else _ADDRESS.fullmatch(address.strip().strip("/"))
    item = address.item if isinstance(address, Address) else (match["item"] or "" if match is not None else "")
    questions = tuple(item_name for item_name in ref.items if item_name)
    if not item:
        return questions
    if item not in questions:
        raise _unknown("question", item, ", ".join(questions) or "no question", questions)
    return (item,)


def _parsed(address: str | Address) -> tuple[str, str, tuple[str, int, int, int]]:
    if isinstance(address, Address):
        return address.dataset, address.seed_id, (address.relation, address.severity, address.frame, address.repeat)
    match = _ADDRESS.fullmatch(address.strip().strip("/"))
    if match is None:
        raise _unknown("address", address, "dataset/seed_id/relation_s<severity>_f<frame>_r<repeat>", ())
    key = (match["relation"], int(match["s"]), int(match["f"]), int(match["r"]))
    return match["dataset"], match["seed"], key


def _case(parts: Parts, ref: SeedRef, key: tuple[str, int, int, int]) -> int:
    cases = parts.unit(ref).cases
    for index, case in enumerate(cases):
        if (case.relation, case.severity, case.frame, case.repeat) == key:
            return index
    stems = [case.stem for case in cases]
    requested = stem_text(*key)
    if key[0] == SOURCE or key[0] in parts.relations:
        stems_of_relation = [stem for stem in stems if stem.startswith(f"{key[0]}_s")]
        raise _unknown("case", requested, f"{stems_of_relation[0]} … {stems_of_relation[-1]}", stems)
    raise _unknown("relation", key[0], ", ".join(parts.relations), tuple(parts.relations))


def _unknown(kind: str, name: str, allowed: str, names: Any) -> UserMistakes:
    return typed_error(
        "address", f"{kind} {json.dumps(name, ensure_ascii=False)}", allowed, nearest=nearest_name(name, names)
    )
