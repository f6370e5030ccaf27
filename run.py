"""Run a test suite: ``python run.py suite=polyp_seg model=ssformer``. ``python run.py --help`` says what else."""

from __future__ import annotations

import sys

from medtest.cli.launch import main

if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:  # in the moment before main looks after it
        sys.exit(130)
