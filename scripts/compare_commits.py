"""Run two commits over the same suites on this machine and tell what differs: for changes that are to change nothing.

``python scripts/compare_commits.py 521ea6e`` compares that commit with HEAD; ``.`` is the working tree as it stands.
Compared are digests and what they cover, every column of the records but those that measure time, hashes of sources
and follow-ups, tables, and the curves of series. Exit code 0: nothing differs; 1: something does; 2: a run failed.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.compute as pc
import pyarrow.parquet as pq

from medtest.core.errors import ExitCode
from medtest.core.records import KEY_COLUMNS, UNEQUAL_COLUMNS

ROOT = Path(__file__).resolve().parents[1]
SUITES: Mapping[str, Sequence[str]] = {
    "polyp_seg": (),
    "wce": (),
    "robust_benchmark_melanoma": ("only=relation:rotate,relation:gaussian_noise",),
    "medvqa": ("only=relation:blur,relation:text,relation:unchanged",),
    "denoising": ("model=median",),
    "liver": ("model=region_growing",),
}
"""What is run by default, with what keeps it short: ``--whole`` leaves that out."""
_QUIET = ("tracking=none", "device=cpu", "workers=1", "quiet=true", "privacy.images=none")
_HASHES = ("source_sha256", "followup_sha256")
_MEASURED = ("seconds", "attempts")
"""How columns of tables begin that sum up :data:`UNEQUAL_COLUMNS`."""
_MOST = 12
"""Lines that are shown of one thing that differs."""


@dataclass(frozen=True)
class Side:
    """One of the two commits.

    Attributes:
        name: As it was typed, with the commit's short hash.
        tree: Its files.
        home: Where its runs write.
        python: The interpreter that runs it.
    """

    name: str
    tree: Path
    home: Path
    python: str

    def environment(self) -> dict[str, str]:
        """Return the environment in which its own files are imported and no others of ours."""
        return os.environ | {"PYTHONPATH": str(self.tree), "MEDTEST_HOME": str(self.home)}

    def check(self) -> None:
        """End the program where the interpreter imports other files than this commit's."""
        asked = [self.python, "-c", "import medtest; print(medtest.__file__)"]
        ran = subprocess.run(asked, cwd=self.tree, env=self.environment(), capture_output=True, text=True, check=False)
        if not Path(ran.stdout.strip()).is_relative_to(self.tree):
            sys.exit(f"{self.name}: {self.python} does not import it: {(ran.stdout or ran.stderr).strip()[-500:]}")

    def run(self, suite: str, tokens: Sequence[str]) -> str:
        """Run one suite; return what went wrong, or ""."""
        asked = [self.python, "run.py", f"suite={suite}", *_QUIET, *tokens]
        ran = subprocess.run(asked, cwd=self.tree, env=self.environment(), capture_output=True, text=True, check=False)
        if ran.returncode in (ExitCode.OK, ExitCode.GATE_FAILED):
            return ""
        return f"{self.name}: {suite} ended with {ran.returncode}:\n{(ran.stderr or ran.stdout)[-2000:]}"

    def folders(self, suite: str) -> dict[str, Path]:
        """Return the folder of each system."""
        found = (self.home / "outputs" / suite).glob("*/*/run.json")
        return {path.parent.parent.name: path.parent for path in sorted(found)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run both commits and print what differs."""
    options = _options(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that work trees are removed
    suites = options.suites.split(",") if options.suites else list(SUITES)
    differing, failed = 0, 0
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="compare-commits-")))
        before = stack.enter_context(_side("before", options.before, scratch, options.python_before or options.python))
        after = stack.enter_context(_side("after", options.after, scratch, options.python))
        before.check()
        after.check()
        print(f"before {before.name}\nafter  {after.name}")
        for suite in suites:
            tokens = [f"limit={options.limit}", *(() if options.whole else SUITES.get(suite, ()))]
            began = time.monotonic()
            problems = [problem for side in (before, after) if (problem := side.run(suite, tokens))]
            failed += bool(problems)
            lines = problems or compare(before, after, suite)
            differing += bool(lines)
            said = "\n".join(f"  {line}" for line in lines) or "  equal: " + _counted(after, suite)
            print(f"{suite} {' '.join(tokens)} ({time.monotonic() - began:.0f} s)\n{said}", flush=True)
    print("nothing differs" if not differing else f"{differing} of {len(suites)} suites differ")
    return 2 if failed else int(differing > 0)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", help="a commit")
    parser.add_argument("after", nargs="?", default="HEAD", help="another, or . for the working tree; HEAD by default")
    parser.add_argument("--suites", help=f"joined by commas; by default {','.join(SUITES)}")
    parser.add_argument("--limit", type=int, default=1, help="images of each suite, 1 by default")
    parser.add_argument("--whole", action="store_true", help="all relations and systems of the suites")
    parser.add_argument("--python", default=sys.executable, help="interpreter of both; this one by default")
    parser.add_argument("--python-before", help="interpreter of the first, where its requirements are others")
    return parser.parse_args(arguments)


@contextmanager
def _side(role: str, commit: str, scratch: Path, python: str) -> Iterator[Side]:
    """Give a commit's files in a work tree of their own, which is removed afterwards."""
    home = scratch / f"{role}-home"
    if commit == ".":
        yield Side("the working tree", ROOT, home, python)
        return
    tree = scratch / role
    _git("worktree", "add", "--detach", "--quiet", str(tree), commit)
    try:
        yield Side(f"{commit} ({_git('log', '-1', '--format=%h %s', commit)[:90]})", tree, home, python)
    finally:
        _git("worktree", "remove", "--force", str(tree))


def _git(*words: str) -> str:
    ran = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False)
    if ran.returncode:
        sys.exit(f"git {words[0]}: {ran.stderr.strip()}")
    return ran.stdout.strip()


