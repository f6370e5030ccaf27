"""Run a test suite: ``python run.py suite=polyp_seg model=ssformer``. ``python run.py --help`` says what else."""

from __future__ import annotations

if __name__ == "__main__":  # before the imports, which take seconds; a worker imports this file under another name
    from medtest.runner.reporting import signals

    signals.at_start()

import sys  # Hydra's completion in fish looks for "@hydra.main" in this file

from medtest.cli.run.launch import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
