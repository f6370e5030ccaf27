"""Makes the defended weights that ship: trains compact classifiers further under attack and puts them into the package.

``python scripts/defended_weights.py [FAMILY:DEFENCE …] [--out FOLDER] [--phantoms 1600] [--threads 1]`` trains those
that are named, or all eight, one after another; the same command goes on where it was stopped. The recipe is
``defended``; the cards hold the commands.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

SUITES = {
    "attnmel": ("robust_benchmark_melanoma", ("standard", "mpadvt", "maadvt")),
    "inceptionv3_dr": ("robust_benchmark_retinopathy", ("standard", "mpadvt", "maadvt")),
    "chexnet": ("robust_benchmark_chest", ("standard", "mpadvt")),
}
ALL = [f"{family}:{method}" for family, (_, methods) in SUITES.items() for method in methods]


def words_of(family: str, method: str, given: argparse.Namespace) -> list[str]:
    """Return the training's command, without its folder."""
    words = ["medtest", "train", "further", f"model={family}", f"suite={SUITES[family][0]}"]
    words += [f"phantoms={given.phantoms}", "recipe=defended", f"defence={method}", *given.change]
    return [*words, "compare=false", "track=false", "--threads", str(given.threads)]


def main() -> int:
    """Train and release each network that was named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("which", nargs="*", metavar="FAMILY:DEFENCE", default=ALL)
    parser.add_argument("--out", type=Path, default=Path("outputs") / "defended")
    parser.add_argument("--phantoms", type=int, default=1600)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--change", action="append", default=[], metavar="KEY=VALUE", help="Further words of training.")
    given = parser.parse_args()
    unknown = [one for one in given.which if one not in ALL]
    if unknown:
        parser.error(f"{', '.join(unknown)}: one of {', '.join(ALL)}")
    for one in given.which:
        family, _, method = one.partition(":")
        folder = given.out / f"{family}-{method}"
        folder.parent.mkdir(parents=True, exist_ok=True)
        words = words_of(family, method, given)
        run([*words, f"out={folder}"])
        note = given.out / f"{family}-{method}.txt"
        note.write_text(" ".join([*words, f"out={family}-{method}"]) + "\n", encoding="utf-8")
        weights = folder / f"{family}.safetensors"
        release = ["medtest", "train", "release", "--network", family, "--weights", str(weights)]
        run([*release, "--commands", str(note), "--phantoms", "300", "--threads", str(given.threads)])
    return 0


def run(words: list[str]) -> None:
    """Run a command of medtest in this Python, and stop at one that fails."""
    print(" ".join(words), flush=True)
    subprocess.run([sys.executable, "-m", *words], check=True)


if __name__ == "__main__":
    sys.exit(main())
