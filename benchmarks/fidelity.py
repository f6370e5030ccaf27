"""Seconds and memory of figures of pictures, and of embedding them: ``python benchmarks/fidelity.py``.

First files are embedded by Inception-v3 with random weights, which takes as long as with published ones: decoding,
resizing and the start of the process are included. The line ends with what runs on the machine in all.

For the figures, features are drawn from a seed and kept as a run keeps them; each number of pictures is measured in a
process of its own. Memory is what the process holds at most beyond its imports: it does not grow with their number.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks._sizes import options

SIZES = (10_000, 40_000)
DIMENSION, CLASSES = 2048, 1008
HASHED = 100_000
FILES = 200
SIDE = 512


def main() -> None:
    """Measure every size and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=int, nargs="+", default=SIZES)
    parser.add_argument("--dimension", type=int, default=DIMENSION)
    parser.add_argument("--classes", type=int, default=CLASSES)
    parser.add_argument("--hashed", type=int, default=HASHED)
    parser.add_argument("--files", type=int, default=FILES, help="pictures to embed")
    given = options(parser, pictures=[300], dimension=16, classes=8, hashed=500, files=3)
    with tempfile.TemporaryDirectory() as folder:
        _print_embedding(Path(folder), given.files)
    heads = ("pictures", "FID", "KID", "IS", "peak MB", "duplicates")
    print("  ".join(f"{head:>10}" for head in heads) + f"   (seconds; {given.dimension} features)")
    for size in given.pictures:
        with tempfile.TemporaryDirectory() as folder:
            sizes = [str(one) for one in (size, given.dimension, given.classes, given.hashed)]
            command = [sys.executable, str(Path(__file__).resolve()), "measure", folder, *sizes]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        times = "  ".join(f"{found[name]:>10.1f}" for name in ("fid", "kid", "is", "memory", "duplicates"))
        print(f"{size:>10,}  {times}")
    print(f"duplicates: hashes of {given.hashed:,} pictures, a tenth of them copies, grouped")


def _print_embedding(folder: Path, count: int) -> None:
    import os

    from medtest.readers.embeddings.work import EmbeddingJob, by_content
    from medtest.results.fidelity.embedding import embed

    paths = _write_files(folder, count)
    net = {"net": "inception", "place": str(folder / "inception.pth")}
    cores = len(os.sched_getaffinity(0))
    store = str(folder / "features.sqlite")
    began = time.perf_counter()
    embedding = embed(EmbeddingJob(store=store, nets=[net], pictures=by_content(paths), device="cpu", cores=cores))
    seconds = time.perf_counter() - began
    if embedding.embedded != count:
        raise RuntimeError(f"{embedding.embedded} of {count} pictures were embedded")
    load = f", {os.getloadavg()[0]:.1f} processes on average" if hasattr(os, "getloadavg") else ""
    print(f"{count:,} PNG files of {SIDE}×{SIDE} by Inception-v3 on {cores} cores: {seconds:.0f} s{load}")


def _write_files(folder: Path, count: int) -> list[Path]:
    import cv2
    import numpy as np
    import torch

    from medtest.readers.embeddings.inception import _network

    torch.save(_network().state_dict(), folder / "inception.pth")
    rng = np.random.default_rng(3)
    paths = [folder / f"{number:05d}.png" for number in range(count)]
    for path in paths:
        coarse = rng.integers(0, 256, (16, 16, 3), np.uint8)
        cv2.imwrite(str(path), cv2.resize(coarse, (SIDE, SIDE), interpolation=cv2.INTER_CUBIC))
    return paths


def _measure(folder: Path, pictures: int, dimension: int, classes: int, hashed: int) -> None:
    from medtest.readers.embeddings import kept
    from medtest.results.fidelity.measures.frechet import FrechetReference, frechet
    from medtest.results.fidelity.measures.inception_score import inception_score
    from medtest.results.fidelity.measures.kernel_distance import kernel_distance

    kept._HELD = 0  # what would be held below a bound: here nothing is
    names = [f"{number:064x}" for number in range(pictures)]
    with kept.FeatureFile(folder / "features.sqlite") as file:
        _keep(file, names, dimension, classes)
        before = _peak()
        half = pictures // 2
        one, two = (kept.KeptFeatures(file, "net", some) for some in (names[:half], names[half:]))
        scores = kept.KeptFeatures(file, "net", names, scores=True)
        found = {"fid": _seconds(lambda: frechet(one, FrechetReference(two)))}
        found["kid"] = _seconds(lambda: kernel_distance(one, two))
        found["is"] = _seconds(lambda: inception_score(scores))
        found["memory"] = _peak() - before
    found["duplicates"] = _seconds(lambda: _group(hashed))
    print(json.dumps(found))


def _keep(file: object, names: list[str], dimension: int, classes: int) -> None:
    import numpy as np

    rng = np.random.default_rng(1)
    for start in range(0, len(names), 1000):
        some = names[start : start + 1000]
        rows = np.maximum(rng.standard_normal((len(some), dimension), np.float32) + 0.3, 0)
        scores = rng.standard_normal((len(some), classes), np.float32)
        file.keep("net", dict(zip(some, zip(rows, scores, strict=True), strict=True)))  # type: ignore[attr-defined]


def _group(count: int) -> None:
    import numpy as np

    from medtest.results.fidelity.duplicates.index import representatives

    rng = np.random.default_rng(2)
    hashes = rng.integers(0, 256, (count, 32), dtype=np.uint8)
    copies = count // 10
    hashes[-copies:] = hashes[:copies]
    hashes[-copies:, 0] ^= 1
    groups = representatives([one.tobytes() for one in hashes], None, 0.0)
    if sum(one.number != number for number, one in enumerate(groups)) != copies:
        raise RuntimeError("copies were missed")


def _seconds(work: object) -> float:
    began = time.perf_counter()
    work()  # type: ignore[operator]
    return time.perf_counter() - began


def _peak() -> float:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:
        _measure(Path(sys.argv[2]), *map(int, sys.argv[3:]))
    else:
        main()
