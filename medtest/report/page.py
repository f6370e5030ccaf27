"""``report.html``: one file, no network, every text escaped, made from tables alone."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import medtest
from medtest.cases import UNCHANGED
from medtest.oracles.criteria import NO_THRESHOLD, criterion_name
from medtest.report import sections
from medtest.report.answers import answer_cards, answers
from medtest.report.cases import cases
from medtest.report.first_page import first_page
from medtest.report.gates import gates
from medtest.report.heat import EfrRows, beside, heat, interval, percent
from medtest.report.intervals import short_words
from medtest.report.labels import flip_cards, labels
from medtest.report.material import Material
from medtest.report.paper import paper
from medtest.report.words import (
    cluster_word,
    counted,
    criterion_keys,
    criterion_words,
    expected_words,
    limit_words,
    model_words,
    phantom_words,
    simulated_words,
    view_words,
    violations_of,
)
from medtest.results import efr, gate_log, pivot
from medtest.results.records.wanted import Wanted
from medtest.results.series.series_records import MEASURED

if TYPE_CHECKING:
    from jinja2 import Environment

_AGAINST = {
    "truth": "Every score and threshold, against the {expected}",
    "source": "Every score and threshold, against the system's own answer to the source image",
    "input": "Every score and threshold, against the image that the system was given",
}
_ANSWERS_FIRST = ("tested", "accuracy", "flips", "refusals", "images", "matrix", "errors", "cost")
"""Order of the first sections where systems answer questions: what was found out about answers, then the rest."""
TEMPLATES = Path(__file__).parent / "templates"
SECTIONS = (
    ("tested", "What was tested"),
    ("matrix", "Rates"),
    ("errors", "Not judged"),
    ("flips", "Flips"),
    ("accuracy", "Accuracy"),
    ("refusals", "Refusals"),
    ("cost", "Cost"),
    ("images", "One image"),
    ("severity", "Severity"),
    ("factors", "Factors"),
    ("alpha-sigma", "(α,σ)"),
    ("cases", "Cases"),
    ("paper", "The study's tables"),
    ("published", "Published figures"),
    ("again", "Do it again"),
)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True)


def render(template: str, page: Mapping[str, Any]) -> str:
    """Return a page; everything in ``page`` is escaped but what is :class:`markupsafe.Markup`."""
    from markupsafe import Markup

    style = Markup((TEMPLATES / "style.css").read_text(encoding="utf-8"))  # noqa: S704 - our own file
    return _environment().get_template(template).render(p=page, style=style)


def report_html(material: Material) -> str:
    """Return the report of one system.

    Args:
        material: What it is made of.
    """
    return render("report.html.j2", report_page(material))


def report_page(material: Material) -> dict[str, Any]:
    """Return what the report's template shows."""
    tables, wanted = material.tables, material.wanted
    rates = EfrRows(tables.efr)
    primary = criterion_keys(material)
    row = rates.get(relation=efr.OVERALL, **primary)
    page: dict[str, Any] = {
        "system": material.system,
        "suite": wanted.suite,
        "version": wanted.version,
        "description": wanted.description,
        "phantom": phantom_words(material),
        "simulated": simulated_words(material),
        "partial": material.partial,
        "excluded": "" if tables.excluded is None else tables.excluded.words,
        "view": view_words(material),
        "asked": material.asked is not None,
        "series": wanted.series,
        "trained_on": any(pivot.marked(name, wanted.trained_on) != name for name in rates.datasets),
        "criterion_words": criterion_words(material),
        "facts": _facts(material, rates),
        "cards": _cards(material, row, rates),
        "heats": _heats(material, rates),
        "not_judged": _not_judged(row),
        "too_many_errors": _too_many_errors(material),
        "reasons": tables.counts.reasons,
        "warnings": tables.warnings,
        "notices": [*tables.warnings, *material.notices, *filter(None, [gate_log.lost(material.folder)])],
        "command": material.command,
        "origin": _origin(material),
        "medtest": medtest.__version__,
        **gates(material),
        **labels(material),
        **answers(material),
        **sections.severity(material, rates),
        **sections.factors(material),
        **sections.robustness(material),
        **sections.strata(material),
        **paper(material),
        **sections.published(material, rates),
        **cases(material),
        "own": wanted.task.sections(tables.own),
    }
    shown = {
        "accuracy": page["labels"] or (page["answers"] and page["answers"]["hidden"]),
        "flips": page["answers"] or (page["labels"] and page["labels"]["flips"]),
        "refusals": page["answers"],
        "cost": page["answers"] and page["answers"]["costs"],
        "images": page["answers"] and page["answers"]["worst"],
        "severity": page["curves"],
        "factors": page["factor_panels"],
        "alpha-sigma": page["alpha_sigma"],
        "paper": page["paper"],
        "published": page["published"],
    }
    page["first_page"] = first_page(page, next((card for card in page["cards"] if card.get("weakest")), None))
    page["sections"] = [(name, title) for name, title in _ordered(page) if shown.get(name, True)]
    return page


