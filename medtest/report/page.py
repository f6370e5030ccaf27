"""``report.html``: one file, no network, every text escaped, made from tables alone."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import medtest
from medtest.cases import UNCHANGED
from medtest.report import figures, sections
from medtest.report.heat import Rates, beside, heat, interval, percent
from medtest.report.material import Material, sample_index, strips
from medtest.report.paper import paper
from medtest.results import efr, pivot

if TYPE_CHECKING:
    from jinja2 import Environment

_AGAINST = {
    "truth": "Every score and threshold, against the expected mask",
    "source": "Every score and threshold, against the system's own answer to the source image",
    "input": "Every score and threshold, against the image that the system was given",
}
TEMPLATES = Path(__file__).parent / "templates"
SECTIONS = (
    ("tested", "What was tested"),
    ("matrix", "Rates"),
    ("errors", "Not judged"),
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
    rates = Rates(tables.efr)
    primary = criterion_keys(material)
    row = rates.get(relation=efr.OVERALL, **primary)
    page: dict[str, Any] = {
        "system": material.system,
        "suite": wanted.suite,
        "version": wanted.version,
        "description": wanted.description,
        "phantom": phantom_words(material),
        "partial": material.partial,
        "excluded": "" if tables.excluded is None else tables.excluded.words,
        "view": view_words(material),
        "trained_on": any(pivot.marked(name, wanted.trained_on) != name for name in rates.datasets),
        "criterion_words": criterion_words(material),
        "cluster_word": cluster_word(material),
        "facts": _facts(material, rates),
        "cards": _cards(material, row, rates),
        "heats": _heats(material, rates),
        "not_judged": _not_judged(row),
        "too_many_errors": _too_many_errors(material),
        "reasons": tables.counts.reasons,
        "notices": list(material.notices),
        "command": material.command,
        "origin": _origin(material),
        "medtest": medtest.__version__,
        **_gates(material),
        **sections.severity(material, rates),
        **sections.factors(material),
        **sections.robustness(material),
        **sections.strata(material),
        **paper(material),
        **sections.published(material, rates),
        **_cases(material),
    }
    shown = {
        "severity": page["curves"],
        "factors": page["factor_panels"],
        "alpha-sigma": page["alpha_sigma"],
        "paper": page["paper"],
        "published": page["published"],
    }
    page["sections"] = [(name, title) for name, title in SECTIONS if shown.get(name, True)]
    return page


def criterion_keys(material: Material) -> dict[str, Any]:
    """Return score, threshold and reference of the primary criterion."""
    primary = material.wanted.primary
    return {"score": primary.score, "threshold": primary.threshold, "against": primary.against}


def score_words(score: str) -> str:
    """Return a score or a rule as people say it."""
    return {
        "dice": "Dice",
        "iou": "IoU",
        "both": "Dice and IoU both",
        "either": "Dice or IoU",
        "mean_dice_256": "mean Dice over 256 thresholds",
        "mean_iou_256": "mean IoU over 256 thresholds",
        "ssim": "SSIM",
        "psnr": "PSNR",
        "f_measure": "F-measure",
    }.get(score, score.replace("_", " "))


def criterion_words(material: Material) -> str:
    """Return when a case is a violation, in words."""
    primary = material.wanted.primary
    if primary.against == "source":
        return (
            f"{score_words(primary.score)} between the answers to the follow-up and to its source falls more than "
            f"{100 * primary.threshold:g} % below 1"
        )
    if primary.against == "input":
        more = f" by more than {100 * primary.threshold:g} %" if primary.threshold else ""
        return f"{score_words(primary.score)} of the answer is below that of the image which the system was given{more}"
    return (
        f"{score_words(primary.score)} against the expected mask falls by more than {100 * primary.threshold:g} % "
        "of what it was on the source image"
    )


def phantom_words(material: Material) -> str:
    """Return which data sets are phantoms, or ""."""
    wanted = material.wanted
    return ", ".join(wanted.seeds) if wanted.phantom else ""


def cluster_word(material: Material) -> str:
    """Return what intervals resample."""
    seeds = material.tables.seeds
    if seeds.empty or "cluster" not in seeds.columns:
        return "source cases"
    alone = (seeds["cluster"].astype(str) == seeds["seed_id"].astype(str)).all()
    return "source cases" if alone else "clusters of source cases (patients, videos)"


def view_words(material: Material) -> str:
    """Return that the oracle is not the suite's own, or ""."""
    if not material.view:
        return ""
    return f"The same records, judged otherwise ({criterion_words(material)}); view {material.view}."


def _gates(material: Material) -> dict[str, Any]:
    from medtest.results.gates import describe

    results = material.tables.gates
    lost = [result for result in results if not result.held]
    line = f"{len(results)} of {len(results)} held." if not lost else "; ".join(f"{r.reason}" for r in lost[:3])
    return {
        "gates": [
            {
                "words": describe(result.gate),
                "held": result.held,
                "percent": "" if result.percent is None else f"{result.percent:.2f} %",
                "cases": f"{result.cases:,}",
                "reason": result.reason,
            }
            for result in results
        ],
        "gates_held": not lost,
        "gates_line": line,
    }


