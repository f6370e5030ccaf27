"""How long a phantom takes on one core: CPU time per image at the sizes that matter, best of several rounds.

python benchmarks/phantoms.py [--images 12] [--rounds 5]
"""

from __future__ import annotations

import argparse
import time

import cv2

from benchmarks._sizes import options
from medtest.phantoms.colon import colon_rng, make_colon

TARGETS: tuple[tuple[int, int, float], ...] = ((352, 352, 35.0), (531, 622, 60.0), (1072, 1920, 375.0))
"""Height, width and the most milliseconds of CPU time allowed."""


def milliseconds(height: int, width: int, *, images: int, rounds: int) -> float:
    """Return mean CPU time per phantom; of each phantom the fastest round counts, for other processes disturb."""
    total = 0.0
    for index in range(images):
        best = float("inf")
        for _ in range(rounds):
            start = time.process_time()
            make_colon(colon_rng(1, "benchmark", index), size=(height, width))
            best = min(best, time.process_time() - start)
        total += best
    return 1000.0 * total / images


def main() -> None:
    """Print times beside their targets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = options(parser, images=1, rounds=1)
    cv2.setNumThreads(1)
    for height, width, target in TARGETS:
        taken = milliseconds(height, width, images=chosen.images, rounds=chosen.rounds)
        print(f"phantom {height:>4} x {width:<4}  {taken:6.1f} ms  target {target:5.0f} ms  ratio {taken / target:.2f}")


if __name__ == "__main__":
    main()
