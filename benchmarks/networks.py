"""What the networks cost, compact and published: images a second, and medtest's ``predict`` against the bare forward.

``python benchmarks/networks.py [NAME …] [--threads 1 2] [--batch 1 8] [--what speed|choices]``

``speed`` prints, per network, milliseconds per image of the bare forward pass (the same torch graph as it is built:
float32, channels first, batch norms apart, its input ready), of the whole ``predict`` (resizing, normalising, the
network as ``open`` made it fast, resizing back), their ratio (target: at most 1.02), and images a second of that.
``choices`` prints what each setting that is for speed does to the forward pass. On one thread process time is counted,
on more wall time; best of several, and bare and whole take turns, so that a busy machine disturbs both alike.
Published networks have weights drawn at random: their speed is that of any weights.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks._sizes import options

COMPACT = ("pranet", "sanet", "tganet", "ssformer")
PUBLISHED = ("pranet", "sanet", "tganet", "ssformer_s", "ssformer_l")
NAMES = (*(f"{name}-compact" for name in COMPACT), *PUBLISHED)
REPEATS = 7
SIDE = 512
TARGET = 1.02


def best_of(runs: Sequence[Callable[[], object]], *, threads: int, repeats: int = REPEATS) -> list[float]:
    """Return the best time of each in milliseconds; they take turns."""
    clock = time.process_time if threads == 1 else time.perf_counter
    best = [float("inf")] * len(runs)
    for turn in range(repeats + 1):
        for index, run in enumerate(runs):
            started = clock()
            run()
            if turn:  # the first turn warms up
                best[index] = min(best[index], 1000 * (clock() - started))
    return best


def opened(name: str, threads: int, **settings: Any) -> tuple[Any, Any]:
    """Return an opened system, and the same network as it is built."""
    import copy

    import torch

    from medtest.core.plugins import part
    from medtest.systems import build_network

    compact = name.endswith("-compact")
    family = name.removesuffix("-compact").split("_")[0]
    info = part("systems", family)
    kind = info.load()
    protocol = {} if compact else {"protocol": "official"}
    system = kind(name, kind.Settings(**{**info.defaults, **protocol, **settings}))
    kept: list[Any] = []
    load = system._load

    def loading() -> tuple[Any, Any]:
        if compact:
            network, info = load()
        else:
            torch.manual_seed(0)
            network, info = build_network(name), None
            if family == "tganet":
                system.labels = torch.randn(5, 300)
        kept.append(copy.deepcopy(network))
        return network, info

    system._load = loading
    system.open(device="cpu", threads=threads)
    return system, kept[0]


def speed(name: str, threads: int, batch: int) -> tuple[float, float]:
    """Return milliseconds per image of the bare forward and of the whole ``predict``."""
    import torch

    from medtest.core.cases import Address

    system, bare = opened(name, threads)
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 255, (SIDE, SIDE, 3)).astype(np.uint8) for _ in range(batch)]
    addresses = [Address(dataset="bench", seed_id=str(index)) for index in range(batch)]
    given = tuple(
        tensor.contiguous() for tensor in system._arguments(system.inputs([system.fitted(image) for image in images]))
    )

    def forward() -> None:
        with torch.inference_mode():
            bare(*given)

    times = best_of([forward, lambda: system.predict(images, addresses)], threads=threads)
    return times[0] / batch, times[1] / batch


CHOICES: dict[str, dict[str, Any]] = {
    "as built": {"channels_last": False, "fuse_norms": False},
    "channels_last": {"channels_last": True, "fuse_norms": False},
    "fuse_norms": {"channels_last": False, "fuse_norms": True},
    "both": {"channels_last": True, "fuse_norms": True},
    "both, bfloat16": {"channels_last": True, "fuse_norms": True, "precision": "bfloat16"},
    "both, compile": {"channels_last": True, "fuse_norms": True, "compile": True},
}


def choices(name: str, threads: int, batch: int, which: Sequence[str]) -> dict[str, float]:
    """Return milliseconds per image of the forward pass under each choice of settings."""
    import torch

    rng = np.random.default_rng(0)
    images = [rng.integers(0, 255, (SIDE, SIDE, 3)).astype(np.uint8) for _ in range(batch)]
    runs: list[Callable[[], object]] = []
    for choice in which:
        system, _ = opened(name, threads, **CHOICES[choice])
        given = system.inputs([system.fitted(image) for image in images])
        if system.settings.precision == "bfloat16":
            given = given.to(torch.bfloat16)
        arguments = system._arguments(given)

        def forward(network: Any = system._network, values: Any = arguments) -> None:
            with torch.inference_mode():
                network(*values)

        runs.append(forward)
    times = best_of(runs, threads=threads, repeats=4)
    return {choice: found / batch for choice, found in zip(which, times, strict=True)}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(NAMES)}; all by default")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--what", choices=("speed", "choices"), default="speed")
    parser.add_argument("--without", nargs="*", default=[], choices=tuple(CHOICES), help="Choices left out.")
    args = options(parser, names=["ssformer-compact", "pranet"], threads=[1], batch=[1])
    names = args.names or NAMES
    if args.what == "choices":
        which = [choice for choice in CHOICES if choice not in args.without]
        print(f"{'network':<18}{'threads':>8}{'batch':>7}" + "".join(f"{choice:>16}" for choice in which))
        for name in names:
            for threads in args.threads:
                for batch in args.batch:
                    found = choices(name, threads, batch, which)
                    figures = "".join(f"{found[choice]:>16.1f}" for choice in which)
                    print(f"{name:<18}{threads:>8}{batch:>7}{figures}", flush=True)
        return
    print(f"{'network':<18}{'threads':>8}{'batch':>7}{'forward':>10}{'predict':>10}{'ratio':>8}{'images/s':>10}")
    worst = 0.0
    for name in names:
        for threads in args.threads:
            for batch in args.batch:
                bare, whole = speed(name, threads, batch)
                worst = max(worst, whole / bare)
                print(
                    f"{name:<18}{threads:>8}{batch:>7}{bare:>10.1f}{whole:>10.1f}{whole / bare:>8.2f}"
                    f"{1000 / whole:>10.1f}",
                    flush=True,
                )
    print(f"largest ratio {worst:.2f} (target: at most {TARGET})")


if __name__ == "__main__":
    main()
