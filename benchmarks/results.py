"""Seconds and memory of tables from 10,000 and 100,000 records: ``python benchmarks/results.py [--records N …]``.

Each size runs in a process of its own, so that its peak memory is its own. CPU seconds are what other work on the
machine does not change.
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

SIZES = (10_000, 100_000)
SEVERITIES = 5
HERE = Path(__file__).resolve().parent


def main() -> None:
    """Measure every size and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, nargs="+", default=SIZES)
    heads = ("records", "read", "efr.csv", "slices.csv", "all tables", "report", "report MB", "peak MB")
    print("  ".join(f"{head:>10}" for head in heads) + "   (CPU seconds)")
    before = None
    for size in options(parser, records=[300, 600]).records:
        with tempfile.TemporaryDirectory() as folder:
            _make(size, Path(folder))
            command = [sys.executable, str(HERE / "results.py"), "measure", folder]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        times = "  ".join(f"{found[name]:>10.2f}" for name in ("read", "efr", "slices", "tables", "report", "size"))
        print(
            f"{found['records']:>10,}  {times}  {found['memory']:>10.0f}   after imports alone: {found['idle']:.0f} MB"
        )
        if before is not None:
            more, longer = found["records"] / before["records"], found["tables"] / before["tables"]
            print(f"ratio: {more:.1f} x the records, {longer:.1f} x the time")
        before = found


def _make(size: int, folder: Path) -> None:
    sys.path.insert(0, str(HERE.parent / "tests"))
    from records_maker import RELATIONS, make_records, write_records

    per_seed = 2 + (len(RELATIONS) - 1) * SEVERITIES
    seeds = size // per_seed
    write_records(make_records(seeds={"kvasir": seeds // 2, "colon": seeds - seeds // 2}), folder)


def _measure(folder: Path) -> None:
    from medtest.cli.bootstrap import quiet_libraries

    quiet_libraries()  # as the command line does, before Arrow chooses its allocator
    sys.path.insert(0, str(HERE.parent / "tests"))
    import pandas as pd  # noqa: F401 - imports are not what is measured
    import statsmodels.api as sm  # noqa: F401
    from records_maker import RELATIONS
    from sliceline import slicefinder  # noqa: F401

    from medtest.report.pages.browser.data import browser_of
    from medtest.report.pages.material import Material
    from medtest.report.pages.page import report_html
    from medtest.results.cube.axes import axes
    from medtest.results.rates.efr import efr_table
    from medtest.results.rates.slices import failing_slices
    from medtest.results.records.records_io import Records
    from medtest.results.records.wanted import Wanted
    from medtest.results.tables import make_tables
    from medtest.suite.model import Criterion

    wanted = Wanted(
        suite="benchmark",
        version="1",
        seeds={"phantoms": "phantoms"},
        relations={name: name for name in RELATIONS},
        primary=Criterion(),
        scores=("dice", "iou", "both", "either"),
        thresholds=(0.25, 0.5),
        against=("truth", "source"),
    )
    idle = _peak_mb()
    read, records = _timed(lambda: Records.read(folder))
    efr, _ = _timed(lambda given=records: efr_table(given, wanted.criteria))
    slices, _ = _timed(lambda given=records: failing_slices(given, wanted.primary, axes(given)))
    count = len(records.followups) + len(records.sources)
    del records
    tables, made = _timed(lambda: make_tables(folder, wanted))
    material = Material(folder=folder, wanted=wanted, tables=made)
    shown = [made.shown or material.records()]
    report, page = _timed(lambda: report_html(material, browser_of([material], shown)))
    peak = _peak_mb()
    print(
        json.dumps(
            {
                "records": count,
                "read": read,
                "efr": efr,
                "slices": slices,
                "tables": tables,
                "report": report,
                "size": len(page.encode()) / 1e6,
                "memory": peak,
                "idle": idle,
            }
        )
    )


def _peak_mb() -> float:
    """Return the peak of this process since it was started; getrusage would count its parent's too."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def _timed(do):
    started = time.process_time()
    value = do()
    return time.process_time() - started, value


if __name__ == "__main__":
    _measure(Path(sys.argv[2])) if sys.argv[1:2] == ["measure"] else main()
