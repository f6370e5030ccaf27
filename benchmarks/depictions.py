"""Tables of a text-to-image run: seconds and memory for many records, each distinct text parsed once.

    python -m benchmarks depictions                       113,736 records, the size of ACTesting's study
    python benchmarks/depictions.py --prompts=100

Records are made by the oracle itself, of a service that leaves something out; every picture has boxes of its own, so
that no two scenes are the same text.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from depict_records import drawn, records, without_last

from benchmarks._sizes import options
from medtest.core.scenes import Pool, Scene, SeenEntity
from medtest.tasks.depict.tables.results import depict_tables


def draw(pool: Pool, rng: np.random.Generator, prompt: str) -> Scene:
    """Draw a fifth of pictures without what was named last, things wherever."""
    scene = drawn(without_last(pool) if rng.random() < 0.2 else pool)
    placed = []
    for one in scene.entities:
        left, top, right, bottom = (round(float(value), 4) for value in rng.random(4))
        placed.append(SeenEntity(name=one.name, attributes=one.attributes, box=(left, top, right, bottom), score=0.9))
    return Scene(entities=tuple(placed), triples=scene.triples)


def main() -> None:
    """Make records, then their tables, and print what that took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prompts", type=int, default=14_217, help="of 8 cases each")
    prompts = options(parser, prompts=10).prompts
    made = records(prompts, draw)
    count = len(made.sources) + len(made.followups)
    started = time.perf_counter()
    found = depict_tables(made)
    seconds = time.perf_counter() - started
    if found is None:
        raise SystemExit("no tables were made")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rows = sum(len(frame) for frame in found.frames().values())
    print(f"{count:,} records: {seconds:.1f} s, {count / seconds:,.0f} records/s, {rows:,} rows; peak {memory:,.0f} MB")


if __name__ == "__main__":
    main()
