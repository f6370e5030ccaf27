"""Makes records of attacked classifiers as a run would leave them: made by hand, case by case."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
from label_records import CHEST, label_row

from medtest.core.tasks.base import task_of
from medtest.results.attacks.tables import attack_tables
from medtest.results.cube.axes import axes
from medtest.results.records.records_io import Records
from medtest.suite.model import Criterion

BINARY = ("benign", "melanoma")


def other(label):
    """Return the other of two labels."""
    return BINARY[1 - BINARY.index(label)]


def attack_records(
    settings, *, seeds=48, wrong=5, system="attnmel", classes=BINARY, clusters=None, dataset="phantoms", **sources
):
    """Return records of a classifier of two classes under attacks.

    Args:
        settings: A dict for each relation at a severity: ``relation``, ``severity``, ``epsilon``, ``right`` (how many
            seeds are answered rightly: the last ones, so that settings are nested) and any of ``steps``, ``step``,
            ``crafted_on``, ``zero``, ``float_right``, ``linf``, ``smallest``, ``ssim``, ``params``.
        seeds: How many.
        wrong: How many sources are answered wrongly, the first ones.
        system: Its name.
        classes: The classes.
        clusters: Seeds share this many clusters; None gives each its own.
        dataset: Name of the data set.
        sources: Columns of all sources: ``probe_gap``, ``repeat_gap``.
    """
    rows = []
    for index in range(seeds):
        truth = classes[index % 2]
        seed = f"seed{index:04d}"
        source = truth if index >= wrong else other(truth)
        common = {"classes": classes, "system": system, "expected": (truth,), "source_label": (source,)}
        common |= {"cluster": seed if clusters is None else f"patient{index % clusters:03d}"}
        at = {"probe_gap": 0.001, "repeat_gap": 0.0, **sources}
        rows.append(
            label_row(dataset, seed, "source", label=(source,), probabilities=_given(source, 0.9), **common, **at)
        )
        for one in settings:
            right = index >= seeds - one["right"]
            label = truth if right else other(truth)
            params = {"epsilon": one["epsilon"], "norm": "linf"}
            params |= {name: one[name] for name in ("steps", "step", "loss") if name in one} | one.get("params", {})
            crafted = one.get("crafted_on", system)
            noise = crafted is None
            known = "float_right" in one
            before = truth if known and index >= seeds - one["float_right"] else other(truth)
            row = {
                "group": one.get("group", "adversarial"),
                "severity": one["severity"],
                "scale": float(one["epsilon"]),
                "params": json.dumps(params),
                "crafted_on": crafted,
                "linf": one.get("linf", float(np.floor(one["epsilon"]))),
                "l2": 30.0 * one["epsilon"],
                "ssim": one.get("ssim", 1 - one["epsilon"] / 100),
                "loss_before": None if noise else 0.2,
                "loss_after": None if noise else 2.0,
                "zero_gradient": None if noise or one.get("zero") is None else one["zero"],
                "queries": None if noise else 10.0,
                "attack_reference": None if noise else "truth",
                "float_label": before if known else None,
                "smallest_epsilon": one["smallest"][index] if "smallest" in one else None,
                "verdict": "PASS" if label == source else "FAIL",
            }
            sure = 0.55 + 0.4 * index / seeds
            given = _given(label, sure)
            rows.append(label_row(dataset, seed, one["relation"], label=(label,), probabilities=given, **common, **row))
    return pd.DataFrame(rows)


def _given(label, sure):
    return (sure, 1 - sure) if label == BINARY[0] else (1 - sure, sure)


def pgd(severity, epsilon, right, *, steps=4, step=1.0, zero=0.0, relation="pgd", **more):
    """Return a white-box setting."""
    known = {"relation": relation, "severity": severity, "epsilon": epsilon, "right": right, "zero": zero}
    return known | {"steps": steps, "step": step} | more


def square(severity, epsilon, right, **more):
    """Return a black-box setting."""
    return {"relation": "square", "severity": severity, "epsilon": epsilon, "right": right, **more}


def noise(severity, epsilon, right, **more):
    """Return uniform noise."""
    known = {"relation": "uniform_noise", "severity": severity, "epsilon": epsilon, "right": right}
    return known | {"crafted_on": None} | more


PRIMARY = Criterion(score="label", threshold=0.0, against="source")
PARTS = {
    "pgd": "pgd",
    "pgd_fine": "pgd",
    "square": "square",
    "uniform_noise": "uniform_noise",
    "strongest": "strongest",
}


def tables_of(frame, parts=None):
    """Return the tables on attacks of records."""
    records = Records.of(frame)
    return attack_tables(records, axes(records), relations=parts or PARTS, task=task_of("label"), primary=PRIMARY)


def chest_records(seeds=12):
    """Several labels: the attack takes two of five decisions from every image, noise none."""
    rows = []
    rng = np.random.default_rng(1)
    for index in range(seeds):
        truth = tuple(name for name, true in zip(CHEST, rng.random(5) < 0.4, strict=True) if true)
        wrong = tuple(name for name in CHEST if (name in truth) != (name in CHEST[:2]))
        common = {"classes": CHEST, "system": "chexnet", "expected": truth, "source_label": truth}
        given = [0.9 if name in truth else 0.1 for name in CHEST]
        rows.append(label_row("films", f"s{index}", "source", label=truth, probabilities=given, **common))
        for relation, label, crafter in (("pgd", wrong, "chexnet"), ("uniform_noise", truth, None)):
            more = {"severity": 1, "scale": 4.0, "crafted_on": crafter, "zero_gradient": 0.0 if crafter else None}
            sure = [0.6 if name in label else 0.1 for name in CHEST]
            rows.append(label_row("films", f"s{index}", relation, label=label, probabilities=sure, **common, **more))
    return pd.DataFrame(rows)