# --- what differs ----------------------------------------------------------------------------------------------------


def compare(before: Side, after: Side, suite: str) -> list[str]:
    """Return what differs between the runs of a suite, a line each; an empty list where nothing does."""
    ours, theirs = before.folders(suite), after.folders(suite)
    lines = [f"{name}: run by one alone" for name in sorted(ours.keys() ^ theirs.keys())]
    for system in sorted(ours.keys() & theirs.keys()):
        pair = ours[system], theirs[system]
        found = [*_digests(*pair), *_records(*pair), *_files(pair[0] / "tables", pair[1] / "tables")]
        lines += [f"{system}: {line}" for line in found]
    homes = before.home / "outputs" / suite, after.home / "outputs" / suite
    lines += _files(*homes, "comparison*.csv")
    return lines + _files(homes[0] / "alpha_sigma", homes[1] / "alpha_sigma")


def _counted(side: Side, suite: str) -> str:
    folders = side.folders(suite)
    rows = sum(pq.read_metadata(folder / "records.parquet").num_rows for folder in folders.values())
    tables = sum(len(list((folder / "tables").glob("*.csv"))) for folder in folders.values())
    digests = ", ".join(f"{name} {folder.name}" for name, folder in folders.items())
    return f"{rows:,} records, {tables} tables, digests of {digests}"


def _digests(before: Path, after: Path) -> list[str]:
    if before.name == after.name:
        return []
    covers = [json.loads((folder / "run.json").read_text(encoding="utf-8"))["covers"] for folder in (before, after)]
    return [f"digest {before.name} became {after.name}", *_cut(list(_paths(covers[0], covers[1])))]


def _paths(before: Any, after: Any, at: str = "covers") -> Iterator[str]:
    """Name every place at which two JSON values differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(before.keys() | after.keys()):
            yield from _paths(before.get(key), after.get(key), f"{at}.{key}")
    elif before != after:
        yield f"{at}: {json.dumps(before)[:80]} became {json.dumps(after)[:80]}"


def _records(before: Path, after: Path) -> list[str]:
    """Compare records case by case; columns that measure time are left out."""
    tables = [pq.read_table(folder / "records.parquet").replace_schema_metadata(None) for folder in (before, after)]
    order = [(name, "ascending") for name in KEY_COLUMNS]
    ours, theirs = (table.take(pc.sort_indices(table, sort_keys=order)) for table in tables)
    names = [name for name in ours.column_names if name in theirs.column_names and name not in UNEQUAL_COLUMNS]
    alone = {*ours.column_names} ^ {*theirs.column_names}
    lines = [f"records: column {name} is in one alone" for name in sorted(alone)]
    if not ours.select(KEY_COLUMNS).equals(theirs.select(KEY_COLUMNS)):
        return [*lines, f"records: other cases ({ours.num_rows} rows became {theirs.num_rows})"]
    for name in names:
        left, right = ours[name].to_pylist(), theirs[name].to_pylist()
        rows = [row for row, (one, two) in enumerate(zip(left, right, strict=True)) if not _same(one, two)]
        if rows:
            first = "/".join(str(ours[key][rows[0]].as_py()) for key in KEY_COLUMNS)
            what = "hash" if name in _HASHES else "records"
            lines.append(f"{what}: {name} differs in {len(rows)} of {len(left)} rows, first {first}:")
            lines.append(f"  {str(left[rows[0]])[:120]} became {str(right[rows[0]])[:120]}")
        elif ours[name].type != theirs[name].type:
            lines.append(f"records: {name} was {ours[name].type} and is {theirs[name].type}")
    return lines


def _same(one: object, two: object) -> bool:
    return one == two or (one != one and two != two)  # NaN is NaN


def _files(before: Path, after: Path, pattern: str = "*.*") -> list[str]:
    """Compare tables byte by byte, columns that sum up times left out; pictures are not looked at."""
    suffixes = (".csv", ".tex", ".dat")
    ours, theirs = ({p.name: p for p in at.glob(pattern) if p.suffix in suffixes} for at in (before, after))
    lines = [f"{name}: made by one alone" for name in sorted(ours.keys() ^ theirs.keys())]
    for name in sorted(ours.keys() & theirs.keys()):
        left, right = _lines(ours[name]), _lines(theirs[name])
        rows = [number for number, (one, two) in enumerate(zip(left, right, strict=False)) if one != two]
        if rows or len(left) != len(right):
            lines.append(f"{name}: {len(rows)} of {len(left)} lines differ, {len(right)} lines now")
            lines += [f"  {left[row][:150]} became {right[row][:150]}" for row in rows[:1]]
    return _cut(lines)


def _lines(path: Path) -> list[str]:
    if path.suffix != ".csv" or not any(word in path.open(encoding="utf-8").readline() for word in _MEASURED):
        return path.read_text(encoding="utf-8").split("\n")
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    kept = [name for name in frame.columns if not name.startswith(_MEASURED)]
    return [",".join(row) for row in frame[kept].itertuples(index=False)]


def _cut(lines: list[str]) -> list[str]:
    return lines if len(lines) <= _MOST else [*lines[:_MOST], f"… and {len(lines) - _MOST} more lines"]


if __name__ == "__main__":
    sys.exit(main())
