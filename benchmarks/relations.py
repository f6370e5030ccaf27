"""Follow-ups per second of every relation on a picture, on one core at 512×512, the seed prepared.

``python benchmarks/relations.py [--seeds N] [--passes N] [--only NAME …]`` prints, per relation, the rate over its
severities (drawing, applying, the lesion's visibility; processor time, best of several passes, every pass with other
draws) and the rate of the first pass (what is computed once per seed included). What the nine relations of
``suite=polyp_seg`` compute once per seed (scene, bands of the outline, noise) is then shared by the seed's 45
follow-ups. The targets are a geometric mean of 700 and none of the nine below 250.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import time
from collections.abc import Mapping

os.environ.setdefault("OMP_NUM_THREADS", "1")

import cv2
from pydantic.fields import FieldInfo

from benchmarks._sizes import options
from medtest.core.cases import UNCHANGED, Address, PreparedSeed
from medtest.core.errors import NotApplicable
from medtest.core.plugins import PartInfo, part, parts
from medtest.core.probes import Need
from medtest.core.tasks.base import PICTURE, task_of
from medtest.preparation.prepare import prepare
from medtest.relations.base import Relation
from medtest.suite.compose import load_suite

TARGET_MEAN = 700.0
TARGET_LEAST = 250.0
FIRST_PASSES = 6
SUITE_SEED = 7


def prepared_seeds(count: int) -> list[PreparedSeed]:
    """Return phantoms prepared at 512×512."""
    info = part("seeds", "phantoms")
    source_class = info.load()
    settings = source_class.Settings(**info.defaults)
    source = source_class(dataset="phantoms", settings=settings, root=None, suite_seed=SUITE_SEED)
    return [prepare(source.load(ref), size=512) for ref in source.refs()[:count]]


def build(name: str) -> Relation:
    """Return a relation with the settings of its YAML file."""
    info = parts("relations")[name]
    relation_class = info.load()
    relation: Relation = relation_class(relation_class.Settings(**info.defaults))
    return relation


def measured_here() -> list[str]:
    """List the relations that change a picture and run as they ship.

    Left out are those that need a file, a system or a prompt, and those of corruptions.py.
    """
    names = []
    for name, info in parts("relations").items():
        complete = all(key in info.defaults or not field.is_required() for key, field in _fields(info).items())
        if complete and ".corruptions." not in info.target and _changes_a_picture(build(name)):
            names.append(name)
    return names


def _changes_a_picture(relation: Relation) -> bool:
    return PICTURE in relation.takes and relation.needs is Need.NOTHING


def _fields(info: PartInfo) -> Mapping[str, FieldInfo]:
    fields: Mapping[str, FieldInfo] = info.load().Settings.model_fields
    return fields


def measure(relations: Mapping[str, Relation], seeds: list[PreparedSeed], passes: int) -> tuple[list[float], int]:
    """Return the mean seconds of a follow-up in each pass (NaN if none was made), and how many were skipped."""
    seconds: list[float] = []
    skipped = 0
    for number in range(passes):
        used: list[float] = []
        for seed in seeds:
            for name, relation in relations.items():
                for severity in relation.severities():
                    place = {"dataset": seed.ref.dataset, "seed_id": seed.ref.seed_id}
                    address = Address(**place, relation=name, severity=severity, repeat=number)
                    started = time.process_time()
                    try:
                        follow_up = relation.follow_up(seed, severity, relation.generator(address, SUITE_SEED))
                    except NotApplicable:
                        skipped += 1
                        continue
                    task_of(seed.kind).border.facts(seed, follow_up)
                    used.append(time.process_time() - started)
        seconds.append(statistics.fmean(used) if used else math.nan)
    return seconds, skipped


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=6, help="phantoms to work on")
    parser.add_argument("--passes", type=int, default=15, help="passes, of which the best counts")
    parser.add_argument("--only", nargs="*", default=[], help="names of relations")
    chosen = options(parser, seeds=1, passes=1)
    cv2.setNumThreads(1)
    relations = {name: build(name) for name in measured_here() if not chosen.only or name in chosen.only}
    measure(relations, prepared_seeds(1), 1)  # Letters, cut-outs and OpenCV's own tables are loaded beforehand.
    seconds: dict[str, float] = {}
    print(f"{'relation':<16}{'follow-ups/s':>14}{'first pass/s':>14}{'skipped':>9}")
    for name, relation in relations.items():
        (first, *later), skipped = measure({name: relation}, prepared_seeds(chosen.seeds), chosen.passes + 1)
        seconds[name] = min(later)
        if math.isnan(first):
            print(f"{name:<16}{'-':>14}{'-':>14}{skipped:>9}  it has nothing to do on these phantoms")
            continue
        print(f"{name:<16}{1.0 / seconds[name]:>14.0f}{1.0 / first:>14.0f}{skipped:>9}")
    suite = {plan.id for plan in load_suite("polyp_seg").relations} - {UNCHANGED}
    counted = {name: seconds[name] for name in seconds if name in suite}
    if counted:
        together = {name: relations[name] for name in counted}
        # The first pass comes once a seed: fresh seeds make more of them, of which the best counts too.
        firsts, laters = [], []
        for _ in range(min(chosen.passes, FIRST_PASSES)):
            (first, *later), _ = measure(together, prepared_seeds(chosen.seeds), 3)
            firsts.append(first)
            laters += later
        shared = max(min(firsts) - min(laters), 0.0)
        for words, extra in (("without", 0.0), ("with", shared)):
            rates = {name: 1.0 / (each + extra) for name, each in counted.items()}
            mean, least = statistics.geometric_mean(rates.values()), min(rates, key=rates.__getitem__)
            print(f"{words} {1000 * shared:.2f} ms a follow-up for what {len(counted)} relations of suite=polyp_seg")
            print(f"  compute once per seed: geometric mean {mean:.0f}/s, target {TARGET_MEAN:.0f};", end=" ")
            print(f"slowest {least} at {rates[least]:.0f}/s, target {TARGET_LEAST:.0f}")


if __name__ == "__main__":
    main()
