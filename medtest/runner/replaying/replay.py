"""Makes one case again from its address, as reports print it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medtest.core.address import stem_text
from medtest.core.cases import SOURCE, Address, Image, Mask, Params, PreparedSeed, Prompt, SeedRef
from medtest.core.errors import MedtestError, Mistake, UserMistakes, nearest_name
from medtest.core.tasks.base import task_of
from medtest.runner.privacy.rules import ShownNames
from medtest.runner.replaying.crafted_runs import Crafted, crafted_again, crafted_of
from medtest.runner.units.parts import MadeCase, Parts
from medtest.suite.model import Invocation, Suite

_ADDRESS = re.compile(
    r"(?P<dataset>[^/]+)/(?P<seed>.+)/(?P<relation>[^/]+)_s(?P<s>\d+)_f(?P<f>\d+)_r(?P<r>\d+)(?:/(?P<item>[a-z0-9_]+))?"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Replay:
    """A case made again.

    Attributes:
        address: Its address, with the plain seed id.
        source: The prepared source image, uint8 RGB H×W×3; of series as it is.
        followup: The follow-up, same shape.
        truth: The expected mask of the follow-up, bool H×W, moved where the relation moves it; or None.
        params: The parameters that were drawn.
        scale: Physical distance from identity.
        source_sha256: As in the record.
        followup_sha256: As in the record: equal where the machine gives the same bytes.
        seed: The prepared source case.
        shown_id: The seed's id as records show it.
        items: The questions that the address means: the one that it names, else all of the seed; none where none
            are asked.
        prompt: The follow-up, where the case's input is a prompt; None else.
        crafted: Of a case that is crafted on a system: where it comes from.
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
    """Make one case again, without any system.

    A case that is crafted on a system is read from a run that keeps it, and crafted anew on that system where none
    does.

    Args:
        suite: The suite it belongs to.
        invocation: Where the user's data lie, and the home folder.
        address: ``dataset/seed_id/relation_s<severity>_f<frame>_r<repeat>``, with a question behind it or without; the
            seed's id may be the hashed one.
        scratch: A folder of this call alone: :func:`medtest.runner.replaying.replay_answers.replay_strips` finds there
            what had to be crafted anew.

    Raises:
        UserMistakes: The suite has no such case, the relation does not apply to this seed, or several systems have
            such a case of their own.
        MedtestError: The relation failed.
    """
    parts = Parts(suite, invocation.data, invocation.batch_size)
    found = find(suite, invocation, parts, address)
    items = _items(found.ref, address)
    seed = parts.prepared(found.source, found.ref)
    crafted: Crafted | None = None
    address_of = parts.unit(found.ref).cases[found.case]
    if address_of.relation in crafted_of(parts):
        crafted = crafted_again(suite, invocation, parts, seed, (found.source, found.ref, found.case), scratch)
        made = MadeCase(address=address_of, follow=crafted.follow, sha256=crafted.sha256)
    else:
        made = parts.make(seed, address_of)
    if made.follow is None:
        if made.verdict == "SKIP":
            raise Mistake(where="command line", key="address", found=f"a skipped case: {made.reason}").as_error()
        raise MedtestError(f"{made.address}: {made.reason}")
    return Replay(
        address=made.address,
        source=seed.image,
        followup=made.follow.image,
        truth=task_of(seed.kind).expected_region(seed, made.follow.effect),
        params=made.follow.params,
        scale=made.follow.scale,
        source_sha256=seed.sha256,
        followup_sha256=made.sha256,
        seed=seed,
        shown_id=_names(suite, invocation).seed_id(found.ref.dataset, found.ref.seed_id),
        items=items,
        crafted=crafted,
        prompt=made.follow.prompt,
    )


