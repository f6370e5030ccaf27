"""Content of the evidence document, chapter by chapter, from finished runs."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from medtest.core import __version__
from medtest.core.cases import UNCHANGED
from medtest.core.errors import MedtestError
from medtest.core.plugins import parts
from medtest.evidence.reading import RunEvidence
from medtest.evidence.trace import set_words, trace_rows, untied
from medtest.report.charts.heat import interval, percent
from medtest.report.pages.intervals import legend, short_words
from medtest.report.pages.page import report_page
from medtest.report.pages.words import cluster_word, model_words, scale_words
from medtest.results.rates import efr
from medtest.runner.folder import utc_now
from medtest.suite.checking.editors.settings import plain_text

SOURCES = (
    "Metamorphic testing: T. Y. Chen et al., “Metamorphic Testing: A Review of Challenges and Opportunities”, ACM "
    "Computing Surveys 51(1), 2018, doi:10.1145/3143561.",
    "Wilson's interval: E. B. Wilson, “Probable Inference, the Law of Succession, and Statistical Inference”, Journal "
    "of the American Statistical Association 22, 209–212, 1927, doi:10.1080/01621459.1927.10502953.",
    "Bootstrap over clusters: A. C. Davison and D. V. Hinkley, “Bootstrap Methods and their Application”, Cambridge "
    "University Press, 1997, section 3.8, doi:10.1017/CBO9780511802843.",
)
"""References of the methods of every suite; relations name theirs."""
CHAPTERS = (
    ("scope", "Intended use and scope"),
    ("systems", "Systems under test"),
    ("data", "Data: provenance and factors"),
    ("methods", "Methods and their sources"),
    ("acceptance", "Acceptance criteria"),
    ("results", "Results"),
    ("trace", "Traceability"),
    ("deviations", "Deviations"),
    ("limits", "Limits"),
    ("software", "Software"),
    ("files", "Index of files"),
    ("signatures", "Signatures"),
)
"""Chapters of the document, in order: anchor and title."""
SIGNED_BY = ("Prepared by", "Reviewed by", "Approved by")
_STRIPS = 3


def document(
    runs: Sequence[RunEvidence], *, packages: Mapping[str, str], files: Sequence[tuple[str, Sequence[tuple[str, str]]]]
) -> dict[str, Any]:
    """Return the data of the document's template.

    Args:
        runs: The runs.
        packages: Versions of software, from :func:`medtest.evidence.software.packages_of`.
        files: Folder of each run, relative to the document, with names and SHA-256 of its files.
    """
    return {
        "title": ", ".join(dict.fromkeys(run.name for run in runs)),
        "made_at": utc_now(),
        "medtest": __version__,
        "chapters": [(number, name, title) for number, (name, title) in enumerate(CHAPTERS, start=1)],
        "runs": [_run(run) for run in runs],
        "trace": [row for run in runs for row in trace_rows(run)],
        "untied": [(run.name, names) for run in runs if (names := untied(run))],
        "sources": SOURCES,
        "packages": packages,
        "files": files,
        "signed_by": SIGNED_BY,
    }


def _run(run: RunEvidence) -> dict[str, Any]:
    material, page = run.material, report_page(run.material)
    held = [gate["held"] for gate in page["gates"]]
    return {
        "name": run.name,
        "intended_use": str(run.composed.get("intended_use") or ""),
        "description": material.wanted.description,
        "facts": page["facts"],
        "verdict": "" if not held else "Every gate passed." if all(held) else "Not every gate passed.",
        "held": all(held),
        "caution": run.caution,
        "system": _system(run),
        "data": list(_data(run)),
        "factors": list(_factors(run)),
        "criterion": page["criterion_words"],
        "relations": list(_relations(run)),
        "seed": run.composed["seed"],
        "gates": list(_gates(run, page["gates"])),
        "set": set_words(run),
        "rates": list(_rates(run)),
        "intervals": legend([str(row["ci_method"]) for row in _shown(run)], cluster_word(material)),
        "cards": page["cards"][:3],
        "strips": page["strips"][:_STRIPS],
        "deviations": list(run.deviations()),
        "limits": [text for key in ("phantom", "simulated", "excluded", "view") if (text := _limit(key, page[key]))],
        "trained_on": ", ".join(material.wanted.trained_on),
    }


def _limit(key: str, words: str) -> str:
    if not words:
        return ""
    if key == "phantom":
        return f"The source images are synthetic ({words}). Rates on them are not clinical figures."
    return words


def _system(run: RunEvidence) -> list[tuple[str, str]]:
    """Return the facts that identify a system: name, files with their SHA-256, run."""
    material = run.material
    stated = material.run
    files = stated.get("covers", {}).get("system", {}).get("fingerprint")
    rows = [
        ("System", material.system),
        ("Part", str(stated.get("covers", {}).get("system", {}).get("system", stated.get("system_id", "")))),
        ("Model", model_words(material)),
        *((f"Fingerprint: {name}", str(value)) for name, value in (files.items() if isinstance(files, dict) else ())),
        ("Trained on", ", ".join(material.wanted.trained_on)),
        ("Digest of the run", str(stated.get("digest", ""))),
        ("Device", str(stated.get("device", ""))),
        ("Finished", str(stated.get("finished_at", ""))),
        ("Command", material.command),
    ]
    return [(name, value) for name, value in rows if value]


def _data(run: RunEvidence) -> Iterator[dict[str, str]]:
    """Yield a row for each data set: its source, settings, content and number of source cases."""
    covers, counts = run.material.run.get("covers", {}).get("seeds", {}), run.material.tables.counts
    for name, source in run.material.wanted.seeds.items():
        info, stated = parts("seeds").get(source), run.composed["seeds"].get(name, {})
        settings = {key: value for key, value in stated.items() if key != "source"}
        yield {
            "name": name,
            "source": f"{source}: {info.summary}" if info is not None else source,
            "settings": _settings(settings),
            "count": f"{counts.seeds.get(name, 0):,}",
            "digest": str(covers.get(name, {}).get("digest", "")),
        }


def _settings(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in settings.items() if not isinstance(value, dict))


def _factors(run: RunEvidence) -> Iterator[dict[str, str]]:
    """Yield a row for each quartile of each factor of the data, with the rate of violations in it."""
    rows: list[dict[Any, Any]] = run.material.tables.factors.to_dict("records")
    for row in rows:
        yield {
            "factor": str(row["factor"]).replace("_", " "),
            "unit": str(row["unit"]),
            "quartile": str(row["quartile"]),
            "range": f"{row['from']:.3g} to {row['to']:.3g}",
            "counts": f"{row['violations']:,} of {row['cases']:,}",
            "rate": percent(row["efr_percent"]),
            "interval": interval(row),
        }


def _relations(run: RunEvidence) -> Iterator[dict[str, str]]:
    for name, part in run.material.wanted.relations.items():
        settings = run.composed["relations"].get(name, {})
        levels = settings.get("severities")
        ties = run.ties(name)
        yield {
            "name": name,
            "part": part,
            "words": _described(part),
            "levels": ", ".join(str(level) for level in levels) if levels and name != UNCHANGED else "",
            "scale": scale_words(name, part),
            "rationale": ties.get("rationale", ""),
        }


def _described(part: str) -> str:
    """Return the first paragraph of the docstring of a relation's class, which names its source, or its summary."""
    info = parts("relations").get(part)
    if info is None:
        return "not installed here"
    try:
        words = inspect.getdoc(info.load()) or info.summary
    except MedtestError:
        return info.summary
    return plain_text(words.partition("\n\n")[0])


