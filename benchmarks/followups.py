"""Follow-ups a second into the store, writing included: the published suite's relations on phantoms at 512×512.

``python benchmarks/followups.py [--share 0.1] [--workers 2] [--formats]``

The report's study has 18,468 follow-ups: 2,052 seeds × 9 relations, drawn from the published ranges. A share of it is
made into a temporary store, then read back, verified and looked up again. Printed are wall and processor time (on a
busy machine the latter tells more), both projected to the whole study; the target is 8 minutes on two cores.
``--formats`` compares ways to encode a picture instead.
"""

from __future__ import annotations

import argparse
import io
import os
import resource
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import cv2
import numpy as np
from PIL import Image as PillowImage

from benchmarks._clock import processor_seconds
from benchmarks._sizes import options
from medtest.core.cases import UNCHANGED, Image
from medtest.core.files.by_content import encode
from medtest.runner.followups import FollowUpStore, make_followups
from medtest.runner.followups.verify import verify_store
from medtest.runner.units.parts import Parts
from medtest.suite.compose import load_suite
from medtest.suite.model import Invocation, Suite

STUDY_SEEDS, STUDY_RELATIONS = 2052, 9
STUDY = STUDY_SEEDS * STUDY_RELATIONS
TARGET_MINUTES = 8.0
CORES = 2


def study(seeds: int) -> Suite:
    """Return the published suite's nine relations on so many phantoms."""
    suite = load_suite("polyp_seg_published", [f"seeds.phantoms.count={seeds}"])
    return replace(suite, relations=tuple(p for p in suite.relations if p.id != UNCHANGED))


