"""Plan → batches → records: runs a suite's systems in worker processes and keeps what they answered.

:func:`run_suite` is what ``run.py`` calls. The parent process imports no network library and survives whatever a
system under test does; see :mod:`medtest.runner.worker`.
"""

from medtest.runner.folder import write_manifest
from medtest.runner.outcome import Count, Limits, Progress, RunOutcome, SystemOutcome
from medtest.runner.run import PreparedRun, prepare_run, run_suite

__all__ = [
    "Count",
    "Limits",
    "PreparedRun",
    "Progress",
    "RunOutcome",
    "SystemOutcome",
    "prepare_run",
    "run_suite",
    "write_manifest",
]