def _facts(material: Material, rates: Rates) -> list[tuple[str, str]]:
    wanted, counts, run = material.wanted, material.tables.counts, material.run
    seeds = ", ".join(f"{pivot.marked(name, wanted.trained_on)} {count:,}" for name, count in counts.seeds.items())
    relations = ", ".join(name for name in rates.plain_relations if name != UNCHANGED)
    levels = ", ".join(level for level in rates.severities if level != "0")
    versions: Mapping[str, Any] = run.get("versions") or {}
    facts = [
        ("System", material.system + (f" - {run['notice']}" if run.get("notice") else "")),
        ("Suite", f"{wanted.suite} {wanted.version}"),
        ("Trained on", ", ".join(wanted.trained_on)),
        ("Source cases", f"{seeds} ({sum(counts.seeds.values()):,})"),
        ("Relations", relations),
        ("Severities", levels or "drawn from the published ranges"),
        ("Follow-ups", f"{sum(counts.verdicts.values()):,} executed"),
        ("Finished", str(run.get("finished_at", ""))),
        ("Device", str(run.get("device", ""))),
        ("medtest", str(versions.get("medtest", medtest.__version__))),
    ]
    if run.get("reused_from"):
        facts.append(
            ("Reused", f"{int(run.get('cases_reused', 0)):,} cases of earlier runs, last {run['reused_from']}")
        )
    return [(name, value) for name, value in facts if value]


def _cards(material: Material, row: Mapping[str, Any] | None, rates: Rates) -> list[dict[str, Any]]:
    primary = material.wanted.primary
    cards: list[dict[str, Any]] = []
    if row is None:
        cards.append({"name": "EFR overall", "value": "none", "lines": ["no case could be judged"]})
    else:
        cards.append(
            {
                "name": f"EFR overall, {primary.score} t={primary.threshold:g}",
                "value": percent(row["efr_percent"]) or "none",
                "lines": [
                    f"95 % interval {interval(row)} %",
                    f"{row['violations']:,} violations of {row['cases']:,} cases",
                    beside(row),
                ],
            }
        )
    weakest = _weakest(material, rates)
    if weakest is not None:
        cards.append(weakest)
    cards += sections.mean_cards(material)
    floor = rates.get(relation=UNCHANGED, **criterion_keys(material))
    if floor is not None and int(floor["cases"]):
        cards.append(
            {
                "name": "Floor: image unchanged",
                "value": percent(floor["efr_percent"]),
                "lines": [f"{floor['violations']:,} of {floor['cases']:,} cases"],
            }
        )
    return cards


def _weakest(material: Material, rates: Rates) -> dict[str, Any] | None:
    rows = [
        (name, row)
        for name in rates.plain_relations
        if name != UNCHANGED
        and (row := rates.get(relation=name, **criterion_keys(material))) is not None
        and int(row["cases"])
    ]
    if not rows:
        return None
    name, row = max(rows, key=lambda pair: float(pair[1]["efr_percent"]))
    if not int(row["violations"]):
        return None
    return {
        "name": f"Weakest against {name.replace('_', ' ')}",
        "value": percent(row["efr_percent"]),
        "lines": [f"95 % interval {interval(row)} %", f"{row['violations']:,} of {row['cases']:,} cases"],
    }


def _heats(material: Material, rates: Rates) -> list[dict[str, Any]]:
    primary = criterion_keys(material)
    wanted = material.wanted
    levels = [(f"severity {level}", {**primary, "severity": level}) for level in rates.severities if level != "0"]
    if not levels:
        levels = [("published ranges", {**primary, "severity": "0"})] if "0" in rates.severities else []
    found = [
        heat(
            rates,
            title=f"{score_words(primary['score'])}, t = {primary['threshold']:g}, against {primary['against']}"
            + (", all data sets" if len(rates.datasets) > 2 else ""),
            columns=[*levels, ("all", primary)],
            side=primary,
        )
    ]
    if len(rates.datasets) > 2:
        columns = [
            (pivot.marked(name, wanted.trained_on) if name != efr.ALL else "all", {**primary, "dataset": name})
            for name in rates.datasets
        ]
        found.append(heat(rates, title="By data set, all severities", columns=columns))
    for against in wanted.criteria.against:
        columns = [
            (f"{score} t={threshold:g}", {"score": score, "threshold": threshold, "against": against})
            for threshold in wanted.criteria.thresholds
            for score in wanted.criteria.scores
            if rates.get(relation=efr.OVERALL, score=score, threshold=threshold, against=against) is not None
        ]
        if columns:
            found.append(heat(rates, title=_AGAINST[against], columns=columns))
    return found


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


