"""Strips of cases whose verdict changed: those kept by a run, and those drawn by querying the systems again."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from medtest.core.errors import MedtestError, UserMistakes
from medtest.report.pages.material import Material, SampleStrip, sample_index, strips
from medtest.suite.model import Invocation, Suite

ASKED_AGAIN = "asked"
Compose: TypeAlias = Callable[[str, Sequence[str]], tuple[Suite, Invocation]]
"""Maps a suite's name and the typed overrides to the suite and its invocation."""
_DROPPED = ("limit", "only", "plan", "fresh", "gates", "junit", "summary", "track", "tracking", "reference")


ChangedStrips: TypeAlias = tuple[Mapping[tuple[int, str], SampleStrip], Sequence[str]]
"""Strips by run number (0 is the base run) and address, and the reasons for missing strips, one line each."""


def changed_strips(
    materials: Sequence[Material],
    wanted: Sequence[str],
    folder: Path,
    *,
    compose: Compose | None,
    typed: Iterable[str] = (),
) -> ChangedStrips:
    """Return strips of cases of several runs.

    Args:
        materials: The runs.
        wanted: Addresses, as in records.
        folder: Folder for newly drawn strips.
        compose: Composes a run's suite, whose system is queried for cases without a kept strip; None queries none.
        typed: Overrides typed beside the runs (``data=PATH``), used when composing.

    Returns:
        The available strips; none if a run keeps images out of reports.
    """
    if any(material.wanted.images == "none" for material in materials):
        return {}, ["The privacy settings of a run keep images out of reports."]
    by_case: dict[tuple[int, str], SampleStrip] = {}
    notes: list[str] = []
    for number, material in enumerate(materials):
        entries = [entry for entry in sample_index(material.strips) if str(entry.get("address")) in wanted]
        by_case |= {(number, str(strip[0]["address"])): strip for strip in strips(material.strips, entries)}
        missing = [address for address in wanted if (number, address) not in by_case]
        if compose is not None and missing:
            drawn = _drawn_again(material, missing, folder / str(number), tuple(typed), notes, compose)
            by_case |= {(number, address): strip for address, strip in drawn}
    return by_case, list(dict.fromkeys(notes))


def _drawn_again(
    material: Material, addresses: Sequence[str], folder: Path, typed: Sequence[str], notes: list[str], compose: Compose
) -> Iterator[tuple[str, SampleStrip]]:
    """Query a run's system about cases again, using the run's own command, and yield strips."""
    from medtest.runner.replaying.replay_answers import replay_strips

    tokens = [token for token in shlex.split(material.command) if "=" in token or token.startswith("~")]
    tokens = [token for token in tokens if token.lstrip("+~").split("=", 1)[0].split(".")[0] not in _DROPPED]
    overridden = {token.split("=", 1)[0] for token in typed}
    tokens = [token for token in tokens if token.split("=", 1)[0] not in overridden and not token.startswith("suite=")]
    try:
        suite, invocation = compose(_suite_of(material), [*tokens, *typed])
        named = {name: system.record_name for name, system in suite.build_systems().items()}
        own = tuple(plan for plan in suite.systems if named.get(plan.id) == material.system)
        if not own or suite.task.stream:
            why = "API calls are not repeated" if own else "its command no longer names this system"
            notes.append(f"{material.system}: only strips of its run are shown: {why}.")
            return
        suite = replace(suite, systems=own)
        for number, address in enumerate(addresses):
            answered = replay_strips(suite, invocation, address, folder / str(number))
            entry: dict[str, Any] = {"file": answered[0].file.name, "address": address, ASKED_AGAIN: True}
            entry |= {"said": f"{answered[0].verdict} {answered[0].words}".strip()}
            for strip in strips(folder, [entry], str(number)):
                yield address, strip
    except MedtestError as error:
        why = str(error.mistakes[0]) if isinstance(error, UserMistakes) else str(error)
        notes.append(f"{material.system}: strips could not be drawn: {' '.join(why.split())}")


def _suite_of(material: Material) -> str:
    for token in shlex.split(material.command):
        if token.startswith("suite="):
            return token.removeprefix("suite=")
    return material.wanted.suite
