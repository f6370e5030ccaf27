"""Print every figure of speed and memory that README and docs quote: ``python -m benchmarks [NAME …]``.

``MEDTEST_BENCH_SIZES=small`` runs each in seconds, to see that it works.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
ORDER = ("startup", "phantoms", "preparation", "relations", "networks", "runner", "memory", "results")


def main() -> int:
    """Run the benchmarks one after the other, each in a process of its own, on as few threads as it asks for."""
    names = [n for n in ORDER if (HERE / f"{n}.py").is_file()]
    names += sorted(p.stem for p in HERE.glob("*.py") if p.stem not in ORDER and not p.stem.startswith("_"))
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(names)}; all by default")
    chosen = parser.parse_args().names or names
    unknown = sorted(set(chosen) - set(names))
    if unknown:
        parser.error(f"no benchmark called {', '.join(unknown)}; there are {', '.join(names)}")
    environment = {**os.environ, "PYTHONPATH": f"{HERE.parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    worst = 0
    for name in chosen:
        print(f"\n== {name}", flush=True)
        began = time.monotonic()
        worst = max(
            worst, subprocess.run([sys.executable, str(HERE / f"{name}.py")], env=environment, check=False).returncode
        )
        print(f"   ({time.monotonic() - began:.0f} s)", flush=True)
    return worst


if __name__ == "__main__":
    sys.exit(main())
