"""What sending a run to MLflow adds to it: ``python -m benchmarks tracking [--limit 2] [--model pranet]``.

Runs ``suite=polyp_seg`` as the command line does, into a new local store and into a new ``medtest server``, and prints
the seconds from the line "tracking" to the end: all of them, and those beyond the import of MLflow, which is timed in a
process of its own. Targets: 3 s beyond the import for the local store, 6 s for the server. The server needs PostgreSQL
and the extra ``server``; ``MLFLOW_TRACKING_URI`` names another store, which is measured in place of both.
``MEDTEST_BENCH_SIZES=small`` takes one image and the local store alone.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks._sizes import options

ROOT = Path(__file__).resolve().parents[1]
TARGETS = {"local store": 3.0, "team server": 6.0}
_IMPORT = "import mlflow.store.tracking.sqlalchemy_store"
_START_SECONDS = 300.0


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, default=2, help="images; each has 47 cases")
    parser.add_argument("--model", default="pranet")
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--stores", nargs="+", choices=list(TARGETS), default=list(TARGETS))
    args = options(parser, limit=1, passes=1, stores=["local store"])
    words = ["suite=polyp_seg", f"model={args.model}", f"limit={args.limit}", "workers=1"]
    imported = statistics.median(_import_seconds() for _ in range(args.passes))
    print(f"import of MLflow: {imported:.1f} s, median of {args.passes}")
    if "MLFLOW_TRACKING_URI" in os.environ:
        _measure("MLFLOW_TRACKING_URI", words, {}, args.passes, imported)
        return
    for name in args.stores:
        with contextlib.ExitStack() as stack:
            try:
                given = stack.enter_context(_team_server()) if name == "team server" else {}
            except OSError as error:
                print(f"{name}: not measured: {error}")
                continue
            _measure(name, words, given, args.passes, imported)


def _import_seconds() -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    bare = time.perf_counter() - began
    subprocess.run([sys.executable, "-c", _IMPORT], check=True, stderr=subprocess.DEVNULL)
    return time.perf_counter() - began - 2 * bare


def _measure(name: str, words: list[str], given: Mapping[str, str], passes: int, imported: float) -> None:
    runs = [_run(words, given) for _ in range(passes)]
    sending, whole = (statistics.median(values) for values in zip(*runs, strict=True))
    beyond = f"{sending - imported:.1f} s beyond the import" if name == "local store" else "the import included"
    target = f" (target {TARGETS[name]:.0f} s)" if name in TARGETS else ""
    print(f"{name}: {sending:.1f} s of {whole:.1f} s, median of {passes}; {beyond}{target}")


def _run(words: list[str], given: Mapping[str, str]) -> tuple[float, float]:
    """Run into a new folder and return the seconds of sending, and those of the whole command."""
    with tempfile.TemporaryDirectory(prefix="medtest-tracking-") as home:
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, str(ROOT / "run.py"), *words],
            env={**os.environ, **given, "MEDTEST_HOME": home, "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        sent_from, lines = 0.0, []
        for line in process.stdout or ():
            lines.append(line)
            if line.rstrip().endswith("tracking"):
                sent_from = time.perf_counter()
        ended = time.perf_counter()
        if process.wait() > 1 or not sent_from:
            sys.exit("".join(lines[-20:]))
    return ended - sent_from, ended - began


@contextlib.contextmanager
def _team_server() -> Iterator[dict[str, str]]:
    """Serve a new folder and yield the environment of whoever logs there.

    Raises:
        OSError: The server does not start; the message is its last line.
    """
    with tempfile.TemporaryDirectory(prefix="mt-") as name:
        Path(name).chmod(0o755)  # PostgreSQL is not root
        folder, log = Path(name) / "team", Path(name) / "log"
        with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as free:
            port = free.getsockname()[1]
        command = [sys.executable, "-m", "medtest", "server", "--folder", str(folder), "--port", str(port)]
        with log.open("wb") as output:
            process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output)
        try:
            end = time.monotonic() + _START_SECONDS
            while "MLflow for a team" not in (text := log.read_text(encoding="utf-8")):
                if process.poll() is not None or time.monotonic() > end:
                    raise OSError(" ".join(text.split()) or "medtest server did not start")
                time.sleep(0.2)
            yield {
                "MLFLOW_TRACKING_URI": f"http://127.0.0.1:{port}",
                "MLFLOW_TRACKING_USERNAME": "admin",
                "MLFLOW_TRACKING_PASSWORD": (folder / "admin-password").read_text(encoding="utf-8"),
            }
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