def _ordered(page: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the sections in the order in which they stand on the page."""
    titles = dict(SECTIONS)
    place = list(titles).index("severity")  # before what all tasks share
    own = [(one.name, one.title) for one in page["own"]]
    titles = dict([*list(SECTIONS)[:place], *own, *list(SECTIONS)[place:]])
    first = _ANSWERS_FIRST if page["answers"] else ()
    return [(name, titles[name]) for name in dict.fromkeys((*first, *titles))]


def _facts(material: Material, rates: EfrRows) -> list[tuple[str, str]]:
    wanted, counts, run, answers = material.wanted, material.tables.counts, material.run, material.tables.answers
    seeds = ", ".join(f"{pivot.marked(name, wanted.trained_on)} {count:,}" for name, count in counts.seeds.items())
    relations = ", ".join(name for name in rates.plain_relations if name != UNCHANGED)
    levels = ", ".join(level for level in rates.severities if level != "0")
    versions: Mapping[str, Any] = run.get("versions") or {}
    facts = [
        ("System", material.system + (f" - {run['notice']}" if run.get("notice") else "")),
        ("Model", model_words(material)),
        ("Suite", f"{wanted.suite} {wanted.version}"),
        ("Trained on", ", ".join(wanted.trained_on)),
        ("Source cases", f"{seeds} ({sum(counts.seeds.values()):,})" if answers is None else _asked(material)),
        ("Relations", relations),
        ("Severities", levels or _without_levels(material)[0]),
        ("Follow-ups", _follow_ups(material, rates)),
        ("Of the suite", ", ".join(part for part in (material.coverage, material.partial_cases) if part)),
        ("Finished", str(run.get("finished_at", ""))),
        ("Device", str(run.get("device", ""))),
        ("medtest", str(versions.get("medtest", medtest.__version__))),
    ]
    if run.get("reused_from"):
        facts.append(
            ("Reused", f"{int(run.get('cases_reused', 0)):,} cases of earlier runs, last {run['reused_from']}")
        )
    return [(name, value) for name, value in facts if value]


def _asked(material: Material) -> str:
    """Return how many source cases there are: images, by data set, and the questions that were asked of them."""
    seeds, answers = material.tables.seeds, material.tables.answers
    images = seeds[["dataset", "seed_id"]].drop_duplicates()["dataset"].astype(str).value_counts(sort=False)
    asked = 0 if answers is None else answers.by_relation["item"].nunique()
    total, trained = int(images.sum()), material.wanted.trained_on
    named = ", ".join(f"{pivot.marked(str(name), trained)} {count:,}" for name, count in images.items())
    return (
        f"{len(seeds):,}: {counted(total, 'image')} ({named}), {counted(asked, 'question')}; a case is an image with "
        "a question"
    )


def _follow_ups(material: Material, rates: EfrRows) -> str:
    """Return how many cases were executed, those of the image left as it is apart: they are in no pooled rate."""
    executed = sum(material.tables.counts.verdicts.values())
    floor = rates.get(relation=UNCHANGED, **criterion_keys(material))
    again = 0 if floor is None else int(floor["generated"])
    return f"{executed - again:,} executed" + (f", and {again:,} of the image left as it is" if again else "")


def _without_levels(material: Material) -> tuple[str, str]:
    """Return what relations without levels do, as a sentence's part and as a column's head."""
    groups = set(material.tables.efr["group"].astype(str))
    if MEASURED in groups:
        return "none: the property is measured on each seed", "as measured"
    return "drawn from the published ranges", "published ranges"


def _cards(material: Material, row: Mapping[str, Any] | None, rates: EfrRows) -> list[dict[str, Any]]:
    primary = material.wanted.primary
    cards: list[dict[str, Any]] = []
    if row is None:
        cards.append({"name": "EFR overall", "value": "none", "lines": ["no case could be judged"]})
    else:
        cards.append(
            {
                "name": f"EFR overall, {criterion_name(primary.score, primary.threshold)}",
                "value": percent(row["efr_percent"]) or "none",
                "lines": [
                    f"95 % interval {interval(row)} % ({short_words(row['ci_method'])})",
                    violations_of(row),
                    beside(row),
                ],
            }
        )
    weakest = _weakest(material, rates)
    if weakest is not None:
        cards.append(weakest)
    if material.tables.answers is None:  # of answers the card of accuracies has it, weighed as its table weighs
        cards += sections.mean_cards(material)
    cards += flip_cards(material)
    cards += answer_cards(material)
    floor = rates.get(relation=UNCHANGED, **criterion_keys(material))
    if floor is not None and int(floor["cases"]):
        cards.append(
            {
                "name": "Floor: image unchanged",
                "value": percent(floor["efr_percent"]),
                "lines": [violations_of(floor)],
            }
        )
    return cards


def _weakest(material: Material, rates: EfrRows) -> dict[str, Any] | None:
    worst = rates.weakest(criterion_keys(material))
    if worst is None:
        return None
    name, row = worst
    return {
        "weakest": name,
        "name": f"Weakest against {name.replace('_', ' ')}",
        "value": percent(row["efr_percent"]),
        "lines": [
            f"95 % interval {interval(row)} % ({short_words(row['ci_method'])})",
            violations_of(row),
        ],
    }


def _heats(material: Material, rates: EfrRows) -> list[dict[str, Any]]:
    primary = criterion_keys(material)
    wanted, answers = material.wanted, material.tables.answers is not None
    levels = [(f"severity {level}", {**primary, "severity": level}) for level in rates.severities if level != "0"]
    if not levels:
        name = _without_levels(material)[1]
        levels = [(name, {**primary, "severity": "0"})] if "0" in rates.severities else []
    across = [*levels, ("all", primary)]
    if len(levels) == 1 and _same(rates, levels[0][1], primary):
        across = [(levels[0][0], primary)]
    found = [
        heat(
            rates,
            title=f"{limit_words(primary['score'], primary['threshold'])}, against {primary['against']}"
            + (", all data sets" if len(rates.datasets) > 2 else ""),
            columns=across,
            side=primary,
            clusters=cluster_word(material),
        )
    ]
    if len(rates.datasets) > 2:
        columns = [
            (pivot.marked(name, wanted.trained_on) if name != efr.ALL else "all", {**primary, "dataset": name})
            for name in rates.datasets
        ]
        found.append(heat(rates, title="By data set, all severities", columns=columns, clusters=cluster_word(material)))
    for against in wanted.criteria.against:
        columns = [
            (criterion_name(score, threshold), {"score": score, "threshold": threshold, "against": against})
            for score, threshold in _columns_of(wanted)
            if rates.get(relation=efr.OVERALL, score=score, threshold=threshold, against=against) is not None
            and not (answers and (score, against) == (primary["score"], primary["against"]))  # shown already
        ]
        if columns:
            title = _AGAINST[against].format(expected=expected_words(material))
            if answers and against == primary["against"]:
                title = title.replace("Every score and threshold", "Further criteria")
            found.append(heat(rates, title=title, columns=columns, clusters=cluster_word(material)))
    return found


def _same(rates: EfrRows, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two columns count the same cases of every relation; ``unchanged`` has no severity."""
    names = [*(name for name in rates.plain_relations if name != UNCHANGED), efr.OVERALL]
    pairs = [(rates.get(relation=name, **one), rates.get(relation=name, **other)) for name in names]
    counted = ("generated", "cases", "violations")
    return all(a is not None and b is not None and all(a[n] == b[n] for n in counted) for a, b in pairs)


def _columns_of(wanted: Wanted) -> list[tuple[str, float]]:
    """Return the shown scores threshold by threshold, those without a threshold once and first."""
    shown = wanted.criteria
    free = [(score, 0.0) for score in shown.scores if score in NO_THRESHOLD]
    rest = [score for score in shown.scores if score not in NO_THRESHOLD]
    return [*free, *((score, threshold) for threshold in shown.thresholds for score in rest)]


def _not_judged(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return "No case could be judged under the primary criterion."
    left = int(row["errors"]) + int(row["skipped"]) + int(row["source_failed"])
    if not left:
        return f"Every one of {int(row['generated']):,} cases was judged."
    n = {name: f"{int(row[name]):,}" for name in ("generated", "cases", "errors", "skipped", "source_failed")}
    return (
        f"Of {n['generated']} executed follow-ups {n['cases']} were judged. Left out: {n['errors']} errors (the system "
        f"or the relation broke), {n['skipped']} skipped (the case does not apply) and {n['source_failed']} whose "
        "source case gives nothing to compare with (its score is zero, or the system failed on it). With all of "
        f"them in the denominator the rate is {percent(row['efr_generated_percent'])}."
    )


def _too_many_errors(material: Material) -> str:
    share = float(material.run.get("error_percent") or 0.0)
    limit = material.wanted.max_error_percent
    if share <= limit:
        return ""
    return f"{share:.2f} % of the cases could not be judged because something broke; the suite allows {limit:g} %."


def _origin(material: Material) -> list[tuple[str, str]]:
    run = material.run
    versions: Mapping[str, Any] = run.get("versions") or {}
    facts = [("digest of inputs and system", str(run.get("digest", "")))]
    facts += [(str(name), str(version)) for name, version in versions.items()]
    return [(name, value) for name, value in facts if value]
