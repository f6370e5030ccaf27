"""From a plan to records: runs a suite's systems in worker processes and stores their answers.

:func:`run_suite` is the entry point for ``run.py``. The parent process imports no network library and survives failures
of the system under test; see :mod:`medtest.runner.pool.child`. Names are loaded lazily, because a worker needs only a
few.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from medtest.runner.folder import write_manifest
    from medtest.runner.prepared import PreparedRun, prepare_run
    from medtest.runner.replaying.export import export_followups
    from medtest.runner.replaying.replay import Replay, replay_case
    from medtest.runner.replaying.replay_answers import Answered, replay_strips
    from medtest.runner.reporting.outcome import Count, Limits, Progress, RunOutcome, SystemOutcome
    from medtest.runner.run import run_suite

__all__ = [
    "Answered",
    "Count",
    "Limits",
    "PreparedRun",
    "Progress",
    "Replay",
    "RunOutcome",
    "SystemOutcome",
    "export_followups",
    "prepare_run",
    "replay_case",
    "replay_strips",
    "run_suite",
    "write_manifest",
]

_HOMES = {
    "Answered": "replaying.replay_answers",
    "export_followups": "replaying.export",
    "write_manifest": "folder",
    "Replay": "replaying.replay",
    "replay_case": "replaying.replay",
    "replay_strips": "replaying.replay_answers",
    "PreparedRun": "prepared",
    "prepare_run": "prepared",
    "run_suite": "run",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'reporting.outcome')}"), name)
