"""``report.html``: a single file made from tables alone, without network access, with all text escaped."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtest.core import __version__
from medtest.core.cases import UNCHANGED
from medtest.core.oracles.criteria import NO_THRESHOLD, criterion_name
from medtest.report.attacks.searched import searches
from medtest.report.attacks.section import attacks
from medtest.report.charts.heat import NOT_MEASURED, EfrRows, beside, heat, interval, percent
from medtest.report.charts.reliance import reliance
from medtest.report.inside.section import inside
from medtest.report.pages import sections
from medtest.report.pages.browser.data import NO_BROWSER, Browser
from medtest.report.pages.browser.strips import cases
from medtest.report.pages.first_page import first_page
from medtest.report.pages.gates import gates
from medtest.report.pages.intervals import short_words
from medtest.report.pages.material import Material
from medtest.report.pages.paper import paper
from medtest.report.pages.words import (
    TOO_FEW,
    against_words,
    cluster_word,
    counted,
    criterion_keys,
    criterion_words,
    expected_words,
    few_words,
    limit_words,
    model_words,
    phantom_banner,
    simulated_words,
    view_words,
    violations_of,
)
from medtest.results.gating import gate_log
from medtest.results.rates import efr, pivot
from medtest.results.records.wanted import Wanted
from medtest.results.series.series_records import MEASURED

if TYPE_CHECKING:
    from jinja2 import Environment

_AGAINST = {
    "truth": "All scores and thresholds, against the {expected}",
    "source": "All scores and thresholds, against the system's answer to the source image",
    "input": "All scores and thresholds, against the system's input image",
}
TEMPLATES = Path(__file__).parent / "templates"
_SCRIPTS = tuple(f"scripts/{name}.js" for name in ("fold", "elements", "lens", "browser"))
_RATES = (("matrix", "Rates"), ("errors", "Not judged"))
_SHARED = {
    "attacks": ("attacks", "Attacks"),
    "searches": ("searches", "Searches"),
    "curves": ("severity", "Severity"),
    "slices": ("slices", "Failing slices"),
    "factor_panels": ("factors", "Factors"),
    "alpha_sigma": ("alpha-sigma", "(α,σ)"),
    "inside": ("inside", "Inside the network"),
    "paper": ("paper", "Tables of the study"),
    "published": ("published", "Published figures"),
}
"""Sections of every task by the template value they show; omitted if that is empty."""
_OPEN = ("cases", "gates", "reliance", "matrix", "searches")
"""Sections that are not folded, beside the first ones of a task."""
_SECTION = re.compile(r'<section id="([a-z-]+)"><h2>(.*?)</h2>(.*?)</section>', re.DOTALL)


@cache
def _environment() -> Environment:
    from jinja2 import ChoiceLoader, Environment, FileSystemLoader, FunctionLoader, StrictUndefined

    of_tasks = FunctionLoader(lambda path: Path(path).read_text(encoding="utf-8"))
    loader = ChoiceLoader([FileSystemLoader(TEMPLATES), of_tasks])
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)


def render(template: str, page: Mapping[str, Any]) -> str:
    """Return a page; everything in ``page`` is escaped except :class:`markupsafe.Markup`."""
    from markupsafe import Markup

    files = {"style": ["style.css"], "browser_style": ["browser.css"], "script": _SCRIPTS}
    own = {
        name: Markup("".join((TEMPLATES / file).read_text(encoding="utf-8") for file in parts))  # noqa: S704 - our own
        for name, parts in files.items()
    }
    digest = base64.b64encode(hashlib.sha256(own["script"].encode()).digest()).decode("ascii")
    page = {"browser": NO_BROWSER, **page}
    return _environment().get_template(template).render(p=page, **own, script_hash=f"sha256-{digest}")


def report_html(material: Material, browser: Browser = NO_BROWSER) -> str:
    """Return the HTML report of one system.

    Args:
        material: Material of the report.
        browser: Browser of its cases.
    """
    page = {**report_page(material), "browser": browser}
    return _folded(render("report.html.j2", page), {*_OPEN, *page["unfolded"]})


def _folded(text: str, unfolded: Collection[str]) -> str:
    """Return a page whose sections open with a click, except some; texts of users hold no tags, as they are escaped."""

    def fold(match: re.Match[str]) -> str:
        name, title, content = match.groups()
        if name in unfolded:
            return match[0]
        return f'<section id="{name}"><details><summary><h2>{title}</h2></summary>{content}</details></section>'

    return _SECTION.sub(fold, text)


def report_page(material: Material) -> dict[str, Any]:
    """Return the data of the report's template."""
    tables, suite = material.tables, material.wanted
    rates = material.rates
    row = material.row()
    own = tables.own.page(material)
    further = [*own.sections, *suite.task.report.sections(tables.own.frames()), *tables.installed.sections]
    page: dict[str, Any] = {
        "system": material.system,
        "suite": suite.suite,
        "version": suite.version,
        "description": suite.description,
        "phantom": phantom_banner(material),
        "least_judged": material.wanted.task.report.least_judged,
        "simulated": simulated_words(material),
        "partial": material.partial,
        "excluded": tables.excluded_words,
        "view": view_words(material),
        "asked": material.asked is not None,
        "series": suite.series,
        "trained_on": any(pivot.marked(name, suite.trained_on) != name for name in rates.datasets),
        "criterion_words": criterion_words(material),
        "facts": _facts(material),
        "cards": _cards(material),
        "heats": _heats(material, brief=bool(own.first)),
        "not_judged": _not_judged(row),
        "too_many_errors": _too_many_errors(material),
        "reasons": tables.counts.reasons,
        "warnings": tables.warnings,
        "notices": [*tables.notices, *material.notices, *filter(None, [gate_log.lost(material.folder)])],
        "command": material.command,
        "origin": _origin(material),
        "medtest": __version__,
        **gates(material),
        **attacks(material),
        "reliance": reliance(material.tables.reliance, material.system),
        **searches(material),
        **sections.severity(material),
        **sections.factors(material),
        **sections.slices(material),
        **sections.robustness(material),
        **sections.strata(material),
        **paper(material),
        **sections.published(material),
        **cases(material),
        "inside": inside(material),
        "own": own.values,
        "own_template": "" if own.template is None else str(own.template),
        "own_sections": further,
        "brief": bool(own.first),
        "unfolded": [name for name, _ in own.first],
        "brief_words": material.wanted.task.report.rate_words,
        "case_input": material.wanted.task.report.case_input,
        "rate_words": own.rate_words,
    }
    page["first_page"] = first_page(page, next((card for card in page["cards"] if card.get("weakest")), None))
    named = [(section.name, section.title) for section in further]
    shared = [section for shown, section in _SHARED.items() if not shown or page[shown]]
    page["sections"] = [
        *([("reliance", "Reliance on the evidence")] if page["reliance"] else []),
        ("cases", "What fails"),
        *([("gates", "Gates")] if page["gates"] or page["gates_before"] else []),
        *own.first,
        *_RATES,
        *own.after,
        ("tested", "What was tested"),
        *named,
        *shared,
        ("again", "Reproduce"),
    ]
    return page


