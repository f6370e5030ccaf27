"""``summary.md``: Markdown summary of one system for pull requests on GitHub and GitLab."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from medtest.api.redact import visible
from medtest.core import __version__
from medtest.core.cases import UNCHANGED
from medtest.report.charts.heat import beside, interval, percent, unjudged
from medtest.report.ci.cells import Row, rate_rows, relation_rows, standing
from medtest.report.pages.gates import gates
from medtest.report.pages.material import Material
from medtest.report.pages.words import (
    counted,
    criterion_words,
    model_words,
    phantom_banner,
    simulated_words,
    view_words,
    violations_of,
)
from medtest.results.gating.conditions import FAILED, NOT_SHOWN, PASSED, Condition, Verdict
from medtest.results.gating.gates import describe
from medtest.results.rates import efr
from medtest.runner.folder import OUTPUTS, VIEWS
from medtest.suite.model import PairedGate

_ROWS = 60
"""Maximum number of relations listed; a GitHub comment holds 65,536 characters."""
_SPECIAL = re.compile(r"([\\`*_{}\[\]|~!$])|(?<!\S)(?:[#>]|[+-](?=[\s+-]|$))|(?<=\d)[.)](?=\s)")
_REFERS = re.compile(r"(@|#(?=\d)|:(?=//)|\bwww(?=\.))")
_NOTHING = "&#8203;"
"""Zero-width space that prevents mentions and links."""
_HELD, _LOST = "\N{WHITE HEAVY CHECK MARK}", "\N{CROSS MARK}"
SIGNS: Mapping[Verdict, str] = {PASSED: _HELD, FAILED: _LOST, NOT_SHOWN: "\N{WHITE QUESTION MARK ORNAMENT}"}


def summary_text(material: Material) -> str:
    """Return the Markdown summary of a system.

    Args:
        material: The system's tables, as its report shows them.
    """
    suite, rows = material.wanted, rate_rows(material)
    lines = [f"## {escaped(suite.suite)} {escaped(suite.version)}: {escaped(material.system)}", ""]
    lines += [f"**{_headline(material)}**", ""]
    above = material.row()
    if above is None or not int(above["cases"]):
        lines += ["No case was judged.", ""]
    else:
        rate_words = f"Error-finding rate (EFR, violations per judged case) {percent(above['efr_percent'])}"
        rate_words += f" (95 % interval {interval(above)}): {violations_of(above)}; {beside(above)}."
        lines += [rate_words, f"Violation: {escaped(criterion_words(material))}.", ""]
    for words in _notes(material):
        lines += [f"> {escaped(words)}", ""]
    lines += _gates(material)
    lines += _relations(rows)
    lines += _foot(material)
    return "\n".join(lines).rstrip() + "\n"


def escaped(text: object) -> str:
    """Return text escaped for Markdown, without markup, HTML, links or mentions."""
    plain = " ".join(visible(str(text)).split())
    plain = plain.replace("&", "&amp;").replace("<", "&lt;")
    plain = _SPECIAL.sub(lambda match: f"\\{match[0]}", plain)
    return _REFERS.sub(rf"\1{_NOTHING}", plain)


def _headline(material: Material) -> str:
    results, state = material.tables.gates, standing(material)
    lost = sum(not result.held for result in results)
    if state == "too many errors":
        share, most = material.error_percent, material.wanted.max_error_percent
        return f"{_LOST} Too many errors: {share:.2g} % of the cases; the suite allows {most:g} %."
    if state == "no gate":
        return "No gate is set."
    if state == "passed":
        return f"{_HELD} {'The gate passed' if len(results) == 1 else f'All {len(results)} gates passed'}."
    if state == "mistake":
        return f"{_LOST} A gate names a run that cannot be compared with this one."
    return f"{_LOST} {'The gate' if len(results) == 1 else f'{lost} of {len(results)} gates'} failed."


def _notes(material: Material) -> list[str]:
    title, phantom = phantom_banner(material)
    notes = [
        simulated_words(material),
        f"{title}. {phantom}" if phantom else "",
        material.partial,
        view_words(material),
        *material.tables.warnings,
    ]
    return [words for words in notes if words]


def _gates(material: Material) -> list[str]:
    results = material.tables.gates
    if not results:
        last = gates(material)["gates_last"]
        if last is None:
            return []
        words = (
            f"Last evaluation of the gates, {last['time']}: {'passed' if last['held'] else 'failed'}. {last['line']}"
        )
        return [f"> {escaped(words)}", ""]
    table: list[list[str]] = []
    for result in sorted(results, key=lambda result: result.held):
        paired = isinstance(result.gate, PairedGate) and result.conditions
        reason = "" if paired else result.reason
        sign = _HELD if result.held else _LOST
        table.append([f"{sign} {result.verdict}", escaped(describe(result.gate)), escaped(reason)])
        table += condition_rows(result.conditions) if paired else []
    return [*table_lines(["verdict", "gate", "result"], table), ""]


def condition_rows(conditions: Iterable[Condition]) -> list[list[str]]:
    """Return conditions as escaped rows of a Markdown table: verdict, name, figures."""
    return [
        [f"{SIGNS[condition.verdict]} {condition.verdict}", escaped(condition.name), escaped(condition.words)]
        for condition in conditions
    ]


def _relations(rows: Sequence[Row]) -> list[str]:
    levels = sorted({str(row["severity"]) for row in rows} - {efr.ALL, "0"}, key=int)
    rates = {
        (str(row["relation"]), str(row["severity"])): percent(row["efr_percent"]) if int(row["cases"]) else ""
        for row in rows
        if row["dataset"] == efr.ALL
    }
    listed = sorted(relation_rows(rows), key=lambda row: (row["relation"] == UNCHANGED, -_known(row["efr_percent"])))
    if not listed:
        return []
    table = [
        [
            escaped(row["relation"]) + (" (floor)" if row["relation"] == UNCHANGED else ""),
            percent(row["efr_percent"]) if int(row["cases"]) else unjudged(str(row["relation"])),
            interval(row) if int(row["cases"]) else "",
            f"{int(row['violations']):,} of {int(row['cases']):,}",
            *(rates.get((str(row["relation"]), level), "") for level in levels),
        ]
        for row in listed[:_ROWS]
    ]
    more = [f"{counted(len(listed) - _ROWS, 'more relation')}."] if len(listed) > _ROWS else []
    heads = [f"severity {level}" for level in levels]
    return [
        *table_lines(["relation", "EFR", "95 % interval", "violations", *heads], table),
        "",
        *more,
        *([""] if more else []),
    ]


def _known(value: object) -> float:
    number = float(str(value))
    return number if number == number else -1.0


def table_lines(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a Markdown table; cells must already be :func:`escaped`."""
    return [
        f"| {' | '.join(heads)} |",
        f"|{'|'.join('---' for _ in heads)}|",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]


def _foot(material: Material) -> list[str]:
    digest = str(material.run.get("digest") or material.folder.name)
    place = [
        OUTPUTS,
        material.wanted.suite,
        material.system,
        digest,
        *([VIEWS, material.view] if material.view else []),
    ]
    facts = [escaped("/".join([*place, "report.html"]))]  # the same wherever the folder is now
    model = model_words(material, digits=12)
    facts += [f"model {escaped(model)}"] if model else []
    facts += [f"medtest {escaped(__version__)}"]
    return [f"<sub>{', '.join(facts)}</sub>"]
