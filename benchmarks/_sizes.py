"""How much a benchmark measures: as much as its figures need, or as little as a test has time for."""

from __future__ import annotations

import argparse
import importlib.util
import os

VARIABLE = "MEDTEST_BENCH_SIZES"
LEFT_OUT = "left out: "
"""How the only line of a benchmark begins that has nothing to measure on this machine."""


def options(parser: argparse.ArgumentParser, **small: object) -> argparse.Namespace:
    """Read the command line; ``MEDTEST_BENCH_SIZES=small`` puts other defaults in place.

    Args:
        parser: Of the benchmark, with the defaults of a whole measurement.
        small: Defaults, by the options' names, with which it ends in seconds.

    Raises:
        SystemExit: The command line is wrong, or the variable is neither empty nor ``small``.
        ValueError: A name in ``small`` is none of the parser's options.
    """
    unknown = sorted(name for name in small if name not in vars(parser.parse_args([])))
    if unknown:
        raise ValueError(f"no such option: {', '.join(unknown)}")
    size = os.environ.get(VARIABLE, "")
    if size not in ("", "small"):
        parser.error(f"{VARIABLE} is {size!r}; it may be 'small' or empty")
    if size:
        parser.set_defaults(**small)
    return parser.parse_args()


def need(module: str, install: str) -> None:
    """End the benchmark, with one line and exit code 0, where a library that it measures is not installed.

    Args:
        module: Name under which the library is imported.
        install: What to install.
    """
    if importlib.util.find_spec(module) is None:
        print(f"{LEFT_OUT}{module} is not installed (pip install {install})")
        raise SystemExit(0)
