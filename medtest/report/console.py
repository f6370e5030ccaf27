"""Terminal output at the end of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from medtest.core.cases import UNCHANGED, ReasonCode
from medtest.core.oracles.criteria import ALONE, NO_THRESHOLD, components
from medtest.report.charts import reliance
from medtest.report.charts.heat import SUMS, beside, percent, unjudged
from medtest.report.pages.material import Material
from medtest.report.pages.words import counted, criterion_keys, criterion_words, violations_of
from medtest.results.gating.conditions import FAILED, NOT_SHOWN, PASSED, Condition, Verdict, what_helps
from medtest.results.gating.gates import GateResult, describe
from medtest.results.rates.images import COUNTED
from medtest.results.tables import SEED_FACTS
from medtest.suite.model import PairedGate

STYLES: Mapping[Verdict, str] = {PASSED: "green", FAILED: "red", NOT_SHOWN: "yellow"}


def efr_view(materials: Sequence[Material]) -> RenderableType:
    """Return one table with relations as rows, systems as columns, and rate and interval in each cell.

    Errors, skips and each system's scores on the unchanged images follow below. Simulated systems have a table of their
    own.
    """
    groups = [[material for material in materials if material.simulated == simulated] for simulated in (False, True)]
    return Group(*[_one_view(group) for group in groups if group])


def _one_view(materials: Sequence[Material]) -> RenderableType:
    first = materials[0]
    keys = criterion_keys(first)
    against = {"truth": "", "source": ", against the answer to the source", "input": ", against the input"}[
        keys["against"]
    ]
    limit = "" if keys["score"] in NO_THRESHOLD else f", threshold {keys['threshold']:g}"
    simulated = "SIMULATED, not a product. " if first.simulated else ""
    title = f"{simulated}Error-finding rate (EFR), % [95 % interval]: {keys['score']}{limit}{against}"
    violation = f"EFR: violations per judged case. Violation: {criterion_words(first)}."
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("relation", no_wrap=True)
    for material in materials:
        table.add_column(Text(material.system), justify="right", no_wrap=True)
    names = dict.fromkeys(name for material in materials for name in material.rates.changing)
    present = {name for material in materials for name in material.rates.relations}
    sums = [name for name in SUMS if name in present]
    for name in [*names, *sums, *({UNCHANGED} & present)]:
        if name in sums[:1] or name == UNCHANGED:
            table.add_section()
        style = "bold" if name in SUMS else ""
        cells = [Text(_cell(material, name), style=style) for material in materials]
        table.add_row(Text(f"{name} (floor)" if name == UNCHANGED else name, style=style), *cells)
    lost = [line for material in materials if (line := lost_words(material))]
    lines = [_left_out(material) for material in materials]
    lines += [line for material in materials for line in _further(material)]
    warned = [f"{material.system}: {line}" for material in materials for line in material.tables.notices]
    # The table's own title would be wrapped to the table's width.
    return Group(
        Text(title, style="bold"),
        Text(violation, style="dim"),
        *[Text(line, style="bold yellow") for line in lost],
        table,
        *[Text(line, style="yellow") for line in warned],
        *[Text(line, style="dim") for line in lines if line],
    )


def _cell(material: Material, relation: str) -> str:
    row = material.row(relation)
    if row is None or not int(row["cases"]):
        return unjudged(relation)
    return f"{row['efr_percent']:5.1f} [{row['ci_low']:4.1f}, {row['ci_high']:5.1f}]"


def lost_words(material: Material) -> str:
    """Return the number of cases not judged and the reasons, including failed sources; "" if there are none."""
    row = material.row()
    if row is None:
        return ""
    errors, skipped, failed = (int(row[name]) for name in ("errors", "skipped", "source_failed"))
    if not errors + skipped + failed:
        return ""
    parts = []
    if failed:
        sources = material.tables.counts.sources
        broken = _failed_sources(material)  # those that are refused, or lack an answer, are not among them
        of = f" ({broken:,} of {counted(sources, 'source')})" if sources and broken else ""
        parts.append(f"{failed:,} with a failed source{of}")
    parts += [counted(errors, "error")] if errors else []
    parts += [f"{skipped:,} skipped"] if skipped else []
    lost = errors + skipped + failed
    return f"{material.system}: {lost:,} of {counted(int(row['generated']), 'case')} not judged: {', '.join(parts)}."


def _failed_sources(material: Material) -> int:
    """Return the number of sources that are an ERROR or, against the truth, score zero under the primary criterion."""
    seeds, primary = material.tables.seeds, material.wanted.primary
    failed = (seeds["verdict"].astype(str) == "ERROR").to_numpy(dtype=bool)
    for name in components(primary.score) if primary.against == "truth" and primary.score not in ALONE else ():
        if name in seeds.columns:
            failed = failed | (seeds[name] <= 0).to_numpy(dtype=bool)
    return int(failed.sum())


def _left_out(material: Material) -> str:
    row = material.row()
    if row is None:
        return f"{material.system}: no case was judged."
    return f"{material.system}: {violations_of(row)}; {beside(row)}."


def what_broke(material: Material) -> str:
    """Return the most frequent reason of failed cases, "" where none failed."""
    reasons = [
        (count, reason)
        for verdict, code, reason, count in material.tables.counts.reasons
        if verdict == "ERROR" or code == ReasonCode.SOURCE_FAILED
    ]
    return f"{material.system}: most frequent failure: {max(reasons)[1].rstrip('.')}." if reasons else ""


def _further(material: Material) -> list[str]:
    """Return the lines below the rates: failures, those of task and controls, scores on the sources."""
    own = (*material.tables.own.lines(), *reliance.summary_lines(material.tables.reliance))
    return [what_broke(material), *(f"{material.system}: {line}" for line in own), on_sources(material)]


def on_sources(material: Material) -> str:
    """Return the mean scores on the source images in one line, "" without an expected answer."""
    seeds = material.tables.seeds
    names = [name for name in seeds.columns if name not in {*SEED_FACTS, *COUNTED}]
    judged = [name for name in names if seeds[name].notna().any()]
    if not judged:
        return ""
    count = int(seeds[judged[0]].notna().sum())
    means = ", ".join(
        f"{'accuracy' if name == 'agreement' else name} {float(seeds[name].mean()):.3f}" for name in judged
    )
    return f"{material.system}: mean of {counted(count, 'source case')}: {means}."


def gates_view(materials: Sequence[Material]) -> RenderableType | None:
    """Return a line for each gate of each system, or None without gates; gates with mistakes are left out.

    A gate on a finished run is followed by a line for each of its conditions.
    """
    lines = [
        line
        for material in materials
        for result in material.tables.gates
        if not result.unlike
        for line in _gate_lines(material.system, result)
    ]
    return Group(*lines) if lines else None


def _gate_lines(system: str, result: GateResult) -> list[RenderableType]:
    style = "green" if result.held else "red"
    if not isinstance(result.gate, PairedGate):
        return [Text(f"{system}: {result}", style=style)]
    head = Text(f"{system}: {result.verdict}: {describe(result.gate)}", style=style)
    return [head, conditions_view(result.conditions)]


def conditions_view(conditions: Sequence[Condition]) -> RenderableType:
    """Return a row for each condition (verdict, name, figures), followed by advice if one is not shown."""
    table = Table(box=None, show_header=False, pad_edge=False)
    for wrapped in (False, False, True):
        table.add_column(no_wrap=not wrapped, overflow="fold")
    for condition in conditions:
        table.add_row(
            Text(f"  {condition.verdict}", style=STYLES[condition.verdict]), Text(condition.name), Text(condition.words)
        )
    helps = what_helps(conditions)
    return Group(table, *([Text(f"  {helps}.")] if helps else []))


def one_line(material: Material) -> str:
    """Return a system's result in one line, for the summary of a sweep."""
    row = material.row()
    rate = "no case judged" if row is None or not int(row["cases"]) else f"EFR {percent(row['efr_percent'])}"
    lost = 0 if row is None else int(row["generated"]) - int(row["cases"])
    rate += f", {lost:,} of {counted(int(row['generated']), 'case')} not judged" if row is not None and lost else ""
    of = f" ({material.coverage})" if material.coverage else ""
    return f"{material.system}{' (simulated)' if material.simulated else ''}: {rate}{of}"
