"""A system's results for MLflow: metrics under fixed names, search tags, tables and files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from medtest.core import __version__
from medtest.core.deferred import pd
from medtest.core.files.written import written_in
from medtest.core.oracles import criteria
from medtest.report.charts.reliance import PICTURE
from medtest.report.ci import JUNIT, RESULT, SUMMARY
from medtest.report.mlflow.headline import Headline, headline_of
from medtest.report.pages.material import INSIDE, SAMPLES, Material, picture_of, sample_index
from medtest.report.pages.words import run_name, violations_of
from medtest.report.tracking import Child, flat_params
from medtest.report.tracking.runs_page import GATE, HEADLINE, SUITE
from medtest.results.gating.gate_log import FILE as GATES
from medtest.results.rates import efr
from medtest.results.records.wanted import RUN_FILE
from medtest.results.tables import FOLDER
from medtest.runner.folder import MANIFEST
from medtest.runner.records.case_set import FILE as CASES

MOST = 40
"""Maximum number of metrics of a run."""


def metrics(material: Material, head: Headline) -> dict[str, float | dict[int, float]]:
    """Return the metrics of one system, at most 40; all other figures are in its tables.

    They are the headline; ``efr/<relation>`` under the primary criterion over all data sets, in percent, with the
    severity as step (0 if a relation has none), worst relations first if space is short; and the cost of a model over
    an API.
    """
    cost = material.tables.own.metrics()
    curves = _curves(material)
    worst = sorted(curves, key=lambda name: -max(curves[name].values()))[: MOST - len(HEADLINE) - len(cost)]
    rates = {f"efr/{name}": values for name, values in curves.items() if name in set(worst)}
    return {**head.metrics, **rates, **cost}


def _curves(material: Material) -> dict[str, dict[int, float]]:
    """Return the rate of each relation by severity."""
    rates = material.rates
    curves: dict[str, dict[int, float]] = {}
    for name in rates.changing:
        rows = {level: material.row(name, severity=level) for level in rates.severities}
        curve = {
            int(level): float(row["efr_percent"]) for level, row in rows.items() if row is not None and row["cases"]
        }
        if curve:
            curves[name] = curve
    return curves


def tags(material: Material, head: Headline) -> dict[str, str]:
    """Return the tags of one system's run."""
    suite, gates = material.wanted, head.tags[GATE]
    finished, planned = material.run.get("cases_finished", ""), material.run.get("cases_planned", "")
    primary = suite.primary
    run_tags = {
        "suite": suite.suite,
        "suite_version": suite.version,
        "system": material.system,
        "digest": str(material.run.get("digest", "")),
        "view": material.view or "suite",
        "judge": material.tables.own.reader,
        "criterion": f"{criteria.criterion_name(primary.score, primary.threshold)} against {primary.against}",
        "datasets": ", ".join(material.tables.counts.seeds),
        "seeds": "phantoms" if suite.phantom else "images",
        "simulated": str(material.simulated).lower(),
        "trained_on": ", ".join(suite.trained_on),
        **head.tags,
        **{f"model_{key}": str(value) for key, value in (material.run.get("model") or {}).items()},
        "finished": str(material.run.get("finished_at", "")),
        "cases": f"partial, {material.coverage or f'{finished} of {planned}'}" if material.partial else "whole",
        "device": str(material.run.get("device", "")),
        "code_version": __version__,
    }
    row = material.row()
    simulated = "**Simulated** (not a product): " if material.simulated else ""
    if row is not None and row["cases"]:
        run_tags["mlflow.note.content"] = (
            f"{simulated}**{material.system}** under **{suite.suite} {suite.version}**: "
            f"error-finding rate (EFR) {row['efr_percent']:.2f} % ({row['ci_low']:.2f} to {row['ci_high']:.2f}), "
            f"{violations_of(row)}, "
            f"{criteria.criterion_name(primary.score, primary.threshold)} against {primary.against}. Gates: {gates}. "
            "See `report.html` under Artifacts."
        )
    return {key: value for key, value in run_tags.items() if value}


