"""What sending a run to MLflow adds to it: ``python benchmarks/tracking.py [--cases 20000] [--model pranet]``.

Runs a suite of phantoms as the command line does, from nothing, and prints the seconds from the first line about
tracking to the end beside those of the whole command. The store is a folder's own, or the server that
``MLFLOW_TRACKING_URI`` names (``medtest server``). Nothing is sent while cases run. Target: at most 3 %.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
A_SEED = 47
"""Cases of a seed of polyp_seg: nine relations of five severities, the source, and the source again."""
TARGET = 3.0


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--model", default="pranet")
    args = parser.parse_args()
    seeds = max(1, round(args.cases / A_SEED))
    words = ["suite=polyp_seg", f"model={args.model}", f"seeds.phantoms.count={seeds}"]
    with tempfile.TemporaryDirectory(prefix="medtest-tracking-") as home:
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, str(ROOT / "run.py"), *words],
            env={**os.environ, "MEDTEST_HOME": home, "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        sending, said = 0.0, []
        for line in process.stdout or ():
            said.append(line)
            if line.rstrip().endswith("tracking"):
                sending = time.perf_counter()
        ended = time.perf_counter()
        if process.wait() > 1 or not sending:
            sys.exit("".join(said[-20:]))
    share = 100 * (ended - sending) / (ended - began)
    print(f"{seeds * A_SEED:,} cases: {ended - began:.0f} s, of which {ended - sending:.1f} s for MLflow")
    print(f"share: {share:.1f} % (target {TARGET:.0f} %)")


if __name__ == "__main__":
    main()
