"""Steps per second of a training of each compact network, and what of a step's time is not the network's.

``python benchmarks/training.py [FAMILY …] [--steps 30] [--batch 8] [--side SIDE] [--threads 1]`` trains on phantoms and
prints, beside steps per second, the shares of the processor's time that go into making batches, averaging the weights
and writing states, and how long one state takes. Target: averaging and states at most 3 % together.

``--defence standard`` (mpadvt, maadvt) attacks the batches, and prints a step ÷ the bare passes that it takes: a
forward and backward pass in evaluation mode to the pixels for every step of the attack, and those of the training step.
Target: at most 1.1.

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
import numpy as np
import torch

from benchmarks._sizes import options
from medtest.systems.pytorch import networks
from medtest.training.classification import batches as label_batches
from medtest.training.classification.batches import LabelledBatch
from medtest.training.classification.families import KINDS, logits_of, loss_of
from medtest.training.classification.options import ClassificationOptions
from medtest.training.classification.recipe import Losses
from medtest.training.defences.attack import draw
from medtest.training.defences.defence import Defence
from medtest.training.defences.step import defended_loss
from medtest.training.engine import averaging, trainer
from medtest.training.run import train
from medtest.training.segmentation import data as pair_batches
from medtest.training.settings.options import SegmentationOptions

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
            train(options, folder)
        else:
            size = {"size": given.side} if given.side else {}
            pairs = SegmentationOptions(
                **common, **size, phantoms=given.batch, threads=given.threads, validate_every=given.steps
            )
            train(pairs, folder)
    return clock


def defended(given: argparse.Namespace) -> int:
    """Time defended steps beside the bare passes that they take, of the classifiers that were named, alternately."""
    torch.set_num_threads(given.threads)
    for family in (one for one in given.families if one in KINDS):
        one, bare = _defended_step(family, given)
        pair: list[tuple[Callable[[Any], None], Any]]
        ratios: list[list[float]] = []
        for number in range(given.steps):
            torch.manual_seed(number)
            is_attacked, _, steps = draw(Defence(name=given.defence))
            took: list[float] = []
            pair = [(one, number), (bare, steps if is_attacked else 0)]
            for run, asked in pair:
                start = time.process_time()
                run(asked)
                took.append(time.process_time() - start)
            if number >= WARM:
                ratios.append(took)
        sums = [sum(column) for column in zip(*ratios, strict=True)]
        print(
            f"{family:16} {given.defence}: {1e3 * sums[0] / len(ratios):.1f} ms a step, "
            f"{sums[0] / sums[1]:.3f} × its passes"
        )
    return 0


def _defended_step(family: str, given: argparse.Namespace) -> tuple[Callable[[int], None], Callable[[int], None]]:
    """Return a defended step of a drawn batch, and the bare passes that it takes."""
    how, kind = Defence(name=given.defence), KINDS[family]
    side, count, multi = given.side or kind.side, given.batch, kind.classes.multi
    network = networks.make(networks.COMPACT[family]).to(memory_format=torch.channels_last).train()
    rng = np.random.default_rng(0)
    truth = np.eye(len(kind.classes.names), dtype=np.float32)[rng.integers(len(kind.classes.names), size=count)]
    batch = LabelledBatch(
        images=rng.integers(0, 256, (count, side, side, 3), dtype=np.uint8),
        truth=truth,
        masks=np.zeros((count, side, side), np.uint8),
        has_mask=np.zeros(count, bool),
    )
    compare = loss_of(family, Losses(), network)
    loss = defended_loss(family, how, compare, extra=None, multi=multi, precision="fp32", device="cpu")
    inputs = torch.rand(count, 3, side, side).contiguous(memory_format=torch.channels_last)
    target = torch.from_numpy(truth if multi else truth.argmax(axis=1))

    def step(number: int) -> None:
        torch.manual_seed(number)
        network.train().zero_grad(set_to_none=True)
        loss(network, batch)[0].backward()

    def bare(steps: int) -> None:
        network.eval().requires_grad_(False)
        for _ in range(steps):
            given_pixels = inputs.detach().requires_grad_()
            torch.autograd.grad(logits_of(family, network, given_pixels)[1].sum(), given_pixels)
        network.train().requires_grad_(True).zero_grad(set_to_none=True)
        outputs, logits = logits_of(family, network, inputs)
        whole = compare(outputs, target, None, None)
        if how.regularisation:
            whole = whole + logits_of(family, network, inputs)[1].sum()
        whole.backward()

    return step, bare


def main() -> int:
    """Train the families that were named, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("families", nargs="*", metavar="FAMILY", default=[*SEGMENTATION, *KINDS])
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--side", type=int, help="Side of the images; each network's own without.")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--defence", choices=("standard", "mpadvt", "maadvt"), help="Classifiers: a step ÷ its passes.")
    given = options(parser, families=["pranet"], steps=6, batch=2, side=64)
    cv2.setNumThreads(1)
    if given.defence:
        return defended(given)
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