def measure_store(share: float, workers: int) -> None:
    """Make a share of the study, read it back, verify it."""
    seeds = max(2, round(STUDY_SEEDS * share))
    suite = study(seeds)
    with tempfile.TemporaryDirectory(prefix="medtest-followups-") as folder:
        invocation = Invocation(home=Path(folder))
        before = processor_seconds()
        report = make_followups(suite, invocation, workers=workers)
        cpu = processor_seconds() - before
        done = report.made + report.skipped
        print(f"{report.made} made, {report.skipped} skipped of {seeds} seeds, {report.workers} workers")
        rate = done / report.seconds
        print(f"wall       {rate:8.1f} follow-ups/s  {1000 / rate:6.1f} ms each  {report.seconds:7.1f} s")
        print(f"processor  {done / cpu:8.1f} follow-ups/s  {1000 * cpu / done:6.1f} ms each  {cpu:7.1f} s")
        print(f"bytes      {report.bytes / max(1, report.made):10,.0f} each (sources and masks included)")
        wall_minutes, cpu_minutes = STUDY / rate / 60, STUDY * cpu / done / CORES / 60
        print(
            f"the study's {STUDY:,}: {wall_minutes:.1f} min at this wall rate; {cpu_minutes:.1f} min of two whole cores"
        )
        print(f"{STUDY * report.bytes / max(1, report.made) / 1e9:.1f} GB; target {TARGET_MINUTES:g} min")
        peaks = [resource.getrusage(w).ru_maxrss / 1024 for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        print(f"memory     {peaks[0]:8.0f} MiB at most here, {peaks[1]:.0f} MiB in a worker")
        before = processor_seconds()
        again = make_followups(suite, invocation, workers=workers)
        looked_up = processor_seconds() - before
        print(f"made again {again.reused / again.seconds:8.0f} follow-ups/s looked up, {looked_up:.1f} s")
        store = FollowUpStore.open(report.folder)
        before = time.process_time()
        for entry in store.entries(report.suite):
            store.image(entry.followup_sha256)
        read = (time.process_time() - before) / max(1, report.made)
        print(f"read       {1 / read:8.1f} follow-ups/s  {1000 * read:6.1f} ms each, checked")
        before = processor_seconds()
        verified = verify_store(store)
        print(f"verified   {verified.files / (processor_seconds() - before):8.1f} pictures/s of processor time")
        size = store.index.path.stat().st_size
        print(f"index      {size / max(1, verified.entries):8.0f} bytes a follow-up")


def _png(*settings: int) -> Callable[[Image], bytes]:
    return lambda image: cv2.imencode(".png", cv2.cvtColor(image, cv2.COLOR_RGB2BGR), settings)[1].tobytes()


def _webp(method: int, quality: int) -> Callable[[Image], bytes]:
    def write(image: Image) -> bytes:
        buffer = io.BytesIO()
        PillowImage.fromarray(image).save(buffer, "WEBP", lossless=True, method=method, quality=quality)
        return buffer.getvalue()

    return write


def _read_cv2(content: bytes) -> Image:
    return cv2.cvtColor(cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)


def _read_pillow(content: bytes) -> Image:
    return np.asarray(PillowImage.open(io.BytesIO(content)))


def measure_formats(seeds: int, passes: int) -> None:
    """Compare encodings by processor time, best of several passes."""
    cv2.setNumThreads(1)
    parts = Parts(study(seeds), None, 8)
    images: list[Image] = []
    for ref in parts.sources[0].refs():
        seed = parts.prepared(0, ref)
        made = [parts.make(seed, address) for address in parts.unit(ref).cases]
        images += [case.follow.image for case in made if case.follow is not None]
    level, kind, strategy = cv2.IMWRITE_PNG_COMPRESSION, cv2.IMWRITE_PNG_FILTER, cv2.IMWRITE_PNG_STRATEGY
    rle, huffman = cv2.IMWRITE_PNG_STRATEGY_RLE, cv2.IMWRITE_PNG_STRATEGY_HUFFMAN_ONLY
    ways: dict[str, tuple[Callable[[Image], bytes], Callable[[bytes], Image]]] = {
        "the store's (PNG up, run lengths)": (lambda image: encode("images", image), _read_cv2),
        "PNG, OpenCV's default": (_png(), _read_cv2),
        "PNG all filters, level 1": (_png(level, 1), _read_cv2),
        "PNG all filters, level 3": (_png(level, 3), _read_cv2),
        "PNG up, Huffman only": (_png(level, 1, kind, cv2.IMWRITE_PNG_FILTER_UP, strategy, huffman), _read_cv2),
        "PNG average, run lengths": (_png(level, 1, kind, cv2.IMWRITE_PNG_FILTER_AVG, strategy, rle), _read_cv2),
        "PNG Paeth, run lengths": (_png(level, 1, kind, cv2.IMWRITE_PNG_FILTER_PAETH, strategy, rle), _read_cv2),
        "WebP lossless, method 0": (_webp(0, 0), _read_pillow),
        "WebP lossless, method 1": (_webp(1, 0), _read_pillow),
    }
    print(f"{len(images)} pictures of 512×512, one thread, best of {passes}")
    for name, (write, read) in ways.items():
        written: list[bytes] = []
        slow, back = [], []
        for _ in range(passes):
            began = time.process_time()
            written = [write(image) for image in images]
            slow.append(time.process_time() - began)
            began = time.process_time()
            seen = [read(content) for content in written]
            back.append(time.process_time() - began)
        if not all(np.array_equal(a, b) for a, b in zip(seen, images, strict=True)):
            raise SystemExit(f"{name} is not lossless")
        each = 1000 / len(images)
        size = sum(map(len, written)) / len(written) / 1024
        print(f"{name:36} write {each * min(slow):6.1f} ms  read {each * min(back):5.1f} ms  {size:6.0f} KiB")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=0.02, help="share of the study's 18,468 follow-ups to make")
    parser.add_argument("--workers", type=int, default=CORES)
    parser.add_argument("--formats", action="store_true", help="compare encodings instead")
    parser.add_argument("--passes", type=int, default=3)
    chosen = options(parser, share=0.0005, workers=1, passes=1)
    if chosen.formats:
        measure_formats(3, chosen.passes)
    else:
        measure_store(chosen.share, chosen.workers)


if __name__ == "__main__":
    main()
