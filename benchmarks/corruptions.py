"""Milliseconds of each perturbation on one core at 512×512, beside the package imagecorruptions.

``python benchmarks/corruptions.py [--passes N] [--only NAME …] [--imagecorruptions PYTHON]`` prints, per type: the mean
over five severities with the published constants as they are (``raw``, what imagecorruptions does) and grown with the
picture (the default), nothing kept from an earlier call; the ratio to imagecorruptions; and what a sequence of ten
frames costs, in milliseconds and in single frames. Processor time, best of several passes.

imagecorruptions 1.1.2 needs old versions of its dependencies (numpy < 2, scikit-image < 0.22, setuptools < 80). With
``--imagecorruptions`` naming the interpreter of such an environment, or where it can be imported here, it is measured
in the same run; else the ratios are to figures measured earlier. The targets are a geometric mean of 5 over the types
that it has, none below 1, and at most ten single frames for a sequence.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import replace

os.environ.setdefault("OMP_NUM_THREADS", "1")

import cv2
import numpy as np

from benchmarks._sizes import options
from medtest.core.cases import Address, PreparedSeed, SeedRef
from medtest.core.plugins import parts
from medtest.relations.base import Relation

SIDE = 512
TARGET_MEAN = 5.0
PREFIX = "corruption_"
STORED = {
    "brightness": 93.0,
    "shot_noise": 57.0,
    "snow": 42.0,
    "motion_blur": 28.0,
    "spatter": 24.0,
    "gaussian_noise": 20.0,
    "speckle_noise": 16.0,
    "zoom_blur": 312.0,
}
"""Milliseconds of imagecorruptions 1.1.2 at 512×512 on one core, measured once with old versions of what it needs."""
REFERENCE = """
import json, os, sys, time
import numpy as np
import cv2
from imagecorruptions import corrupt, corruptions
from benchmarks._sizes import options
cv2.setNumThreads(1)
gaussian = corruptions.gaussian  # Later versions of scikit-image have another name for its option.
corruptions.gaussian = lambda image, multichannel=False, **rest: gaussian(
    image, channel_axis=-1 if multichannel else None, **rest
)
names, passes, file = json.loads(sys.argv[1])
image = np.load(file)
best = {}
for name in names:
    found = []
    for severity in range(1, 6):
        times = []
        for _ in range(passes + 1):
            began = time.process_time()
            corrupt(image, corruption_name=name, severity=severity)
            times.append(time.process_time() - began)
        found.append(min(times[1:]))
    best[name] = 1000 * sum(found) / len(found)
