"""From a plan to records: runs a suite's systems in worker processes and stores their answers.

:func:`medtest.runner.run.run_suite` is the entry point. The parent process imports no network library and survives
failures of the system under test; see :mod:`medtest.runner.pool.child`.
"""
