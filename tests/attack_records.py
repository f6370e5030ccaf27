"""Records of attacked classifiers with set outcomes, as a run would write them."""

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
        seeds: Number of seeds.
        wrong: Number of sources that are answered wrongly, the first ones.
        system: Name of the system.
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
            label_row(
                dataset, seed, "source", label=(source,), probabilities=_probabilities(source, 0.9), **common, **at
            )
        )
        for setting in settings:
            right = index >= seeds - setting["right"]
            label = truth if right else other(truth)
            params = {"epsilon": setting["epsilon"], "norm": "linf"}
            params |= {name: setting[name] for name in ("steps", "step", "loss") if name in setting} | setting.get(
                "params", {}
            )
            crafted = setting.get("crafted_on", system)
            noise = crafted is None
            has_float_label = "float_right" in setting
            before = truth if has_float_label and index >= seeds - setting["float_right"] else other(truth)
            row = {
                "group": setting.get("group", "adversarial"),
                "severity": setting["severity"],
                "scale": float(setting["epsilon"]),
                "params": json.dumps(params),
                "crafted_on": crafted,
                "linf": setting.get("linf", float(np.floor(setting["epsilon"]))),
                "l2": 30.0 * setting["epsilon"],
                "ssim": setting.get("ssim", 1 - setting["epsilon"] / 100),
                "loss_before": None if noise else 0.2,
                "loss_after": None if noise else 2.0,
                "zero_gradient": None if noise or setting.get("zero") is None else setting["zero"],
                "queries": None if noise else 10.0,
                "attack_reference": None if noise else "truth",
                "float_label": before if has_float_label else None,
                "smallest_epsilon": setting["smallest"][index] if "smallest" in setting else None,
                "verdict": "PASS" if label == source else "FAIL",
            }
            confidence = 0.55 + 0.4 * index / seeds
            probabilities = _probabilities(label, confidence)
            rows.append(
                label_row(
                    dataset, seed, setting["relation"], label=(label,), probabilities=probabilities, **common, **row
                )
            )
    return pd.DataFrame(rows)


def _probabilities(label, sure):
    return (sure, 1 - sure) if label == BINARY[0] else (1 - sure, sure)


def pgd(severity, epsilon, right, *, steps=4, step=1.0, zero=0.0, relation="pgd", **more):
    """Return a white-box setting."""
    setting = {"relation": relation, "severity": severity, "epsilon": epsilon, "right": right, "zero": zero}
    return setting | {"steps": steps, "step": step} | more


def square(severity, epsilon, right, **more):
    """Return a black-box setting."""
    return {"relation": "square", "severity": severity, "epsilon": epsilon, "right": right, **more}


def noise(severity, epsilon, right, **more):
    """Return uniform noise."""
    setting = {"relation": "uniform_noise", "severity": severity, "epsilon": epsilon, "right": right}
    return setting | {"crafted_on": None} | more


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
    """Return records of several labels: the attack changes two of five decisions of every image, noise none."""
    rows = []
    rng = np.random.default_rng(1)
    for index in range(seeds):
        truth = tuple(name for name, true in zip(CHEST, rng.random(5) < 0.4, strict=True) if true)
        wrong = tuple(name for name in CHEST if (name in truth) != (name in CHEST[:2]))
        common = {"classes": CHEST, "system": "chexnet", "expected": truth, "source_label": truth}
        probabilities = [0.9 if name in truth else 0.1 for name in CHEST]
        rows.append(label_row("films", f"s{index}", "source", label=truth, probabilities=probabilities, **common))
        for relation, label, crafter in (("pgd", wrong, "chexnet"), ("uniform_noise", truth, None)):
            more = {"severity": 1, "scale": 4.0, "crafted_on": crafter, "zero_gradient": 0.0 if crafter else None}
            sure = [0.6 if name in label else 0.1 for name in CHEST]
            rows.append(label_row("films", f"s{index}", relation, label=label, probabilities=sure, **common, **more))
    return pd.DataFrame(rows)
