"""How long filters take, and a suite of series: the figures of docs and notes.

python benchmarks/series.py                    every bundled filter on 512 × 512, grey and RGB, one core
python benchmarks/series.py --iterations 30    the iterated filters alone, with so many steps
python benchmarks/series.py --suite denoising  a whole suite on this machine's cores, into a temporary folder
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cv2
import numpy as np

from benchmarks._sizes import options
from medtest.core.cases import Address, ImageSpec
from medtest.core.plugins import parts
from medtest.systems.base import System

SIDE = 512
REPEATS = 3


def filters(iterations: int | None) -> list[System]:
    """Return every bundled filter whose libraries are installed; those with that many steps where a number is given."""
    found: list[System] = []
    for name, info in sorted(parts("systems").items()):
        if ".restoration." not in info.target:
            continue
        made = info.load()
        if iterations is not None and "iterations" not in made.Settings.model_fields:
            continue
        steps = {} if iterations is None else {"iterations": iterations}
        system: System = made(name, made.Settings(**{**info.defaults, **steps}))
        if system.check():
            print(f"{name:20s} left out: {system.check()[0].found}")
            continue
        found.append(system)
    return found


def seconds(system: System, image: np.ndarray, spec: ImageSpec) -> float:
    """Return the median processor time of one image: on one core its wall time where nothing else runs."""
    address = Address(dataset="bench", seed_id="one")
    times = []
    for _ in range(REPEATS):
        started = time.process_time()
        system.process([image], [spec], [address])
        times.append(time.process_time() - started)
    return statistics.median(times)


def time_filters(iterations: int | None, side: int) -> None:
    """Print a line a filter, of pictures with ``side`` rows and columns."""
    cv2.setNumThreads(1)
    rng = np.random.default_rng(0)
    smooth = cv2.GaussianBlur(rng.normal(size=(side, side, 3)).astype(np.float32), (0, 0), 8)
    colour = (smooth - smooth.min()) / np.ptp(smooth) * 255 + rng.normal(0, 15, smooth.shape)
    colour = np.ascontiguousarray(colour, dtype=np.float32)
    grey = np.ascontiguousarray(colour[..., 1])
    print(f"{'filter':20s} {'grey, s':>8s} {'RGB, s':>8s}   {side} × {side}, one core, median of {REPEATS}")
    for system in filters(iterations):
        system.open(device="cpu", threads=1)
        one = seconds(system, grey, ImageSpec(dtype="float32", axes="yx"))
        three = seconds(system, colour, ImageSpec(dtype="float32", axes="yxc"))
        print(f"{system.name:20s} {one:8.3f} {three:8.3f}")


def time_suite(name: str, extra: list[str]) -> None:
    """Run a suite from nothing and print its wall time."""
    root = Path(__file__).parents[1]
    with tempfile.TemporaryDirectory() as home:
        started = time.perf_counter()
        command = [sys.executable, str(root / "run.py"), f"suite={name}", "track=false", "quiet=true", *extra]
        done = subprocess.run(command, cwd=home, check=False)
        print(f"suite={name} {' '.join(extra)}: {time.perf_counter() - started:.1f} s, exit code {done.returncode}")


def main() -> None:
    """Time what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", help="a suite to run whole instead of timing filters")
    parser.add_argument("--iterations", type=int, help="steps of the iterated filters")
    parser.add_argument("--side", type=int, default=SIDE, help="rows and columns of a picture")
    parser.add_argument("extra", nargs="*", help="what a run takes beside it: limit=2")
    given = options(parser, side=48)
    if given.suite:
        time_suite(given.suite, given.extra)
    else:
        time_filters(given.iterations, given.side)


if __name__ == "__main__":
    main()