def _facts(material: Material) -> list[tuple[str, str]]:
    suite, counts, run, rates = material.wanted, material.tables.counts, material.run, material.rates
    sources = material.tables.own.sources(material.tables.seeds, suite.trained_on)
    seeds = ", ".join(f"{pivot.marked(name, suite.trained_on)} {count:,}" for name, count in counts.seeds.items())
    total = f"{sum(counts.seeds.values()):,}: " if len(counts.seeds) > 1 else ""
    relations = ", ".join(rates.changing)
    levels = ", ".join(level for level in rates.severities if level != "0")
    versions: Mapping[str, Any] = run.get("versions") or {}
    facts = [
        ("System", material.system + (f" - {run['notice']}" if run.get("notice") else "")),
        ("Model", model_words(material)),
        ("Suite", f"{suite.suite} {suite.version}"),
        ("Trained on", ", ".join(suite.trained_on)),
        ("Source cases", sources or f"{total}{seeds}"),
        ("Relations", relations),
        ("Severities", levels or _without_levels(material)[0]),
        ("Follow-ups", _follow_ups(material)),
        ("Part of the suite", ", ".join(part for part in (material.coverage, material.partial_cases) if part)),
        ("Finished", str(run.get("finished_at", ""))),
        ("Device", str(run.get("device", ""))),
        ("medtest", str(versions.get("medtest", __version__))),
    ]
    if run.get("reused_from"):
        facts.append(
            ("Reused", f"{int(run.get('cases_reused', 0)):,} cases of earlier runs, last {run['reused_from']}")
        )
    return [(name, value) for name, value in facts if value]