print(json.dumps(best))
"""


def picture() -> np.ndarray:
    """Return a smooth coloured picture with fine grain, uint8 512×512×3."""
    rng = np.random.default_rng(5)
    coarse = rng.uniform(40, 220, (12, 12, 3)).astype(np.float32)
    smooth = cv2.resize(coarse, (SIDE, SIDE), interpolation=cv2.INTER_CUBIC)
    return np.clip(smooth + rng.normal(0, 6, smooth.shape), 0, 255).astype(np.uint8)


def fresh(image: np.ndarray) -> PreparedSeed:
    """Return a seed that remembers nothing."""
    return PreparedSeed(
        ref=SeedRef(dataset="benchmark", seed_id="one"),
        image=image,
        mask=None,
        original_mask=None,
        frame=np.zeros(image.shape[:2], np.bool_),
        grey=np.zeros(image.shape[:2], np.float32),
    )


def build(name: str, **settings: object) -> Relation:
    """Return a perturbation with the settings of its YAML file and others."""
    info = parts("relations")[PREFIX + name]
    relation_class = info.load()
    relation: Relation = relation_class(relation_class.Settings(**{**info.defaults, **settings}))
    return relation


def single(relation: Relation, image: np.ndarray, passes: int) -> float:
    """Return milliseconds of a level, the mean over severities of the best pass."""
    found = []
    for severity in relation.severities():
        address = Address(dataset="benchmark", seed_id="one", relation="x", severity=severity)
        times = []
        for _ in range(passes + 1):
            seed = fresh(image)
            began = time.process_time()
            relation.follow_up(seed, severity, address.generator(7))
            times.append(time.process_time() - began)
        found.append(min(times[1:]))
    return 1000.0 * statistics.fmean(found)


def sequence(relation: Relation, image: np.ndarray, passes: int) -> tuple[float, float]:
    """Return milliseconds of a whole sequence, and of one frame that is not clean, with nothing kept before it."""
    together, apart = [], []
    for _ in range(passes + 1):
        seed = fresh(image)
        began = time.process_time()
        for frame in range(relation.frames()):
            _frame(relation, seed, frame)
        together.append(time.process_time() - began)
        began = time.process_time()
        for frame in range(1, relation.frames()):
            _frame(relation, fresh(image), frame)
        apart.append((time.process_time() - began) / (relation.frames() - 1))
    return 1000.0 * min(together[1:]), 1000.0 * min(apart[1:])


def _frame(relation: Relation, seed: PreparedSeed, frame: int) -> None:
    address = replace(Address(dataset="benchmark", seed_id="one", relation="x", severity=1), frame=frame)
    params = relation.sample_frame(seed, 1, frame, address.generator(7), address.sequence_generator(7))
    relation.apply(seed, params)


def reference(python: str | None, names: list[str], image: np.ndarray, passes: int) -> dict[str, float]:
    """Return milliseconds of imagecorruptions, measured now where an interpreter has it."""
    if python is None and importlib.util.find_spec("imagecorruptions") is None:
        print("imagecorruptions: figures measured earlier (STORED)")
        return STORED
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "picture.npy")
        np.save(file, image)
        environment = {**os.environ, "NUMBA_NUM_THREADS": "1", "PYTHONPATH": "", "PYTHONWARNINGS": "ignore"}
        done = subprocess.run(
            [python or sys.executable, "-c", REFERENCE, json.dumps([names, passes, file])],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
        )
    print("imagecorruptions: measured in this run")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passes", type=int, default=7, help="passes, of which the best counts")
    parser.add_argument("--only", nargs="*", default=[], help="types, without corruption_")
    parser.add_argument("--imagecorruptions", metavar="PYTHON", help="interpreter that can import imagecorruptions")
    chosen = options(parser, passes=1)
    cv2.setNumThreads(1)
    image = picture()
    names = [n.removeprefix(PREFIX) for n in parts("relations") if n.startswith(PREFIX)]
    names = [name for name in names if not chosen.only or name in chosen.only]
    theirs = reference(
        chosen.imagecorruptions, [n for n in names if n in {*STORED, "gaussian_blur"}], image, min(chosen.passes, 3)
    )
    heads = ("raw ms", "default ms", "theirs ms", "ratio", "sequence ms", "in frames")
    print(f"{'type':<16}" + "".join(f"{head:>13}" for head in heads))
    ratios: dict[str, float] = {}
    for name in names:
        raw, grown = (single(build(name, raw=raw), image, chosen.passes) for raw in (True, False))
        whole, apart = sequence(build(name, form="sequence"), image, chosen.passes)
        row = f"{name:<16}{raw:>13.2f}{grown:>13.2f}"
        if name in theirs:
            ratios[name] = theirs[name] / raw
            row += f"{theirs[name]:>13.1f}{ratios[name]:>13.1f}"
        else:
            row += f"{'-':>13}{'-':>13}"
        print(f"{row}{whole:>13.1f}{whole / apart:>13.1f}")
    if ratios:
        worst = min(ratios, key=lambda name: ratios[name])
        mean = statistics.geometric_mean(ratios.values())
        print(f"geometric mean of {len(ratios)} ratios (raw): {mean:.1f}, target {TARGET_MEAN:g}")
        print(f"least: {worst}, {ratios[worst]:.1f}, target 1")


if __name__ == "__main__":
    main()
