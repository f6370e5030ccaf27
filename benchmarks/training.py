"""Steps per second of a training of each compact network, and what of a step's time is not the network's.

``python benchmarks/training.py [FAMILY …] [--steps 30] [--batch 8] [--side SIDE] [--threads 1]`` trains on phantoms and
prints, beside steps per second, the shares of the processor's time that go into making batches, averaging the weights
and writing states, and how long one state takes. Target: averaging and states at most 3 % together.

Shares are of the process's own time, so that they hold on a busy machine too; steps per second do not.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cv2
import torch

from medtest.training import averaging, trainer
from medtest.training.classification import batches as label_batches
from medtest.training.classification.families import KINDS
from medtest.training.classification.options import ClassificationOptions
from medtest.training.classification.train import train_classification
from medtest.training.options import SegmentationOptions
from medtest.training.segmentation import data as pair_batches
from medtest.training.segmentation.train import train_segmentation

SEGMENTATION = ("pranet", "sanet", "tganet", "ssformer")
TIMED = {
    "batches": [(pair_batches.PairBatches, "batch"), (label_batches.LabelledBatches, "batch")],
    "averaging": [(averaging.AveragedWeights, "follow")],
    "states": [(trainer.Trainer, "save")],
    "steps": [(trainer.Trainer, "advance")],
}
"""Methods whose time is taken, by what is printed of them; a step's holds its batch and its averaging."""
WARM = 3
"""First steps, in which torch finds its way."""


class Clock:
    """Adds up the process's own time of some methods; calls of the first steps do not count."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.calls: dict[str, int] = defaultdict(int)
        self.wall = 0.0

    def timed(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return a method that adds its time to a name."""

        def run(*args: Any, **more: Any) -> Any:
            wall, own = time.perf_counter(), time.process_time()
            try:
                return method(*args, **more)
            finally:
                self.calls[name] += 1
                if self.calls["steps"] >= WARM:
                    self.seconds[name] += time.process_time() - own
                    self.wall += time.perf_counter() - wall if name in ("steps", "states") else 0.0

        return run

    @contextmanager
    def running(self) -> Iterator[None]:
        """Take the time of every method of :data:`TIMED`."""
        before = {place: getattr(*place) for places in TIMED.values() for place in places}
        for name, places in TIMED.items():
            for kind, method in places:
                setattr(kind, method, self.timed(name, before[kind, method]))
        try:
            yield
        finally:
            for (kind, method), function in before.items():
                setattr(kind, method, function)


def run(family: str, folder: Path, given: argparse.Namespace) -> Clock:
    """Train a family's compact network for some steps."""
    common: dict[str, Any] = {"network": family, "steps": given.steps, "batch": given.batch, "mlflow": False}
    clock = Clock()
    with clock.running():
        if family in KINDS:
            side = {"side": given.side} if given.side else {}
            options = ClassificationOptions(**common, **side, phantoms=max(16, 2 * given.batch), threads=given.threads)
            train_classification(options, folder)
        else:
            size = {"size": given.side} if given.side else {}
            pairs = SegmentationOptions(
                **common, **size, phantoms=given.batch, threads=given.threads, validate_every=given.steps
            )
            train_segmentation(pairs, folder)
    return clock


def main() -> int:
    """Train the families that were named, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("families", nargs="*", metavar="FAMILY", default=[*SEGMENTATION, *KINDS])
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--side", type=int, help="Side of the images; each network's own without.")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    cv2.setNumThreads(1)
    print(f"torch {torch.__version__}, {given.threads} threads, {given.steps} steps of {given.batch}")
    print(f"{'network':16} {'steps/s':>8} {'ms a step':>10} {'batches':>8} {'averaging':>10} {'states':>7} ms a state")
    for family in given.families:
        with tempfile.TemporaryDirectory() as folder:
            clock = run(family, Path(folder), given)
        steps = clock.calls["steps"] - WARM + 1
        whole = clock.seconds["steps"] + clock.seconds["states"]
        shares = [f"{100 * clock.seconds[name] / whole:.1f} %" for name in ("batches", "averaging", "states")]
        state = 1e3 * clock.seconds["states"] / max(1, clock.calls["states"])
        print(
            f"{family:16} {steps / clock.wall:8.2f} {1e3 * clock.seconds['steps'] / steps:10.1f} {shares[0]:>8} "
            f"{shares[1]:>10} {shares[2]:>7} {state:10.1f}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