def _follow_ups(material: Material) -> str:
    """Return the number of executed follow-ups, with unchanged inputs apart, as these are in no pooled rate."""
    executed = sum(material.tables.counts.verdicts.values())
    floor = material.row(UNCHANGED)
    again = 0 if floor is None else int(floor["generated"])
    return f"{executed - again:,} executed" + (
        f" and {again:,} with the {material.wanted.task.report.case_input} unchanged" if again else ""
    )


def _without_levels(material: Material) -> tuple[str, str]:
    """Return a phrase on relations without levels, and their column head."""
    groups = set(material.tables.efr["group"].astype(str))
    if MEASURED in groups:
        return "none: the property of each seed is measured", "as measured"
    if material.wanted.task.prompts:
        return "none: a change of words has no levels", "as drawn"
    return "drawn from the published ranges", "published ranges"


def _cards(material: Material) -> list[Mapping[str, Any]]:
    primary, row = material.wanted.primary, material.row()
    cards: list[Mapping[str, Any]] = []
    if row is None or not int(row["cases"]):
        lines = ["no case was judged", *([] if row is None else [beside(row)])]
        cards.append({"name": "Error-finding rate (EFR) overall", "value": "none", "lines": lines})
    else:
        name = f"Error-finding rate (EFR) overall, {criterion_name(primary.score, primary.threshold)}"
        least = material.wanted.task.report.least_judged
        cards.append(
            _rate_card(name, row, beside(row))
            if int(row["cases"]) >= least
            else {"name": name, "value": TOO_FEW, "lines": [violations_of(row), few_words(least), beside(row)]}
        )
    worst = sections.weakest(material)
    if worst is not None:
        name, own = worst
        cards.append({"weakest": name, **_rate_card(f"Weakest relation: {name.replace('_', ' ')}", own)})
    if material.tables.own.mean_card:
        cards += sections.mean_cards(material)
    cards += material.tables.own.cards()
    floor = material.row(UNCHANGED)
    if floor is not None:
        measured = int(floor["cases"]) > 0
        cards.append(
            {
                "name": f"Floor: unchanged {material.wanted.task.report.case_input}",
                "value": percent(floor["efr_percent"]) if measured else NOT_MEASURED,
                "lines": [violations_of(floor) if measured else beside(floor)],
            }
        )
    return cards


def _rate_card(name: str, row: Mapping[str, Any], *lines: str) -> dict[str, Any]:
    ends = f"95 % interval {interval(row)} % ({short_words(row['ci_method'])})"
    return {"name": name, "value": percent(row["efr_percent"]), "lines": [ends, violations_of(row), *lines]}


