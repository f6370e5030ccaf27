"""Restriction of file problems to a call: only needed files stop it, others are reported in a line."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from medtest.core.cases import SeedRef
from medtest.core.errors import UserMistakes
from medtest.seeds.base import SeedKey, SeedProblem, SeedSource

MOST_LISTED = 10
"""Most unneeded files named; further ones are counted."""


def check_needed(sources: Iterable[SeedSource], needed: Collection[SeedKey], *, named: bool = True) -> list[str]:
    """Check that every seed needed by a call is usable.

    Problems that belong to no seed (a mask without image, an unsupported file) stop a call that needs all seeds of its
    source, because the folder may be incomplete; other calls continue.

    Args:
        sources: Sources that are already listed.
        needed: Data sets and ids of the seeds that the call executes.
        named: Whether files may be named, as their names may identify patients.

    Returns:
        Lines for the user on unusable files that are not needed.

    Raises:
        UserMistakes: A needed seed is unusable; one report lists every such file of all sources.
    """
    stops: list[UserMistakes] = []
    lines: list[str] = []
    for source in sources:
        faults = source.faults()
        stopping: list[SeedProblem] = []
        rest: list[SeedProblem] = []
        for key, problems in faults.of_seeds.items():
            (stopping if key in needed else rest).extend(problems)
        if faults.others:
            whole = all((ref.dataset, ref.seed_id) in needed for ref in source.places())
            stopping, rest = ([*faults.others, *stopping], rest) if whole else (stopping, [*faults.others, *rest])
        if stopping:
            stops.append(source.refusal([*dict.fromkeys(stopping)]))
        lines += _in_lines(source, [*dict.fromkeys(rest)], named=named)
    if len(stops) > 1:
        heading = "; ".join(stop.heading for stop in stops)
        raise UserMistakes([mistake for stop in stops for mistake in stop.mistakes], heading=heading)
    if stops:
        raise stops[0]
    return lines


def first_places(source: SeedSource, limit: int | None) -> list[SeedRef]:
    """Return the first seeds of a source after checking that all are usable.

    Args:
        source: The source.
        limit: Number of seeds; None for all.

    Raises:
        UserMistakes: One of them is unusable.
    """
    refs = list(source.places()[:limit])
    check_needed([source], {(ref.dataset, ref.seed_id) for ref in refs})
    return refs


def _problem_text(problem: SeedProblem) -> str:
    return f"{problem.where} {problem.reason}" + (f" (allowed: {problem.allowed})" if problem.allowed else "")


def _in_lines(source: SeedSource, problems: Sequence[SeedProblem], *, named: bool) -> list[str]:
    if not problems:
        return []
    count = len({problem.where for problem in problems})
    seeds = "1 seed" if count == 1 else f"{count:,} seeds"
    lines = [f"{seeds} of {source.dataset} cannot be used; this call needs none of them."]
    if named:
        lines += [f"Not needed: {_problem_text(problem)}" for problem in problems[:MOST_LISTED]]
        if len(problems) > MOST_LISTED:
            lines.append(f"… and {len(problems) - MOST_LISTED:,} more; a call on all seeds names them.")
    return lines
