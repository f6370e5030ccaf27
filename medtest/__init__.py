"""medtest: metamorphic test suites for medical-imaging AI.

Importing this package loads nothing heavy. The command line is ``medtest``; ``python run.py`` in a checkout is
the same as ``medtest run``.
"""

__version__ = "0.1.0"