def _heats(material: Material, *, brief: bool) -> list[dict[str, Any]]:
    primary, rates = criterion_keys(material), material.rates
    suite, warn = material.wanted, material.tables.attacks.warn
    levels = [(f"severity {level}", {**primary, "severity": level}) for level in rates.severities if level != "0"]
    if not levels:
        name = _without_levels(material)[1]
        levels = [(name, {**primary, "severity": "0"})] if "0" in rates.severities else []
    across = [*levels, ("all", primary)]
    if len(levels) == 1 and _same(rates, levels[0][1], primary):
        across = [(levels[0][0], primary)]
    heats = [
        heat(
            rates,
            title=f"{limit_words(primary['score'], primary['threshold'])}, against {against_words(material)}"
            + (", all data sets" if len(rates.datasets) > 2 else ""),
            columns=across,
            side=primary,
            clusters=cluster_word(material),
            warn=warn,
        )
    ]
    if len(rates.datasets) > 2:
        columns = [
            (pivot.marked(name, suite.trained_on) if name != efr.ALL else "all", {**primary, "dataset": name})
            for name in rates.datasets
        ]
        heats.append(
            heat(
                rates, title="By data set, all severities", columns=columns, clusters=cluster_word(material), warn=warn
            )
        )
    for against in suite.criteria.against:
        columns = [
            (criterion_name(score, threshold), {"score": score, "threshold": threshold, "against": against})
            for score, threshold in _columns_of(suite)
            if rates.get(relation=efr.OVERALL, score=score, threshold=threshold, against=against) is not None
            and not (brief and (score, against) == (primary["score"], primary["against"]))  # shown already
        ]
        if columns:
            title = _AGAINST[against].format(expected=expected_words(material))
            if brief and against == primary["against"]:
                title = title.replace("All scores and thresholds", "Further criteria")
            heats.append(heat(rates, title=title, columns=columns, clusters=cluster_word(material), warn=warn))
    return heats


def _same(rates: EfrRows, first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Return True if two columns count the same cases for every relation; ``unchanged`` has no severity."""
    names = [*rates.changing, efr.OVERALL]
    pairs = [(rates.get(relation=name, **first), rates.get(relation=name, **second)) for name in names]
    columns = ("generated", "cases", "violations")
    return all(a is not None and b is not None and all(a[n] == b[n] for n in columns) for a, b in pairs)


def _columns_of(selection: Wanted) -> list[tuple[str, float]]:
    """Return the shown scores by threshold, starting with those that have none."""
    shown = selection.criteria
    free = [(score, 0.0) for score in shown.scores if score in NO_THRESHOLD]
    rest = [score for score in shown.scores if score not in NO_THRESHOLD]
    return [*free, *((score, threshold) for threshold in shown.thresholds for score in rest)]


def _not_judged(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return "No case was judged under the primary criterion."
    lost = int(row["errors"]) + int(row["skipped"]) + int(row["source_failed"])
    if not lost:
        return f"All {counted(int(row['generated']), 'case')} were judged."
    n = {name: f"{int(row[name]):,}" for name in ("generated", "cases", "errors", "skipped", "source_failed")}
    return (
        f"Of {n['generated']} follow-ups, {n['cases']} were judged. Not judged: {n['errors']} errors (the system or "
        f"the relation failed), {n['skipped']} skipped (the relation does not apply) and {n['source_failed']} with a "
        "failed source (the system failed on the source case or scored zero). Over all follow-ups, the EFR is "
        f"{percent(row['efr_generated_percent'])}."
    )


def _too_many_errors(material: Material) -> str:
    if not material.too_many_errors:
        return ""
    limit = material.wanted.max_error_percent
    return f"{material.error_percent:.2f} % of the cases are errors; the suite allows {limit:g} %."


def _origin(material: Material) -> list[tuple[str, str]]:
    run = material.run
    versions: Mapping[str, Any] = run.get("versions") or {}
    facts = [("digest of inputs and system", str(run.get("digest", "")))]
    facts += [(str(name), str(version)) for name, version in versions.items()]
    return [(name, value) for name, value in facts if value]
