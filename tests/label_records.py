"""Records of classifiers, as a run would write them, from a small random model; numbers only, no images."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd

CAPSULE = ("normal", "vascular", "inflammatory")
CHEST = ("effusion", "mass", "nodule", "edema", "hernia")
TYPES = {"brightness": ("weather", 0.05), "gaussian_noise": ("noise", 0.1), "scale": ("geometric", 0.2)}


def label_row(dataset, seed, relation, *, label, expected, source_label, probabilities=None, **more):
    """Return one record; labels are tuples in the order of the classes, None where there is none."""
    classes = more.pop("classes", CAPSULE)
    row = {
        "suite": "synthetic",
        "suite_version": "1",
        "system": "model",
        "dataset": dataset,
        "seed_id": seed,
        "cluster": seed,
        "item": "",
        "relation": relation,
        "group": "source" if relation == "source" else TYPES.get(relation, ("lighting", 0))[0],
        "severity": 0 if relation == "source" else 1,
        "scale": 0.0,
        "frame": 0,
        "repeat": 0,
        "params": "{}",
        "source_sha256": "0" * 64,
        "followup_sha256": "1" * 64,
        "verdict": "PASS",
        "reason_code": "",
        "reason": "",
        "elapsed_ms": 1.0,
        "label": None if label is None else "|".join(label),
        "expected": None if expected is None else "|".join(expected),
        "source_label": None if source_label is None else "|".join(source_label),
        "probabilities": "",
    }
    if probabilities is not None and label is not None:
        row["probabilities"] = json.dumps({n: float(f"{p:.7g}") for n, p in zip(classes, probabilities, strict=True)})
    row |= more
    row |= {"agreement": _same(label, expected), "source_agreement": _same(source_label, expected)}
    row |= {"self_agreement": _same(label, source_label)}
    return row


def _same(first, second):
    return np.nan if first is None or second is None else float(set(first) == set(second))


def make_label_records(
    *,
    classes=CAPSULE,
    multi=False,
    seeds=20,
    datasets=("phantoms",),
    relations=None,
    severities=(1,),
    frames=1,
    clusters=None,
    labelled=True,
    errors=0.0,
    skips=0.0,
    probabilities=True,
    skill=2.0,
    random=0,
) -> pd.DataFrame:
    """Return a frame with the contract's columns for a classifier that grows unsure with severity and frame."""
    rng = np.random.default_rng(random)
    rows = []
    for dataset in datasets:
        for index in range(seeds):
            seed = f"seed{index:04d}"
            cluster = seed if clusters is None else f"patient{index % clusters:03d}"
            truth, base = _truth(rng, classes, multi, skill)
            expected = truth if labelled else None
            common = {"classes": classes, "cluster": cluster, "expected": expected}
            source = _decide(base, classes, multi)
            give = (lambda x: _probabilities(x, multi)) if probabilities else (lambda _x: None)
            rows.append(
                label_row(
                    dataset, seed, "source", label=source, source_label=source, probabilities=give(base), **common
                )
            )
            for name, (group, harm) in (relations or TYPES).items():
                for severity in severities:
                    for frame in range(frames):
                        noise = harm * severity * (frame + 1) * rng.standard_normal(len(classes))
                        scores = base + noise
                        place = {"group": group, "severity": severity, "frame": frame, "scale": float(severity)}
                        draw = rng.random()
                        label = _decide(scores, classes, multi)
                        if draw < errors:
                            place |= {
                                "verdict": "ERROR",
                                "reason_code": "invalid_answer",
                                "reason": "the system gave NaN",
                            }
                            label = None
                        elif draw < errors + skips:
                            place |= {"verdict": "SKIP", "reason_code": "not_applicable", "reason": "no room"}
                            label = None
                        elif label != source:
                            place |= {"verdict": "FAIL"}
                        rows.append(
                            label_row(
                                dataset,
                                seed,
                                name,
                                label=label,
                                source_label=source,
                                probabilities=give(scores),
                                **common,
                                **place,
                            )
                        )
    return pd.DataFrame(rows)


def _truth(rng, classes, multi, skill):
    if multi:
        truth = rng.random(len(classes)) < 0.35
        base = skill * (truth - 0.5) + rng.standard_normal(len(classes))
        return tuple(n for n, t in zip(classes, truth, strict=True) if t), base
    number = int(rng.integers(len(classes)))
    base = rng.standard_normal(len(classes))
    base[number] += skill
    return (classes[number],), base


def _probabilities(scores, multi):
    if multi:
        return 1 / (1 + np.exp(-scores))
    return np.exp(scores) / np.exp(scores).sum()


def _decide(scores, classes, multi):
    if multi:
        return tuple(n for n, s in zip(classes, scores, strict=True) if s > 0)
    return (classes[int(np.argmax(scores))],)
