"""What MLflow is told of a system: metrics by fixed names, tags to search by, tables and files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtest.core.cases import UNCHANGED
from medtest.core.files.written import written_in
from medtest.core.oracles import criteria
from medtest.core.version import __version__
from medtest.report.charts.heat import EfrRows
from medtest.report.ci import JUNIT, RESULT, SUMMARY
from medtest.report.mlflow.headline import Headline, headline_of
from medtest.report.pages.material import INSIDE, SAMPLES, Material, picture_of, sample_index
from medtest.report.pages.words import criterion_keys, run_name, violations_of
from medtest.report.tracking import Child, LoggedPicture, flat_params
from medtest.report.tracking.runs_page import GATE, HEADLINE, SUITE
from medtest.results.gating.gate_log import FILE as GATES
from medtest.results.rates import efr
from medtest.results.records.wanted import RUN_FILE
from medtest.results.tables import FOLDER, overall_row
from medtest.runner.folder import MANIFEST
from medtest.runner.records.case_set import FILE as CASES

if TYPE_CHECKING:
    import pandas as pd

MOST = 40
"""Metrics of a run: more than that nobody finds anything among."""


def metrics(material: Material, head: Headline) -> dict[str, float | dict[int, float]]:
    """Return the metrics of one system, 40 at most: all other figures stand in its tables.

    The headline; ``efr/<relation>`` under the primary criterion over all data sets, in percent, a value for each
    severity (its step; 0 where a relation has none), the worst relations first where there are more than there is room
    for; what a model over an API cost.
    """
    cost = material.tables.own.metrics()
    curves = _curves(material)
    worst = sorted(curves, key=lambda name: -max(curves[name].values()))[: MOST - len(HEADLINE) - len(cost)]
    kept = {f"efr/{name}": values for name, values in curves.items() if name in set(worst)}
    return {**head.metrics, **kept, **cost}


def _curves(material: Material) -> dict[str, dict[int, float]]:
    """Return the rate of each relation by severity."""
    rates, primary = EfrRows(material.tables.efr), criterion_keys(material)
    found: dict[str, dict[int, float]] = {}
    for name in rates.plain_relations:
        if name == UNCHANGED:
            continue
        rows = {level: rates.get(relation=name, severity=level, **primary) for level in rates.severities}
        known = {
            int(level): float(row["efr_percent"]) for level, row in rows.items() if row is not None and row["cases"]
        }
        if known:
            found[name] = known
    return found


def tags(material: Material, head: Headline) -> dict[str, str]:
    """Return the tags of one system's run."""
    wanted, gates = material.wanted, head.tags[GATE]
    finished, planned = material.run.get("cases_finished", ""), material.run.get("cases_planned", "")
    primary = wanted.primary
    found = {
        "suite": wanted.suite,
        "suite_version": wanted.version,
        "system": material.system,
        "digest": str(material.run.get("digest", "")),
        "view": material.view or "suite",
        "judge": material.tables.own.reader,
        "criterion": f"{criteria.criterion_name(primary.score, primary.threshold)} against {primary.against}",
        "datasets": ", ".join(material.tables.counts.seeds),
        "seeds": "phantoms" if wanted.phantom else "images",
        "simulated": str(material.simulated).lower(),
        "trained_on": ", ".join(wanted.trained_on),
        **head.tags,
        **{f"model_{key}": str(value) for key, value in (material.run.get("model") or {}).items()},
        "finished": str(material.run.get("finished_at", "")),
        "cases": f"partial, {material.coverage or f'{finished} of {planned}'}" if material.partial else "whole",
        "device": str(material.run.get("device", "")),
        "code_version": __version__,
    }
    row = overall_row(material.tables.efr, score=primary.score, threshold=primary.threshold, against=primary.against)
    simulated = "**Simulated**, no product: " if material.simulated else ""
    if row is not None and row["cases"]:
        violations = violations_of({"violations": row["violations"], "cases": row["cases"]})
        found["mlflow.note.content"] = (
            f"{simulated}**{material.system}** under **{wanted.suite} {wanted.version}**: "
            f"EFR {row['efr_percent']:.2f} % ({row['ci_low']:.2f} to {row['ci_high']:.2f}), {violations}, "
            f"{criteria.criterion_name(primary.score, primary.threshold)} against {primary.against}. Gates: {gates}. "
            "See `report.html` under Artifacts."
        )
    return {key: value for key, value in found.items() if value}


def child_of(material: Material, target: Path, *, run_id: str | None, ended_well: bool) -> Child:
    """Return what MLflow holds of one system.

    Args:
        material: The system's material.
        target: Folder with its tables and report: the run's own, or a view's.
        run_id: The run that an earlier invocation wrote.
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
    """Return what names the seeds, without what a system scored on them: one data set for all systems."""
    names = [name for name in ("dataset", "seed_id", "cluster", "source_sha256") if name in seeds.columns]
    return seeds[names]


def _seeds_digest(covers: Mapping[str, Any], view: str) -> str:
    """Return one short digest over all seed sources, the same for every system that saw the same seeds.

    Args:
        covers: What the run's digest covers.
        view: Digest of the view where it is of some of the cases, else "".
    """
    from medtest.suite.digest import digest_of

    return digest_of({"seed": covers.get("seed"), "seeds": covers.get("seeds"), **({"view": view} if view else {})})


def _shown(material: Material) -> dict[str, Any]:
    """Return the tables that MLflow's pages show as such: all rates, and those of the primary criterion."""
    primary = material.wanted.primary
    rates = material.tables.efr
    own = efr.of_criterion(rates, primary.score, primary.threshold) & (rates["against"] == primary.against).to_numpy()
    return {"efr.csv": rates, "efr_primary.csv": rates.loc[own]}


def _pictures(material: Material) -> list[LoggedPicture]:
    if material.wanted.images == "none":
        return []
    entries = [(entry, picture_of(material.strips, entry)) for entry in sample_index(material.strips)]
    kinds = [(str(entry.get("kind", "sample")), path) for entry, path in entries if path is not None]
    return [LoggedPicture(key=f"samples/{kind}", path=path) for kind, path in kinds]


def _opened(material: Material) -> list[tuple[Path, str]]:
    """Return the files that people and ``medtest compare`` open one by one.

    A view of some of the cases names these; its records are those of the folder.
    """
    folder, target = material.folder, material.target
    records = folder / "records.parquet" if material.asked is None else target / CASES
    return [(target / "report.html", ""), (target / "suite.yaml", ""), (records, ""), (target / RUN_FILE, "")]


def _archived(material: Material) -> list[tuple[Path, str]]:
    """Return all other files of the results contract and where each lies in the archive."""
    folder, target = material.folder, material.target
    files = [(folder / GATES, ""), (folder / MANIFEST, "")]
    files += [(target / name, "") for name in (SUMMARY, RESULT, JUNIT)]
    files += [(path, FOLDER) for path in written_in(target / FOLDER) if path.suffix == ".csv"]
    shown = dict.fromkeys((material.strips, target))
    files += [(path, SAMPLES) for one in shown for path in written_in(one / SAMPLES)]
    files += [(path, INSIDE) for path in written_in(folder / INSIDE)]
    return files
