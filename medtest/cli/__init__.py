"""Command line: ``medtest`` (:mod:`medtest.cli.app`) and runs of suites (:mod:`medtest.cli.run.launch`)."""
