"""What the compact networks cost: milliseconds per image, alone and in batches, on one and two threads.

Run: ``python benchmarks/networks.py``. Process time is counted, best of several, so that a busy machine disturbs
little; on two threads it is wall time. The system's whole ``predict`` (resizing, normalising, resizing back) stands
beside the bare forward pass of the same network.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

REPEATS = 7
BATCHES = (1, 8)


def _best(run: Callable[[], object], clock: Callable[[], float]) -> float:
    run()
    times = []
    for _ in range(REPEATS):
        started = clock()
        run()
        times.append(clock() - started)
    return 1000 * min(times)


def measure(name: str, threads: int) -> list[dict[str, Any]]:
    """Return a row per batch size: bare forward and whole predict, milliseconds per image."""
    import torch

    from medtest.cases import Address
    from medtest.plugins import part

    info = part("systems", name)
    kind = info.load()
    system = kind(name, kind.Settings(**info.defaults))
    system.open(device="cpu", threads=threads)
    clock = time.process_time if threads == 1 else time.perf_counter
    rng = np.random.default_rng(0)
    rows = []
    for batch in BATCHES:
        images = [rng.integers(0, 255, (512, 512, 3)).astype(np.uint8) for _ in range(batch)]
        addresses = [Address(dataset="bench", seed_id=str(i)) for i in range(batch)]
        tensor = system._input(images)
        with torch.inference_mode():
            bare = _best(lambda t=tensor: system._network(t), clock) / batch
        whole = _best(lambda i=images, a=addresses: system.predict(i, a), clock) / batch
        rows.append(
            {"system": system.record_name, "threads": threads, "batch": batch, "forward_ms": bare, "predict_ms": whole}
        )
    system.close()
    return rows


def main() -> None:
    """Print the table."""
    print(f"{'system':<18}{'threads':>8}{'batch':>7}{'forward':>10}{'predict':>10}{'ratio':>8}   ms per image")
    for name in ("pranet", "ssformer"):
        for threads in (1, 2):
            for row in measure(name, threads):
                ratio = row["predict_ms"] / row["forward_ms"]
                print(
                    f"{row['system']:<18}{row['threads']:>8}{row['batch']:>7}"
                    f"{row['forward_ms']:>10.1f}{row['predict_ms']:>10.1f}{ratio:>8.2f}"
                )


if __name__ == "__main__":
    main()
