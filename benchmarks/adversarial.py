"""What an attack costs beyond the passes that it needs: PGD against bare passes, and against torchattacks.

``python benchmarks/adversarial.py [--model attnmel] [--steps 10] [--batch 1 8] [--threads 1] [--cases 8 16]``

For each batch it prints milliseconds of N steps of our PGD (ε 4/255, α 1/255) on the probe of a compact network, of N
bare forward-backward passes of the same logits and the same loss, their ratio (target: at most 1.05), and where
torchattacks is installed what its PGD takes for the same steps (target: not slower). The ways take turns, so that a
busy machine disturbs all alike; the ratio is that of the best rounds, or the median of the rounds' where that is lower.
On one thread process time is counted, on more wall time.

Then it crafts as many seeds as ``--cases`` says, one after the other as a run does, and prints the peak memory of each
process: it should not grow with their number.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks._sizes import options

EPSILON, STEP = 4 / 255, 1 / 255
TARGET = 1.05
WHAT = {"attnmel": "dermoscopy", "inceptionv3_dr": "fundus", "chexnet": "chest"}


def phantoms(model: str, count: int) -> list[Any]:
    """Return prepared phantoms of a network's kind."""
    from medtest.core.plugins import part
    from medtest.preparation.prepare import prepare

    info = part("seeds", "label_phantoms")
    kind = info.load()
    settings = kind.Settings(**{**info.defaults, "what": WHAT[model], "count": count})
    source = kind(dataset="bench", settings=settings, root=None, suite_seed=1)
    return [prepare(source.load(ref), size=224, resize=256) for ref in source.refs()]


def probed(model: str, threads: int) -> Any:
    """Return the probe of a compact network."""
    from medtest.core.plugins import part
    from medtest.seeds.made.label_phantoms import KINDS
    from medtest.systems.pytorch.probe import probe_of

    info = part("systems", model)
    kind = info.load()
    system = kind(model, kind.Settings(**{**info.defaults, "input": "as_is"}))
    system.kind = "label"
    system.open(device="cpu", threads=threads)
    return probe_of(system, classes=KINDS[WHAT[model]][1])


def timed(runs: Sequence[Callable[[], object]], *, threads: int, rounds: int) -> list[list[float]]:
    """Return milliseconds of each run in each round; they take turns."""
    clock = time.process_time if threads == 1 else time.perf_counter
    found: list[list[float]] = [[] for _ in runs]
    for turn in range(rounds + 1):
        for index, run in enumerate(runs):
            began = clock()
            run()
            if turn:  # the first turn warms up
                found[index].append(1000 * (clock() - began))
    return found


def speed(model: str, batch: int, steps: int, threads: int, rounds: int) -> float:
    """Print what a batch costs each way and return PGD's ratio to bare passes."""
    import torch
    from torch import nn
    from torch.nn import functional

    from medtest.relations.adversarial.projected_gradient import projected_gradient
    from medtest.relations.adversarial.saving import pixels_of

    torch.set_num_threads(threads)
    probe, seeds = probed(model, threads), phantoms(model, batch)
    images = torch.cat([pixels_of(seed.image) for seed in seeds])
    with torch.no_grad():
        answer = probe.logits(images).detach()
    multi = probe.classes.multi
    truth = (answer > 0).float() if multi else answer.argmax(dim=1)

    def loss(logits: torch.Tensor, _rows: torch.Tensor) -> torch.Tensor:
        if multi:
            return functional.binary_cross_entropy_with_logits(logits, truth, reduction="none").mean(dim=1)
        return functional.cross_entropy(logits, truth, reduction="none")

    def ours() -> None:
        projected_gradient(probe.logits, images, loss, epsilon=EPSILON, step=STEP, steps=steps)

    def bare() -> None:
        for _ in range(steps):
            pixels = images.detach().requires_grad_()
            torch.autograd.grad(loss(probe.logits(pixels), truth).sum(), pixels)

    runs: list[Callable[[], object]] = [ours, bare]
    try:
        import torchattacks
    except ImportError:
        print("torchattacks is not installed: pip install --no-deps torchattacks==3.5.1")
    else:
        if not multi:

            class Asked(nn.Module):
                def forward(self, pixels: torch.Tensor) -> torch.Tensor:
                    found: torch.Tensor = probe.logits(pixels)
                    return found

            module = Asked().eval()
            module.register_parameter("device_of", nn.Parameter(torch.zeros(1)))  # it looks where parameters lie
            theirs = torchattacks.PGD(module, eps=EPSILON, alpha=STEP, steps=steps, random_start=False)
            runs.append(lambda: theirs(images, truth))
    with probe.attached():
        found = timed(runs, threads=threads, rounds=rounds)
    best = [min(one) for one in found]
    ratio = min(best[0] / best[1], statistics.median(a / b for a, b in zip(found[0], found[1], strict=True)))
    print(
        f"{model}-compact, batch {batch}, {steps} steps, {threads} thread(s): PGD {best[0]:.1f} ms, "
        f"bare passes {best[1]:.1f} ms, ratio {ratio:.3f} (target at most {TARGET})"
    )
    if len(runs) > 2:
        other = min(best[0] / best[2], statistics.median(a / b for a, b in zip(found[0], found[2], strict=True)))
        print(f"    torchattacks PGD {best[2]:.1f} ms; ours takes {other:.3f} of it (target at most 1)")
    return ratio


def crafted_memory(model: str, count: int, steps: int) -> int:
    """Craft PGD's follow-ups of as many seeds and return the process's peak memory, in KiB."""
    import torch

    from medtest.core.probes import CraftCase
    from medtest.testing import load_relation

    torch.set_num_threads(1)
    made, probe = load_relation("pgd", severities=[1, 2]), probed(model, 1)
    for number, seed in enumerate(phantoms(model, 4) * (count // 4 + 1)):
        if number >= count:
            break
        cases = [CraftCase(seed=seed, params=made.sample(seed, s, np.random.default_rng(number))) for s in (1, 2)]
        with probe.attached():
            made.craft(cases, probe)  # type: ignore[attr-defined]
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> int:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=sorted(WHAT), default="attnmel")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--cases", type=int, nargs="*", default=[8, 16])
    parser.add_argument("--memory-of", type=int, help=argparse.SUPPRESS)
    chosen = options(parser, steps=2, batch=[1], rounds=1, cases=[4])
    if chosen.memory_of:
        print(crafted_memory(chosen.model, chosen.memory_of, chosen.steps))
        return 0
    for batch in chosen.batch:
        speed(chosen.model, batch, chosen.steps, chosen.threads, chosen.rounds)
    for count in chosen.cases:
        command = [sys.executable, __file__, "--model", chosen.model, "--memory-of", str(count)]
        peak = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        print(f"{count} seeds crafted: peak memory {peak / 1024:.1f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
