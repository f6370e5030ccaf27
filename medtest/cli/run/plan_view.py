"""``plan=true``: the plan as text, with the interval that each cell can reach."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from medtest.api.stops import duration
from medtest.core.cases import UNCHANGED
from medtest.core.oracles.criteria import NO_THRESHOLD
from medtest.results.cube.intervals import wilson_ends
from medtest.suite.reading.outline import DEFAULT_MS, Outline, RelationOutline
from medtest.systems.answering.asking import Quote


def plan_view(plan: Outline) -> RenderableType:
    """Return the plan as tables and lines."""
    suite = plan.suite
    each = plan.sources + plan.follow_ups
    head = [f"[bold]{escape(suite.name)}[/bold] {escape(suite.version)}  (seed {suite.seed})"]
    if suite.description:
        head.append(escape(suite.description))
    seeds = ", ".join(f"{escape(name)} {count:,}" for name, count in plan.datasets.items()) or "none chosen"
    head.append(f"Seeds: {seeds}")
    lines = [
        (f"{plan.questions} questions; " if plan.questions else "")
        + f"{plan.sources:,} source and {plan.follow_ups:,} follow-up cases per system: {each:,} cases"
        + (f" of {plan.planned:,} in the suite" if each < plan.planned else "")
        + f", {each * len(plan.systems):,} in all",
        _time(plan),
        *_crafting(plan),
        _criterion(plan),
        *(escape(notice) for notice in plan.notices),
        *(escape(system.notice) for system in plan.systems if system.notice),
    ]
    return Group(*head, "", _relations(plan), "", _systems(plan), "", *lines)


def _crafting(plan: Outline) -> tuple[str, ...]:
    """Return a line on the cost of crafting follow-ups on a system, if any relation needs it."""
    passes = sum(share.passes for share in plan.relations)
    if not passes:
        return ()
    disk = "as much as the images themselves" if plan.disk is None else f"at most {plan.disk / 1e6:,.0f} MB"
    storage = "; they are not stored" if plan.disk == 0 else f"; stored, they take {disk}"
    return (f"Crafting queries each system about ~{passes:,} further images{storage}",)


def _time(plan: Outline) -> str:
    if any(system.asked and not system.timed for system in plan.systems):
        return "Duration unknown: it depends on the model, and no run was timed yet"
    about = f"About {duration(max(1.0, plan.seconds))} without earlier results"
    if all(system.timed for system in plan.systems):
        return about
    return f"{about} (assuming {DEFAULT_MS:.0f} ms per case until a run is timed)"


def _relations(plan: Outline) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("relation", no_wrap=True)
    table.add_column("group", no_wrap=True)
    table.add_column("severities", no_wrap=True)
    sequences = any(share.frames > 1 for share in plan.relations)
    crafted = any(share.passes for share in plan.relations)
    for name in ("draws", *(("frames",) if sequences else ()), "cases", "per cell", *(("passes",) if crafted else ())):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("95 % interval of a cell", no_wrap=True)
    for share in plan.relations:
        floor = " (floor)" if share.id == UNCHANGED else ""
        levels = " ".join(str(s) for s in share.severities)
        if share.severities == (0,):
            levels = "published" if share.published else ""
        table.add_row(
            escape(share.id) + floor,
            escape(share.group),
            levels,
            str(share.repeats),
            *((str(share.frames),) if sequences else ()),
            f"{share.cases:,}",
            f"{share.per_cell:,}",
            *((f"~{share.passes:,}" if share.passes else "",) if crafted else ()),
            interval_text(share),
        )
    return table


def interval_text(share: RelationOutline) -> str:
    """Return a cell's best and worst interval: with no violation, and with half of its cases violated.

    Several draws of one seed, or seeds of one patient, are not independent: the interval counts patients.
    """
    n = share.independent
    if n == 0:
        return ""
    (_, none_high), (half_low, half_high) = (wilson_ends(k, n) for k in (0.0, n / 2))
    width = 100 * (half_high - half_low)
    return (
        f"0 of {n}: 0–{100 * none_high:.0f} %;  half: {100 * half_low:.0f}–{100 * half_high:.0f} % (width {width:.0f})"
    )


def _systems(plan: Outline) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("system", no_wrap=True)
    table.add_column("ms per case", justify="right", no_wrap=True)
    quoted = any(system.quote is not None for system in plan.systems)
    for name in ("calls", "tokens in", "tokens out", "US dollars") if quoted else ():
        table.add_column(name, justify="right", no_wrap=True)
    for system in plan.systems:
        assumed = "?" if system.asked else f"~{system.ms_per_case:.0f}"
        ms = f"{system.ms_per_case:.0f}" if system.timed else assumed
        table.add_row(escape(system.record_name), ms, *(_quote_cells(system.quote) if quoted else ()))
    return table


def _quote_cells(quote: Quote | None) -> tuple[str, ...]:
    """Return the cost of a model's calls: an estimate of the input, a bound of the output."""
    if quote is None:
        return ("", "", "", "")
    price = "no price known" if quote.usd is None else f"at most {quote.usd:,.2f}"
    return (f"{quote.calls:,}", f"~{quote.prompt_tokens:,}", f"≤ {quote.completion_tokens:,}", price)


_AGAINST = {
    "truth": "the expected answer",
    "source": "the system's answer to the source case",
    "input": "the system's input image",
}
_SHOWN = {
    "entities": "the entities in the picture",
    "relations": "the relations in the picture",
    "attributes": "the attributes in the picture",
    "counts": "the numbers of objects in the picture",
}
_CHANGED = {
    **{
        name: (
            f"{subject} do not match its prompt",
            f"{subject} do not follow the change of the prompt",
        )
        for name, subject in _SHOWN.items()
    },
    "whole": ("the picture does not match its prompt", "the pictures do not differ as their prompts do"),
    "clear": ("a lesion-free frame is marked", "a lesion-free frame is marked"),
    "label": ("the label was right on the source and is wrong", "the label changes"),
    "exact": ("the answer is not the expected one", "the answer differs"),
    "answer": (
        "the answer was right on the source and is wrong",
        "the answer flips, or is not the one that the relation makes true",
    ),
}
"""Phrases for rules without a threshold, against the truth and against the source."""


def _criterion(plan: Outline) -> str:
    primary = plan.suite.oracle.primary
    gates = len(plan.suite.gates)
    against = _AGAINST[primary.against]
    text = f"Violation: {primary.score} falls by more than {primary.threshold:g} of its value, against {against}"
    if primary.score in NO_THRESHOLD:
        changed = _CHANGED[primary.score][primary.against == "source"]
        text = f"Violation: {changed}, against {against}"
    return text + (f"; {gates} gate{'s' if gates > 1 else ''}" if gates else "; no gate")
