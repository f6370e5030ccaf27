"""The folder of a finished run with records, run.json, suite.yaml and sample strips, for tests of reports."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import yaml
from PIL import Image
from records_maker import RELATIONS, make_records, write_records

from medtest.core.plugins import part
from medtest.runner.folder import FORMAT
from medtest.runner.reporting.outcome import RunOutcome, SystemOutcome
from medtest.suite.digest import digest_of
from medtest.suite.model import Criterion, Gate, Invocation, OraclePlan, PartPlan, Privacy, Suite

SHA = "ab" * 32


def make_suite(*, gates: tuple[Gate, ...] = (), images: str = "samples", description: str = "numbers") -> Suite:
    """Return a suite whose parts exist and whose records are made by ``records_maker``."""
    oracle = part("oracles", "masks")
    source = part("seeds", "phantoms")
    system = part("systems", "callable")
    primary = Criterion()
    composed = {
        "name": "synthetic",
        "version": "1",
        "description": description,
        "seeds": {"phantoms": {"source": "phantoms"}},
        "relations": {name: {"relation": name} for name in RELATIONS},
        "systems": {"alpha": {"use": "callable"}},
        "oracles": {
            "oracle": "masks",
            "primary": {"score": primary.score, "threshold": primary.threshold, "against": primary.against},
            "scores": ["dice", "iou"],
            "thresholds": [0.25, 0.5],
            "against": ["truth", "source"],
        },
    }
    return Suite(
        name="synthetic",
        version="1",
        description=description,
        seed=1,
        seeds=(PartPlan(id="phantoms", info=source, settings=None),),
        relations=tuple(PartPlan(id=name, info=part("relations", name), settings=None) for name in RELATIONS),
        systems=tuple(PartPlan(id=name, info=system, settings=None) for name in ("alpha", "beta")),
        oracle=OraclePlan(
            part=PartPlan(id="masks", info=oracle, settings=oracle.load().Settings()),
            primary=primary,
            scores=("dice", "iou"),
            thresholds=(0.25, 0.5),
            against=("truth", "source"),
        ),
        gates=gates,
        privacy=Privacy(images=images),
        composed=composed,
    )


def leave_run(
    home: Path,
    suite: Suite,
    systems: tuple[str, ...] = ("alpha",),
    *,
    seeds: int = 14,
    finished: int | None = None,
    error_percent: float = 0.0,
    reason: str = "",
) -> RunOutcome:
    """Write what the runner writes for each system, and return its outcome."""
    outcomes = []
    for number, system in enumerate(systems):
        covers = {
            "seed": 1,
            "seeds": {"phantoms": {"source": "phantoms", "digest": SHA}},
            "relations": {name: {"relation": name} for name in RELATIONS},
            "system": {"class": "x:Y", "fingerprint": {"weights_sha256": f"{number}" * 64}},
        }
        digest = digest_of(covers)
        folder = home / "outputs" / suite.name / system / digest
        frame = make_records(seeds=seeds, random=number)
        frame["system"] = system
        if reason:
            frame.loc[frame.verdict == "ERROR", "reason"] = reason
        write_records(frame, folder)
        (folder / "suite.yaml").write_text(yaml.safe_dump(dict(suite.composed), sort_keys=False))
        total = len(frame)
        run = {
            "format": FORMAT,
            "suite": suite.name,
            "suite_version": suite.version,
            "system": system,
            "digest": digest,
            "covers": covers,
            "finished_at": "2026-01-01T00:00:00Z",
            "cases_finished": total if finished is None else finished,
            "cases_planned": total,
            "error_percent": error_percent,
            "device": "cpu",
            "versions": {"medtest": "0.1.0"},
            "mlflow_run_id": None,
        }
        (folder / "run.json").write_text(json.dumps(run))
        leave_samples(folder)
        outcomes.append(
            SystemOutcome(
                system=system,
                record_name=system,
                folder=folder,
                digest=digest,
                counts={},
                cases_executed=total,
                cases_reused=0,
                reused_from="",
                finished=total if finished is None else finished,
                planned=total,
                error_percent=error_percent,
            )
        )
    return RunOutcome(systems=tuple(outcomes))


def leave_samples(folder: Path) -> None:
    """Write two strips and their index."""
    (folder / "samples").mkdir(exist_ok=True)
    entries = []
    for kind in ("worst", "median"):
        picture = np.random.default_rng(len(kind)).integers(0, 255, (90, 400, 3)).astype(np.uint8)
        Image.fromarray(picture).save(folder / "samples" / f"{kind}.png")
        entries.append(
            {
                "kind": kind,
                "file": f"{kind}.png",
                "relation": "blur",
                "severity": 3,
                "score_name": "dice",
                "source_score": 0.9,
                "score": 0.2,
                "verdict": "FAIL",
                "address": "phantoms/seed00001/blur_s3_f0_r0",
            }
        )
    (folder / "samples" / "index.json").write_text(json.dumps(entries))


def invocation(home: Path, **options: object) -> Invocation:
    """Return an invocation that does not track by default."""
    return Invocation(home=home, **{"track": False, "command": "python run.py suite=synthetic", **options})  # type: ignore[arg-type]