_MAKES_THE_CASE = ("suite", "suite_dir", "data", "seed", "seeds", "relations", "prepare", "privacy")
"""First parts of the keys that change an address or what is made at it."""


def replay_command(material: Material, address: str) -> str:
    """Return the command that makes one case again, with all that was typed of its seeds and relations."""
    typed = shlex.split(material.command)
    sweep = bool({"-m", "--multirun"} & set(typed))
    kept = [
        token
        for token in typed
        if token.lstrip("+~").split("=", 1)[0].split(".")[0] in _MAKES_THE_CASE
        and not (sweep and ("," in token or "(" in token))  # which of several it was stands in suite.yaml
    ]
    if not any(token.startswith("suite=") for token in kept):
        kept.insert(0, f"suite={material.wanted.suite}")
    if material.wanted.needs_root and not any(token.startswith("data=") for token in kept):
        kept.append("data=PATH")
    return " ".join(["medtest replay", *map(shlex.quote, [*kept, address])])


def _cases(material: Material) -> dict[str, Any]:
    worst = [
        {
            "address": str(row["address"]),
            "before": f"{row['source_score']:.3f}",
            "after": f"{row['score_after']:.3f}",
            "loss": percent(row["loss_percent"]),
            "verdict": "violation" if row["violated"] else "held",
        }
        for row in material.tables.worst.to_dict("records")
    ]
    if material.wanted.images == "none":
        return {"strips": [], "worst": worst, "no_strips": "The suite's privacy settings keep images out of reports."}
    found = strips(material.folder, sample_index(material.folder))
    return {
        "strips": [
            {
                **_strip_words(strip.facts),
                "command": replay_command(material, str(strip.facts.get("address", ""))),
                "data": strip.data,
                "width": strip.width,
                "height": strip.height,
            }
            for strip in found
        ],
        "worst": worst,
        "no_strips": "No sample strips lie beside this report.",
    }


def _strip_words(facts: Mapping[str, Any]) -> dict[str, Any]:
    before, after = facts.get("source_score"), facts.get("score")
    if isinstance(before, int | float) and isinstance(after, int | float):
        name = str(facts.get("score_name", "score"))
        words = f"{score_words(name.removeprefix('self_'))} {before:.3f} → {after:.3f}, {facts.get('verdict', '')}"
    else:
        words = f"{facts.get('verdict', '')} {facts.get('reason', '')}"
    return {
        "kind": str(facts.get("kind", "")),
        "relation": str(facts.get("relation", "")),
        "severity": facts.get("severity", 0),
        "address": str(facts.get("address", "")),
        "words": words.strip(),
        "alt": f"{facts.get('relation', '')}: source, follow-up, expected mask, answers before and after",
    }


def comparison_html(
    materials: Sequence[Material], links: Sequence[str], series: Sequence[Mapping[str, Any]] = ()
) -> str:
    """Return the page that sets several systems of one run side by side.

    Args:
        materials: One for each system.
        links: Address of each system's report, relative to the page.
        series: What :func:`medtest.report.series.sections_of` gave, for suites of series.
    """
    first = materials[0]
    rates = [Rates(material.tables.efr) for material in materials]
    primary = criterion_keys(first)
    return render(
        "comparison.html.j2",
        {
            "suite": first.wanted.suite,
            "version": first.wanted.version,
            "description": first.wanted.description,
            "phantom": phantom_words(first),
            "criterion_words": criterion_words(first),
            "mean_name": "mean " + score_words(sections.curve_score(first)),
            "systems": [
                _system_line(material, rate, link) for material, rate, link in zip(materials, rates, links, strict=True)
            ],
            "heats": sections.comparison_heats(materials, rates, primary),
            "series": series,
            "curves": sections.comparison_curves(materials),
            "curve_legend": [
                (material.system, figures.SERIES[number % len(figures.SERIES)])
                for number, material in enumerate(materials)
            ],
            "medtest": medtest.__version__,
        },
    )


def _system_line(material: Material, rates: Rates, link: str) -> dict[str, Any]:
    row = rates.get(relation=efr.OVERALL, **criterion_keys(material))
    results = material.tables.gates
    held = sum(result.held for result in results)
    return {
        "name": material.system,
        "trained_on": ", ".join(material.wanted.trained_on),
        "partial": f"partial: {material.partial}" if material.partial else "",
        "efr": percent(row["efr_percent"]) if row is not None else "none",
        "range": interval(row) if row is not None else "",
        "counts": f"{row['violations']:,} of {row['cases']:,}" if row is not None else "",
        "errors": f"{row['errors']:,}" if row is not None else "",
        "skipped": f"{row['skipped']:,}" if row is not None else "",
        "source_failed": f"{row['source_failed']:,}" if row is not None else "",
        "mean": sections.mean_on_sources(material),
        "gates": f"{held} of {len(results)} held" if results else "none set",
        "link": link,
    }
