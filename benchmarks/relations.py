"""Follow-ups per second of every relation on a picture, on one core at 512×512, the seed prepared.

``python benchmarks/relations.py [--seeds N] [--passes N] [--only NAME …]`` prints, per relation, the rate over its
severities (sampling, applying, visibility of the lesion; processor time, best of several passes), the rate of the first
pass (what is computed once per seed included), and the rate with that part shared by the 45 follow-ups of a seed, as
in ``suite=polyp_seg``. Then the geometric mean of the nine relations of that suite, shared parts included. The targets
are a geometric mean of 700 and none of the nine below 250.
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
from medtest.core.tasks.base import PICTURE
from medtest.preparation.prepare import prepare
from medtest.relations.base import Relation
from medtest.suite.compose import load_suite

TARGET_MEAN = 700.0
TARGET_LEAST = 250.0
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


def measure(relation: Relation, name: str, seeds: list[PreparedSeed], passes: int) -> tuple[float, float, int]:
    """Return seconds a follow-up at best, seconds in the first pass, and follow-ups skipped; NaN where all were."""
    best: dict[Address, float] = {}
    first: list[float] = []
    skipped = 0
    for number in range(passes):
        for seed in seeds:
            for severity in relation.severities():
                address = Address(dataset=seed.ref.dataset, seed_id=seed.ref.seed_id, relation=name, severity=severity)
                started = time.process_time()
                try:
                    relation.follow_up(seed, severity, relation.generator(address, SUITE_SEED))
                except NotApplicable:
                    skipped += number == 0
                    continue
                elapsed = time.process_time() - started
                if number == 0:
                    first.append(elapsed)
                best[address] = min(elapsed, best.get(address, elapsed))
    if not best:
        return math.nan, math.nan, skipped
    return statistics.fmean(best.values()), statistics.fmean(first), skipped


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=6, help="phantoms to work on")
    parser.add_argument("--passes", type=int, default=15, help="passes, of which the best counts")
    parser.add_argument("--only", nargs="*", default=[], help="names of relations")
    chosen = options(parser, seeds=1, passes=1)
    cv2.setNumThreads(1)
    names = [name for name in measured_here() if not chosen.only or name in chosen.only]
    for name in names:  # Letters, cut-outs and OpenCV's own tables are loaded before the clock starts.
        measure(build(name), name, prepared_seeds(1), 1)
    rates: dict[str, float] = {}
    print(f"{'relation':<16}{'follow-ups/s':>14}{'first pass/s':>14}{'skipped':>9}")
    for name in names:
        seconds, first, skipped = measure(build(name), name, prepared_seeds(chosen.seeds), chosen.passes)
        if math.isnan(seconds):
            print(f"{name:<16}{'-':>14}{'-':>14}{skipped:>9}  it has nothing to do on these phantoms")
            continue
        rates[name] = 1.0 / seconds
        print(f"{name:<16}{rates[name]:>14.0f}{1.0 / first:>14.0f}{skipped:>9}")
    published = {relation.id for relation in load_suite("polyp_seg").relations} - {UNCHANGED}
    counted = {name: rate for name, rate in rates.items() if name in published}
    if counted:
        mean = statistics.geometric_mean(counted.values())
        least = min(counted, key=lambda name: counted[name])
        print(f"geometric mean of {len(counted)} relations of suite=polyp_seg: {mean:.0f}/s, target {TARGET_MEAN:.0f}")
        print(f"slowest of them: {least} at {counted[least]:.0f}/s, target {TARGET_LEAST:.0f}")


if __name__ == "__main__":
    main()
