"""What MLflow is told of a system: metrics by fixed names, tags to search by, tables and files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import medtest
from medtest.oracles import criteria
from medtest.report.heat import limit_of
from medtest.report.material import SAMPLES, Material, picture_of, sample_index
from medtest.report.words import robustness_against
from medtest.results import answer_flips, efr
from medtest.results.flips import AUTO
from medtest.results.tables import FOLDER, SEED_FACTS, overall_row
from medtest.tracking import Child, Picture, flat_params

if TYPE_CHECKING:
    import pandas as pd

_SHORT = 12


def metrics(material: Material) -> dict[str, float]:
    """Return the metrics of one system.

    ``efr/<score>/t<t>/<s1 … s5|all>/<relation|overall|overall_cells>`` in percent (``efr/label/…``, which has no
    threshold), over all data sets and against the primary reference (rules like ``both`` over all severities only); for
    the primary criterion also ``ci_low/…`` and ``ci_high/…`` of the pools, then counts, mean scores, gates, (α,σ).
    """
    table, primary = material.tables.efr, material.wanted.primary
    found: dict[str, float] = {}
    for row in table.to_dict("records"):
        if row["dataset"] != efr.ALL or row["against"] != primary.against or not row["cases"]:
            continue
        rule = row["score"] in criteria.RULES and row["score"] != primary.score
        if row["severity"] == "0" or (rule and row["severity"] != efr.ALL):
            continue
        own = row["score"] == primary.score and limit_of(row) == primary.threshold
        name = f"{metric_name(row['score'], limit_of(row))}/{level_name(str(row['severity']))}/{row['relation']}"
        found[f"efr/{name}"] = float(row["efr_percent"])
        if own and row["relation"] in {efr.OVERALL, efr.OVERALL_CELLS} and row["severity"] == efr.ALL:
            found[f"ci_low/{name}"] = float(row["ci_low"])
            found[f"ci_high/{name}"] = float(row["ci_high"])
    # the UI opens comparisons with the first metric: let it be the headline
    head = f"efr/{metric_name(primary.score, primary.threshold)}/{efr.ALL}/{efr.OVERALL}"
    found = {**({head: found[head]} if head in found else {}), **found}
    found |= _counts(material) | _scores(material) | _robustness(material)
    return found | _labels(material) | _answers(material)


def metric_name(score: str, threshold: float) -> str:
    """Return score and threshold as metrics name them: ``dice/t0.25``, ``label``."""
    return score if score in criteria.NO_THRESHOLD else f"{score}/t{threshold:g}"


def level_name(severity: str) -> str:
    """Return a severity as metrics name it: ``s3`` or ``all``."""
    return severity if severity == efr.ALL else f"s{severity}"


def _counts(material: Material) -> dict[str, float]:
    primary = material.wanted.primary
    row = overall_row(material.tables.efr, score=primary.score, threshold=primary.threshold, against=primary.against)
    found: dict[str, float] = {}
    if row is not None:
        for name in ("generated", "cases", "violations", "errors", "skipped", "source_failed"):
            found[f"count/{name}"] = float(row[name])
    if material.tables.excluded is not None:
        found["count/excluded"] = float(material.tables.excluded.cases)
    gates = material.tables.gates
    if gates:
        found["gates/set"] = float(len(gates))
        found["gates/held"] = float(sum(result.held for result in gates))
    return found


def _scores(material: Material) -> dict[str, float]:
    seeds = material.tables.seeds
    names = [name for name in seeds.columns if name not in SEED_FACTS and seeds[name].notna().any()]
    return {f"source/{name}": float(seeds[name].mean()) for name in names}


def _robustness(material: Material) -> dict[str, float]:
    score = criteria.components(material.wanted.primary.score)[0]
    against = robustness_against(material)
    found: dict[str, float] = {}
    for row in material.tables.alpha_sigma.to_dict("records"):
        chosen = (row["dataset"], row["score"], row["against"]) == (efr.ALL, score, against)
        if chosen and row["seeds"]:
            found[f"alpha/{score}/{row['relation']}"] = float(row["alpha"])
            found[f"sigma/{score}/{row['relation']}"] = float(row["sigma"])
    return found


def _labels(material: Material) -> dict[str, float]:
    """Return accuracy and its kin by relation and flip probabilities by difficulty, fractions, for classifiers."""
    labels = material.tables.labels
    found: dict[str, float] = {}
    if labels is None:
        return found
    for row in labels.classification.to_dict("records"):
        if (row["dataset"], row["severity"]) == (efr.ALL, efr.ALL):
            for name in ("accuracy", "kappa", "f1", "auroc"):
                if row[name] == row[name]:
                    found[f"{name}/{row['relation']}"] = float(row[name])
    for row in labels.flips.to_dict("records"):
        if (row["dataset"], row["rule"]) == (efr.ALL, AUTO) and row["fp"] == row["fp"]:
            found[f"flip_probability/{level_name(str(row['severity']))}/{row['relation']}"] = float(row["fp"])
    return found


def _answers(material: Material) -> dict[str, float]:
    """Return accuracy by question, flips net of asking again, refusals and cost, of systems that answer questions."""
    answers = material.tables.answers
    found: dict[str, float] = {}
    if answers is None:
        return found
    for row in answers.accuracy.to_dict("records"):
        for metric, column in (("accuracy", "source"), ("accuracy_perturbed", "perturbed")):
            if row[column] == row[column]:
                found[f"{metric}/{_plain(str(row['item']))}"] = float(row[column])
    for row in answers.flips.to_dict("records"):
        pool = row["item"] == answer_flips.ALL or row["relation"] == answer_flips.OVERALL
        if pool and row["cases"]:
            name = f"{row['item']}/{row['relation']}"
            found[f"flips/{name}"] = float(row["rate"])
            if row["net"] == row["net"]:
                found[f"flips_net/{name}"] = float(row["net"])
    for row in answers.states.to_dict("records"):
        if row["item"] == answer_flips.ALL and row["refusal_rate"] == row["refusal_rate"]:
            found[f"refusals/{row['relation']}"] = float(row["refusal_rate"])
            found[f"unparsed/{row['relation']}"] = float(row["unparsed"])
            if answers.judge:
                found[f"read_by_judge/{row['relation']}"] = float(row["by_judge"])
    for row in answers.costs.to_dict("records")[:1]:
        names = ("cost_usd", "prompt_tokens", "completion_tokens", "seconds_median", "seconds_p95", "attempts")
        found |= {f"cost/{name}": float(row[name]) for name in names if row[name] == row[name]}
    if answers.judge_cost_usd is not None:
        found["cost/judge_usd"] = answers.judge_cost_usd
    return found


def _plain(item: str) -> str:
    """Return a question, or an average over questions, as metrics name it."""
    return item.replace(" ", "_")


def tags(material: Material) -> dict[str, str]:
    """Return the tags of one system's run."""
    wanted, results = material.wanted, material.tables.gates
    gates = "none" if not results else "held" if all(result.held for result in results) else "not held"
    finished, planned = material.run.get("cases_finished", ""), material.run.get("cases_planned", "")
    primary = wanted.primary
    found = {
        "suite": wanted.suite,
        "suite_version": wanted.version,
        "system": material.system,
        "digest": str(material.run.get("digest", "")),
        "view": material.view or "suite",
        "judge": "" if material.tables.answers is None else material.tables.answers.judge,
        "criterion": f"{criteria.criterion_name(primary.score, primary.threshold)} against {primary.against}",
        "datasets": ", ".join(material.tables.counts.seeds),
        "seeds": "phantoms" if wanted.phantom else "images",
        "simulated": str(material.simulated).lower(),
        "trained_on": ", ".join(wanted.trained_on),
        "gates": gates,
        "cases": f"partial, {finished} of {planned}" if material.partial else "whole",
        "device": str(material.run.get("device", "")),
        "code_version": medtest.__version__,
    }
    row = overall_row(material.tables.efr, score=primary.score, threshold=primary.threshold, against=primary.against)
    simulated = "**Simulated**, no product: " if material.simulated else ""
    if row is not None and row["cases"]:
        found["mlflow.note.content"] = (
            f"{simulated}**{material.system}** under **{wanted.suite} {wanted.version}**: "
            f"EFR {row['efr_percent']:.2f} % ({row['ci_low']:.2f} to {row['ci_high']:.2f}), {row['violations']} "
            f"violations of {row['cases']} cases, "
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
    covers: Mapping[str, Any] = material.run.get("covers") or {}
    digest = str(material.run.get("digest", ""))
    suffix = f" [{material.view[:_SHORT]}]" if material.view else ""
    seeds = material.tables.seeds
    return Child(
        name=f"{material.system}{suffix}",
        run_id=run_id,
        params={"digest": digest, **flat_params(covers)},
        tags=tags(material),
        metrics=metrics(material),
        tables={f"tables/{Path(name).stem}.json": frame for name, frame in _shown(material).items()},
        seeds=_identity(seeds) if not seeds.empty else None,
        seeds_name=f"{material.wanted.suite}-seeds",
        seeds_digest=_seeds_digest(covers),
        pictures=_pictures(material),
        artifacts=_files(material.folder, target),
        ended_well=ended_well,
    )


def _identity(seeds: pd.DataFrame) -> pd.DataFrame:
    """Return what names the seeds, without what a system scored on them: one data set for all systems."""
    names = [name for name in ("dataset", "seed_id", "cluster", "source_sha256") if name in seeds.columns]
    return seeds[names]


def _seeds_digest(covers: Mapping[str, Any]) -> str:
    """Return one short digest over all seed sources, the same for every system that saw the same seeds."""
    from medtest.suite.digest import digest_of

    return digest_of({"seed": covers.get("seed"), "seeds": covers.get("seeds")})


def _shown(material: Material) -> dict[str, Any]:
    """Return the tables that the UI shows; the long ones cut to what a person reads there."""
    frames = material.tables.frames()
    primary = material.wanted.primary
    rates = frames["efr.csv"]
    own = efr.of_criterion(rates, primary.score, primary.threshold) & (rates["against"] == primary.against).to_numpy()
    return {
        **{name: frame for name, frame in frames.items() if name not in {"seeds.csv", "severity.csv"}},
        "efr.csv": rates,
        "efr_primary.csv": rates.loc[own],
    }


def _pictures(material: Material) -> list[Picture]:
    if material.wanted.images == "none":
        return []
    numbers: dict[str, int] = {}
    pictures = []
    for entry in sample_index(material.folder):
        path = picture_of(material.folder, entry)
        if path is None:
            continue
        kind = str(entry.get("kind", "sample"))
        step = numbers.get(kind, 0)
        numbers[kind] = step + 1
        pictures.append(Picture(key=f"samples/{kind}", step=step, path=path))
    return pictures


def _files(folder: Path, target: Path) -> list[tuple[Path, str]]:
    """Return the files of the results contract and where each goes among the artifacts."""
    files = [(target / "report.html", ""), (target / "suite.yaml", ""), (folder / "records.parquet", "")]
    files += [(path, FOLDER) for path in sorted((target / FOLDER).glob("*.csv"))]
    files += [(path, SAMPLES) for path in sorted((folder / SAMPLES).glob("*")) if path.is_file()]
    return files
