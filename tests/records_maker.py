"""Records as a run would write them, from a small random model of a system; numbers only, no images."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from sealed_records import write_sealed

from medtest.core import records as contract
from medtest.core.oracles import criteria
from medtest.tasks.segment.oracle import Masks

RELATIONS = {
    "unchanged": ("floor", 0.0),
    "saturation": ("lighting", 0.02),
    "contrast": ("lighting", 0.05),
    "white_balance": ("lighting", 0.12),
    "blur": ("motion", 0.08),
    "instrument": ("objects", 0.06),
    "text": ("non_objects", 0.0),
}


def make_records(
    *,
    seeds: dict[str, int] | int = 30,
    severities: tuple[int, ...] = (1, 2, 3, 4, 5),
    clusters: int | None = None,
    labelled: bool = True,
    errors: float = 0.01,
    skips: float = 0.02,
    random: int = 0,
) -> pd.DataFrame:
    """Return a frame with the contract's columns.

    Args:
        seeds: Seeds of each data set.
        severities: Levels of every relation but ``unchanged``.
        clusters: Seeds share this many clusters a data set; None gives each its own.
        labelled: Whether there is an expected answer.
        errors: Fraction of ERROR cases.
        skips: Fraction of instrument cases without room.
        random: Seed of the random model.
    """
    rng = np.random.default_rng(random)
    counts = {"phantoms": seeds} if isinstance(seeds, int) else seeds
    rows: list[dict[str, object]] = []
    for dataset, number in counts.items():
        for index in range(number):
            rows += _rows_of_seed(rng, dataset, index, severities, clusters, labelled, errors, skips)
    schema = contract.schema(Masks.scores, Masks.self_scores, ("sex",))
    frame = pd.DataFrame(rows).reindex(columns=schema.names)
    return frame.assign(**{contract.ADDRESS: contract.addresses(frame)})


def _rows_of_seed(rng, dataset, index, severities, clusters, labelled, errors, skips):
    seed_id = f"seed{index:05d}"
    area = float(rng.uniform(0.01, 0.3))
    dice = 0.0 if rng.random() < 0.03 else float(np.clip(0.95 - 0.1 * rng.random() - 0.002 / area, 0, 1))
    weakness = float(rng.gamma(1.0, 1.0))
    common = {
        "suite": "synthetic",
        "suite_version": "1",
        "system": "model",
        "dataset": dataset,
        "seed_id": seed_id,
        "cluster": seed_id if clusters is None else f"patient{index % clusters:03d}",
        "item": "",
        "frame": 0,
        "repeat": 0,
        "params": "{}",
        "source_sha256": "0" * 64,
        "elapsed_ms": 1.0,
        "factor_polyp_area": area,
        "factor_polyp_count": float(rng.integers(1, 4)),
        "factor_polyp_distance": float(rng.uniform(0, 1)),
        "factor_brightness": float(rng.uniform(60, 160)),
        "factor_contrast": float(rng.uniform(20, 60)),
        "factor_visible_area": float(rng.uniform(0.6, 1)),
        "stratum_sex": str(rng.choice(["f", "m"])),
    }
    source_error = rng.random() < errors
    yield common | {
        "relation": "source",
        "group": "source",
        "severity": 0,
        "scale": 0.0,
        "verdict": "ERROR" if source_error else "PASS",
        "reason_code": "system_error" if source_error else "",
        "reason": "the system raised ValueError" if source_error else "",
        "followup_sha256": "0" * 64,
        **_scores(dice, dice, labelled, source_error, same=1.0),
    }
    for relation, (group, harm) in RELATIONS.items():
        for severity in (0,) if relation == "unchanged" else severities:
            loss = min(1.0, harm * severity * weakness * float(rng.uniform(0.2, 1.0)))
            after, same = max(0.0, dice * (1 - loss)), 1 - loss
            failed = rng.random() < errors
            no_room = relation == "instrument" and rng.random() < skips
            row = common | {"relation": relation, "group": group, "severity": severity, "scale": 2.0 * severity}
            row |= {"followup_sha256": "1" * 64}
            if relation == "instrument":
                row |= {"factor_object_area": 0.01 * severity, "factor_lesion_distance": float(rng.uniform(5, 90))}
            if no_room:
                row |= {
                    "verdict": "SKIP",
                    "reason_code": "not_applicable",
                    "reason": "no room",
                    "followup_sha256": None,
                }
                row |= {"scale": None, "factor_object_area": None, "factor_lesion_distance": None}
            elif failed:
                row |= {"verdict": "ERROR", "reason_code": "invalid_answer", "reason": "the system gave NaN"}
            else:
                row |= _scores(after, dice, labelled, source_error, same=same)
                against = "truth" if labelled else "source"
                verdict, reason = criteria.verdict(row, score="dice", threshold=0.25, against=against)
                row |= {"verdict": str(verdict), "reason_code": str(reason.code), "reason": reason.text}
            yield row


def _scores(after, before, labelled, source_error, *, same):
    def iou(dice):
        return dice / (2 - dice)

    row: dict[str, object] = {}
    if labelled:
        row |= {"dice": after, "iou": iou(after), "missed_lesions": float(after < 0.1), "false_regions": 0.0}
        row |= {"mean_dice_256": 0.99 * after, "mean_iou_256": 0.99 * iou(after)}
    if not source_error:
        if labelled:
            row |= {"source_dice": before, "source_iou": iou(before)}
            row |= {"source_mean_dice_256": 0.99 * before, "source_mean_iou_256": 0.99 * iou(before)}
            row |= {"source_missed_lesions": float(before < 0.1), "source_false_regions": 0.0}
        row |= {"self_dice": same, "self_iou": iou(same)}
    return row


def write_records(frame: pd.DataFrame, folder: Path) -> Path:
    """Write ``records.parquet`` with the contract's schema and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    schema = contract.schema(Masks.scores, Masks.self_scores, ("sex",))
    write_sealed(pa.Table.from_pandas(frame, schema=schema, preserve_index=False), folder / "records.parquet")
    return folder
