"""Processor time, which other programs on the machine disturb less than they disturb the clock on the wall."""

from __future__ import annotations

import resource

from medtest.runner.pool.processes import end_servers


def processor_seconds() -> float:
    """Return the user and system time of this process and of its ended children, in seconds.

    The servers that fork workers are ended first, for the system counts a process only once somebody waited for it.
    """
    end_servers()
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)