def _gates(run: RunEvidence, shown: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for result, row in zip(run.material.tables.gates, shown, strict=True):
        gate = result.gate
        bound = "upper end of the 95 % interval" if gate.bound == "ci_high" else "rate"
        yield {
            **row,
            "bound": f"{bound} at most {gate.max_percent:g} %",
            "requirement": gate.requirement or "",
            "hazard": gate.hazard or "",
            "rationale": gate.rationale or "",
            "acceptance": gate.acceptance or "",
        }


def _shown(run: RunEvidence) -> list[dict[Any, Any]]:
    """Return the rows of rates under the primary criterion: overall, then each relation and its severities."""
    material = run.material
    rows = []
    for name in (efr.OVERALL, *material.rates.plain_relations):
        whole = material.row(name)
        levels = [
            row
            for level in material.rates.severities
            if name not in (efr.OVERALL, UNCHANGED) and (row := material.row(name, severity=level)) is not None
        ]
        rows += [*([dict(whole)] if whole is not None else []), *(dict(row) for row in levels if len(levels) > 1)]
    return rows


def _rates(run: RunEvidence) -> Iterator[dict[str, Any]]:
    for row in _shown(run):
        whole = str(row["severity"]) == efr.ALL
        yield {
            "relation": "all relations" if row["relation"] == efr.OVERALL else str(row["relation"]).replace("_", " "),
            "severity": "all" if whole else str(row["severity"]),
            "whole": whole,
            "rate": percent(row["efr_percent"]) if row["cases"] else "none judged",
            "interval": interval(row),
            "method": short_words(str(row["ci_method"])),
            "counts": f"{row['violations']:,} of {row['cases']:,}",
            "lost": [f"{row[name]:,}" for name in ("errors", "skipped", "source_failed")],
        }
