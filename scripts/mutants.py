"""Put the faults of mutants.yaml into a copy of the repository, one after the other, and run the tests that cover them.

    python scripts/mutants.py [NUMBER …]

Each line says whether the tests found the fault ("killed") or passed ("survived"; "equivalent" if mutants.yaml gives a
reason why nothing can find it). A fault whose text is no longer in its file is "unmatched": adapt mutants.yaml. The
copy is of HEAD; what is not committed is left out.
"""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NotRequired, TypedDict

import yaml

ROOT = Path(__file__).parents[1]
LIBRARIES = ("cv2", "hydra", "hypothesis", "matplotlib.figure", "pandas", "pyarrow.parquet", "pydantic", "pytest",
             "scipy.ndimage", "scipy.stats", "statsmodels.api", "torch", "torchvision", "typer")  # fmt: skip
"""Libraries that are imported once, before the tests of each fault run in a fork."""


class Mutant(TypedDict):
    """A fault.

    Keys:
        file: A file below medtest/.
        old: A text that is in it once.
        new: The fault.
        tests: Files below tests/.
        equivalent: Reason why the fault changes nothing that a user or a test can see; absent for other faults.
    """

    file: str
    old: str
    new: str
    tests: list[str]
    equivalent: NotRequired[str]


def outcome(copy: Path, mutant: Mutant, log: Path) -> str:
    """Return ``survived``, ``equivalent``, ``unmatched``, or ``killed`` with the test that failed.

    A log holds what the tests print.
    """
    path = copy / "medtest" / mutant["file"]
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if text.count(mutant["old"]) != 1:
        return "unmatched"
    written = path.stat()
    path.write_text(text.replace(mutant["old"], mutant["new"]), encoding="utf-8")
    os.utime(path, (0, 0))  # else compiled code of a file of equal length and time is taken for its code
    missing = [name for name in mutant["tests"] if not (copy / "tests" / name).is_file()]
    code = _tested(copy, [f"tests/{name}" for name in mutant["tests"] if name not in missing], log)
    path.write_text(text, encoding="utf-8")
    os.utime(path, ns=(written.st_atime_ns, written.st_mtime_ns))
    failed = re.search(
        r"^(?:FAILED|ERROR) tests/(\S+)", log.read_text(encoding="utf-8", errors="replace"), re.MULTILINE
    )
    passed = f"equivalent: {mutant['equivalent']}" if "equivalent" in mutant else "survived"
    result = passed if code == 0 else f"killed by {failed[1] if failed else f'exit code {code}'}"
    return f"{result} (no file {missing})" if missing else result


def _tested(copy: Path, tests: list[str], log: Path) -> int:
    """Run tests in a fork of this process and return pytest's exit code."""
    child = os.fork()
    if not child:
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        os.chdir(copy)
        sys.path[:] = [str(copy), *(entry for entry in sys.path if entry not in ("", str(ROOT), str(ROOT / "scripts")))]
        os.environ["PYTHONPATH"] = str(copy)
        import pytest

        code = pytest.main(["-q", "-x", "-n0", "-p", "no:cacheprovider", *tests])
        sys.stdout.flush()
        os._exit(int(code))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main() -> None:
    """Run the chosen faults, or all."""
    mutants: list[Mutant] = yaml.safe_load((ROOT / "scripts" / "mutants.yaml").read_text(encoding="utf-8"))
    numbers = [int(argument) for argument in sys.argv[1:]] or list(range(1, len(mutants) + 1))
    for name in LIBRARIES:
        importlib.import_module(name)
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        subprocess.run(["git", "-C", str(ROOT), "worktree", "add", "-q", "--detach", str(copy), "HEAD"], check=True)
        try:
            for number in numbers:
                mutant, begun = mutants[number - 1], time.monotonic()
                result = outcome(copy, mutant, Path(folder) / "log")
                counts[re.split("[ :]", result)[0]] += 1
                print(f"{number:3} {time.monotonic() - begun:5.0f} s  {mutant['file']}: {result}", flush=True)
        finally:
            subprocess.run(["git", "-C", str(ROOT), "worktree", "remove", "--force", str(copy)], check=True)
    print(", ".join(f"{count} {result}" for result, count in sorted(counts.items())))


if __name__ == "__main__":
    main()