def child_of(material: Material, *, run_id: str | None, ended_well: bool) -> Child:
    """Return the MLflow child run of one system.

    Args:
        material: The system's material.
        run_id: Run written by an earlier invocation, if any.
        ended_well: Whether the run ended well.
    """
    name = run_name(material)
    head = headline_of(material, name)
    covers: Mapping[str, Any] = material.run.get("covers") or {}
    digest = str(material.run.get("digest", ""))
    seeds = material.tables.seeds
    return Child(
        name=name,
        run_id=run_id,
        params={SUITE: material.wanted.suite, "digest": digest, **flat_params(covers)},
        tags=tags(material, head),
        metrics=metrics(material, head),
        tables={f"tables/{Path(name).stem}.json": frame for name, frame in _shown(material).items()},
        seeds=_identity(seeds) if not seeds.empty else None,
        seeds_name=f"{material.wanted.suite}-seeds",
        seeds_digest=_seeds_digest(covers, material.view if material.asked is not None else ""),
        pictures=_pictures(material),
        artifacts=_opened(material),
        archived=_archived(material),
        ended_well=ended_well,
        model_id=str((material.run.get("model") or {}).get("logged", "")),
    )


def _identity(seeds: pd.DataFrame) -> pd.DataFrame:
    """Return the columns that identify the seeds, without scores, so that all systems share one data set."""
    names = [name for name in ("dataset", "seed_id", "cluster", "source_sha256") if name in seeds.columns]
    return seeds[names]


def _seeds_digest(covers: Mapping[str, Any], view: str) -> str:
    """Return one short digest over all seed sources, the same for every system that used the same seeds.

    Args:
        covers: Content covered by the run's digest.
        view: Digest of the view if it has only some of the cases, else "".
    """
    from medtest.suite.digest import digest_of

    return digest_of({"seed": covers.get("seed"), "seeds": covers.get("seeds"), **({"view": view} if view else {})})


def _shown(material: Material) -> dict[str, Any]:
    """Return the tables shown on MLflow's pages: all rates, those of the primary criterion, failing slices."""
    rates = material.tables.efr
    own = efr.of_criterion(rates, material.wanted.primary)
    further = {"slices.csv": material.tables.slices.frame, "reliance.csv": material.tables.reliance}
    shown = {name: frame for name, frame in further.items() if not frame.empty}
    return {"efr.csv": rates, "efr_primary.csv": rates.loc[own], **shown}


def _pictures(material: Material) -> list[tuple[str, Path]]:
    if material.wanted.images == "none":
        return []
    entries = [(entry, picture_of(material.strips, entry)) for entry in sample_index(material.strips)]
    kinds = [(str(entry.get("kind", "sample")), path) for entry, path in entries if path is not None]
    return [(f"samples/{kind}", path) for kind, path in kinds]


def _opened(material: Material) -> list[tuple[Path, str]]:
    """Return the files logged one by one, for people and for ``medtest compare``.

    A view of some of the cases lists these; its records are those of the folder.
    """
    folder, target = material.folder, material.target
    records = folder / "records.parquet" if material.asked is None else target / CASES
    files = [target / "report.html", target / "suite.yaml", records, target / RUN_FILE]
    files += [target / PICTURE] if not material.tables.reliance.empty and (target / PICTURE).is_file() else []
    return [(file, "") for file in files]


def _archived(material: Material) -> list[tuple[Path, str]]:
    """Return all other files of the results contract, with the place of each in the archive."""
    folder, target = material.folder, material.target
    files = [(folder / GATES, ""), (folder / MANIFEST, "")]
    files += [(target / name, "") for name in (SUMMARY, RESULT, JUNIT)]
    files += [(path, FOLDER) for path in written_in(target / FOLDER) if path.suffix == ".csv"]
    shown = dict.fromkeys((material.strips, target))
    files += [(path, SAMPLES) for parent in shown for path in written_in(parent / SAMPLES)]
    files += [(path, INSIDE) for path in written_in(folder / INSIDE)]
    return files