def replay_sequence(
    suite: Suite, invocation: Invocation, addresses: Sequence[str], parts: Parts | None = None
) -> tuple[Image | None, ...]:
    """Make the frames of one sequence again, without any system.

    Args:
        suite: The suite it belongs to.
        invocation: Where the user's data lie.
        addresses: The frames' addresses, all of one seed, as :func:`replay_case` takes them.
        parts: The suite's parts, where several sequences are made; None builds them. Crafted frames come from the runs
            that they know (:attr:`~medtest.runner.units.parts.Parts.crafted`).

    Returns:
        uint8 H×W×3 each, None for a frame that the relation cannot make.

    Raises:
        UserMistakes: The suite has no such case.
        MedtestError: The addresses are of several seeds, or the seed cannot be loaded.
    """
    keys = [_parsed(address) for address in addresses]
    if len({(dataset, seed_id) for dataset, seed_id, _ in keys}) != 1:
        raise MedtestError("the frames of one sequence are of one seed")
    own = parts or Parts(suite, invocation.data, invocation.batch_size)
    found = find(suite, invocation, own, addresses[0])
    seed = own.prepared(found.source, found.ref)
    cases = own.unit(found.ref).cases
    made = [own.make(seed, cases[_case(own, found.ref, key)]) for _, _, key in keys]
    return tuple(None if case.follow is None else case.follow.image for case in made)


@dataclass(frozen=True, slots=True, kw_only=True)
class CasePlace:
    """Where a case stands: the number of its seed source, its seed, and its index in the seed's unit."""

    source: int
    ref: SeedRef
    case: int


def find(suite: Suite, invocation: Invocation, parts: Parts, address: str | Address) -> CasePlace:
    """Return where the case of an address stands.

    Raises:
        UserMistakes: The suite has no such case.
    """
    names = _names(suite, invocation)
    dataset, seed_id, key = _parsed(address)
    shown: list[str] = []
    for number, ref in parts.needed_refs(needed=()):
        known = {ref.seed_id, names.seed_id(ref.dataset, ref.seed_id)}
        if ref.dataset == dataset and seed_id in known:
            return CasePlace(source=number, ref=ref, case=_case(parts, ref, key))
        shown.append(f"{ref.dataset}/{names.seed_id(ref.dataset, ref.seed_id)}")
    wanted = f"{dataset}/{seed_id}"
    raise _no_such("seed", wanted, f"one of {len(shown)} seeds, the first: {shown[0] if shown else 'none'}", shown)


def _names(suite: Suite, invocation: Invocation) -> ShownNames:
    return ShownNames.of(suite.privacy, invocation.home)


def _items(ref: SeedRef, address: str | Address) -> tuple[str, ...]:
    """Return the questions that an address means.

    Raises:
        UserMistakes: It names one that is not asked of the seed.
    """
    match = None if isinstance(address, Address) else _ADDRESS.fullmatch(address.strip().strip("/"))
    item = address.item if isinstance(address, Address) else (match["item"] or "" if match is not None else "")
    asked = tuple(one for one in ref.items if one)
    if not item:
        return asked
    if item not in asked:
        raise _no_such("question", item, ", ".join(asked) or "no question", asked)
    return (item,)


def _parsed(address: str | Address) -> tuple[str, str, tuple[str, int, int, int]]:
    if isinstance(address, Address):
        return address.dataset, address.seed_id, (address.relation, address.severity, address.frame, address.repeat)
    match = _ADDRESS.fullmatch(address.strip().strip("/"))
    if match is None:
        raise _no_such("address", address, "dataset/seed_id/relation_s<severity>_f<frame>_r<repeat>", ())
    key = (match["relation"], int(match["s"]), int(match["f"]), int(match["r"]))
    return match["dataset"], match["seed"], key


def _case(parts: Parts, ref: SeedRef, key: tuple[str, int, int, int]) -> int:
    cases = parts.unit(ref).cases
    for index, case in enumerate(cases):
        if (case.relation, case.severity, case.frame, case.repeat) == key:
            return index
    stems = [case.stem for case in cases]
    wanted = stem_text(*key)
    if key[0] == SOURCE or key[0] in parts.relations:
        same = [stem for stem in stems if stem.startswith(f"{key[0]}_s")]
        raise _no_such("case", wanted, f"{same[0]} … {same[-1]}", stems)
    raise _no_such("relation", key[0], ", ".join(parts.relations), tuple(parts.relations))


def _no_such(what: str, found: str, allowed: str, names: Any) -> UserMistakes:
    return Mistake(
        where="command line",
        key="address",
        found=f"{what} {json.dumps(found, ensure_ascii=False)}",
        allowed=allowed,
        nearest=nearest_name(found, names),
    ).as_error()
